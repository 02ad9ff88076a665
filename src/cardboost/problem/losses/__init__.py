"""Losses of the margin and of the residual (docs/losses.md).

Each loss is an instance of a subclass of :class:`Loss` in plain NumPy. The kernels hold their own copies of
some of the formulas, selected by ``code``; the tests compare the two.

Attributes
----------
LOSSES : dict
    Losses of the margin, by name, that every solver accepts: exponential, logistic, squared_hinge and
    smooth_hinge.
MARGIN_LOSSES : dict
    The same and the hinge, which has no curvature. Solvers that need curvature minimise the smooth hinge in
    its place.
RESIDUAL_LOSSES : dict
    Losses of the residual, for regression: squared and absolute.
EVALUATION_LOSSES : dict
    Counts of errors: zero_one and sign. They can be evaluated but not trained on.
SQUARED, ABSOLUTE : Loss
    The two losses of the residual.
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
    """Return whether the kernels evaluate exactly this loss (a subclass may have other formulas)."""
    return type(loss) in {type(kernel_loss) for kernel_loss in (*LOSSES.values(), SQUARED)}


def get_loss(name: str | Loss) -> Loss:
    """Return a loss of the margin that has curvature, as the solvers of all weights at once need it.

    Parameters
    ----------
    name : str or Loss
        A name among ``MARGIN_LOSSES``, or one of those instances. "hinge" stands for the smooth hinge.

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        For any other name, for losses of users and for losses that only evaluate.

    Examples
    --------
    >>> from cardboost.problem.losses import get_loss
    >>> round(get_loss("logistic").value([0.0, 2.0]), 3)
    0.41
    """
    accepted = _listed(MARGIN_LOSSES)
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
    """Return a loss for boosting stage by stage, which also accepts a loss written by the user.

    Parameters
    ----------
    loss : str or Loss
        A name among ``MARGIN_LOSSES`` or ``RESIDUAL_LOSSES``, or any :class:`Loss`.
    of_residual : bool
        Whether a loss of the residual (regression) or of the margin (classification) is required.

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        For unknown names, losses of the other kind, and losses that only evaluate.
    """
    accepted, other = (RESIDUAL_LOSSES, MARGIN_LOSSES) if of_residual else (MARGIN_LOSSES, RESIDUAL_LOSSES)
    name = loss.name if isinstance(loss, Loss) else loss
    _refuse_evaluation(name)
    if isinstance(loss, Loss):
        if loss.of_residual != of_residual:
            kind = "residual" if of_residual else "margin"
            raise ValueError(
                f"loss={name!r} must be a loss of the {kind}: see of_residual in docs/losses.md."
            )
        return loss
    if isinstance(name, str) and name in other:
        estimator = "StagewiseClassifier" if of_residual else "StagewiseRegressor"
        raise ValueError(f"loss={name!r} is for {estimator}; here it must be one of {_listed(accepted)}.")
    if not isinstance(name, str) or name not in accepted:
        raise ValueError(f"loss must be one of {_listed(accepted)}, or a Loss of your own; got {name!r}.")
    return accepted[name]


def _refuse_evaluation(name: object) -> None:
    """Refuse to train on a loss that can only be evaluated."""
    if isinstance(name, str) and name in EVALUATION_LOSSES:
        raise ValueError(EVALUATION_LOSSES[name].refusal())


def _listed(losses: dict[str, Loss]) -> str:
    """Names for a message, in alphabetical order."""
    return ", ".join(map(repr, sorted(losses)))
