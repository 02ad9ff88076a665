"""Models to export, rows on which an export can go wrong, and C compiled for the tests."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardboost.data.categories import OTHER, Categories
from cardboost.export.c import header
from cardboost.export.c_model import CModel
from cardboost.export.c_vectors import vectors
from cardboost.model import Ensemble, MulticlassEnsemble, Term

sys.path.append(str(Path(__file__).parents[1] / "model"))
from drawn_models import UNSEEN, as_table

HOSTILE = (
    "*/ int x; /*",
    "what??/",
    'back\\slash\n"quote',
    "größe 身長",
    "",
    "// 'a'",
    "int",
    "9 lives",
    "a b",
    "a_b",
    "A B",
    "\ud800",
)
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]


def tool(name: str) -> str:
    """A program that a test needs. Under CI its absence is a failure."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is needed under CI")
        pytest.skip(f"{name} is not installed")
    return found


# ------------------------------------------------------------------------------------------------ models


def random_ensemble(
    seed: int, terms: int = 12, features: int = 6, loss: str = "logistic", **more: Any
) -> Ensemble:
    """Numbers on the first features, labels on the last two; several terms per feature."""
    rng = np.random.default_rng(seed)
    text = Categories(("a", "b", "it's", "é"), ("rare one", "rare two"))
    whole = Categories((1, 2, 5, 9))
    categories = {features - 2: text, features - 1: whole}
    found = []
    for _ in range(terms):
        feature = int(rng.integers(features))
        side: dict[str, Any] = {
            "polarity": int(rng.choice([-1, 1])),
            "missing_left": bool(rng.integers(2)),
            "weight": float(rng.exponential()) + 1e-3,
        }
        if feature in categories:
            own = categories[feature]
            labels = [*own.kept, *([OTHER] if own.rare else [])]
            chosen = sorted(rng.permutation(len(labels))[: int(rng.integers(1, len(labels)))].tolist())
            picked = tuple(labels[k] for k in chosen)
            where = {"category": picked[0]} if len(picked) == 1 else {"one_of": picked}
            found.append(Term(feature, None, **where, **side))
        else:
            cut = float(rng.choice([rng.normal(), rng.normal() * 1e4, round(rng.normal(), 2), math.inf]))
            found.append(Term(feature, cut, **side))
    used = {term.feature for term in found}
    settings: dict[str, Any] = {
        "feature_names": None,
        "classes": None if loss == "squared" else ("no", "yes"),
    }
    return Ensemble(
        loss,
        float(rng.normal()),
        tuple(found),
        n_features=features,
        categories={j: own for j, own in categories.items() if j in used},
        **(settings | more),
    )


def random_multiclass(seed: int, classes: int = 3, terms: int = 5) -> MulticlassEnsemble:
    members = [random_ensemble(100 * seed + k, terms, classes=(False, True)) for k in range(classes)]
    return MulticlassEnsemble(tuple("abcdefgh"[:classes]), tuple(members))


def stumps(*terms: tuple[int, float, float], intercept: float = 0.0, missing_left: bool = False) -> Ensemble:
    """Terms as (feature, cut, weight)."""
    own = tuple(Term(j, cut, 1 if w > 0 else -1, missing_left, abs(w)) for j, cut, w in terms)
    return Ensemble("logistic", intercept, own, None, 1 + max((j for j, _, _ in terms), default=0), (0, 1))


