"""Finished models: step functions that predict, a versioned file, a readable card. Nothing here trains."""

from cardboost.model.card import render_card
from cardboost.model.ensemble import Ensemble
from cardboost.model.io import Model, load_model, save
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.terms import StepFunction, Term

__all__ = [
    "Ensemble",
    "Model",
    "MulticlassEnsemble",
    "StepFunction",
    "Term",
    "load_model",
    "render_card",
    "save",
]
