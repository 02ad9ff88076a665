"""What is claimed of a linear model, and how it is checked: plain NumPy, nothing of the solvers.

``verify`` takes the coefficients and recomputes the objective and the lower bound from the data. The row
weights u of the bound follow from the scores (docs/linear.md, "The certificate"); for the absolute loss,
whose derivative has no value where a residual is 0, the certificate holds them.

With an intercept the row weights sum to 0, so that a column may be shifted: columns and targets far from 0
are looked at from the middle of their range, and what the coefficients make of that is added up exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# all relative to the objective without features
ROUNDING = 1e-9  # of sums over rows
_OPTIMAL = 1e-4  # the gap of a model that may be called optimal
_BOX = 1e4
_LIGHTEST = 1e-300  # share of a class
_FIRST_ROWS = 64  # tell most columns that are not far from 0
_ROWS_AT_ONCE = 2048
_FAR = 1e3  # a column whose middle is so many times its range from 0 is shifted
_LOSSES = ("logistic", "softmax", "squared", "absolute")
_STATUSES = ("optimal", "feasible", "iteration limit", "precision", "separable")


@dataclass(frozen=True, eq=False)
class LinearCertificate:
    """Objective and lower bound of a linear model; every optimum lies between them.

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

    @property
    def gap(self) -> float:
        """How much lower the objective of any other model can be."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def relative_gap(self) -> float:
        return self.gap / self.objective if self.objective > 0.0 else 0.0

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> bool:
        """Recompute every number from the data of the fit."""
        return not self.faults(X, y, sample_weight)

    def recomputed(self, X: Any, y: Any, sample_weight: Any = None) -> LinearCertificate:
        """The same with the objectives and the bound that these data give, and a status that they allow."""
        rows = self._rows(X, y, sample_weight)
        if isinstance(rows, str):
            raise ValueError(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            objective, bound, null = _evaluate(self, rows)
        bound = min(bound, objective)
        status = self.status
        if status == "optimal" and not objective - bound <= _OPTIMAL * null:
            status = "feasible"
        return replace(self, objective=objective, lower_bound=bound, null_objective=null, status=status)

    def no_worse_than_empty(
        self, X: Any, y: Any, sample_weight: Any = None, rounding: float = 0.0
    ) -> LinearCertificate:
        """This model, or that without features where these data give it a higher objective than that.

        ``rounding``: by how much it may be higher, as a share.
        """
        rows = self._rows(X, y, sample_weight)
        if isinstance(rows, str):
            raise ValueError(rows)
        empty = replace(self, coef=np.zeros_like(self.coef), intercept=rows.constant)
        with np.errstate(over="ignore", invalid="ignore"):
            objective = _loss(self, rows, rows.scores(self)) + _penalty(self)
            better = objective <= _null_objective(self, rows) * (1.0 + rounding)
        return self if better else empty

    def faults(self, X: Any, y: Any, sample_weight: Any = None) -> list[str]:
        """Every claim that the data contradict, in sentences; empty when all hold."""
        rows = self._rows(X, y, sample_weight)
        return [rows] if isinstance(rows, str) else self._compare(rows)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> _Rows | str:
        """The rows that have a weight, or why nothing can be checked against these data."""
        if (fault := self._form()) is not None:
            return fault
        for name, part in (("X", X), ("y", y), ("sample_weight", sample_weight)):
            if isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).any():
                return f"{name} holds masked entries."
        X = X if hasattr(X, "tocsc") else np.asarray(X, dtype=np.float64)
        y = np.asarray(y)
        if X.ndim != 2 or X.shape[1] != self.coef.shape[1]:
            return f"X has shape {X.shape}, the model is about {self.coef.shape[1]} features."
        if y.shape != (X.shape[0],):
            return f"y has shape {y.shape}; one label or target per row is needed."
        if not _all_finite(X.data if hasattr(X, "tocsc") else X):
            return "X holds NaN or infinity."
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != y.shape or not (np.isfinite(weight) & (weight >= 0.0)).all() or not weight.any():
            return "sample_weight must hold one finite number of at least 0 per row, not all 0."
        codes, weight = None, weight / weight.max()
        if self.classes is not None:
            codes = np.full(len(y), -1)
            for k, label in enumerate(self.classes):
                codes[y == label] = k
            if (codes[weight > 0.0] < 0).any():
                return "y holds a label that the model does not know."
            if self.class_weight is not None:
                factor = np.asarray(self.class_weight)
                weight = weight * (factor / factor.max())[codes]
        keep = weight > 0.0
        target = np.asarray(y[keep], dtype=np.float64) if codes is None else codes[keep]
        if codes is None and not np.isfinite(target).all():
            return "y holds NaN or infinity."
        held = X if keep.all() else (X.tocsr() if hasattr(X, "tocsr") else X)[keep]
        return _Rows.make(self, held, target, weight[keep] / weight[keep].sum())

    def _form(self) -> str | None:
        """What is wrong with the certificate itself, if anything is."""
        if self.loss not in _LOSSES:
            return f"loss {self.loss!r} is not known."
        if self.status not in _STATUSES:
            return f"status {self.status!r} is not known."
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            return "A coefficient is not finite."
        if not (np.isfinite([self.l1, self.l2]).all() and min(self.l1, self.l2) >= 0.0):
            return "l1 and l2 must be finite and at least 0."
        if not self.fit_intercept and self.intercept.any():
            return "The model has an intercept, but the problem has none."
        if (self.box is not None) != (self.l1 == 0.0 == self.l2) or self.box not in (None, _BOX):
            return f"box must be {_BOX:g} exactly where l1 and l2 are 0."
        if (self.classes is not None) != (self.loss in ("logistic", "softmax")):
            return "Classes belong to the losses logistic and softmax, and only to them."
        if self.class_weight is not None and not all(0.0 < own < np.inf for own in self.class_weight):
            return "class_weight must hold finite numbers above 0."
        if self.class_weight is not None and len(self.class_weight) != len(self.classes or ()):
            return "class_weight must hold one number per class."
        known = range(len(self.classes or ()))
        if self.loss == "logistic" and (isinstance(self.target, bool) or self.target not in known):
            return f"target must be the number of a class, not {self.target!r}."
        return None

    def _compare(self, rows: _Rows) -> list[str]:
        out = []
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is no claim that holds
            objective, bound, null = _evaluate(self, rows)
        bound, near = min(bound, objective), ROUNDING * null
        claims = (
            ("objective", self.objective, objective),
            ("lower bound", self.lower_bound, bound),
            ("objective without features", self.null_objective, null),
        )
        for name, claimed, found in claims:
            if not abs(claimed - found) <= near:
                out.append(f"The {name} is {found:.12g}, not {claimed:.12g} as claimed.")
        if not self.lower_bound <= self.objective:
            out.append("The lower bound is above the objective.")
        if self.status == "optimal" and not self.objective - self.lower_bound <= _OPTIMAL * null + near:
            out.append(f"A gap of {self.gap:.3g} is too wide for the status optimal.")
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; :meth:`from_dict` is the way back."""
        scores = []
        for coef, intercept in zip(self.coef, self.intercept, strict=True):
            used = np.flatnonzero(coef)
            scores.append(
                {"intercept": float(intercept), "features": used.tolist(), "weights": coef[used].tolist()}
            )
        return {
            "format": "cardboost-linear-certificate",
            "version": 1,
            "problem": {
                "loss": self.loss,
                "l1": self.l1,
                "l2": self.l2,
                "fit_intercept": self.fit_intercept,
                "n_features": int(self.coef.shape[1]),
                "classes": None if self.classes is None else list(self.classes),
                "class_weight": None if self.class_weight is None else list(self.class_weight),
                "target": self.target,
                "box": self.box,
            },
            "solution": scores,
            "dual": None if self.dual is None else self.dual.tolist(),
            "objective": self.objective,
            "lower_bound": self.lower_bound,
            "null_objective": self.null_objective,
            "status": self.status,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> LinearCertificate:
        """A certificate read from a file; a ValueError says what is wrong with it."""
        try:
            problem, scores = content["problem"], content["solution"]
            coef = np.zeros((len(scores), int(problem["n_features"])))
            for row, own in zip(coef, scores, strict=True):
                row[np.asarray(own["features"], dtype=np.intp)] = own["weights"]
            return cls(
                loss=problem["loss"], l1=float(problem["l1"]), l2=float(problem["l2"]),
                fit_intercept=bool(problem["fit_intercept"]), coef=coef,
                intercept=np.array([float(own["intercept"]) for own in scores]),
                objective=float(content["objective"]), lower_bound=float(content["lower_bound"]),
                null_objective=float(content["null_objective"]), status=str(content["status"]),
                classes=None if problem["classes"] is None else tuple(problem["classes"]),
                class_weight=None if problem["class_weight"] is None else tuple(problem["class_weight"]),
                target=problem["target"], box=problem["box"],
                dual=None if content["dual"] is None else np.asarray(content["dual"], dtype=np.float64),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ValueError(f"this is no certificate of a linear model: {error!r}") from None

    def lines(self) -> list[str]:
        """The certificate in words: what is minimised, what was reached, and what no model can undercut."""
        intercept = "with" if self.fit_intercept else "without"
        weighted = ""
        if self.class_weight is not None:
            weighted = f", classes weighted {', '.join(f'{weight:g}' for weight in self.class_weight)}"
        if self.loss == "logistic" and self.classes is not None and self.target is not None:
            weighted += f", for class {self.classes[self.target]!r}"
        scope = "" if self.box is None else f", among coefficients of at most {self.box:g} in standard units"
        n = self.coef.shape[1]
        return [
            f"minimised: mean {self.loss} loss + {self.l1:g} |coef|_1 + {self.l2:g}/2 |coef|_2^2, "
            f"{intercept} an intercept{weighted}",
            f"objective {self.objective:.8g}, without features {self.null_objective:.8g}: {self.status}",
            f"no model on the {n} feature{'' if n == 1 else 's'} has an objective below "
            f"{self.lower_bound:.8g}{scope}",
            f"relative gap {self.relative_gap:.2g}; sums over rows hold to {ROUNDING:g} and a gap of "
            f"{_OPTIMAL:g} counts as optimal, as shares of the objective without features",
        ]

    def __repr__(self) -> str:
        return (
            f"LinearCertificate(loss={self.loss!r}, l1={self.l1:g}, l2={self.l2:g}, "
            f"fit_intercept={self.fit_intercept}, n_features={self.coef.shape[1]}, box={self.box}, "
            f"objective={self.objective:.6g}, lower_bound={self.lower_bound:.6g}, "
            f"relative_gap={self.relative_gap:.2g}, status={self.status!r})"
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of positive weight: numbers, targets or codes of classes, weights that sum to 1.

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
    def make(cls, own: LinearCertificate, X: Any, y: NDArray[Any], s: Array) -> _Rows:
        size, real = 1.0, own.classes is None
        if real:
            size = float(np.sqrt(s @ np.square(y))) or 1.0
        middle, centre = np.zeros(X.shape[1]), 0.0
        constant = np.zeros(len(own.intercept))
        if own.fit_intercept:
            if not hasattr(X, "tocsc"):
                middle = _middles(X)
            if middle.any():
                X = X - middle
            centre = float(y.min() / 2.0 + y.max() / 2.0) if real else 0.0
            constant = _constant(own, y, s, centre)
            y = y - centre if real else y
        return cls(X, y, s, middle, centre, constant, size)

    def scores(self, own: LinearCertificate) -> Array:
        """(rows, scores), less ``centre``."""
        shift = own.intercept
        if own.fit_intercept:
            moved = np.flatnonzero(self.middle)
            exact = [
                Fraction(float(b)) - Fraction(self.centre)
                + sum(Fraction(float(self.middle[j])) * Fraction(float(coef[j])) for j in moved)
                for coef, b in zip(own.coef, own.intercept, strict=True)
            ]  # fmt: skip
            shift = np.array([float(value) for value in exact])
        return np.asarray(self.X @ own.coef.T) + shift


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


def _constant(own: LinearCertificate, y: NDArray[Any], s: Array, centre: float) -> Array:
    """The intercepts of the model without features."""
    if own.loss == "squared":
        return np.array([centre + float(s @ (y - centre))])
    if own.loss == "absolute":
        return np.array([weighted_median(y, s)])
    held = np.bincount(y, s, len(own.classes or ()))
    if own.loss == "logistic":
        held = np.array([s[y == own.target].sum(), s[y != own.target].sum()])
    logs = np.log(np.maximum(held, _LIGHTEST))
    return logs[:1] - logs[1] if own.loss == "logistic" else logs - logs.mean()


def _penalty(own: LinearCertificate) -> float:
    return own.l1 * float(np.abs(own.coef).sum()) + own.l2 / 2.0 * float(np.square(own.coef).sum())


def _null_objective(own: LinearCertificate, rows: _Rows) -> float:
    """The loss of the model without features."""
    scores = rows.constant - rows.centre if own.fit_intercept else rows.constant
    return _loss(own, rows, np.broadcast_to(scores, (len(rows.s), len(scores))))


def _loss(own: LinearCertificate, rows: _Rows, scores: Array) -> float:
    if own.loss == "softmax":
        n = np.arange(len(rows.s))
        ahead = scores - scores[n, rows.y][:, None]
        top = ahead.argmax(axis=1)
        most = ahead[n, top]
        others = np.exp(ahead - most[:, None])
        others[n, top] = 0.0
        return float(rows.s @ (most + np.log1p(others.sum(axis=1))))
    f = scores[:, 0]
    if own.loss == "logistic":
        return float(rows.s @ np.logaddexp(0.0, np.where(rows.y == own.target, -f, f)))
    if own.loss == "squared":
        return float(rows.s @ np.square(rows.y - f)) / 2.0
    return float(rows.s @ np.abs(rows.y - f))


def _evaluate(own: LinearCertificate, rows: _Rows) -> tuple[float, float, float]:
    """Objective, lower bound and objective without features."""
    scores = rows.scores(own)
    objective = _loss(own, rows, scores) + _penalty(own)
    return objective, _bound(own, rows, scores), _null_objective(own, rows)


def _bound(own: LinearCertificate, rows: _Rows, scores: Array) -> float:
    s = rows.s
    if own.loss == "softmax":
        return _softmax_bound(own, rows, scores)
    if own.loss == "absolute":
        return _absolute_bound(own, rows)
    f = scores[:, 0]
    if own.loss == "logistic":
        sign = np.where(rows.y == own.target, 1.0, -1.0)
        u = s * sign / (1.0 + np.exp(np.minimum(sign * f, 700.0)))
        if own.fit_intercept:
            up, down = u[sign > 0].sum(), -u[sign < 0].sum()
            heavier = max(up, down)
            if heavier > 0.0:
                u = u * np.where((sign > 0) == (up > down), min(up, down) / heavier, 1.0)
        return _price(own, rows, u[:, None], lambda theta: _entropy(s, min(theta, 1.0) * np.abs(u) / s))
    u = s * (rows.y - f)
    if own.fit_intercept:
        u = u - s * u.sum()
    along, square = float(u @ rows.y), float(np.square(u) @ (1.0 / s))

    def squared(theta: float) -> float:
        best = along / square if square > 0.0 else 0.0
        theta = 1.0 if theta == 1.0 else float(np.clip(best, -theta, theta))
        return theta * along - theta * theta * square / 2.0

    return _price(own, rows, u[:, None], squared)


def _absolute_bound(own: LinearCertificate, rows: _Rows) -> float:
    u = own.dual
    if u is None or u.shape != rows.s.shape or not (np.abs(u) <= rows.s * (1.0 + 1e-12)).all():
        return -np.inf
    if own.fit_intercept:
        up, down = u[u > 0].sum(), -u[u < 0].sum()
        heavier = max(up, down)
        if heavier > 0.0:
            u = u * np.where((u > 0) == (up > down), min(up, down) / heavier, 1.0)
    return _price(own, rows, u[:, None], lambda theta: min(theta, 1.0) * float(u @ rows.y))


def _price(own: LinearCertificate, rows: _Rows, u: Array, value: Any) -> float:
    """The bound of row weights u, one column per score: their dual value less what the features can gain."""
    size = np.abs(np.asarray(rows.X.T @ u))
    if own.l2 > 0.0:
        over = np.maximum(size - own.l1, 0.0)
        return max(0.0, float(value(1.0)) - float(np.square(over).sum()) / (2.0 * own.l2))
    if own.l1 > 0.0:
        largest = float(size.max(initial=0.0))
        return max(0.0, float(value(own.l1 / largest if largest > 0.0 else np.inf)))
    rms = _sizes(rows, own.fit_intercept)
    limit = np.where(rms > 0.0, _BOX * rows.target_size / np.where(rms > 0.0, rms, 1.0), 0.0)
    return max(0.0, float(value(1.0)) - float(limit @ size.sum(axis=1)))


def _sizes(rows: _Rows, about_mean: bool) -> Array:
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


def _softmax_bound(own: LinearCertificate, rows: _Rows, scores: Array) -> float:
    n, s = len(rows.s), rows.s
    shares = np.exp(scores - scores.max(axis=1)[:, None])
    shares /= shares.sum(axis=1)[:, None]
    truth = np.zeros_like(shares)
    truth[np.arange(n), rows.y] = 1.0
    if own.fit_intercept:
        shares = shares @ mixing(s @ shares, s @ truth)

    def value(theta: float) -> float:
        v = truth + min(theta, 1.0) * (shares - truth)
        return -float(s @ np.where(v > 0.0, v * np.log(np.where(v > 0.0, v, 1.0)), 0.0).sum(axis=1))

    return _price(own, rows, s[:, None] * (truth - shares), value)


def mixing(given: Array, wanted: Array) -> Array:
    """A matrix with rows that sum to 1 and ``given @ matrix == wanted``, moving as little as possible.

    It turns shares of classes into shares whose weighted means are those of the labels, as the free
    intercepts of the classes ask of a dual point.
    """
    given = given / given.sum() * wanted.sum()
    keep = np.minimum(given, wanted)
    more, less = wanted - keep, given - keep
    moved = np.outer(less, more / more.sum()) if more.sum() > 0.0 else np.zeros((len(given), len(given)))
    plan = np.diag(keep) + moved
    safe = np.where(given > 0.0, given, 1.0)
    return np.where(given[:, None] > 0.0, plan / safe[:, None], np.eye(len(given)))


def weighted_median(y: Array, s: Array) -> float:
    """A number at which half of the weight is on either side."""
    order = np.argsort(y, kind="stable")
    below = np.cumsum(s[order])
    return float(y[order][np.searchsorted(below, 0.5 * below[-1])])


def _entropy(s: Array, v: Array) -> float:
    v = np.clip(v, 0.0, 1.0)
    first = np.where(v > 0.0, v * np.log(np.where(v > 0.0, v, 1.0)), 0.0)
    rest = np.where(v < 1.0, (1.0 - v) * np.log1p(-np.where(v < 1.0, v, 0.0)), 0.0)
    return -float(s @ (first + rest))
