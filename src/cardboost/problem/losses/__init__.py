"""Losses with derivative, curvature, conjugate and probability (docs/losses.md).

Plain NumPy, one class per loss. The kernels hold their own copies of some of these formulas, known by
``code``; the tests hold the two together. ``LOSSES`` are those of a margin that every solver takes;
``MARGIN_LOSSES`` has the hinge too, which has no curvature: those solvers take the smooth hinge for it.
``RESIDUAL_LOSSES`` are for regression, and ``EVALUATION_LOSSES`` can be counted but not trained.
"""

from __future__ import annotations

from cardboost.problem.losses.base import Array, Loss
from cardboost.problem.losses.evaluation import EvaluationLoss, SignLoss, ZeroOne
from cardboost.problem.losses.margin import Exponential, Hinge, Logistic, SmoothHinge, SquaredHinge
from cardboost.problem.losses.residual import AbsoluteLoss, SquaredLoss

__all__ = [
    "ABSOLUTE",
    "EVALUATION_LOSSES",
    "LOSSES",
    "MARGIN_LOSSES",
    "RESIDUAL_LOSSES",
    "SQUARED",
    "AbsoluteLoss",
    "Array",
    "EvaluationLoss",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "SignLoss",
    "SmoothHinge",
    "SquaredHinge",
    "SquaredLoss",
    "ZeroOne",
    "get_loss",
    "in_kernels",
    "stagewise_loss",
]

LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (Exponential(), Logistic(), SquaredHinge(), SmoothHinge())
}
MARGIN_LOSSES: dict[str, Loss] = {**LOSSES, Hinge.name: Hinge()}
SQUARED, ABSOLUTE = SquaredLoss(), AbsoluteLoss()
RESIDUAL_LOSSES: dict[str, Loss] = {SQUARED.name: SQUARED, ABSOLUTE.name: ABSOLUTE}
EVALUATION_LOSSES: dict[str, EvaluationLoss] = {loss.name: loss for loss in (ZeroOne(), SignLoss())}


def in_kernels(loss: Loss) -> bool:
    """Whether the kernels have this very loss: a subclass may have other formulas."""
    return any(type(loss) is type(own) for own in (*LOSSES.values(), SQUARED))


def get_loss(name: str | Loss) -> Loss:
    """The loss of that name for two classes, for solvers that need curvature; a clear error otherwise.

    For the hinge that is the one with a rounded corner.
    """
    accepted = _listed({**LOSSES, Hinge.name: MARGIN_LOSSES[Hinge.name]})
    if isinstance(name, Loss):
        _refuse_evaluation(name.name)
        if not in_kernels(name):
            raise ValueError(
                f"loss={name.name!r} is for the Stagewise estimators only; here it must be one of {accepted}."
            )
        return name
    _refuse_evaluation(name)
    if name == Hinge.name:
        return LOSSES[SmoothHinge.name]
    if not isinstance(name, str) or name not in LOSSES:
        raise ValueError(f"loss must be one of {accepted}; got {name!r}.")
    return LOSSES[name]


def stagewise_loss(loss: str | Loss, *, of_residual: bool) -> Loss:
    """The loss of that name, or the user's own, for boosting stage by stage; a clear error otherwise."""
    known, other = (RESIDUAL_LOSSES, MARGIN_LOSSES) if of_residual else (MARGIN_LOSSES, RESIDUAL_LOSSES)
    name = loss.name if isinstance(loss, Loss) else loss
    _refuse_evaluation(name)
    if isinstance(loss, Loss):
        if loss.of_residual != of_residual:
            wanted = "residual" if of_residual else "margin"
            raise ValueError(
                f"loss={name!r} must be a loss of the {wanted}: see of_residual in docs/losses.md."
            )
        return loss
    if isinstance(name, str) and name in other:
        kind = "StagewiseClassifier" if of_residual else "StagewiseRegressor"
        raise ValueError(f"loss={name!r} is for {kind}; here it must be one of {_listed(known)}.")
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"loss must be one of {_listed(known)}, or a Loss of your own; got {name!r}.")
    return known[name]


def _refuse_evaluation(name: object) -> None:
    if isinstance(name, str) and name in EVALUATION_LOSSES:
        raise ValueError(EVALUATION_LOSSES[name].refusal())


def _listed(losses: dict[str, Loss]) -> str:
    return ", ".join(repr(known) for known in sorted(losses))
