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

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, xlogy

Array = NDArray[np.float64]

_MAX_HALVINGS = 200  # reach neighbouring floats for every score above 1e-44


class Loss(ABC):
    """A convex function of the margin ``F = y f(x)``, where it falls, or of the residual ``F = f(x) - t``.

    To write a loss, subclass this with a ``name`` and the methods ``rows``, ``derivative``, ``curvature`` and
    ``conjugate``; :func:`cardboost.testing.check_loss` verifies that they fit together. All of them take an
    array of any shape and return one of the same shape.

    Attributes
    ----------
    name : str
        How estimators and model files refer to it.
    code : int
        The number under which the kernels have it; -1 if they do not.
    of_residual : bool
        Whether it is a loss of the residual, for regression.
    quadratic : bool
        Whether the curvature is the same everywhere, so that a Hessian never has to be computed again.
    kinks : tuple of float
        Where the slope jumps. There the derivative is any number between the slopes on both sides.
    piecewise_linear : bool
        Whether it consists of straight pieces that meet at the kinks, so that the best steps are medians.
    most_curvature : float
        An upper limit of the curvature, relative to exp of the shift of a pass (kernels/loss.h).

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost.problem.losses import Loss
    >>> from cardboost.testing import check_loss
    >>> class Quartic(Loss):
    ...     name = "quartic"
    ...     of_residual = True
    ...     def rows(self, F):
    ...         return 0.25 * np.asarray(F) ** 4
    ...     def derivative(self, F):
    ...         return np.asarray(F) ** 3
    ...     def curvature(self, F):
    ...         return 3.0 * np.asarray(F) ** 2
    ...     def conjugate(self, v):
    ...         return 0.75 * np.abs(v) ** (4.0 / 3.0)
    >>> check_loss(Quartic())
    """

    name: ClassVar[str]
    code: ClassVar[int] = -1
    of_residual: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    kinks: ClassVar[tuple[float, ...]] = ()
    piecewise_linear: ClassVar[bool] = False
    most_curvature: ClassVar[float] = 1.0

    @abstractmethod
    def rows(self, F: ArrayLike) -> Array:
        """Loss of every row."""

    def value(self, F: ArrayLike, s: ArrayLike | None = None) -> float:
        """Mean loss of the rows, or their sum weighted by ``s``."""
        rows = self.rows(F)
        return float(np.mean(rows) if s is None else np.dot(np.asarray(s, dtype=np.float64), rows))

    @abstractmethod
    def derivative(self, F: ArrayLike) -> Array:
        """First derivative in every row."""

    @abstractmethod
    def curvature(self, F: ArrayLike) -> Array:
        """Second derivative in every row."""

    def bend(self, F: ArrayLike) -> Array:
        """Curvature used by Newton steps: that of the loss, or of a parabola above it."""
        return self.curvature(F)

    @abstractmethod
    def conjugate(self, v: ArrayLike) -> Array:
        """Conjugate at ``-v``: the maximum over z of ``-v z - loss(z)``; infinite outside its domain."""

    def dual(self, v: ArrayLike, target: ArrayLike = 0.0) -> Array:
        """What a row of dual weight ``v`` adds to the lower bound.

        Parameters
        ----------
        v : array-like
            Dual weights of the rows.
        target : array-like, default=0.0
            Targets t, for a loss of the residual.

        Returns
        -------
        ndarray
            ``v t - conjugate(v)``.
        """
        v = np.asarray(v, dtype=np.float64)
        return v * np.asarray(target, dtype=np.float64) - self.conjugate(v)

    def probability(self, f: ArrayLike) -> Array:
        """Probability of the positive class at score ``f``; a ValueError where the loss has none."""
        reason = "predicts numbers: there are no classes to have probabilities."
        if not self.of_residual:
            reason = (
                "has no probabilities: its scores say which class, not how likely. Take decision_function, "
                "or wrap the model in sklearn.calibration.CalibratedClassifierCV."
            )
        raise ValueError(f"The {self.name} loss {reason}")

    @property
    def has_probability(self) -> bool:
        """Whether scores can be turned into probabilities."""
        return type(self).probability is not Loss.probability

    def best_constant(self, mean: float) -> float:
        """Score of least mean loss, if the same score is given to every row.

        Parameters
        ----------
        mean : float
            Weighted mean of the targets. For classification the targets are 0 and 1, so this is the share of
            the weight that is positive.

        Returns
        -------
        float
            By bisection, unless a subclass has a formula.
        """
        if self.of_residual:
            raise ValueError(
                f"The best constant of the {self.name} loss does not follow from the mean alone."
            )

        def slope(f: float) -> float:
            return float(mean * self.derivative(f) - (1.0 - mean) * self.derivative(-f))

        if slope(0.0) == 0.0:
            return 0.0
        toward = 1.0 if slope(0.0) < 0.0 else -1.0
        low, high = 0.0, 1.0
        while slope(toward * high) * toward < 0.0 and high < 1e3:
            low, high = high, 2.0 * high
        for _ in range(_MAX_HALVINGS):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            low, high = (middle, high) if slope(toward * middle) * toward < 0.0 else (low, middle)
        return toward * high

    @property
    def surrogate_factor(self) -> float:
        """Factor that makes the loss at least 1 wherever the margin is not positive."""
        return 1.0 / float(self.rows(0.0))


