"""The interface of a loss: a convex function of the margin or of the residual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        if self.of_residual:
            raise ValueError(
                f"The {self.name} loss predicts numbers: there are no classes to have probabilities."
            )
        raise ValueError(
            f"The {self.name} loss has no probabilities: its scores say which class, not how likely. Take "
            "decision_function, or wrap the model in sklearn.calibration.CalibratedClassifierCV."
        )

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