def fixed_models() -> dict[str, Ensemble | MulticlassEnsemble]:
    rng = np.random.default_rng(5)
    many = [(0, cut, weight) for cut, weight in rng.normal(size=(120, 2)).tolist()]
    hostile = [(k, 0.5, 1.0 + k) for k in range(len(HOSTILE))]
    names = Ensemble(
        "exponential",
        0.25,
        tuple(Term(j, cut, 1, False, w) for j, cut, w in hostile),
        HOSTILE,
        len(HOSTILE),
        ("*/", "\\"),
    )
    extreme = [0.1, 1e-50, -1e-50, 1e39, -1e39, 3.4028234663852886e38, 16777217.0, 1e300, 5e-324]
    return {
        "random": random_ensemble(1),
        "exponential": random_ensemble(2, loss="exponential"),
        "regression": random_ensemble(3, loss="squared"),
        "no terms": stumps(intercept=-0.5),
        "a tie": stumps((0, 0.5, 1.0), (1, 0.25, 1.0)),
        "near ties": stumps((0, 0.5, 0.1), (1, 0.25, 0.2), (2, 0.0, -0.3), (3, 1.0, 1e-7)),
        "too near": stumps((0, 0.5, 0.1), (1, 0.25, 0.2), (2, 0.0, -0.3), (3, 1.0, 1e-12)),
        "lost digits": stumps((0, 0.5, 1e16), (1, 0.25, 1.0), (2, 0.0, -1e16), (3, 0.0, 0.5)),
        "many cuts": stumps(*many, intercept=0.3),
        "hostile names": names,
        "extreme cuts": stumps(
            *((k % 3, cut, 1.0 + k / 7) for k, cut in enumerate(extreme)), missing_left=True
        ),
        "several classes": random_multiclass(4),
        "missing only": stumps((0, math.inf, 1.0), (1, 0.5, 0.25), intercept=0.1),
    }


def members(ensemble: Ensemble | MulticlassEnsemble) -> tuple[Ensemble, ...]:
    return ensemble.ensembles if isinstance(ensemble, MulticlassEnsemble) else (ensemble,)


def decisions(ensemble: Ensemble | MulticlassEnsemble, scores: Any) -> Any:
    return (
        np.argmax(scores, axis=1)
        if isinstance(ensemble, MulticlassEnsemble)
        else (np.ravel(scores) > 0).astype(int)
    )


# ------------------------------------------------------------------------------------------------ rows


def cuts_of(ensemble: Ensemble | MulticlassEnsemble, feature: int) -> list[float]:
    terms = [term for own in members(ensemble) for term in own.terms if term.feature == feature]
    return sorted({term.cut for term in terms if term.cut is not None and term.cut < math.inf})


def float32_values(ensemble: Ensemble | MulticlassEnsemble, feature: int) -> list[float]:
    """The float32 numbers around every cut."""
    values = {0.0, -0.0, 1.0, -3e38, 3e38}
    for cut in cuts_of(ensemble, feature):
        with np.errstate(over="ignore"):
            near = np.float32(cut)
            down = np.nextafter(near, np.float32(-np.inf))
            up = np.nextafter(near, np.float32(np.inf))
            around = [near, down, up, np.nextafter(down, np.float32(-np.inf))]
        values |= {float(value) for value in around if np.isfinite(value)}
    return [math.nan, *values]


def float64_values(ensemble: Ensemble | MulticlassEnsemble, feature: int) -> list[float]:
    """The doubles around every cut."""
    values = {0.0, -0.0, -1e300, 1e300}
    for cut in cuts_of(ensemble, feature):
        values |= {cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf)}
    return [math.nan, *values]


def raw_rows(
    ensemble: Ensemble | MulticlassEnsemble, count: int, numbers: Any, seed: int = 0
) -> list[list[Any]]:
    """Every value of every feature, then mixtures; labels as labels, None where they are missing."""
    rng = np.random.default_rng(seed)
    values: list[list[Any]] = []
    for j in range(ensemble.n_features):
        if j in ensemble.categories:
            own = ensemble.categories[j]
            labels = [*own.kept, *own.rare]
            values.append([*labels, UNSEEN[str if isinstance(labels[0], str) else int], None])
        else:
            values.append(numbers(ensemble, j))
    each = [[own[k % len(own)] for own in values] for k in range(max(map(len, values)))]
    picks = [rng.integers(len(own), size=max(0, count - len(each))) for own in values]
    mixed = [[own[k] for own, k in zip(values, row, strict=True)] for row in zip(*picks, strict=True)]
    return each + mixed


