"""cardboost: the smallest boosted model that is accurate enough, and how far from optimal it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cardboost.data.roles import ColumnRoleWarning as ColumnRoleWarning
    from cardboost.estimators.callbacks import FitCallback as FitCallback
    from cardboost.estimators.card_boost import CardBoostClassifier as CardBoostClassifier
    from cardboost.estimators.card_boost import CardBoostRegressor as CardBoostRegressor
    from cardboost.estimators.neural_boost import NeuralBoostClassifier as NeuralBoostClassifier
    from cardboost.estimators.neural_boost import NeuralBoostRegressor as NeuralBoostRegressor
    from cardboost.estimators.soft_margin import SoftMarginClassifier as SoftMarginClassifier
    from cardboost.estimators.stagewise_estimators import StagewiseClassifier as StagewiseClassifier
    from cardboost.estimators.stagewise_estimators import StagewiseRegressor as StagewiseRegressor
    from cardboost.linear.logistic import SparseLogisticRegression as SparseLogisticRegression
    from cardboost.linear.regression import SparseLinearRegression as SparseLinearRegression
    from cardboost.model.files import load_model as load_model
    from cardboost.pareto.compute import pareto_front as pareto_front
    from cardboost.pareto.front import ParetoFront as ParetoFront

_HOME = {
    "CardBoostClassifier": "cardboost.estimators.card_boost",
    "CardBoostRegressor": "cardboost.estimators.card_boost",
    "ColumnRoleWarning": "cardboost.data.roles",
    "FitCallback": "cardboost.estimators.callbacks",
    "NeuralBoostClassifier": "cardboost.estimators.neural_boost",
    "NeuralBoostRegressor": "cardboost.estimators.neural_boost",
    "SoftMarginClassifier": "cardboost.estimators.soft_margin",
    "StagewiseClassifier": "cardboost.estimators.stagewise_estimators",
    "StagewiseRegressor": "cardboost.estimators.stagewise_estimators",
    "SparseLinearRegression": "cardboost.linear.regression",
    "SparseLogisticRegression": "cardboost.linear.logistic",
    "load_model": "cardboost.model.files",
    "pareto_front": "cardboost.pareto.compute",
    "ParetoFront": "cardboost.pareto.front",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used, so that ``import cardboost`` stays quick."""
    if name in _HOME:
        from importlib import import_module

        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'cardboost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
