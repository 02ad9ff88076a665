"""Scorecards of a fitted classifier: what was asked for, checked, and handed to the search for points."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from cardboost.boosting.candidates import Candidates
from cardboost.data.arguments import whole
from cardboost.estimators.callbacks import limited_budget
from cardboost.model.ensemble import LOG_ODDS
from cardboost.model.scorecard import OddsScale, Scorecard
from cardboost.problem.budget import Budget
from cardboost.selection.whole_points import Scale

DEFAULT = (-10, 10)
MOST = 10_000  # points of a term
_SPARE = 4  # bytes that a compiler may need beyond the estimate
_BYTES_OF_TERM = 24  # in C, at least as many as a term on numbers takes


def choose_scorecard(
    candidates: Candidates,
    points: Any = None,
    max_terms: int | None = None,
    scale: tuple[float | None, float | None, float | None] = (None, None, None),
    time_limit: float | None = None,
    max_bytes: int | None = None,
) -> Scorecard:
    """``scale``: base score, base odds and points to double the odds, None for the default of each."""
    names = ("base_score", "base_odds", "points_to_double_odds")
    odds_scale = {name: value for name, value in zip(names, scale, strict=True) if value is not None}
    odds = OddsScale(**odds_scale) if odds_scale else None
    low, high = (-MOST, MOST) if points is None and odds else point_range(points)
    loss = candidates.loss
    if loss not in LOG_ODDS:
        raise ValueError(f"scorecard: points are log-odds, which scores of loss={loss!r} are not.")
    fixed = None
    if odds is not None:
        if not candidates.n_free:
            raise ValueError("base_score, base_odds and points_to_double_odds need fit_intercept=True.")
        fixed = Scale(odds.unit(loss), odds.zero(loss))
    limit = None if max_terms is None else whole("max_terms", max_terms, 1)
    budget = limited_budget(time_limit)

    def card(most_terms: int | None, time_for_it: Budget) -> Scorecard:
        chosen = candidates.in_points(max(-low, high), most_terms, fixed, time_for_it.late)
        return Scorecard(*chosen, odds, negative=high <= 0)

    if max_bytes is None:
        return card(limit, budget)
    return _within(whole("max_bytes", max_bytes, 1), card, limit, budget)


def _within(
    most_bytes: int, card: Callable[[int | None, Budget], Scorecard], limit: int | None, budget: Budget
) -> Scorecard:
    """The card of most terms whose C without floating point takes no more than so many bytes.

    More terms are never worse, so the largest card that fits is the best. Every card that does not fit lowers
    the limit on terms, so that there is an end; each may take half of the time that is left.
    """
    from cardboost.export.code_size import c_size

    while True:
        scorecard = card(limit, budget.part(0, 2))
        if (size := c_size(scorecard) + _SPARE) <= most_bytes:
            return scorecard
        if scorecard.n_terms <= 1 or limit == 1:
            raise ValueError(f"max_bytes: no card fits into {most_bytes} bytes; one term takes {size}.")
        used = scorecard.n_terms if limit is None else min(scorecard.n_terms, limit)
        limit = max(1, used - max(1, (size - most_bytes) // _BYTES_OF_TERM))


def point_range(points: Any) -> tuple[int, int]:
    """The least and the most points of a term."""
    if points is None:
        return DEFAULT
    pair = (-points, points) if _whole(points) and points > 0 else points
    sound = isinstance(pair, tuple | list) and len(pair) == 2 and all(map(_whole, pair))
    if not sound or not -MOST <= pair[0] <= 0 <= pair[1] <= MOST or pair[0] == pair[1]:
        raise ValueError(
            f"points must be a whole number from 1 to {MOST}, or two whole numbers around 0; got {points!r}."
        )
    return int(pair[0]), int(pair[1])


def _whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
