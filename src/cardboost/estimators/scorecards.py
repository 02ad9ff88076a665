"""Scorecards of a fitted classifier: what was asked for, checked, and handed to the search for points."""

from __future__ import annotations

import numbers
import time
from typing import Any

from cardboost.boosting.candidates import Candidates
from cardboost.cardinality.points import Scale
from cardboost.model.scorecard import OddsScale, Scorecard
from cardboost.validation import number, whole

DEFAULT = (-10, 10)
MOST = 10_000  # points of a term


def choose_scorecard(
    candidates: Candidates,
    points: Any = None,
    max_terms: int | None = None,
    scale: tuple[float | None, float | None, float | None] = (None, None, None),
    time_limit: float | None = None,
) -> Scorecard:
    """``scale``: base score, base odds and points to double the odds, None for the default of each."""
    given = dict(zip(("base_score", "base_odds", "points_to_double_odds"), scale, strict=True))
    known = {name: value for name, value in given.items() if value is not None}
    odds = OddsScale(**known) if known else None
    low, high = (-MOST, MOST) if points is None and odds else point_range(points)
    loss = candidates.frame.loss
    fixed = None
    if odds is not None:
        if not candidates.n_free:
            raise ValueError("base_score, base_odds and points_to_double_odds need fit_intercept=True.")
        fixed = Scale(odds.unit(loss), odds.zero(loss))
    limit = None if max_terms is None else whole("max_terms", max_terms, 1)
    seconds = None if time_limit is None else number("time_limit", time_limit, 0.0, strict=True)
    started = time.perf_counter()
    ensemble, certificate = candidates.in_points(
        max(-low, high),
        limit,
        fixed,
        lambda: seconds is not None and time.perf_counter() > started + seconds,
    )
    return Scorecard(ensemble, certificate, odds, negative=high <= 0)


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
