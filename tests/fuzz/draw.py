"""The case of a seed: what is called, with which parameters, on which data.

Most draws are ordinary; every list also has its edge values, and `tags` name what is unusual about the data.
`allowed` are the refusals that a case may meet; `must_refuse` says why it has to meet one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing

Params = dict[str, Any]

#: what is called, and how often
TARGETS = {
    "CardBoostClassifier": 24, "CardBoostRegressor": 18, "SoftMarginClassifier": 9, "StagewiseClassifier": 6,
    "StagewiseRegressor": 5, "SparseLogisticRegression": 9, "SparseLinearRegression": 9,
    "NeuralBoostClassifier": 3, "NeuralBoostRegressor": 3, "select_columns": 11, "minimize_l1": 3,
    "minimize_on_simplex": 3, "scorecard": 6, "pareto_front": 1,
}  # fmt: skip
STUMPS = ("CardBoostClassifier", "CardBoostRegressor", "SoftMarginClassifier", "StagewiseClassifier",
          "StagewiseRegressor", "scorecard", "pareto_front")  # fmt: skip
CARDS = ("CardBoostClassifier", "CardBoostRegressor", "scorecard", "pareto_front")
MATRIX = ("select_columns", "minimize_l1", "minimize_on_simplex")

#: a refusal of numbers that double precision cannot carry names its reason
UNFIT_NUMBERS = r"too (large|small|wide|far)|scale|precision|digits|overflow|2\^53|exact"


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
        X, y, weight, filled = (
            None if part is None else _safe_indexing(part, rows)
            for part in (self.X, self.y, self.weight, self.filled)
        )
        return replace(self, X=X, y=y, weight=weight, filled=filled)

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        shape = f"{self.n_rows} x {np.shape(self.X)[1]} {type(self.X).__name__}"
        call = f", then {self.call}" if self.call else ""
        return f"{self.target}({arguments}){call} on {shape}; {', '.join(self.tags) or 'plain data'}"


class Draw:
    """Random choices in the words of this file."""

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

    def tag(self, *names: str) -> None:
        self.tags.extend(names)

    def allow(self, *patterns: str) -> None:
        self.allowed.extend(patterns)


def case(seed: int) -> Case:
    """The case of this seed, the same in every run."""
    draw = Draw(seed)
    names, shares = list(TARGETS), np.array(list(TARGETS.values()), dtype=float)
    target = names[int(draw.rng.choice(len(names), p=shares / shares.sum()))]
    rows, columns = draw.whole(5, 400), draw.whole(1, 8)
    if target in CARDS and draw.chance(0.01):
        draw.tag("large")
        rows, columns = draw.whole(2000, 8000), draw.whole(5, 20)
    draw.allow("no column that tells rows apart", "no better than chance")  # tiny tables have no signal
    if target == "pareto_front":
        rows, columns = draw.whole(20, 80), draw.whole(1, 3)
    if target in MATRIX:
        made = _matrix_case(draw, seed, target, rows, draw.whole(1, 14))
    else:
        made = _table_case(draw, seed, target, rows, columns)
    made = _poisoned(draw, made) if draw.chance(0.04) else made
    return replace(made, tags=tuple(draw.tags), allowed=tuple(draw.allowed))


# ------------------------------------------------------------------------------------------------ tables


def _table_case(draw: Draw, seed: int, target: str, rows: int, columns: int) -> Case:
    stumps = target in STUMPS
    table = [_column(draw, rows, stumps) for _ in range(columns)]
    for j in range(1, columns):
        if draw.chance(0.06):
            draw.tag("repeated column")
            source = table[int(draw.rng.integers(j))]
            table[j] = -source if source.dtype.kind == "f" and draw.chance(0.5) else source.copy()
    labels = [column for column in table if column.dtype.kind == "O"]
    signal = sum(
        (np.nan_to_num((column - _middle(column)) / _spread(column)) for column in table if column.dtype.kind == "f"),
        start=draw.rng.normal(size=rows) * draw.one(0.3, 1.0, 5.0),
    )  # fmt: skip
    X, filled = _dressed(draw, table, stumps)
    numbers = target.endswith("Regressor") or target == "SparseLinearRegression" or (
        target == "pareto_front" and draw.chance(0.4)
    )  # fmt: skip
    y, n_classes = (_numbers(draw, signal), 0) if numbers else _labels(draw, signal, target)
    weight = _weights(draw, rows)
    params = {
        "CardBoostClassifier": _card_params, "CardBoostRegressor": _card_params, "scorecard": _card_params,
        "pareto_front": _card_params, "SoftMarginClassifier": _soft_params,
        "StagewiseClassifier": _stagewise_params, "StagewiseRegressor": _stagewise_params,
        "SparseLogisticRegression": _linear_params, "SparseLinearRegression": _linear_params,
        "NeuralBoostClassifier": _neural_params, "NeuralBoostRegressor": _neural_params,
    }[target](draw, target, columns, n_classes)  # fmt: skip
    if stumps:
        _feature_params(draw, params, target, table, n_classes)
    if n_classes and draw.chance(0.15):
        names = sorted(set(y.tolist()), key=str)
        params["class_weight"] = draw.one(
            {names[0]: draw.one(2.0, 0.3, 1e-3, 1e6)}, "balanced" if n_classes == 2 else None
        )
        draw.tag("class weights")
        draw.allow("next to no sample_weight", "which is not among the classes")
    if (
        target in ("CardBoostClassifier", "SoftMarginClassifier", "StagewiseClassifier")
        and n_classes == 2 and not labels and draw.chance(0.08)
        and type(X) is np.ndarray and X.dtype.kind == "f" and (np.abs(X) < 1e30).all()
    ):  # fmt: skip
        _learners(draw, params, X, y)
    params = {name: _typed(draw, value) for name, value in params.items()}
    made = Case(seed, target, params, X, y if draw.chance(0.9) else y.tolist(), weight,
                filled=filled, numbers=numbers)  # fmt: skip
    return _followed(draw, replace(made, laws=_costly_laws(draw, made, whole=_small_whole(weight))))


def _column(draw: Draw, rows: int, stumps: bool) -> Any:
    rng, kind = draw.rng, draw.whole(1, 100)
    ordinary = rng.normal(size=rows)
    if not draw.chance(0.45):
        values = ordinary
    elif kind <= 8:
        values = rng.integers(0, draw.whole(1, 12), rows).astype(float)
    elif kind <= 12:
        draw.tag("constant column")
        values = np.full(rows, draw.one(0.0, 1.0, -3e200, 1e-310))
        draw.allow(*(() if stumps else (UNFIT_NUMBERS,)))
    elif kind <= 30 and stumps:
        values = _categories(draw, rows)
    elif kind <= 55:
        scale = draw.one(1e-160, 1e-320, 1e-8, 1e8, 1e150, 9e15)
        draw.tag(f"scale {scale:g}")
        if not stumps:
            draw.allow(UNFIT_NUMBERS)
        values = np.where(ordinary > 0, 1.0, ordinary) * scale if scale == 9e15 else ordinary * scale
    elif kind <= 75:
        offset = draw.one(1e7, 1e8, 1e9, -1e12)
        draw.tag(f"offset {offset:g}")
        if not stumps and abs(offset) > 1e9:
            draw.allow(UNFIT_NUMBERS)
        values = ordinary + offset
    else:
        draw.tag("heavy tails")
        values = rng.standard_t(1, rows)
    if stumps and values.dtype.kind == "f" and draw.chance(0.2):
        draw.tag("missing numbers")
        values = np.where(rng.random(rows) < draw.one(0.05, 0.3, 1.0), np.nan, values)
    return values


def _categories(draw: Draw, rows: int) -> Any:
    """Labels as an array of objects, some of them missing."""
    draw.tag("categories")
    count = draw.one(1, 2, 3, 5, 30, 300)
    names = np.array([draw.one("a", "Zürich", "x y", "=1+1", "-3", "") + str(k) for k in range(count)], dtype=object)
    values = names[draw.rng.integers(0, count, rows)]
    if draw.chance(0.5):
        draw.tag("missing labels")
        values[draw.rng.random(rows) < draw.one(0.1, 0.5)] = None
    return values


def _middle(column: Any) -> float:
    known = column[np.isfinite(column)]
    return float(np.median(known)) if len(known) else 0.0


def _spread(column: Any) -> float:
    known = column[np.isfinite(column)] - _middle(column)
    return float(np.abs(known).max(initial=0.0)) or 1.0


def _dressed(draw: Draw, table: list[Any], stumps: bool) -> tuple[Any, Any]:
    """The columns as a user may hold them, and as an array with NaN for what is missing."""
    rows, names = len(table[0]), [f"f{j}" for j in range(len(table))]
    mixed = any(column.dtype.kind == "O" for column in table)
    if mixed:
        import pandas as pd
        import polars as pl

        whole = np.empty((rows, len(table)), dtype=object)
        for j, column in enumerate(table):
            whole[:, j] = column
        dress = draw.one("pandas", "pandas categories", "polars", "objects")
        draw.tag(dress)
        if dress == "objects":
            return whole, whole
        if dress == "polars":
            frame = pl.DataFrame({name: pl.Series(column.tolist()) if column.dtype.kind == "O" else column
                                  for name, column in zip(names, table, strict=True)}, strict=False)  # fmt: skip
            return frame, frame
        frame = pd.DataFrame(dict(zip(names, table, strict=True)))
        if dress == "pandas categories":
            for name, column in zip(names, table, strict=True):
                if column.dtype.kind == "O":
                    frame[name] = frame[name].astype("category")
        return frame, frame
    array = np.stack(table, axis=1)
    if not draw.chance(0.4):
        return array, array
    dress = draw.one("float32", "whole numbers", "truth values", "list", "Fortran order", "masked", "pandas",
                     "polars", "every other row", "read-only", "beyond 2^53")  # fmt: skip
    finite = np.isfinite(array).all()
    if dress in ("whole numbers", "truth values", "beyond 2^53") and not finite:
        return array, array
    draw.tag(dress)
    if dress == "float32":
        array = np.clip(array, -1e38, 1e38).astype(np.float32)
    elif dress == "whole numbers":
        array = np.clip(np.rint(array * 3), -100, 100).astype(draw.one(np.int8, np.int32, np.int64))
    elif dress == "truth values":
        array = array > np.median(array, axis=0)
    elif dress == "beyond 2^53":
        array = 2**62 + draw.rng.integers(0, 3, array.shape)
        draw.allow(UNFIT_NUMBERS)
    elif dress == "list":
        return array.tolist(), array
    elif dress == "Fortran order":
        array = np.asfortranarray(array)
    elif dress == "masked":
        mask = draw.rng.random(array.shape) < 0.2
        if not stumps:
            draw.allow("NaN|mask|missing")
        return np.ma.masked_array(array, mask), np.where(mask, np.nan, array)
    elif dress == "pandas":
        import pandas as pd

        return pd.DataFrame(array, columns=names), array
    elif dress == "polars":
        import polars as pl

        return pl.DataFrame(array, schema=names), array
    elif dress == "every other row":
        array = np.repeat(array, 2, axis=0)[::2]
    else:
        array.flags.writeable = False
    return array, array


def _numbers(draw: Draw, signal: Any) -> Any:
    """Targets of a regression."""
    if draw.chance(0.7):
        return signal
    kind = draw.one("offset", "scale", "constant", "whole", "outlier", "float32", "repeated")
    if kind == "offset":
        offset = draw.one(1e7, 3e7, 1e8, 1e9, 1e13)
        draw.tag(f"target of mean/spread {offset:g}")
        if offset > 1e9:
            draw.allow(UNFIT_NUMBERS)
        return signal + offset
    if kind == "scale":
        scale = draw.one(1e-160, 1e-320, 1e-9, 1e9, 1e150, 1e300)
        draw.tag(f"target of scale {scale:g}")
        draw.allow(UNFIT_NUMBERS)
        return signal * scale
    draw.tag(f"target: {kind}")
    if kind == "constant":
        return np.full(len(signal), draw.one(0.0, 3.0, 1e9, 1e-320))
    if kind == "outlier":
        return np.where(np.arange(len(signal)) == 0, 1e6, signal)
    if kind == "float32":
        return signal.astype(np.float32)
    return np.rint(signal) if kind == "whole" else np.repeat(signal[: len(signal) // 4 + 1], 4)[: len(signal)]


def _labels(draw: Draw, signal: Any, target: str) -> tuple[Any, int]:
    """Labels of two classes or more, and how many classes there are."""
    several = draw.chance(0.2) and target != "scorecard" and len(signal) >= 9
    count = draw.one(3, 4) if several else 2
    cuts = np.quantile(signal, np.linspace(0, 1, count + 1)[1:-1] if several or draw.chance(0.7) else [0.9])
    codes = np.searchsorted(cuts, signal)
    if len(np.unique(codes)) < count:
        codes = np.arange(len(signal)) % count
    if several:
        draw.tag(f"{count} classes")
        draw.allow("only two are supported", "is for two classes")
    names = draw.one(np.arange(count), np.array(["no", "yes", "maybe", "Ünknown"])[:count],
                     np.array([-1.0, 2.0, 7.0, 9.0])[:count], np.array([False, True])[:count] if count == 2
                     else np.arange(count) * 10)  # fmt: skip
    return names[codes], count


def _weights(draw: Draw, rows: int) -> Any:
    if draw.chance(0.55):
        return None
    rng = draw.rng
    kind = draw.one("whole", "whole", "real", "zeros", "huge whole", "decades", "huge", "tiny", "one large")
    draw.tag(f"weights: {kind}")
    if kind == "whole":
        weight = rng.integers(1, 4, rows).astype(draw.one(np.float64, np.int64, np.float32))
        return weight.tolist() if draw.chance(0.2) else weight
    if kind == "real":
        return rng.uniform(0.1, 3.0, rows)
    draw.allow("only one class", "cannot be split", "next to no")
    if kind == "zeros":
        return rng.integers(0, 3, rows).astype(float) + (np.arange(rows) < 2)
    if kind == "huge whole":
        size = draw.one(1e11, 1e13, 1e15, 1e16)
        return np.rint(rng.uniform(0.5, 1.5, rows) * size / rows)
    if kind == "decades":
        return 10.0 ** rng.uniform(-draw.one(6, 12, 100), draw.one(0, 12, 100), rows)
    if kind == "one large":
        return np.where(np.arange(rows) == rows // 2, draw.one(1e6, 1e12), 1.0)
    return rng.uniform(0.5, 1.5, rows) * (1e300 if kind == "huge" else 1e-300)


def _small_whole(weight: Any) -> bool:
    known = None if weight is None else np.asarray(weight, dtype=float)
    return known is not None and bool((known == np.rint(known)).all() and (known >= 1).all() and known.max() <= 3)


# ------------------------------------------------------------------------------------------------ parameters


def _card_params(draw: Draw, target: str, columns: int, n_classes: int) -> Params:
    number = not n_classes
    chosen: Params = {
        "max_terms": draw.one(1, 2, 3, 3, 5, 5, 10, None),
        "l0": draw.one(0.0, 0.0, 0.0, 1e-3, 0.02, 1.0),
        "l1": draw.one(1e-4, 1e-4, 0.0, 1e-6, 1e-2, 0.3),
        "l2": draw.one(0.01, 0.01, 0.0, 0.0, 1e-4, 0.1, 10.0),
        "criterion": draw.one("gain", "gain", "edge"),
        "selector": draw.one("auto", "auto", "auto", "polish", "exact", "tabu", "qubo"),
        "hot_start": draw.one(1, 2, 5, 8, 12, 20, 40),
        "reselect": draw.chance(0.1),
        "max_iter": draw.one(1, 3, 10, 30, 100),
        "max_nodes": draw.one(1, 10, 50, 300),
        "max_weight": draw.one(None, None, None, 1e-3, 0.5, 2.0, 1e4),
        "bits": draw.one(6, 6, 1, 3, "auto"),
        "max_bins": draw.one(255, 255, 2, 3, 16),
        "tol": draw.one(1e-4, 1e-4, 0.0, 1e-8, 0.3),
        "fit_intercept": draw.chance(0.85),
        "random_state": draw.one(0, 7),
        "n_jobs": draw.one(None, 1, 2, -1),
    }
    if not number:
        chosen["loss"] = draw.one("logistic", "logistic", "exponential", "squared_hinge", "hinge")
    if draw.chance(0.08):
        chosen["validation_fraction"] = draw.one(0.2, 0.5)
        draw.allow("cannot be split", "only one class")
    if draw.chance(0.08):
        chosen["warm_start"] = True
        draw.allow("must be at least the")
    if "large" in draw.tags or (draw.chance(0.12) and target not in ("scorecard", "pareto_front")):
        chosen["time_limit"] = draw.one(1e-6, 0.01, 0.1, 0.4)
        if draw.chance(0.7):
            chosen.update(hot_start=draw.one(60, 200), max_nodes=10**7, max_iter=200, max_terms=draw.one(4, 6, 9))
    if chosen["selector"] in ("exact", "tabu", "qubo"):
        draw.allow("exact search", "[Tt]abu search", "qubo chooses", "needs a finite", "squared")
    if target == "pareto_front":
        chosen.update(selector="auto", max_nodes=10)
        chosen.pop("max_terms")
    return chosen


def _feature_params(draw: Draw, params: Params, target: str, table: list[Any], n_classes: int) -> None:
    """Parameters that say something of single features."""
    numeric = [j for j, column in enumerate(table) if column.dtype.kind == "f"]
    if draw.chance(0.2) and numeric:
        draw.tag("monotonic")
        directions = np.zeros(len(table), dtype=int)
        directions[numeric] = draw.rng.integers(-1, 2, len(numeric))
        params["monotonic_cst"] = draw.one(directions.tolist(), {numeric[0]: 1})
        draw.allow("monotonic_cst is for")
    if target in CARDS and draw.chance(0.1):
        params["max_features"] = draw.one(1, 2, 20)
        draw.allow("reselect")
    if target in CARDS and draw.chance(0.07):
        params["feature_costs"] = draw.rng.choice([0.0, 1e-3, 0.1], len(table)).tolist()
        draw.allow("reselect")
    whole = [j for j in numeric if np.isin(table[j], np.arange(20)).all()]
    if draw.chance(0.1) and whole and len(numeric) == len(table):
        params["categorical_features"] = whole
        params.pop("monotonic_cst", None)
        draw.tag("whole numbers as categories")


def _learners(draw: Draw, params: Params, X: Any, y: Any) -> None:
    """Trees as weak learners, fitted in every round or before."""
    draw.tag("learners")
    draw.allow("for stumps only", "with other learners", "only one class", "no .* weight")
    tree = DecisionTreeClassifier(max_depth=draw.one(1, 2), random_state=0)
    fitted = [DecisionTreeClassifier(max_depth=2, max_features=1, random_state=k) for k in range(4)]
    kept = draw.one(tree, ["stumps", tree], fitted)
    if kept is fitted:
        kept = [own.fit(X, y) for own in fitted]
    params["dictionary"] = kept
    for name in ("monotonic_cst", "max_features", "feature_costs", "validation_fraction", "class_weight"):
        params.pop(name, None)
    params["warm_start"] = np.bool_(False) if draw.chance(0.3) else False


def _soft_params(draw: Draw, target: str, columns: int, n_classes: int) -> Params:
    chosen: Params = {
        "temperature": draw.one(0.1, 0.5, 2.0, 0.02, 1e-3, 100.0, "cv" if draw.chance(0.3) else 0.3),
        "method": draw.one("newton", "newton", "newton", "mprp"),
        "tol": draw.one(1e-6, 1e-3, 1e-9, 0.0),
        "slack": draw.one("auto", "auto", 0.0, 0.01, 0.5),
        "max_bins": draw.one(255, 2, 8),
        "max_iter": draw.one(None, 1, 5, 50),
        "fit_intercept": draw.chance(0.8),
        "random_state": draw.one(0, 3),
        "n_jobs": draw.one(None, 1, 2),
    }
    if chosen["temperature"] == "cv":
        chosen.update(cv=2, temperatures=[1.0, 0.3])
        draw.allow("split|folds?|n_splits|members|class")
    if chosen["method"] == "mprp":
        chosen["max_iter"] = draw.one(1, 50, 300)
    if draw.chance(0.1):
        chosen["time_limit"] = draw.one(1e-6, 0.05, 0.3)
    if draw.chance(0.1):
        chosen["warm_start"] = True
    return chosen


def _stagewise_params(draw: Draw, target: str, columns: int, n_classes: int) -> Params:
    chosen: Params = {
        "loss": draw.one("exponential", "logistic", "squared_hinge", "hinge", "smooth_hinge")
        if n_classes else draw.one("squared", "absolute"),
        "max_iter": draw.one(1, 5, 20, 100),
        "learning_rate": draw.one(1.0, 1.0, 0.1, 1e-3),
        "max_bins": draw.one(255, 2, 8),
        "random_state": draw.one(0, 3),
        "n_jobs": draw.one(None, 1, 2),
    }  # fmt: skip
    if n_classes:
        chosen["fit_intercept"] = draw.chance(0.5)
    if draw.chance(0.15):
        chosen["validation_fraction"] = draw.one(0.2, 0.5)
        draw.allow("cannot be split", "only one class")
    return chosen


def _linear_params(draw: Draw, target: str, columns: int, n_classes: int) -> Params:
    chosen: Params = {
        "l1": draw.one(0.0, 0.0, 1e-3, 0.05, 1.0),
        "l2": draw.one(0.0, 0.0, 1e-6, 0.01, 1.0),
        "solver": draw.one("auto", "auto", "auto", "newton", "prox-newton", "gradient"),
        "fit_intercept": draw.chance(0.8),
        "tol": draw.one(1e-6, 1e-6, 1e-3, 1e-12),
        "max_iter": draw.one(10_000, 1000, 1, 20),
        "accelerate": draw.chance(0.8),
        "n_jobs": draw.one(None, 1, 2),
    }
    if chosen["solver"] == "gradient":
        chosen["max_iter"] = min(chosen["max_iter"], 1000)
    if chosen["solver"] == "newton":
        chosen["l1"] = 0.0
    if draw.chance(0.1):
        chosen["warm_start"] = True
    if n_classes:
        chosen["multi_class"] = draw.one("ovr", "multinomial")
        if draw.chance(0.2):
            chosen["max_features"] = draw.one(0, 1, 2)
            chosen["random_state"] = 0
            draw.allow("max_features is for two classes")
    else:
        chosen["loss"] = draw.one("squared", "squared", "absolute")
        if chosen["loss"] == "absolute":
            chosen["solver"] = "auto"
    return chosen


def _neural_params(draw: Draw, target: str, columns: int, n_classes: int) -> Params:
    stopping = draw.one(False, False, False, True, "auto")
    if stopping:
        draw.allow("cannot be split", "folds?|members|n_splits")
    return {
        "n_estimators": draw.one(1, 2, 4),
        "hidden": draw.one(1, 3, 8),
        "activation": draw.one("tanh", "relu", "logistic"),
        "loss": draw.one("auto", "auto", "squared") if n_classes else draw.one("auto", "absolute", "huber"),
        "learning_rate": draw.one(1.0, 1.0, 0.1),
        "refit": draw.one("all", "last"),
        "l2": draw.one(1e-4, 0.0, 1e-2),
        "net_iter": draw.one(1, 5, 20),
        "max_terms": draw.one(None, 1, 2),
        "early_stopping": stopping,
        "random_state": draw.one(0, 3),
        "n_jobs": draw.one(None, 1, 2),
    }


def _typed(draw: Draw, value: Any) -> Any:
    """The same value in a type of NumPy, now and then."""
    if not draw.chance(0.15):
        return value
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return draw.one(np.int64, np.int32)(value)
    return draw.one(np.float64, np.float32)(value) if isinstance(value, float) and value < 1e30 else value


def _costly_laws(draw: Draw, made: Case, whole: bool) -> tuple[str, ...]:
    laws = [name for name in ("order of rows", "threads") if draw.chance(0.25)]
    if any(isinstance(value, np.generic) for value in made.params.values()) and draw.chance(0.5):
        laws.append("types")
    if whole and draw.chance(0.6):
        laws.append("weight 2 is the row twice")
    if "masked" in draw.tags:
        laws.append("mask")
    return tuple(laws)


def _followed(draw: Draw, made: Case) -> Case:
    """With the arguments of what follows the fit."""
    if made.target == "scorecard":
        limits = {
            "points": draw.one(None, None, 1, 3, 10, 200, (-5, 5), (0, 7), (-4, 0)),
            "max_terms": draw.one(None, None, 1, 2, 3),
            "time_limit": draw.one(None, None, 1e-6, 0.05, 0.5),
            "max_bytes": draw.one(None, None, None, 48, 80, 200),
        }
        if draw.chance(0.2):
            limits |= {"base_score": draw.one(0.0, 600.0), "points_to_double_odds": draw.one(20.0, 1.0)}
        draw.allow("^scorecard", "no card fits", "need fit_intercept", "^max_bytes", "^points")
        params = made.params | {"max_terms": made.params["max_terms"] or 4}
        return replace(made, params=params, call={name: value for name, value in limits.items() if value is not None})
    if made.target == "pareto_front":
        call = {"sizes": draw.one([1], [1, 2], [1, 3]), "cv": 2, "random_state": 0}
        scoring = draw.one(None, "r2", "neg_log_loss") if made.numbers else draw.one(None, "neg_log_loss", "accuracy")
        if scoring is not None:
            call["scoring"] = scoring
        if draw.chance(0.3):
            call["time_limit"] = draw.one(1e-6, 0.5)
        draw.allow("folds?|n_splits|members|class", "split", "reselect")
        unfit = "log loss is for classes" if made.numbers and scoring == "neg_log_loss" else None
        return replace(made, call=call, must_refuse=unfit)
    return made


# ------------------------------------------------------------------------------------------------ matrices


def _matrix_case(draw: Draw, seed: int, target: str, rows: int, columns: int) -> Case:
    rng = draw.rng
    A = np.where(rng.random((rows, columns)) < draw.one(0.5, 0.6, 0.9), 1.0, -1.0)
    if draw.chance(0.4):
        draw.tag("real entries")
        A = A * rng.uniform(0.1, 1.0, A.shape)
        if draw.chance(0.5):
            size = draw.one(3, 8, 12, 16)
            draw.tag(f"scales up to 1e{size} apart")
            A = A * 10.0 ** rng.uniform(-size / 2, size / 2, columns)
            if size > 12:
                draw.allow(UNFIT_NUMBERS)
    elif draw.chance(0.3):
        A = A.astype(draw.one(np.int8, np.int64, np.float32))
    for j in range(1, columns):
        if draw.chance(0.06):
            draw.tag("repeated column")
            A[:, j] = A[:, int(rng.integers(j))] * draw.one(1, -1)
    weight = _weights(draw, rows)
    loss = draw.one("exponential", "exponential", "logistic", "squared_hinge", "hinge")
    prices: Params = {"l1": draw.one(1e-4, 1e-4, 1e-2, 0.1), "l2": draw.one(0.0, 0.0, 1e-3, 0.1), "loss": loss}
    if draw.chance(0.3):
        prices["max_weight"] = draw.one(0.5, 2.0, 100.0)
    if target == "select_columns":
        params = prices | {
            "max_terms": draw.one(1, 2, 3, 5),
            "l0": draw.one(0.0, 0.0, 1e-3, 0.02),
            "method": draw.one("exact", "exact", "auto", "polish", "tabu", "qubo"),
            "max_nodes": draw.one(1, 30, 300),
            "seed": draw.one(0, 5),
        }
        draw.allow("exact search", "[Tt]abu search", "qubo chooses")
        if draw.chance(0.15):
            params |= {"time_limit": draw.one(1e-6, 0.05, 0.3), "max_nodes": None}
    elif target == "minimize_l1":
        params = prices | {"tol": draw.one(1e-8, 1e-3, 0.0), "max_iter": draw.one(1, 10, 1000)}
    else:
        params = {
            "radius": draw.one(0.01, 1.0, 10.0, 300.0),
            "method": draw.one("newton", "newton", "mprp"),
            "tol": draw.one(1e-8, 1e-3, 0.0),
            "max_iter": draw.one(0, 1, 20, 200),
        }
    params["n_jobs"] = draw.one(1, 2, None)
    params = {name: _typed(draw, value) for name, value in params.items()}
    made = Case(seed, target, params, A if draw.chance(0.9) else A.tolist(), weight=weight)
    return replace(made, laws=_costly_laws(draw, made, whole=_small_whole(weight)))


# ------------------------------------------------------------------------------------------------ refusals


def _poisoned(draw: Draw, made: Case) -> Case:
    """The same with something in it that has to be refused."""
    reason = draw.one("infinite entry", "negative weight", "no weight", "wrong length", "wrong parameter", "one class")
    rows = made.n_rows
    if reason == "infinite entry" and isinstance(made.X, np.ndarray) and made.X.dtype == np.float64:
        X = np.array(np.asarray(made.X), dtype=float)
        X[rows // 2, 0] = np.inf
        return replace(made, X=X, filled=X, must_refuse=reason, laws=())
    if reason in ("negative weight", "no weight"):
        weight = np.zeros(rows) if reason == "no weight" else np.where(np.arange(rows) == 0, -1.0, 1.0)
        return replace(made, weight=weight, must_refuse=reason, laws=())
    if reason == "wrong length" and made.y is not None:
        return replace(made, y=made.y[:-1], must_refuse=reason, laws=())
    if reason == "one class" and made.y is not None and not made.numbers:
        return replace(made, y=np.array([made.y[0]] * rows), must_refuse=reason, laws=())
    if reason == "wrong parameter":
        name = draw.one(*sorted(set(made.params) & {"l1", "l2", "l0", "max_terms", "max_iter", "tol", "radius",
                                                    "learning_rate", "hidden", "temperature", "n_jobs"}))  # fmt: skip
        value = draw.one(-1, -0.5, float("nan"), "many", []) if name != "n_jobs" else draw.one(0, 1.5, "all")
        if name == "max_terms" and value == -0.5:
            value = 2.5
        return replace(made, params=made.params | {name: value}, must_refuse=f"{name}={value!r}", laws=())
    return made
