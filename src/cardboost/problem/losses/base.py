"""What a loss is: a convex function of the margin or of the residual, with all that training needs of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_HALVINGS = 200


class Loss(ABC):
    """A convex function of the margin ``F = y f(x)``, where it falls, or of the residual ``F = f(x) - t``.

    A loss of one's own is a subclass with a ``name``, ``rows``, ``derivative``, ``curvature`` and
    ``conjugate``. :func:`cardboost.testing.check_loss` says whether they fit together.
    """

    name: ClassVar[str]
    #: under which the kernels know it; -1: they do not
    code: ClassVar[int] = -1
    #: whether it is a loss of the residual, for regression
    of_residual: ClassVar[bool] = False
    #: whether the curvature is the same everywhere, so that a Hessian never ages
    quadratic: ClassVar[bool] = False
    #: where the slope jumps; there the derivative is one of the slopes on either side, or between them
    kinks: ClassVar[tuple[float, ...]] = ()
    #: whether it is made of straight pieces that meet at the kinks, so that best steps are medians
    piecewise_linear: ClassVar[bool] = False
    #: no curvature is above this, relative to exp of the shift of a pass (kernels/loss.h)
    most_curvature: ClassVar[float] = 1.0

    @abstractmethod
    def rows(self, F: ArrayLike) -> Array:
        """The loss of every row."""

    def value(self, F: ArrayLike, s: ArrayLike | None = None) -> float:
        """The mean loss, or the sum weighted by ``s``."""
        rows = self.rows(F)
        return float(np.mean(rows) if s is None else np.dot(np.asarray(s, dtype=np.float64), rows))

    @abstractmethod
    def derivative(self, F: ArrayLike) -> Array: ...

    @abstractmethod
    def curvature(self, F: ArrayLike) -> Array: ...

    def bend(self, F: ArrayLike) -> Array:
        """The curvature that Newton steps go by: that of the loss, or of a parabola above it."""
        return self.curvature(F)

    @abstractmethod
    def conjugate(self, v: ArrayLike) -> Array:
        """``max over z of -v z - loss(z)``: the conjugate at ``-v``; infinite outside its domain."""

    def dual(self, v: ArrayLike, target: ArrayLike = 0.0) -> Array:
        """What a row with dual weight ``v`` adds to the lower bound; ``target``: t, for the residual."""
        v = np.asarray(v, dtype=np.float64)
        return v * np.asarray(target, dtype=np.float64) - self.conjugate(v)

    def probability(self, f: ArrayLike) -> Array:
        """Probability of the positive class at score ``f``."""
        raise ValueError(
            f"The {self.name} loss has no probabilities: its scores say which class, not how likely. Take "
            "decision_function, or wrap the model in sklearn.calibration.CalibratedClassifierCV."
        )

    @property
    def has_probability(self) -> bool:
        """Whether scores say how likely a class is."""
        return type(self).probability is not Loss.probability

    def best_constant(self, mean: float) -> float:
        """The score with the least mean loss where the weighted mean of the targets is ``mean``.

        Of two classes the targets are 0 and 1: ``mean`` is the share of the weight that is positive. Unless a
        loss has a formula, the score is found by halving an interval.
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
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            low, high = (middle, high) if slope(toward * middle) * toward < 0.0 else (low, middle)
        return toward * high

    @property
    def surrogate_factor(self) -> float:
        """By which the loss must be multiplied to be at least 1 wherever the margin is not positive."""
        return 1.0 / float(self.rows(0.0))
