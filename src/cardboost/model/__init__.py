"""Finished models: step functions that predict, a versioned file, a readable card. Nothing here trains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "Ensemble",
    "LinearModel",
    "LinearScore",
    "Model",
    "MulticlassEnsemble",
    "StepFunction",
    "Term",
    "load_model",
    "render_card",
    "save",
]

if TYPE_CHECKING:
    from cardboost.model.card import render_card
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.files import Model, load_model, save
    from cardboost.model.linear import LinearModel, LinearScore
    from cardboost.model.multiclass import MulticlassEnsemble
    from cardboost.model.terms import StepFunction, Term

_HOME = {
    "Ensemble": "ensemble",
    "LinearModel": "linear",
    "LinearScore": "linear",
    "Model": "files",
    "MulticlassEnsemble": "multiclass",
    "StepFunction": "terms",
    "Term": "terms",
    "load_model": "files",
    "render_card": "card",
    "save": "files",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: a fit needs no card and no files."""
    if name in _HOME:
        from importlib import import_module

        value = getattr(import_module(f"cardboost.model.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'cardboost.model' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