def table_of(ensemble: Ensemble | MulticlassEnsemble, rows: list[list[Any]]) -> Any:
    return as_table(rows, ensemble.categories, ensemble.feature_names)


def coded(ensemble: Ensemble | MulticlassEnsemble, rows: list[list[Any]], seed: int = 0) -> Any:
    """Rows as numbers: labels as codes, unseen ones as some other code, missing ones as NaN."""
    rng = np.random.default_rng(seed)
    out = np.empty((len(rows), ensemble.n_features))
    for j in range(ensemble.n_features):
        own = ensemble.categories.get(j)
        for i, row in enumerate(rows):
            value = row[j]
            if own is not None and value is not None:
                known = value in own.kept or value in own.rare
                value = own._codes[value] if known else rng.choice([-1, own.n_codes, own.n_codes + 7, -300])
            out[i, j] = math.nan if value is None else value
    return out


# ------------------------------------------------------------------------------------------------ C


class Compiled:
    """Many headers in one library."""

    def __init__(self, models: list[CModel], folder: Path) -> None:
        self.models = models
        lines = ["#include <stdint.h>"]
        for k, model in enumerate(models):
            (folder / f"{model.prefix}.h").write_text(header(model), encoding="ascii")
            (folder / f"{model.prefix}_test.h").write_text(vectors(model), encoding="ascii")
            lines += [f'#include "{model.prefix}_test.h"', *self._wrapper(k, model)]
        self.source = folder / "all.c"
        self.source.write_text("\n".join(lines) + "\n", encoding="ascii")
        library = folder / "all.so"
        compiler = tool("gcc")
        command = [
            compiler,
            "-std=c99",
            *STRICT,
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            str(library),
            str(self.source),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        self._library = ctypes.CDLL(str(library))

    @staticmethod
    def _wrapper(k: int, model: CModel) -> list[str]:
        p, inputs, several = model.prefix, max(len(model.plan.inputs), 1), model.plan.n_scores > 1
        kind, out, scores = model.c_type, model.score_type, model.plan.n_scores
        score = f"{p}_scores(row, s + i * {scores});" if several else f"s[i] = {p}_score(row);"
        decide = f"c[i] = {p}_class(row);" if model.plan.decides else "c[i] = 0;"
        chance = f"q[i] = {p}_probability(s[i]);" if model.probability is not None else "q[i] = 0;"
        name = f"run_{k}"
        arguments = f"long n, const {kind} *x, {out} *s, uint16_t *c, uint16_t *q"
        return [
            f"void {name}({arguments});",
            f"void {name}({arguments})",
            f"{{ long i; for (i = 0; i < n; i++) {{ const {kind} *row = x + i * {inputs};",
            f"  {score} {decide} {chance} }} }}",
            f"int test_{k}(void);",
            f"int test_{k}(void) {{ return {p}_self_test(); }}",
        ]

    def run(self, k: int, x: Any) -> tuple[Any, Any, Any]:
        """Scores (rows, scores), classes and probabilities."""
        model = self.models[k]
        kind = np.float32 if model.number == "float" else np.int16
        rows = np.ascontiguousarray(x, dtype=kind)
        if rows.shape[1] == 0:
            rows = np.zeros((len(rows), 1), dtype=kind)
        kinds = {"double": np.float64, "int32_t": np.int32, "int64_t": np.int64}
        scores = np.zeros((len(rows), model.plan.n_scores), dtype=kinds[model.score_type])
        classes, chances = np.zeros(len(rows), dtype=np.uint16), np.zeros(len(rows), dtype=np.uint16)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (rows, scores, classes, chances)]
        getattr(self._library, f"run_{k}")(ctypes.c_long(len(rows)), *pointers)
        return scores, classes, chances

    def failures(self, k: int) -> int:
        return int(getattr(self._library, f"test_{k}")())
