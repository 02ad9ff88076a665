"""The case of a seed: what is called, with which parameters, on which data.

Most draws are ordinary; every list also has its edge values, and `tags` name what is unusual about the data.
`allowed` are the refusals that a case may meet; `must_refuse` says why it has to meet one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing

Params = dict[str, Any]

# fmt: off
#: what is called, and how often
TARGETS = {
    "CardBoostClassifier": 24, "CardBoostRegressor": 18, "SoftMarginClassifier": 9, "StagewiseClassifier": 6,
    "StagewiseRegressor": 5, "SparseLogisticRegression": 9, "SparseLinearRegression": 9,
    "NeuralBoostClassifier": 3, "NeuralBoostRegressor": 3, "select_columns": 11, "minimize_l1": 3,
    "minimize_on_simplex": 3, "scorecard": 6, "pareto_front": 1,
}
CARDS = ("CardBoostClassifier", "CardBoostRegressor", "scorecard", "pareto_front")
STUMPS = (*CARDS, "SoftMarginClassifier", "StagewiseClassifier", "StagewiseRegressor")
MATRIX = ("select_columns", "minimize_l1", "minimize_on_simplex")
NUMBERS = ("CardBoostRegressor", "StagewiseRegressor", "SparseLinearRegression", "NeuralBoostRegressor")

#: a refusal of numbers that double precision cannot carry names its reason
UNFIT_NUMBERS = r"too (large|small|wide|far)|scale|precision|digits|overflow|2\^53|exact"
SPLITS = ("cannot be split", "folds?|n_splits|members", "only one class")

#: the options of every parameter, the likelier ones more than once
YES, RARELY = (True, True, True, False), (False,) * 9 + (True,)
COMMON: Params = {"random_state": (0, 7), "n_jobs": (None, 1, 2)}
CARD = COMMON | {
    "max_terms": (1, 2, 3, 3, 5, 5, 10, None, "auto"), "l0": (0.0, 0.0, 0.0, 1e-3, 0.02, 1.0),
    "l1": (1e-4, 1e-4, 0.0, 1e-6, 1e-2, 0.3), "l2": ("auto", "auto", 0.01, 0.01, 0.0, 0.0, 1e-4, 0.1, 10.0),
    "criterion": ("gain", "gain", "edge"), "hot_start": (1, 2, 5, 8, 12, 20, 40), "reselect": RARELY,
    "max_iter": (1, 3, 10, 30, 100),
    "selector": (*("auto",) * 5, "polish", "polish", "exact", "exact", "tabu", "qubo"),
    "max_nodes": (1, 10, 50, 300), "max_weight": (None, None, None, 1e-3, 0.5, 2.0, 1e4),
    "bits": (6, 6, 1, 3, "auto"), "max_bins": (255, 255, 2, 3, 16), "tol": (1e-4, 1e-4, 0.0, 1e-8, 0.3),
    "fit_intercept": YES, "warm_start": RARELY, "validation_fraction": (None,) * 10 + (0.2, 0.5),
    "max_features": (None,) * 12 + (1, 2, 20), "time_limit": (None,) * 30 + (1e-6, 0.01, 0.1, 0.4),
}
MARGIN_LOSS = {"loss": ("logistic", "logistic", "exponential", "squared_hinge", "hinge")}
SOFT = COMMON | {
    "temperature": (0.1, 0.5, 2.0, 0.02, 1e-3, 100.0, "cv"), "method": ("newton", "newton", "newton", "mprp"),
    "tol": (1e-6, 1e-3, 1e-9, 0.0), "slack": ("auto", "auto", 0.0, 0.01, 0.5), "max_bins": (255, 2, 8),
    "max_iter": (1, 5, 50, 200), "fit_intercept": YES, "cv": (2,), "temperatures": ([1.0, 0.3],),
    "warm_start": RARELY, "time_limit": (None,) * 30 + (1e-6, 0.05, 0.3),
}
STAGEWISE = COMMON | {
    "max_iter": (1, 5, 20, 100), "learning_rate": (1.0, 1.0, 0.1, 1e-3), "max_bins": (255, 2, 8),
    "validation_fraction": (None,) * 6 + (0.2, 0.5),
}
LINEAR: Params = {
    "l1": (0.0, 0.0, 1e-3, 0.05, 1.0), "l2": (0.0, 0.0, 1e-6, 0.01, 1.0), "fit_intercept": YES,
    "solver": ("auto", "auto", "auto", "newton", "prox-newton", "gradient"), "tol": (1e-6, 1e-6, 1e-3, 1e-12),
    "max_iter": (10_000, 1000, 1, 20), "accelerate": YES, "warm_start": RARELY, "n_jobs": (None, 1, 2),
}
NEURAL = COMMON | {
    "max_iter": (1, 2, 4), "hidden": (1, 3, 8), "activation": ("tanh", "relu", "logistic"),
    "learning_rate": (1.0, 1.0, 0.1), "refit": ("all", "last"), "l2": (1e-4, 0.0, 1e-2),
    "net_iter": (1, 5, 20), "max_terms": (None, 1, 2), "early_stopping": (False, False, False, True, "auto"),
}
PRICES = {
    "l1": (1e-4, 1e-4, 1e-2, 0.1), "l2": (0.0, 0.0, 1e-3, 0.1), "max_weight": (None, None, 0.5, 2.0, 100.0),
    "loss": ("exponential", "exponential", "logistic", "squared_hinge", "hinge"), "n_jobs": (1, 2, None),
}
PARAMETERS: dict[str, Params] = {
    "CardBoostClassifier": CARD | MARGIN_LOSS, "CardBoostRegressor": CARD, "scorecard": CARD | MARGIN_LOSS,
    "pareto_front": CARD | {
        "selector": ("auto",), "max_nodes": (10,), "time_limit": (None,), "max_terms": (5,),
    },
    "SoftMarginClassifier": SOFT,
    "StagewiseClassifier": STAGEWISE | {"fit_intercept": YES, "loss": (*MARGIN_LOSS["loss"], "smooth_hinge")},
    "StagewiseRegressor": STAGEWISE | {"loss": ("squared", "absolute")},
    "SparseLogisticRegression": LINEAR | {"multi_class": ("ovr", "multinomial"), "random_state": (0,),
                                          "max_features": (None, None, None, None, 0, 1, 2)},
    "SparseLinearRegression": LINEAR | {"loss": ("squared", "squared", "absolute")},
    "NeuralBoostClassifier": NEURAL | {"loss": ("auto", "auto", "squared")},
    "NeuralBoostRegressor": NEURAL | {"loss": ("auto", "absolute", "huber")},
    "select_columns": PRICES | {
        "max_terms": (1, 2, 3, 5), "l0": (0.0, 0.0, 1e-3, 0.02), "max_nodes": (1, 30, 300),
        "random_state": (0, 5),
        "method": ("exact", "exact", "auto", "polish", "tabu", "qubo"),
        "time_limit": (None,) * 18 + (1e-6, 0.05, 0.3)},
    "minimize_l1": PRICES | {"tol": (1e-8, 1e-3, 0.0), "max_iter": (1, 10, 1000)},
    "minimize_on_simplex": {
        "radius": (0.01, 1.0, 10.0, 300.0), "method": ("newton", "newton", "mprp"), "tol": (1e-8, 1e-3, 0.0),
        "max_iter": (0, 1, 20, 200), "n_jobs": (1, 2, None)},
}
#: refusals that a parameter of this value may meet
REFUSALS: dict[str, tuple[str, ...]] = {
    "selector": ("exact search", "[Tt]abu search", "qubo chooses", "needs a finite"),
    "method": ("exact search", "[Tt]abu search", "qubo chooses"),
    "reselect": ("reselect",), "warm_start": ("must be at least the",), "validation_fraction": SPLITS,
    "early_stopping": SPLITS, "max_features": ("max_features is for two classes", "reselect"),
}
# fmt: on


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that a seed decides."""

    seed: int
    target: str
    params: Params
    X: Any
    y: Any = None
    weight: Any = None
    call: Params = field(default_factory=dict)  # arguments of what follows a fit: scorecard, pareto_front
    tags: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    must_refuse: str | None = None
    laws: tuple[str, ...] = ()  # those that cost further fits
    filled: Any = None  # X with NaN where a masked array hides a number
    numbers: bool = False  # whether y is to be predicted as a number

    @property
    def n_rows(self) -> int:
        return len(self.X)

    @property
    def time_limit(self) -> float | None:
        """Seconds that the timed call of this case has."""
        return (self.call if self.target in ("scorecard", "pareto_front") else self.params).get("time_limit")

    def take(self, rows: Any) -> Case:
        """The same with these rows, in this order."""
        parts = {name: getattr(self, name) for name in ("X", "y", "weight", "filled")}
        taken = {name: _safe_indexing(part, rows) for name, part in parts.items() if part is not None}
        return replace(self, **taken)

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        call = f", then {self.call}" if self.call else ""
        shape = f"{self.n_rows} x {np.shape(self.X)[1]} {type(self.X).__name__}"
        return f"{self.target}({arguments}){call} on {shape}; {', '.join(self.tags) or 'plain data'}"


