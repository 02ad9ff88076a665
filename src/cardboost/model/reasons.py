"""Why a row has its prediction: the features that speak most for it.

For the second of two classes a feature is judged by what it adds to the score above the least that it can
add, for the first class by what it adds below the most. Of more classes the score of the predicted one
counts, and a feature is judged by what it adds above the least. Of a predicted number a feature is judged by
how far it is from the middle of the least and the most, upwards or downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import Categories
from cardboost.model.base import Array, UsedColumns
from cardboost.model.card_text import category_names, number
from cardboost.model.ensemble import Ensemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.terms import StepFunction


@dataclass(frozen=True)
class Reason:
    """Why a row has its prediction: a feature, its line, and how much that speaks for the prediction.

    ``points`` are whole points of a scorecard, and a part of the score of any other model; of a predicted
    number they are negative where the feature lowers it.
    """

    feature: int
    name: str
    text: str
    points: float


def check_most(most: Any) -> None:
    if not isinstance(most, int) or most < 1:
        raise ValueError(f"most must be a whole number from 1; got {most!r}.")


def ensemble_reasons(
    ensemble: Ensemble | MulticlassEnsemble, X: Any, most: int, threads: int = 1
) -> list[list[Reason]]:
    """The features that speak most for the prediction of every row, in parts of the score.

    Parameters
    ----------
    ensemble : Ensemble or MulticlassEnsemble
        The model.
    X : table of shape (n_samples, n_features)
        An array, or a pandas or polars data frame.
    most : int
        At most so many reasons per row.
    threads : int, default=1
        Number of threads. Results do not depend on it.

    Returns
    -------
    list of list of Reason
        For every row its reasons, the strongest first. Features that make no difference are left out.
    """
    check_most(most)
    columns = ensemble.read(X)
    parts = [part.evaluate(columns, threads, with_contributions=True) for part in ensemble.parts]
    if isinstance(ensemble, Ensemble):
        score, added = parts[0][0], parts[0][1].T
        low, high = ends_of(ensemble.step_functions())
        if ensemble.classes is None:
            push = added - 0.5 * (low + high)
        else:
            push = np.where((score > ensemble.threshold)[:, None], added - low, high - added)
        return strongest(ensemble, columns, push, most)
    predicted = np.argmax([score for score, _ in parts], axis=0)
    reasons: list[list[Reason]] = [[] for _ in range(columns.n_rows)]
    for k, (part, (_, added)) in enumerate(zip(ensemble.parts, parts, strict=True)):
        rows = np.flatnonzero(predicted == k)
        members = UsedColumns({j: values[rows] for j, values in columns.values.items()}, len(rows))
        push = added.T[rows] - ends_of(part.step_functions())[0]
        for row, row_reasons in zip(rows.tolist(), strongest(part, members, push, most), strict=True):
            reasons[row] = row_reasons
    return reasons


def ends_of(steps: Sequence[StepFunction]) -> tuple[Array, Array]:
    """The least and the most that every feature can add."""
    levels = [(*step.levels, step.missing) for step in steps]
    return np.array([min(values) for values in levels]), np.array([max(values) for values in levels])


def strongest(ensemble: Ensemble, columns: UsedColumns, push: NDArray[Any], most: int) -> list[list[Reason]]:
    """For every row the features of the largest ``push``, (rows, used features); of equal ones the first."""
    steps = ensemble.step_functions()
    lines = [_lines(ensemble, step, columns) for step in steps]
    order = np.argsort(-np.abs(push), axis=1, kind="stable")[:, :most]
    pushes = np.take_along_axis(push, order, axis=1).tolist()
    where = np.array([codes for _, codes in lines]).reshape(len(steps), columns.n_rows).T
    places = np.take_along_axis(where, order, axis=1).tolist()
    shared: dict[tuple[int, int, float], Reason] = {}  # rows of the same line have the same reason

    def reason(k: int, place: int, points: float) -> Reason:
        key = (k, place, points)
        if key not in shared:
            shared[key] = Reason(steps[k].feature, steps[k].name, lines[k][0][place], points)
        return shared[key]

    return [
        [reason(*entry) for entry in zip(*row, strict=True) if entry[2]]
        for row in zip(order.tolist(), places, pushes, strict=True)
    ]


def _lines(
    ensemble: Ensemble, step: StepFunction, columns: UsedColumns
) -> tuple[list[str], NDArray[np.intp]]:
    """Where a value can lie, the last of it missing, and for every row which of these it is."""
    values = np.asarray(columns.values[step.feature], dtype=np.float64)
    categories = ensemble.categories.get(step.feature)
    if categories is None:
        cuts = step.distinct()[0]
        texts = [*interval_texts(cuts), "missing"]
        return texts, np.where(np.isnan(values), len(texts) - 1, np.searchsorted(np.array(cuts), values))
    texts = label_texts(categories)
    return texts, np.where(np.isnan(values), len(texts) - 1, values).astype(np.intp)


def interval_texts(cuts: Sequence[float]) -> list[str]:
    """The intervals between cuts in words."""
    if not cuts:
        return ["any value"]
    shown = list(map(number, cuts))
    between = [f"> {above}, <= {up_to}" for above, up_to in pairwise(shown)]
    return [f"<= {shown[0]}", *between, f"> {shown[-1]}"]


def label_texts(categories: Categories) -> list[str]:
    """The codes of labels in words, the last of them missing."""
    names = category_names([*categories.kept, *categories.rare])
    texts = [f"is {name}" for name in names[: len(categories.kept)]]
    texts += ["is one of the rare labels"] if categories.rare else []
    return [*texts, "missing or unseen"]
