"""What is claimed of a linear model, recomputed from the data: plain NumPy, nothing of the solvers.

``faults`` takes the coefficients and recomputes the objective and the lower bound from the data. The row
weights u of the bound follow from the scores (docs/linear.md, "The certificate"); for the absolute loss,
whose derivative has no value where a residual is 0, the certificate holds them.

With an intercept the row weights sum to 0, so that a column may be shifted: columns and targets far from 0
are looked at from the middle of their range, and what the coefficients make of that is added up exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate.checker.data import Floats as Array
from cardboost.certificate.checker.data import read_weights, refuse_masks

# all relative to the objective without features
ROUNDING = 1e-9  # of sums over rows
OPTIMAL_GAP = 1e-4  # the gap of a model that may be called optimal
_BOX = 1e4
_LIGHTEST = 1e-300  # share of a class, or of a row's limit
_BELOW_1 = float(np.nextafter(1.0, 0.0))
_FIRST_ROWS = 64  # tell most columns that are not far from 0
_ROWS_AT_ONCE = 2048
_FAR = 1e3  # a column whose middle is so many times its range from 0 is shifted
_NUMBERS = {"objective": "objective", "lower_bound": "lower bound"}
_NUMBERS |= {"null_objective": "objective without features"}
_LOSSES = ("logistic", "softmax", "squared", "absolute")
_STATUSES = ("optimal", "feasible", "iteration limit", "precision", "separable")


@dataclass(frozen=True, eq=False)
class LinearClaims:
    """What a certificate says of a linear model: problem, coefficients, objective and lower bound.

    ``coef`` has one row per score: one, or one per class for the loss "softmax". ``target``: the class that
    is told from the others, for the loss "logistic". With l1 = l2 = 0 the bound covers all coefficients of
    at most ``box`` times (target / root mean square of the column, with an intercept about its mean); else
    ``box`` is None, and it covers all.
    """

    loss: str
    l1: float
    l2: float
    fit_intercept: bool
    coef: Array
    intercept: Array
    objective: float
    lower_bound: float
    null_objective: float
    status: str
    classes: tuple[Any, ...] | None = None
    class_weight: tuple[float, ...] | None = None
    target: int | None = None
    dual: Array | None = None
    box: float | None = None

    def faults(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        """Every claim that the data contradict, in sentences; empty when all hold."""
        try:
            rows = self.rows(X, y, sample_weight)
        except ValueError as error:
            return [str(error)]
        return list(self._false_numbers(rows))

    def rows(self, X: Any, y: Any, sample_weight: Any) -> LinearRows:
        """The rows that have a weight; a ValueError says why nothing can be checked against these data."""
        for fault, holds in self._form().items():
            if not holds:
                raise ValueError(fault)
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        sparse = hasattr(X, "tocsc")
        X, y = X if sparse else np.asarray(X, dtype=np.float64), np.asarray(y)
        if X.ndim != 2 or X.shape[1] != self.coef.shape[1]:
            raise ValueError(f"X has shape {X.shape}, the model is about {self.coef.shape[1]} features.")
        if y.shape != (X.shape[0],):
            raise ValueError(f"y has shape {y.shape}; one label or target per row is needed.")
        if not _all_finite(X.data if sparse else X):
            raise ValueError("X holds NaN or infinity.")
        weight = read_weights(sample_weight, len(y))
        weight = weight / weight.max()
        if self.classes is not None:
            codes = np.full(len(y), -1)
            for k, label in enumerate(self.classes):
                codes = np.where(y == label, k, codes)
            if (codes[weight > 0.0] < 0).any():
                raise ValueError("y holds a label that the model does not know.")
            if self.class_weight is not None:
                factor = np.asarray(self.class_weight)
                weight = weight * (factor / factor.max())[codes]
            y = codes
        if not (keep := weight > 0.0).all():
            X, y, weight = (X.tocsr() if sparse else X)[keep], y[keep], weight[keep]
        if self.classes is None:
            y = np.asarray(y, dtype=np.float64)
            if not np.isfinite(y).all():
                raise ValueError("y holds NaN or infinity.")
        return LinearRows.make(self, X, y, weight / weight.sum())

    def _form(self) -> dict[str, bool]:
        """What must be true of the certificate itself: the sentence for when it is not, and whether it is."""
        factors, n_classes = self.class_weight, len(self.classes or ())
        finite = np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()
        through_0 = not self.intercept.any()
        classified = (self.loss in ("logistic", "softmax")) == (self.classes is not None)
        coded = self.target in range(n_classes) and not isinstance(self.target, bool)
        box = _BOX if self.l1 == 0.0 == self.l2 else None
        return {
            f"loss {self.loss!r} is not known.": self.loss in _LOSSES,
            f"status {self.status!r} is not known.": self.status in _STATUSES,
            "A coefficient is not finite.": bool(finite),
            "l1 and l2 must be finite and at least 0.": all(0.0 <= v < np.inf for v in (self.l1, self.l2)),
            "The model has an intercept, but the problem has none.": self.fit_intercept or through_0,
            f"box must be {_BOX:g} exactly where l1 and l2 are 0.": self.box == box,
            "Classes belong to the losses logistic and softmax, and only to them.": classified,
            "class_weight must hold finite numbers above 0.": all(0.0 < v < np.inf for v in factors or ()),
            "class_weight must hold one number per class.": factors is None or len(factors) == n_classes,
            f"target must be the number of a class, not {self.target!r}.": coded or self.loss != "logistic",
        }

    def _false_numbers(self, rows: LinearRows) -> Iterator[str]:
        """The numbers that the rows contradict."""
        objective, bound, null = evaluate(self, rows)
        near, gap = ROUNDING * null, self.objective - self.lower_bound
        recomputed = {"objective": objective, "lower_bound": min(bound, objective), "null_objective": null}
        for key, value in recomputed.items():
            name, claimed = _NUMBERS[key], getattr(self, key)
            if not abs(claimed - value) <= near:
                yield f"The {name} is {value:.12g}, not {claimed:.12g} as claimed."
        if not self.lower_bound <= self.objective:
            yield "The lower bound is above the objective."
        if self.status == "optimal" and not gap <= OPTIMAL_GAP * null + near:
            yield f"A gap of {gap:.3g} is too wide for the status optimal."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; :meth:`from_dict` is the way back."""
        scores = [
            {
                "intercept": float(b),
                "features": np.flatnonzero(coef).tolist(),
                "weights": coef[coef != 0].tolist(),
            }
            for coef, b in zip(self.coef, self.intercept, strict=True)
        ]
        problem = {key: getattr(self, key) for key in ("loss", "l1", "l2", "fit_intercept")}
        problem["n_features"] = int(self.coef.shape[1])
        for key in ("classes", "class_weight"):
            problem[key] = None if getattr(self, key) is None else list(getattr(self, key))
        return {
            "format": "cardboost-linear-certificate",
            "version": 1,
            "problem": problem | {"target": self.target, "box": self.box},
            "solution": scores,
            "dual": None if self.dual is None else self.dual.tolist(),
            **{key: getattr(self, key) for key in (*_NUMBERS, "status")},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """A certificate read from a file; a ValueError says what is wrong with it."""
        try:
            problem, scores = content["problem"], content["solution"]
            coef = np.zeros((len(scores), int(problem["n_features"])))
            for row, score in zip(coef, scores, strict=True):
                row[np.asarray(score["features"], dtype=np.intp)] = score["weights"]
            named: dict[str, Any] = {key: float(content[key]) for key in _NUMBERS}
            for key in ("classes", "class_weight"):
                named[key] = None if problem[key] is None else tuple(problem[key])
            return cls(
                problem["loss"], float(problem["l1"]), float(problem["l2"]), bool(problem["fit_intercept"]),
                coef, np.array([float(score["intercept"]) for score in scores]),
                status=str(content["status"]), target=problem["target"], box=problem["box"], **named,
                dual=None if content["dual"] is None else np.asarray(content["dual"], dtype=np.float64),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"this is no certificate of a linear model: {error!r}") from None


@dataclass(frozen=True, eq=False)
class LinearRows:
    """The rows of positive weight: numbers, targets or codes of classes, weights that sum to 1.

    ``X`` and real targets are less ``middle`` and ``centre``. ``constant``: the intercepts of the model
    without features. ``target_size``: root mean square of the targets as they are.
    """

    X: Any
    y: NDArray[Any]
    s: Array
    middle: Array
    centre: float
    constant: Array
    target_size: float

    @classmethod
    def make(cls, claims: LinearClaims, X: Any, y: NDArray[Any], s: Array) -> LinearRows:
        size, real = 1.0, claims.classes is None
        if real:
            size = float(np.sqrt(s @ np.square(y))) or 1.0
        middle, centre = np.zeros(X.shape[1]), 0.0
        constant = np.zeros(len(claims.intercept))
        if claims.fit_intercept:
            if not hasattr(X, "tocsc"):
                middle = _middles(X)
            if middle.any():
                X = X - middle
            centre = float(y.min() / 2.0 + y.max() / 2.0) if real else 0.0
            constant = _constant(claims, y, s, centre)
            y = y - centre if real else y
        return cls(X, y, s, middle, centre, constant, size)

    def scores(self, claims: LinearClaims) -> Array:
        """(rows, scores), less ``centre``."""
        shift, moved = claims.intercept - self.centre, np.flatnonzero(self.middle)
        if len(moved):
            exact = [
                Fraction(float(b)) - Fraction(self.centre)
                + sum(Fraction(float(self.middle[j])) * Fraction(float(coef[j])) for j in moved)
                for coef, b in zip(claims.coef, claims.intercept, strict=True)
            ]  # fmt: skip
            shift = np.array([float(value) for value in exact])
        return np.asarray(self.X @ claims.coef.T) + shift


def _all_finite(numbers: Array) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        flat = numbers.ravel(order="K")
        return bool(np.isfinite(flat @ flat) or np.isfinite(flat).all())


def _middles(X: Array) -> Array:
    """The middle of every column that is far from 0 beside its range; 0 of the others."""
    which = np.arange(X.shape[1])
    for rows, factor in ((_FIRST_ROWS, _FAR / 2.0), (len(X), _FAR)):  # far in all rows: far in the first
        part = X[:rows] if len(which) == X.shape[1] else X[:rows, which]
        low, high = part.min(axis=0) / 2.0, part.max(axis=0) / 2.0
        far = np.abs(low + high) > factor * (high - low)
        which, middle = which[far], (low + high)[far]
    middles = np.zeros(X.shape[1])
    middles[which] = middle
    return middles


def _constant(claims: LinearClaims, y: NDArray[Any], s: Array, centre: float) -> Array:
    """The intercepts of the model without features."""
    if claims.loss == "squared":
        return np.array([centre + float(s @ (y - centre))])
    if claims.loss == "absolute":
        return np.array([weighted_median(y, s)])
    if claims.loss == "logistic":
        held = np.array([s @ (y == claims.target), s @ (y != claims.target)])
    else:
        held = np.bincount(y, s, len(claims.classes or ()))
    logs = np.log(np.maximum(held, _LIGHTEST))
    return logs[:1] - logs[1] if claims.loss == "logistic" else logs - logs.mean()


def _loss(claims: LinearClaims, rows: LinearRows, scores: Array) -> float:
    if claims.loss == "softmax":
        n = np.arange(len(rows.s))
        ahead = scores - scores[n, rows.y][:, None]
        top = ahead.argmax(axis=1)
        most = ahead[n, top]
        others = np.exp(ahead - most[:, None])
        others[n, top] = 0.0
        return float(rows.s @ (most + np.log1p(others.sum(axis=1))))
    f = scores[:, 0]
    if claims.loss == "logistic":
        margins = np.where(rows.y == claims.target, f, -f)
        return float(rows.s @ (np.log1p(np.exp(-np.abs(margins))) - np.minimum(margins, 0.0)))
    if claims.loss == "squared":
        return float(rows.s @ np.square(rows.y - f)) / 2.0
    return float(rows.s @ np.abs(rows.y - f))


def evaluate(claims: LinearClaims, rows: LinearRows) -> tuple[float, float, float]:
    """Objective, lower bound and objective without features."""
    empty = np.broadcast_to(rows.constant - rows.centre, (len(rows.s), len(rows.constant)))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no claim that holds
        scores = rows.scores(claims)
        l1, l2 = float(np.abs(claims.coef).sum()), float(np.square(claims.coef).sum())
        objective = _loss(claims, rows, scores) + (claims.l1 * l1 + claims.l2 / 2.0 * l2)
        return objective, _bound(claims, rows, scores), _loss(claims, rows, empty)


def _bound(claims: LinearClaims, rows: LinearRows, scores: Array) -> float:
    s, y, f = rows.s, rows.y, scores[:, 0]
    if claims.loss == "softmax":
        return _softmax_bound(claims, rows, scores)
    if claims.loss == "absolute":
        dual = claims.dual
        if dual is None or dual.shape != s.shape or not (np.abs(dual) <= s * (1.0 + 1e-12)).all():
            return -np.inf
        u = balanced(dual) if claims.fit_intercept else dual
        return _price(claims, rows, u[:, None], lambda theta: min(theta, 1.0) * float(u @ y))
    if claims.loss == "logistic":
        sign = np.where(y == claims.target, 1.0, -1.0)
        u = s * sign / (1.0 + np.exp(np.minimum(sign * f, 700.0)))
        u = balanced(u) if claims.fit_intercept else u
        return _price(claims, rows, u[:, None], lambda theta: _entropy(s, min(theta, 1.0) * np.abs(u) / s))
    u = s * (y - f)
    if claims.fit_intercept:
        u = u - s * u.sum()
    along, square = float(u @ y), float(np.square(u) @ (1.0 / s))

    def squared(theta: float) -> float:
        best = along / square if square > 0.0 else 0.0
        theta = 1.0 if theta == 1.0 else float(np.clip(best, -theta, theta))
        return theta * along - theta * theta * square / 2.0

    return _price(claims, rows, u[:, None], squared)


def balanced(u: Array) -> Array:
    """Row weights of sum 0, as an intercept asks for: those of the heavier sign are scaled down."""
    up, down = np.maximum(u, 0.0), np.minimum(u, 0.0)
    above, below = up.sum(), -down.sum()
    if above == below:
        return u
    return up * (below / above) + down if above > below else up + down * (above / below)


def _price(claims: LinearClaims, rows: LinearRows, u: Array, value: Any) -> float:
    """The bound of row weights u, one column per score: their dual value less what the features can gain."""
    size = np.abs(np.asarray(rows.X.T @ u))
    if claims.l2 > 0.0:
        over = np.maximum(size - claims.l1, 0.0)
        return max(0.0, float(value(1.0)) - float(np.square(over).sum()) / (2.0 * claims.l2))
    if claims.l1 > 0.0:
        largest = float(size.max(initial=0.0))
        return max(0.0, float(value(claims.l1 / largest if largest > 0.0 else np.inf)))
    rms = _sizes(rows, claims.fit_intercept)
    limit = np.where(rms > 0.0, _BOX * rows.target_size / np.where(rms > 0.0, rms, 1.0), 0.0)
    return max(0.0, float(value(1.0)) - float(limit @ size.sum(axis=1)))


def _sizes(rows: LinearRows, about_mean: bool) -> Array:
    """The root mean square of every column, about its mean or about 0."""
    if hasattr(rows.X, "multiply"):
        mean = np.asarray(rows.X.T @ rows.s) if about_mean else 0.0
        square = np.asarray(rows.X.multiply(rows.X).T @ rows.s)
        return np.sqrt(np.maximum(square - np.square(mean), 1e-12 * square))
    mean, square = rows.s @ rows.X if about_mean else 0.0, np.zeros(rows.X.shape[1])
    for begin in range(0, len(rows.s), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        square += np.square(rows.X[part] - mean).T @ rows.s[part]
    return np.sqrt(square)


def _softmax_bound(claims: LinearClaims, rows: LinearRows, scores: Array) -> float:
    n, s = len(rows.s), rows.s
    shares = np.exp(scores - scores.max(axis=1)[:, None])
    shares /= shares.sum(axis=1)[:, None]
    truth = np.zeros_like(shares)
    truth[np.arange(n), rows.y] = 1.0
    if claims.fit_intercept:
        shares = shares @ mixing(s @ shares, s @ truth)

    def value(theta: float) -> float:
        v = truth + min(theta, 1.0) * (shares - truth)
        return -float(s @ np.where(v > 0.0, v * np.log(np.where(v > 0.0, v, 1.0)), 0.0).sum(axis=1))

    return _price(claims, rows, s[:, None] * (truth - shares), value)


def mixing(shares: Array, targets: Array) -> Array:
    """A matrix with rows that sum to 1 and ``shares @ matrix == targets``, moving as little as possible.

    It turns shares of classes into shares whose weighted means are those of the labels, as the free
    intercepts of the classes ask of a dual point.
    """
    shares = shares / shares.sum() * targets.sum()
    keep = np.minimum(shares, targets)
    more, less = targets - keep, shares - keep
    moved = np.outer(less, more / more.sum()) if more.sum() > 0.0 else np.zeros((len(shares), len(shares)))
    plan = np.diag(keep) + moved
    safe = np.where(shares > 0.0, shares, 1.0)
    return np.where(shares[:, None] > 0.0, plan / safe[:, None], np.eye(len(shares)))


def weighted_median(y: Array, s: Array) -> float:
    """A number at which half of the weight is on either side."""
    order = np.argsort(y, kind="stable")
    below = np.cumsum(s[order])
    return float(y[order][np.searchsorted(below, 0.5 * below[-1])])


def _entropy(s: Array, v: Array) -> float:
    v = np.minimum(v, 1.0)  # a factor of 0 makes a term 0, whatever its logarithm
    first = v * np.log(np.maximum(v, _LIGHTEST))
    return -float(s @ (first + (1.0 - v) * np.log1p(-np.minimum(v, _BELOW_1))))