class Exponential(Loss):
    """``exp(-F)``, the loss of AdaBoost; conjugate ``v ln v - v`` for ``v >= 0``."""

    name = "exponential"
    code = 0

    def rows(self, F: ArrayLike) -> Array:
        return np.exp(-np.asarray(F, dtype=np.float64))

    def derivative(self, F: ArrayLike) -> Array:
        return -self.rows(F)

    def curvature(self, F: ArrayLike) -> Array:
        return self.rows(F)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where(v < 0, np.inf, xlogy(v, np.maximum(v, 0)) - v)

    def probability(self, f: ArrayLike) -> Array:
        return expit(2.0 * np.asarray(f, dtype=np.float64))

    def best_constant(self, mean: float) -> float:
        return 0.5 * float(logit(mean))


class Logistic(Loss):
    """``ln(1 + exp(-F))``; conjugate ``v ln v + (1 - v) ln(1 - v)`` for ``0 <= v <= 1``."""

    name = "logistic"
    code = 1

    def rows(self, F: ArrayLike) -> Array:
        return np.logaddexp(0.0, -np.asarray(F, dtype=np.float64))

    def derivative(self, F: ArrayLike) -> Array:
        return -expit(-np.asarray(F, dtype=np.float64))

    def curvature(self, F: ArrayLike) -> Array:
        F = np.asarray(F, dtype=np.float64)
        return expit(F) * expit(-F)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        inside = (v >= 0) & (v <= 1)
        clipped = np.clip(v, 0.0, 1.0)
        return np.where(inside, xlogy(clipped, clipped) + xlogy(1 - clipped, 1 - clipped), np.inf)

    def probability(self, f: ArrayLike) -> Array:
        return expit(np.asarray(f, dtype=np.float64))

    def best_constant(self, mean: float) -> float:
        return float(logit(mean))


class SquaredHinge(Loss):
    """``max(0, 1 - F)^2``: no loss beyond the margin 1; conjugate ``v^2 / 4 - v`` for ``v >= 0``."""

    name = "squared_hinge"
    code = 3
    most_curvature = 2.0

    def rows(self, F: ArrayLike) -> Array:
        return np.square(_shortfall(F))

    def derivative(self, F: ArrayLike) -> Array:
        return -2.0 * _shortfall(F)

    def curvature(self, F: ArrayLike) -> Array:
        return np.where(np.asarray(F, dtype=np.float64) < 1.0, 2.0, 0.0)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where(v < 0, np.inf, v * (0.25 * v - 1.0))

    def probability(self, f: ArrayLike) -> Array:
        """``(1 + f) / 2``: where the probability is p, the score of least expected loss is 2 p - 1."""
        return np.clip(0.5 + 0.5 * np.asarray(f, dtype=np.float64), 0.0, 1.0)

    def best_constant(self, mean: float) -> float:
        return 2.0 * mean - 1.0