class Draw:
    """Random choices, and what is said about them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tags: list[str] = []
        self.allowed: list[str] = []

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one(self, *options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def whole(self, low: int, high: int) -> int:
        """From low to high, small numbers more often."""
        return round(float(np.exp(self.rng.uniform(np.log(low), np.log(high + 0.49)))))

    def tagged(self, name: str, *options: Any) -> Any:
        """One of the options, which becomes part of the tag."""
        value = self.one(*options)
        self.tags.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}".strip())
        return value

    def params(self, target: str) -> Params:
        chosen = {name: self.one(*options) for name, options in PARAMETERS[target].items()}
        for name, value in chosen.items():
            if value not in (None, False):
                self.allowed.extend(REFUSALS.get(name, ()))
        return {
            name: value
            for name, value in chosen.items()
            if value is not None or name in ("max_terms", "n_jobs")
        }

    def typed(self, value: Any) -> Any:
        """The same value in a type of NumPy, now and then."""
        if not self.chance(0.15) or not isinstance(value, bool | int | float):
            return value
        if isinstance(value, bool):
            return np.bool_(value)
        return (
            self.one(np.int64, np.int32)(value)
            if isinstance(value, int)
            else self.one(np.float64, np.float32)(value)
        )


def case(seed: int) -> Case:
    """The case of this seed, the same in every run."""
    draw = Draw(seed)
    names, shares = list(TARGETS), np.array(list(TARGETS.values()), dtype=float)
    target = names[int(draw.rng.choice(len(names), p=shares / shares.sum()))]
    draw.allowed += [
        "no (column that|learner) tells rows apart",
        "no better than chance",
    ]  # tiny tables have no signal
    made = (_matrix_case if target in MATRIX else _table_case)(draw, seed, target)
    made = replace(made, params={name: draw.typed(value) for name, value in made.params.items()})
    laws = [name for name in ("order of rows", "threads") if draw.chance(0.25)]
    if draw.chance(0.3):
        laws.append("types")
    if _small_whole(made.weight) and draw.chance(0.6):
        laws.append("weight 2 is the row twice")
    if "masked" in draw.tags:
        laws.append("mask")
    made = replace(made, laws=tuple(laws))
    made = _poisoned(draw, made) if draw.chance(0.04) else made
    return replace(made, tags=tuple(draw.tags), allowed=tuple(draw.allowed))


def _matrix_case(draw: Draw, seed: int, target: str) -> Case:
    rng, rows, columns = draw.rng, draw.whole(5, 400), draw.whole(1, 14)
    A = np.where(rng.random((rows, columns)) < draw.one(0.5, 0.6, 0.9), 1.0, -1.0)
    if draw.chance(0.4):
        A = A * rng.uniform(0.1, 1.0, A.shape)
        size = draw.tagged("real entries, scales apart by powers of ten up to", 0, 0, 3, 8, 12, 16)
        A = A * 10.0 ** rng.uniform(-size / 2, size / 2, columns)
        draw.allowed += [UNFIT_NUMBERS] if size > 12 else []
    elif draw.chance(0.3):
        A = A.astype(draw.one(np.int8, np.int64, np.float32))
    for j in range(1, columns):
        if draw.chance(0.06):
            A[:, j] = A[:, int(rng.integers(j))] * draw.tagged("repeated column, times", 1, -1)
    return Case(
        seed, target, draw.params(target), A if draw.chance(0.9) else A.tolist(), weight=_weights(draw, rows)
    )


# ------------------------------------------------------------------------------------------------ tables


def _table_case(draw: Draw, seed: int, target: str) -> Case:
    rows, columns = draw.whole(5, 400), draw.whole(1, 8)
    if target == "pareto_front":
        rows, columns = draw.whole(20, 80), draw.whole(1, 3)
    large = target.startswith("CardBoost") and draw.chance(0.01)
    if large:
        rows, columns = draw.tagged("rows", 2000, 5000), 20
    stumps = target in STUMPS
    table = [_column(draw, rows, stumps) for _ in range(columns)]
    for j in range(1, columns):
        if draw.chance(0.06):
            source = table[int(draw.rng.integers(j))]
            times = draw.tagged("repeated column, times", 1, -1)
            table[j] = source if source.dtype.kind == "O" else times * source
    signal = draw.rng.normal(size=rows) * draw.one(0.3, 1.0, 5.0) + sum(map(_standard, table))
    X, filled = _dressed(draw, table, stumps)
    numbers = target in NUMBERS or (target == "pareto_front" and draw.chance(0.4))
    y = _numbers(draw, signal) if numbers else _labels(draw, signal, target)
    params, weight = draw.params(target), _weights(draw, rows)
    if target == "pareto_front" and numbers:
        params.pop("loss", None)
    if large or (target.startswith("CardBoost") and "time_limit" in params and draw.chance(0.7)):
        params |= {"time_limit": 0.3, "hot_start": draw.one(60, 200), "max_iter": 200, "max_nodes": 10**7}
    if params.get("selector") == "qubo":  # a sampler's turn takes seconds
        params |= {"reselect": False, "hot_start": min(12, params["hot_start"])}
    if params.get("temperature") == "cv":
        draw.allowed += SPLITS
    if "Sparse" in target and params["solver"] in ("newton", "gradient"):
        params |= {"l1": 0.0} if params["solver"] == "newton" else {"max_iter": min(1000, params["max_iter"])}
    if params.get("loss") == "absolute" and "Sparse" in target:
        params["solver"] = "auto"
    if target == "CardBoostClassifier" and draw.chance(0.06):  # straight pieces, and nothing that is curved
        params |= {"loss": "hinge", "l2": 0.0}
    if stumps:
        _about_features(draw, params, target, table)
    if not numbers and draw.chance(0.15):
        label = sorted(set(y.tolist()), key=str)[0]
        several = len(set(y.tolist())) > 2
        params["class_weight"] = draw.one(
            {label: draw.tagged("class weight", 2.0, 1e-3, 1e6)}, None if several else "balanced"
        )
        draw.allowed += ["next to no sample_weight", "which is not among the classes"]
    plain = type(X) is np.ndarray and X.dtype.kind == "f" and bool((np.abs(X) < 1e30).all())
    if (
        target in ("CardBoostClassifier", "SoftMarginClassifier", "StagewiseClassifier")
        and plain
        and draw.chance(0.08)
    ):
        _learners(draw, params, X, y)
    y = y if draw.chance(0.9) else y.tolist()
    return _followed(draw, Case(seed, target, params, X, y, weight, filled=filled, numbers=numbers))


def _column(draw: Draw, rows: int, stumps: bool) -> Any:
    values = draw.rng.normal(size=rows)
    kind = draw.one(
        "", "", "", "", "", "", "few", "constant", "labels", "labels", "scale", "scale", "offset", "tails"
    )
    if kind == "few":
        values = draw.rng.integers(0, draw.whole(1, 12), rows).astype(float)
    elif kind == "constant":
        values = np.full(rows, draw.tagged("constant column", 0.0, 1.0, -3e200, 1e-310))
        draw.allowed += [] if stumps else [UNFIT_NUMBERS]
    elif kind == "labels" and stumps:
        count = draw.tagged("categories", 1, 2, 3, 5, 30, 300)
        names = [draw.one("a", "Zürich", "x y", "=1+1", "-3", "") + str(k) for k in range(count)]
        values = np.array(names, dtype=object)[draw.rng.integers(0, count, rows)]
        if draw.chance(0.5):
            values[draw.rng.random(rows) < draw.tagged("missing labels", 0.1, 0.5)] = None
        return values
    elif kind == "scale":
        scale = draw.tagged("column of scale", 1e-160, 1e-320, 1e-8, 1e8, 1e150, 9e15)
        values = np.where(values > 0, 1.0, values) * scale if scale == 9e15 else values * scale
        draw.allowed += [] if stumps else [UNFIT_NUMBERS]
    elif kind == "offset":
        offset = draw.tagged("column of mean/spread", 1e7, 1e8, 1e9, 1e12)
        values = values + offset
        draw.allowed += [UNFIT_NUMBERS] if not stumps and offset >= 1e8 else []
    elif kind == "tails":
        values = draw.rng.standard_t(1, rows)
    if stumps and draw.chance(0.2):
        values = np.where(
            draw.rng.random(rows) < draw.tagged("missing numbers", 0.05, 0.3, 1.0), np.nan, values
        )
    return values


def _standard(column: Any) -> Any:
    """Numbers between -1 and 1 with 0 in the middle, as a part of the target."""
    if column.dtype.kind == "O" or not np.isfinite(column).any():
        return 0.0
    centred = column - np.nanmedian(column)
    return np.nan_to_num(centred / (np.nanmax(np.abs(centred)) or 1.0))


def _dressed(draw: Draw, table: list[Any], stumps: bool) -> tuple[Any, Any]:
    """The columns as a user may hold them, and as an array with NaN for what is missing."""
    named = {f"f{j}": column for j, column in enumerate(table)}
    if any(column.dtype.kind == "O" for column in table):
        dress = draw.tagged("", "pandas", "pandas categories", "polars", "objects")
        X: Any = pd.DataFrame(named)
        if dress == "pandas categories":
            X = X.astype({name: "category" for name, column in named.items() if column.dtype.kind == "O"})
        elif dress == "polars":
            X = pl.DataFrame(
                {name: pl.Series(column.tolist()) for name, column in named.items()}, strict=False
            )
        elif dress == "objects":
            X = np.stack([column.astype(object) for column in table], axis=1)
        return X, X
    array = np.stack(table, axis=1)
    finite = bool(np.isfinite(array).all())
    whole = ("whole numbers", "truth values", "beyond 2^53") if finite else ()
    if draw.chance(0.6):
        return array, array
    dress = draw.tagged(
        "", "float32", "list", "Fortran", "masked", "pandas", "polars", "strided", "read-only", *whole
    )
    if dress == "masked":
        mask = draw.rng.random(array.shape) < 0.2
        draw.allowed += [] if stumps else ["NaN|mask|missing"]
        return np.ma.masked_array(array, mask), np.where(mask, np.nan, array)
    if dress == "beyond 2^53":
        draw.allowed.append(UNFIT_NUMBERS)
        array = 2**62 + draw.rng.integers(0, 3, array.shape)
    elif dress == "whole numbers":
        array = np.clip(np.rint(array * 3), -100, 100).astype(draw.one(np.int8, np.int32, np.int64))
    elif dress == "truth values":
        array = array > np.median(array, axis=0)
    elif dress == "float32":
        array = np.clip(array, -1e38, 1e38).astype(np.float32)
    elif dress == "read-only":
        array.flags.writeable = False
    elif dress in ("Fortran", "strided"):
        array = np.asfortranarray(array) if dress == "Fortran" else np.repeat(array, 2, axis=0)[::2]
    elif dress in ("pandas", "polars"):
        return (pd.DataFrame(named) if dress == "pandas" else pl.DataFrame(named)), array
    return (array.tolist() if dress == "list" else array), array


def _numbers(draw: Draw, signal: Any) -> Any:
    """Targets of a regression."""
    kind = draw.one("", "", "", "", "", "", "", "offset", "scale", "constant", "whole", "outlier", "float32")
    if kind == "offset":
        offset = draw.tagged("target of mean/spread", 1e7, 3e7, 1e8, 1e9, 1e13)
        draw.allowed += [UNFIT_NUMBERS] if offset > 1e9 else []
        return signal + offset
    if kind == "scale":
        draw.allowed.append(UNFIT_NUMBERS)
        return signal * draw.tagged("target of scale", 1e-160, 1e-320, 1e-9, 1e9, 1e150, 1e300)
    if kind == "constant":
        value = draw.tagged("constant target", 0.0, 3.0, 0.1, 1e9, 1e-320)
        draw.allowed += [UNFIT_NUMBERS] if value == 1e-320 else []
        return np.full(len(signal), value)
    if kind == "outlier":
        return np.where(np.arange(len(signal)) == 0, draw.tagged("target of outlier", 1e3, 1e6), signal)
    return np.rint(signal) if kind == "whole" else signal.astype(np.float32 if kind else np.float64)


def _labels(draw: Draw, signal: Any, target: str) -> Any:
    """Labels of two classes or more."""
    count = (
        draw.tagged("classes:", 3, 4) if draw.chance(0.2) and target != "scorecard" and len(signal) > 8 else 2
    )
    cuts = np.quantile(signal, np.linspace(0, 1, count + 1)[1:-1] if count > 2 or draw.chance(0.7) else [0.9])
    codes = np.searchsorted(cuts, signal)
    if len(np.unique(codes)) < count:
        codes = np.arange(len(signal)) % count
    if count > 2:  # the last: learners fitted to rows of three classes, of which two have a weight
        draw.allowed += ["only two are supported", "is for two classes", "must tell two classes apart"]
    words, truth = ["no", "yes", "maybe", "Ünknown"], [False, True] if count == 2 else [0, 10, 20, 30]
    return np.array(draw.one([0, 1, 2, 3], words, [-1.0, 2.0, 7.0, 9.0], truth)[:count])[codes]


def _weights(draw: Draw, rows: int) -> Any:
    if draw.chance(0.55):
        return None
    rng = draw.rng
    kind = draw.tagged(
        "weights:", "whole", "whole", "real", "zeros", "large whole", "decades", "huge", "tiny", "one large"
    )
    if kind == "whole":
        weight = rng.integers(1, 4, rows).astype(draw.one(np.float64, np.int64, np.float32))
        return weight.tolist() if draw.chance(0.2) else weight
    if kind == "real":
        return rng.uniform(0.1, 3.0, rows)
    draw.allowed += ["next to no", *SPLITS]
    if kind == "zeros":
        return rng.integers(0, 3, rows).astype(float) + (np.arange(rows) < 2)
    if kind == "large whole":
        return np.rint(rng.uniform(0.5, 1.5, rows) * draw.tagged("of sum", 1e11, 1e13, 1e15, 1e16) / rows)
    if kind == "decades":
        return 10.0 ** (draw.tagged("over 10 to the", 6, 12, 20, 200) * rng.uniform(-0.5, 0.5, rows))
    if kind == "one large":
        return np.where(np.arange(rows) == rows // 2, draw.tagged("of size", 1e6, 1e12), 1.0)
    return rng.uniform(0.5, 1.5, rows) * (1e300 if kind == "huge" else 1e-300)


def _small_whole(weight: Any) -> bool:
    return weight is not None and bool(np.isin(np.asarray(weight, dtype=float), (1.0, 2.0, 3.0)).all())


# ------------------------------------------------------------------------------------------------ arguments


def _about_features(draw: Draw, params: Params, target: str, table: list[Any]) -> None:
    """Parameters that say something of single features."""
    numeric = [j for j, column in enumerate(table) if column.dtype.kind == "f"]
    whole = [j for j in numeric if np.isin(table[j], np.arange(20)).all()]
    if draw.chance(0.1) and whole and len(numeric) == len(table):
        params["categorical_features"] = draw.tagged("categorical_features", whole)
    elif draw.chance(0.2) and numeric:
        directions = np.zeros(len(table), dtype=int)
        directions[numeric] = draw.rng.integers(-1, 2, len(numeric))
        params["monotonic_cst"] = draw.tagged("monotonic", directions.tolist(), {numeric[0]: 1})
        draw.allowed.append("monotonic_cst is for")
    if target in CARDS and draw.chance(0.07):
        params["feature_costs"] = draw.rng.choice([0.0, 1e-3, 0.1], len(table)).tolist()
        draw.allowed.append("reselect")
    if target in CARDS and draw.chance(0.3):
        _demands(draw, params, table, numeric)


def _demands(draw: Draw, params: Params, table: list[Any], numeric: list[int]) -> None:
    """What an analyst asks of features, by position."""
    kind = draw.tagged("demands", "cuts", "exclude", "missing", "at_most_one_of", "must_include", "several")
    some = sorted(draw.rng.choice(len(table), min(2, len(table)), replace=False).tolist())
    if kind in ("cuts", "several") and numeric:
        params["cuts"] = {numeric[0]: draw.one([0.0], [1, 2.5, -1], [], [1e300])}
        draw.allowed.append("holds categories, which have no cuts")
    if kind in ("exclude", "several"):
        params["exclude"] = some[:1]
    if kind in ("missing", "several"):
        params["missing"] = draw.one("worst", "best", {some[0]: "worst"}, {some[-1]: "best"})
        draw.allowed.append("are for two classes")
    if kind in ("at_most_one_of", "several"):
        params["at_most_one_of"] = draw.one([some], [some, [0]], [list(range(len(table)))])
        draw.allowed += ["reselect", "exact search", "[Tt]abu search", "qubo chooses"]
    if kind in ("must_include", "several"):
        params["must_include"] = draw.one(some[-1:], some)
        draw.allowed += ["reselect", "exact search", "[Tt]abu search", "qubo chooses", "must_include"]


def _learners(draw: Draw, params: Params, X: Any, y: Any) -> None:
    """Trees as weak learners, fitted in every round or before."""
    tree = DecisionTreeClassifier(max_depth=draw.tagged("learners of depth", 1, 2), random_state=0)
    fitted = [DecisionTreeClassifier(max_depth=2, max_features=1, random_state=k) for k in range(4)]
    params["dictionary"] = draw.one(tree, ["stumps", tree], [own.fit(X, y) for own in fitted])
    of_stumps = ("cuts", "exclude", "missing", "at_most_one_of", "must_include")
    of_stumps += ("monotonic_cst", "max_features", "feature_costs", "validation_fraction", "class_weight")
    for name in of_stumps:
        params.pop(name, None)
    warm_start = draw.one(False, False, np.bool_(False))
    params |= {"warm_start": warm_start} if "warm_start" in params else {}
    if "temperature" in params:
        params |= {"method": "newton", "slack": "auto", "temperature": 0.3}
    draw.allowed.append("only two are supported")


def _followed(draw: Draw, made: Case) -> Case:
    """With the arguments of what follows the fit."""
    if made.target == "scorecard":
        call = {
            "points": draw.one(None, None, 1, 3, 10, 200, (-5, 5), (0, 7), (-4, 0)),
            "max_terms": draw.one(None, None, 1, 2, 3),
            "time_limit": draw.one(None, None, 1e-6, 0.05, 0.5),
            "max_bytes": draw.one(None, None, None, 48, 80, 200),
            "points_to_double_odds": draw.one(None, None, None, None, 20.0, 1.0),
        }
        draw.allowed += ["^scorecard", "no card fits", "need fit_intercept", "^max_bytes", "^points"]
        made = replace(
            made, params=made.params | {"max_terms": made.params["max_terms"] or 4, "time_limit": None}
        )
    elif made.target == "pareto_front":
        scorings = ("r2", "neg_log_loss") if made.numbers else ("neg_log_loss", "accuracy")
        call = {"sizes": draw.one([1], [1, 2], [1, 3]), "cv": 2, "random_state": 0}
        call |= {"scoring": draw.one(None, *scorings), "time_limit": draw.one(None, None, 1e-6, 0.5)}
        draw.allowed += [*SPLITS, "reselect", "class"]
        if made.numbers and call["scoring"] == "neg_log_loss":
            made = replace(made, must_refuse="a score of probabilities for numbers")
    else:
        return made
    return replace(made, call={name: value for name, value in call.items() if value is not None})


def _poisoned(draw: Draw, made: Case) -> Case:
    """The same with something in it that has to be refused."""
    rows, labelled = made.n_rows, made.y is not None
    reason = draw.one(
        "infinite entry", "negative weight", "no weight", "wrong length", "wrong parameter", "one class"
    )
    changed: Params = {}
    if reason == "infinite entry" and type(made.X) is np.ndarray and made.X.dtype == np.float64:
        X = made.X.copy()
        X[rows // 2, 0] = np.inf
        changed = {"X": X}
    elif reason in ("negative weight", "no weight"):
        changed = {
            "weight": np.zeros(rows) if reason == "no weight" else np.where(np.arange(rows) == 0, -1.0, 1.0)
        }
    elif reason == "wrong length" and labelled:
        changed = {"y": made.y[:-1]}
    elif reason == "one class" and labelled and not made.numbers:
        changed = {"y": np.array([made.y[0]] * rows)}
    elif reason == "wrong parameter":
        name = draw.one(
            *sorted(set(made.params) & {"l1", "l2", "max_iter", "tol", "radius", "hidden", "n_jobs"})
        )
        value = draw.one(-1, -0.5, float("nan"), "many", []) if name != "n_jobs" else draw.one(0, 1.5, "all")
        reason, changed = f"{name}={value!r}", {"params": made.params | {name: value}}
    return replace(made, must_refuse=reason, laws=(), **changed) if changed else made
