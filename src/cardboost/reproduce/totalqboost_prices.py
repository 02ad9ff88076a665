"""Prices of a term at which ensembles of many different sizes are the best.

The paper takes "a variety" of prices. With a price lambda the best ensemble has the size k that minimises
r(k) + lambda k, where r(k) is the least risk of k terms: only sizes on the lower convex hull of r are ever
the best, each between the slopes of the hull on its two sides. So from about known risks r follow prices that
give as many sizes as there can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def hull(risks: Sequence[float]) -> list[int]:
    """The sizes on the lower convex hull of ``risks[k]``, k = 0, 1, ..., down to the least risk."""
    end = min(range(len(risks)), key=lambda k: risks[k])
    found: list[int] = []
    for k in range(end + 1):
        while len(found) > 1 and _slope(risks, found[-2], found[-1]) <= _slope(risks, found[-1], k):
            found.pop()
        found.append(k)
    return found


def _slope(risks: Sequence[float], first: int, second: int) -> float:
    """What a term is worth between two sizes."""
    return (risks[first] - risks[second]) / (second - first)


def spread_prices(risks: Sequence[float], least: float, count: int) -> list[float]:
    """``count`` prices, falling to ``least``, for sizes on the hull, spread by the ratio of neighbours.

    Where there are fewer sizes than prices, the widest gaps between prices get more.
    """
    sizes = hull(risks)
    slopes = [_slope(risks, a, b) for a, b in pairwise(sizes)]
    if not slopes or count < 1:
        raise ValueError("no column lowers the risk: there is nothing to choose from.")
    least = min(max(least, 1e-9 * slopes[0]), 0.5 * slopes[0])
    lower = [*slopes[1:], 0.0]
    found = [
        (math.sqrt(above * max(below, least)), float(size))
        for above, below, size in zip(slopes, lower, sizes[1:], strict=True)
        if above > least
    ]
    last = found[-1][1]
    for price, size in ((2.0 * least, 1.25 * last), (least, 1.5 * last)):  # for sizes that are not known
        if found[-1][0] > price:
            found.append((price, size))
    while len(found) > max(count, 2):
        gaps = [found[k + 1][1] / found[k - 1][1] for k in range(1, len(found) - 1)]
        del found[1 + gaps.index(min(gaps))]
    prices = [price for price, _ in found[:count]]
    while len(prices) < count:
        ratios = [a / b for a, b in pairwise(prices)]
        widest = ratios.index(max(ratios))
        prices.insert(widest + 1, math.sqrt(prices[widest] * prices[widest + 1]))
    return prices