class Hinge(Loss):
    """``max(0, 1 - F)``, the loss of support vector machines; conjugate ``-v`` for ``0 <= v <= 1``.

    It has no probabilities and no curvature.
    """

    name = "hinge"
    kinks = (1.0,)
    piecewise_linear = True

    def rows(self, F: ArrayLike) -> Array:
        return _shortfall(F)

    def derivative(self, F: ArrayLike) -> Array:
        """-1 below the margin 1, 0 above, and -1/2 at 1: edges then rank columns of signs correctly."""
        return 0.5 * np.sign(np.asarray(F, dtype=np.float64) - 1.0) - 0.5

    def curvature(self, F: ArrayLike) -> Array:
        return np.zeros_like(np.asarray(F, dtype=np.float64))

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where((v >= 0) & (v <= 1), -v, np.inf)

    def best_constant(self, mean: float) -> float:
        return math.copysign(1.0, mean - 0.5) if mean != 0.5 else 0.0


class SmoothHinge(Loss):
    """The hinge with its corner rounded off by a parabola over the last quarter before the margin 1.

    With ``x = max(0, 1 - F)`` it is ``2 x^2`` for ``x <= 1/4`` and ``x - 1/8`` beyond; the conjugate is
    ``v^2 / 8 - v`` for ``0 <= v <= 1``. It is nowhere above the hinge and nowhere more than 1/8 below it, so
    that a lower bound for it is one for the hinge too. Solvers that need curvature use it for the hinge.
    """

    name = "smooth_hinge"
    code = 4
    corner = 1.0 / 4.0
    most_curvature = 4.0

    def rows(self, F: ArrayLike) -> Array:
        shortfall = _shortfall(F)
        steep = np.minimum(1.0, shortfall / self.corner)
        return steep * (shortfall - 0.5 * self.corner * steep)

    def derivative(self, F: ArrayLike) -> Array:
        return -np.minimum(1.0, _shortfall(F) / self.corner)

    def curvature(self, F: ArrayLike) -> Array:
        shortfall = _shortfall(F)
        return np.where((shortfall > 0.0) & (shortfall < self.corner), 1.0 / self.corner, 0.0)

    def bend(self, F: ArrayLike) -> Array:
        """Curvature of the parabola above the loss that touches it at F and has its minimum at 1."""
        shortfall = _shortfall(F)
        return np.divide(-self.derivative(F), shortfall, out=np.zeros_like(shortfall), where=shortfall > 0.0)

    def conjugate(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        return np.where((v >= 0) & (v <= 1), v * (0.5 * self.corner * v - 1.0), np.inf)

    def best_constant(self, mean: float) -> float:
        if mean == 0.5:
            return 0.0
        few, many = sorted((mean, 1.0 - mean))
        return math.copysign(1.0 - self.corner * few / many, mean - 0.5)


def _shortfall(F: ArrayLike) -> Array:
    """``max(0, 1 - F)``: by how much margins fall short of 1."""
    return np.maximum(0.0, 1.0 - np.asarray(F, dtype=np.float64))


class SquaredLoss(Loss):
    """Least squares: ``F^2 / 2`` of the residual ``F``, with the conjugate ``v^2 / 2``."""

    name = "squared"
    code = 2
    of_residual = True
    quadratic = True

    def rows(self, F: ArrayLike) -> Array:
        F = np.asarray(F, dtype=np.float64)
        return 0.5 * F * F

    def derivative(self, F: ArrayLike) -> Array:
        return np.array(F, dtype=np.float64)

    def curvature(self, F: ArrayLike) -> Array:
        return np.ones_like(np.asarray(F, dtype=np.float64))

    def conjugate(self, v: ArrayLike) -> Array:
        return self.rows(v)

    def best_constant(self, mean: float) -> float:
        return mean


class AbsoluteLoss(Loss):
    """Least absolute deviations: ``|F|`` of the residual ``F``, with the conjugate 0 for ``|v| <= 1``."""

    name = "absolute"
    of_residual = True
    kinks = (0.0,)
    piecewise_linear = True

    def rows(self, F: ArrayLike) -> Array:
        return np.abs(np.asarray(F, dtype=np.float64))

    def derivative(self, F: ArrayLike) -> Array:
        return np.sign(np.asarray(F, dtype=np.float64))

    def curvature(self, F: ArrayLike) -> Array:
        return np.zeros_like(np.asarray(F, dtype=np.float64))

    def conjugate(self, v: ArrayLike) -> Array:
        return np.where(np.abs(np.asarray(v, dtype=np.float64)) <= 1.0, 0.0, np.inf)


class EvaluationLoss(Loss):
    """A step at the margin 0: it has a value, and refuses everything that training needs."""

    def refusal(self) -> str:
        """Why the loss cannot be trained on, as a sentence for the user."""
        return (
            f"loss={self.name!r} counts errors: it is flat, and nothing can be trained on it. Take a "
            "surrogate, 'exponential', 'logistic', 'hinge' or 'squared_hinge', and evaluate by the errors."
        )

    def _refuse(self, *arguments: Any, **named: Any) -> NoReturn:
        raise ValueError(self.refusal())

    derivative = curvature = conjugate = probability = best_constant = _refuse


class ZeroOne(EvaluationLoss):
    """1 for a margin ``F <= 0``, else 0: a score of 0 counts as an error."""

    name = "zero_one"

    def rows(self, F: ArrayLike) -> Array:
        return (np.asarray(F, dtype=np.float64) <= 0.0).astype(np.float64)


class SignLoss(EvaluationLoss):
    """1 for a margin ``F < 0``, else 0: a score of 0 counts as correct."""

    name = "sign"

    def rows(self, F: ArrayLike) -> Array:
        return (np.asarray(F, dtype=np.float64) < 0.0).astype(np.float64)


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
    _refuse_evaluation(name)
    if isinstance(name, Loss):
        if not in_kernels(name):
            raise ValueError(
                f"loss={name.name!r} is for the Stagewise estimators only; here it must be one of {accepted}."
            )
        return name
    if not isinstance(name, str) or name not in MARGIN_LOSSES:
        raise ValueError(f"loss must be one of {accepted}; got {name!r}.")
    return LOSSES[SmoothHinge.name if name == Hinge.name else name]


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
    accepted, other, kind, estimator = (
        (RESIDUAL_LOSSES, MARGIN_LOSSES, "residual", "StagewiseClassifier")
        if of_residual
        else (MARGIN_LOSSES, RESIDUAL_LOSSES, "margin", "StagewiseRegressor")
    )
    _refuse_evaluation(loss)
    if isinstance(loss, Loss):
        if loss.of_residual != of_residual:
            raise ValueError(
                f"loss={loss.name!r} must be a loss of the {kind}: see of_residual in docs/losses.md."
            )
        return loss
    if isinstance(loss, str) and loss in other:
        raise ValueError(f"loss={loss!r} is for {estimator}; here it must be one of {_listed(accepted)}.")
    if not isinstance(loss, str) or loss not in accepted:
        raise ValueError(f"loss must be one of {_listed(accepted)}, or a Loss of your own; got {loss!r}.")
    return accepted[loss]


def _refuse_evaluation(loss: object) -> None:
    """Refuse to train on a loss that can only be evaluated, or on one of its name."""
    name = loss.name if isinstance(loss, Loss) else loss
    if isinstance(name, str) and name in EVALUATION_LOSSES:
        raise ValueError(EVALUATION_LOSSES[name].refusal())


def _listed(losses: dict[str, Loss]) -> str:
    """Names for a message, in alphabetical order."""
    return ", ".join(map(repr, sorted(losses)))
