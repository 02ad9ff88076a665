"""Finished models: step functions that predict, a versioned file, a readable card. Nothing here trains."""

from cardboost.model.card import render_card
from cardboost.model.ensemble import Ensemble, StepFunction, Term
from cardboost.model.io import Model, load_model, save

__all__ = ["Ensemble", "Model", "StepFunction", "Term", "load_model", "render_card", "save"]
