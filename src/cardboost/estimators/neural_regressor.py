"""``NeuralBoostRegressor``: boosted networks for one number per row, or several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from cardboost.data.exact import refuse_mask, require_exact_columns
from cardboost.estimators.neural import NeuralBoost, NeuralTask, mean_and_deviation, scaled_weights
from cardboost.estimators.validation import sample_weights
from cardboost.problem.losses.vector import (
    AbsoluteOutputs,
    HuberOutputs,
    SquaredOutputs,
    VectorLoss,
    weighted_median,
)

Array = NDArray[np.float64]

_HUBER = 1.345 * 1.4826  # times the median deviation: 95 % efficient where errors are normal


class NeuralBoostRegressor(RegressorMixin, NeuralBoost):
    """Boosted networks with one hidden layer, for one number per row or several.

    Parameters are those of :class:`NeuralBoostClassifier`, except for

    loss : {"auto", "squared", "absolute", "huber"} or a VectorLoss of your own
        "auto" is "squared". Named losses are of targets divided by their deviation, output by
        output; one's own is in the units of the target.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cardboost import NeuralBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NeuralBoostRegressor(n_estimators=3, early_stopping=False, l2=0.03, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a table of finite numbers and one number or several per row."""
        self._check_arguments()
        table = self._read(X, reset=True)
        target = _targets(y, len(table))
        raw = sample_weights(sample_weight, len(table))
        self._flat = target.ndim == 1
        table, target, s = self._weighted_rows(table, target, raw)
        own = isinstance(self.loss, VectorLoss)
        middle, unit = np.zeros(target.shape[1]), np.ones(target.shape[1])
        if not own:
            middle, unit = mean_and_deviation(target, s, "y")
            flat = (target == target[0]).all(axis=0) | (unit <= 1e-12 * np.abs(middle))
            unit[flat], middle[flat] = 1.0, target[0, flat]
        self._units = unit, middle
        wanted = (target - middle) / unit
        if not own:
            wanted[:, flat] = 0.0
        if not np.isfinite(wanted).all():
            raise ValueError("y holds numbers that are too large: divide them by some power of ten.")
        squared = SquaredOutputs()
        self._fitted_loss = self._vector_loss(
            {"auto": squared, "squared": squared, "absolute": AbsoluteOutputs(), "huber": _huber(wanted, s)}
        )
        self._train(NeuralTask(table, wanted, s, self._fitted_loss, None))
        return self

    def _weighted_rows(self, X: Array, target: Array, raw: Array | None) -> tuple[Array, Array, Array]:
        """The rows that have a weight."""
        keep = np.arange(len(X)) if raw is None else np.flatnonzero(raw > 0)
        weight = scaled_weights(None if raw is None else raw[keep], len(keep))
        return self._fitted_rows(X[keep], np.atleast_2d(target.T).T[keep], weight)

    def _rows_to_check(self, X: Array, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
        target, raw = _targets(y, len(X)), sample_weights(sample_weight, len(X))
        table, target, s = self._weighted_rows(X, target, raw)
        unit, middle = self._units
        return table, (target - middle) / unit, s

    def _labels(self) -> tuple[Any, ...] | None:
        return None

    def predict(self, X: Any) -> Array:
        """The number that the model expects for every row, or (rows, outputs)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after every round, and last those of the pruned model if there is one."""
        for scores in self._staged_scores(X):
            yield scores[:, 0] if self._flat else scores


def _targets(y: Any, n_rows: int) -> Array:
    """Finite numbers, (rows,) or (rows, outputs)."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    refuse_mask(y, "y")
    require_exact_columns(y, "y")
    try:
        target = np.asarray(y)
        if target.dtype.kind == "c":
            raise ValueError("Complex data not supported.")
        target = target.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers: {error}") from error
    if target.ndim not in (1, 2) or target.size == 0:
        raise ValueError(f"y must have shape (rows,) or (rows, outputs); found {target.shape}.")
    if len(target) != n_rows:
        raise ValueError(f"X and y have inconsistent numbers of samples: {n_rows} and {len(target)}.")
    if not np.isfinite(target).all():
        raise ValueError("Input y contains NaN or infinity: every row needs finite numbers.")
    return target


def _huber(wanted: Array, s: Array) -> HuberOutputs:
    """Straight beyond what errors of a normal distribution seldom reach."""
    middle = np.array([weighted_median(own, s) for own in wanted.T])
    deviation = weighted_median(np.abs(wanted - middle).ravel(), np.repeat(s, wanted.shape[1]))
    return HuberOutputs(_HUBER * deviation if deviation > 0.0 else 1.0)
