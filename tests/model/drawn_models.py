"""Models on numbers and labels, drawn by Hypothesis or at random, and their slow evaluation on raw values.

A row is a list of raw values: a number or NaN, a label or None.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cardboost.data.categories import OTHER, CategoricalColumn, Categories, Other
from cardboost.data.table import Table
from cardboost.model import Ensemble, MulticlassEnsemble, Term

WORDS = [
    "a",
    "b c",
    "é",
    "other",
    "missing",
    "1",
    "x,y",
    "",
    "A",
    "is",
    '"',
    "身長",
    "long " * 20,
    "a\n",
    "zz",
]
NUMBERS = [0, 1, -3, 2.5, 2**60, 1e300, True, 5e-324, 0.1, 7, 8, 9]
UNSEEN = {str: "no such label", int: -987654321}


def left(term: Term, x: Any, categories: Categories | None) -> bool:
    """Where a raw value falls, in the words of the specification."""
    if x is None or x != x:
        return term.missing_left
    if categories is None:
        assert term.cut is not None
        return bool(x <= term.cut)
    if x not in categories.kept and x not in categories.rare:
        return term.missing_left
    return any(x in categories.rare if isinstance(own, Other) else bool(x == own) for own in term.labels)


def slow_feature(ensemble: Ensemble, feature: int, x: Any) -> float:
    total = 0.0
    for term in ensemble.terms:
        if term.feature == feature:
            value = term.polarity * term.weight
            total += value if left(term, x, ensemble.categories.get(feature)) else -value
    return total


def slow_score(ensemble: Ensemble, row: list[Any]) -> float:
    score = ensemble.intercept
    for feature in range(ensemble.n_features):
        score += slow_feature(ensemble, feature, row[feature])
    return score


def as_table(rows: list[list[Any]], labelled: Any, names: Any = None) -> Table:
    """Rows as a table whose columns at ``labelled`` hold labels."""
    columns: list[Any] = []
    for j, values in enumerate(zip(*rows, strict=True)):
        if j in labelled:
            labels = tuple(sorted({x for x in values if x is not None}))
            at = {label: k for k, label in enumerate(labels)}
            codes = np.array([-1 if x is None else at[x] for x in values], dtype=np.int32)
            columns.append(CategoricalColumn(labels, codes))
        else:
            columns.append(np.array(values, dtype=np.float64))
    return Table(tuple(columns), names, len(rows))


def raw_values(ensemble: Ensemble | MulticlassEnsemble, feature: int) -> list[Any]:
    """Values on which a feature of a model can go wrong."""
    if feature in ensemble.categories:
        own = ensemble.categories[feature]
        text = isinstance([*own.kept, *own.rare][0], str)
        return [*own.kept, *own.rare, UNSEEN[str if text else int], None]
    members = ensemble.ensembles if isinstance(ensemble, MulticlassEnsemble) else (ensemble,)
    cuts = {t.cut for own in members for t in own.terms if t.feature == feature and t.cut is not None}
    values = [math.nan, 0.0, -1e300, 1e300]
    for cut in cuts - {math.inf}:
        values += [cut, float(np.nextafter(cut, math.inf)), float(np.nextafter(cut, -math.inf))]
    return [value for value in values if not math.isinf(value)]


def rows_for(ensemble: Ensemble | MulticlassEnsemble, rng: np.random.Generator, rows: int) -> list[list[Any]]:
    """Every value of every feature, then mixtures."""
    values = [raw_values(ensemble, j) for j in range(ensemble.n_features)]
    each = [[own[k % len(own)] for own in values] for k in range(max(map(len, values)))]
    return each + [[own[rng.integers(len(own))] for own in values] for _ in range(rows)]


def bits(array: Any) -> list[int]:
    return np.ascontiguousarray(array, dtype=np.float64).view(np.uint64).ravel().tolist()


# ------------------------------------------------------------------------------------ strategies


@st.composite
def drawn_categories(draw: Any) -> Categories:
    pool = draw(st.sampled_from([WORDS, NUMBERS]))
    labels = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=10, unique=True))
    rare = draw(st.integers(0, len(labels)))
    return Categories(tuple(sorted(labels[rare:])), tuple(sorted(labels[:rare])))


@st.composite
def drawn_ensembles(
    draw: Any, loss: Any = None, classes: Any = None, categories: dict[int, Categories] | None = None
) -> Ensemble:
    """Of four features, some with labels."""
    if categories is None:
        categories = draw(st.dictionaries(st.integers(0, 3), drawn_categories(), max_size=3))
    terms = []
    for _ in range(draw(st.integers(0, 12))):
        feature = draw(st.integers(0, 3))
        own = categories.get(feature)
        side: dict[str, Any] = {
            "polarity": draw(st.sampled_from([1, -1])),
            "missing_left": draw(st.booleans()),
        }
        weight = draw(st.floats(1e-6, 10))
        if own is None:
            cut = draw(st.sampled_from([math.inf, 0.0, 0.5, -1.5, 1e-300]))
            terms.append(Term(feature, cut, weight=weight, **side))
        else:
            choices = [*own.kept, *([OTHER] if own.rare else [])]
            if len(choices) > 2 and draw(st.booleans()):
                size = draw(st.integers(2, len(choices) - 1))
                chosen = sorted(draw(st.permutations(range(len(choices))))[:size])
                side["one_of"] = tuple(choices[k] for k in chosen)
            else:
                side["category"] = draw(st.sampled_from(choices))
            terms.append(Term(feature, None, weight=weight, **side))
    loss = loss or draw(st.sampled_from(["logistic", "exponential", "squared"]))
    if loss != "squared" and classes is None:
        classes = draw(st.sampled_from([("no", "yes"), (0, 1), (False, True), (0.5, 1.5)]))
    names = draw(st.sampled_from([None, ("a", "b", "c", "d")]))
    return Ensemble(loss, draw(st.floats(-5, 5)), tuple(terms), names, 4, classes, categories)


@st.composite
def drawn_multiclass(draw: Any) -> MulticlassEnsemble:
    loss = draw(st.sampled_from(["logistic", "exponential"]))
    categories = draw(st.dictionaries(st.integers(0, 3), drawn_categories(), max_size=3))
    labels = draw(
        st.sampled_from([("a", "b", "c"), (3, 1, 2, 7), (0.5, 1.5, 2.5), ("", "\0", "z", "é", "x")])
    )
    members = [draw(drawn_ensembles(loss, (False, True), categories)) for _ in labels]
    names = members[0].feature_names
    members = [Ensemble(**{**vars_of(own), "feature_names": names}) for own in members]
    return MulticlassEnsemble(labels, tuple(members))


def vars_of(ensemble: Ensemble) -> dict[str, Any]:
    names = ("loss", "intercept", "terms", "feature_names", "n_features", "classes", "categories")
    return {name: getattr(ensemble, name) for name in names}
