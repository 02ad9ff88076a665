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

_NAMES = {
    "card": ("render_card",),
    "ensemble": ("Ensemble",),
    "files": ("Model", "load_model", "save"),
    "linear": ("LinearModel", "LinearScore"),
    "multiclass": ("MulticlassEnsemble",),
    "terms": ("StepFunction", "Term"),
}


def __getattr__(name: str) -> Any:
    """Imported when first used: a fit needs no card and no files."""
    for module, names in _NAMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"cardboost.model.{module}"), name)
    raise AttributeError(f"module 'cardboost.model' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
