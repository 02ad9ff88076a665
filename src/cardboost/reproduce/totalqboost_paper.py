"""What the paper on cardinality penalisation prints: the entries of Table 1 and the counts of section 5.1."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A tagged ensemble: validation error and sparsity gain in percent. ``gain`` of "*" is None."""

    tag: str
    error: float
    terms: int
    gain: float | None


def _entries(best: tuple[float, int] | None, *numbered: tuple[float, int, float]) -> tuple[Entry, ...]:
    first = () if best is None else (Entry("*", best[0], best[1], None),)
    return first + tuple(Entry(str(k), *own) for k, own in enumerate(numbered, 1))


TABLE_1 = {
    "banana": _entries(
        (25.85, 33), (26.79, 31, 18.42), (26.89, 12, 67.57), (27.17, 21, 40.00), (27.26, 11, 67.65),
        (27.36, 23, 32.35),
    ),
    "image": _entries(
        None, (2.75, 28, 61.64), (3.25, 29, 17.14), (3.50, 26, 23.53), (3.75, 15, 55.88), (4.50, 17, 5.56)
    ),
    "ringnorm": _entries(
        None, (3.26, 51, 31.08), (3.60, 60, 16.67), (3.67, 46, 35.21), (3.74, 55, 20.29), (3.87, 58, 3.33)
    ),
    "twonorm": _entries(
        (3.10, 52), (3.67, 34, 20.93), (3.81, 36, 16.28), (3.87, 39, 2.50), (3.94, 38, 2.56),
        (4.01, 35, 10.26),
    ),
    "waveform": _entries(
        (10.47, 42), (10.67, 38, 28.30), (10.78, 37, 30.19), (10.98, 35, 20.45), (11.28, 32, 20.00),
        (11.38, 33, 2.94),
    ),
    "diabetes": _entries(None, (16.00, 14, 41.67), (18.67, 5, 16.67)),
    "german": _entries(None, (25.91, 2, 60.00)),
    "splice": _entries(None, (6.73, 13, 7.14)),
    "flare_solar": _entries((20.95, 3)),
}  # fmt: skip

#: by how much, in percent, "*" is better than the best ensemble of A and B
GENERALISATION_GAINS = {"banana": 3.52, "twonorm": 9.8, "waveform": 0.95, "flare_solar": 25.0}

#: how often, in percent of coinciding cardinalities: E worse than B, D worse than E
WORSE = {
    ("E", "B", "risk"): 1.61,
    ("E", "B", "error"): 2.05,
    ("D", "E", "risk"): 23.81,
    ("D", "E", "error"): 13.01,
}
