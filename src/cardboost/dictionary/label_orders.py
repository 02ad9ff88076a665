"""Orders of the labels of categorical features, whose beginnings are the sets that stumps can ask for.

The labels of a feature stand in the order of their mean label (or target) in the training rows, drawn a
little towards the mean of all rows. With one feature and a convex loss the best set of all is the beginning
of such an order (without the drawing); here it makes the sets few, and a search through them exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cardboost.data.binning import BinnedMatrix
from cardboost.data.weights import RowWeights

Orders = tuple[NDArray[np.uint8] | None, ...]

#: weight of the mean of all rows in the mean of a label
SMOOTHING = 10.0
#: with fewer labels every set is one label or all but one
FEWEST_LABELS = 4


def label_orders(
    matrix: BinnedMatrix, weights: RowWeights, values: NDArray[np.float64] | NDArray[np.bool_], threads: int
) -> Orders:
    """For every feature its codes by (sum of weight * value + 10 * mean) / (weight + 10), None without sets.

    ``values``: which rows are positive, or the target. Weights are the user's own; sums are in
    fixed point, so that weight 2 gives the bits of the row twice, in any order. Ties go to the first label.
    """
    orders: list[NDArray[np.uint8] | None] = [None] * matrix.n_features
    features = [j for j, labels in enumerate(matrix.categories) if labels and labels.n_codes >= FEWEST_LABELS]
    if not features:
        return tuple(orders)
    values = values.astype(np.float64)
    parts = [weights.fixed(np.ones(matrix.n_rows)), weights.fixed(values)]
    lanes = np.stack([units for units, _, _ in parts], axis=1)
    hist = matrix.histograms(np.array(features, dtype=np.int32), lanes, threads)
    weight, total = (np.ldexp(hist[..., k] / scale, exponent) for k, (_, scale, exponent) in enumerate(parts))
    prior = min(SMOOTHING / weights.unit, 1e300) if weights.unit > 0.0 else 1e300
    mean = (total + prior * weights.mean(values)) / (weight + prior)
    for j, row in zip(features, mean, strict=True):
        labels = matrix.categories[j]
        assert labels is not None
        orders[j] = np.argsort(row[: labels.n_codes], kind="stable").astype(np.uint8)
    return tuple(orders)
