"""A slow, plain twin of every kernel: loops, exact fractions and Python integers instead of speed.

The kernels' integer results must be equal to these to the bit; sums of real numbers to 1e-12.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

MISSING = 255
FLOAT32_MAX = Fraction(float(np.finfo(np.float32).max))

# ---------------------------------------------------------------- the simplest decimal in a gap


def exact_in_float32(e: float) -> bool:
    return abs(Fraction(e)) <= FLOAT32_MAX and float(np.float32(e)) == e


def _around(x: float, y: float, places: int | None, zeros: int) -> set[float]:
    """Numbers of the gap [x, y) that float32 holds, on either side of its middle in every power of two.

    They are multiples of 10^zeros (``places`` is None) or of 2^-places. The gap does not hold zero.
    """
    sign = 1 if y > 0 else -1
    low, high = sorted((abs(Fraction(x)), abs(Fraction(y))))
    at_low, at_high = sign > 0, sign < 0  # which end belongs to the gap
    middle, found = (low + high) / 2, set()
    smallest = max(-149, math.frexp(float(low))[1] - 2) if low else -149
    largest = min(127, math.frexp(float(high))[1])
    for p in range(smallest, largest + 1):
        start, end = max(low, Fraction(2) ** p), min(high, Fraction(2) ** (p + 1))
        if start > end:
            continue
        spacing = max(p - 23, -149)  # of float32 in this power of two
        if places is None:
            step = Fraction(5**zeros * 2 ** max(zeros, spacing))
        else:
            step = Fraction(2) ** max(-places, spacing)
        first, last = math.ceil(start / step), math.floor(end / step)
        first += start == low and not at_low and first * step == low
        last -= last * step == end and not (end == high and at_high and end < 2 ** (p + 1))
        if first <= last:
            for n in (math.floor(middle / step), math.ceil(middle / step)):
                found.add(sign * float(min(max(n, first), last) * step))
    return found


def simplest_decimals(x: float, y: float) -> tuple[tuple[str, int], set[float]]:
    """How simple the simplest number of [x, y) is, and the candidates for it around the middle.

    ("zero", 0); ("zeros", k): a whole number, exact in float32, with k trailing decimal zeros; ("places", b):
    exact in float32 with b binary places; ("digits", d): d significant digits in float64, no candidates.
    """
    if x <= 0.0 < y:
        return ("zero", 0), {0.0}
    for zeros in range(10, -1, -1):  # 5^11 has more than float32's 24 bits
        if found := {e for e in _around(x, y, None, zeros) if e == int(e)}:
            return ("zeros", zeros), found
    for places in range(1, 150):
        if found := {e for e in _around(x, y, places, 0) if Fraction(e).denominator <= 2**places}:
            return ("places", places), found
    return ("digits", fewest_digits(x, y)), set()


def digits_of(e: float) -> int:
    """Significant decimal digits of a number as it prints."""
    return len(Decimal(repr(e)).normalize().as_tuple().digits)


def fewest_digits(x: float, y: float) -> int:
    """The fewest significant decimal digits of any float64 in [x, y), for a gap without zero."""
    for digits in range(1, 18):
        for start in (x, y):
            grid = Fraction(10) ** (Decimal(start).adjusted() + 1 - digits)
            nearest = round(Fraction(start) / grid)
            around = [float((nearest + n) * grid) for n in (-1, 0, 1)]
            if any(x <= e < y and digits_of(e) <= digits for e in around):
                return digits
    return 17


def simplicity(e: float) -> tuple[str, int]:
    """The class of one number, in the terms of ``simplest_decimals``."""
    if e == 0:
        return "zero", 0
    if not exact_in_float32(e):
        return "digits", digits_of(e)
    value = Fraction(e)
    if value.denominator > 1:
        return "places", value.denominator.bit_length() - 1
    return "zeros", max(k for k in range(40) if value % 10**k == 0)


# ---------------------------------------------------------------- bins


def cut_gaps(values: np.ndarray, weights: np.ndarray | None, max_bins: int) -> list[tuple[float, float]]:
    """The pairs of neighbouring distinct values between which a cut falls.

    With few values, all of them. Else bins close greedily, where their weight comes nearest to an equal share
    of what is left: before a value that would take the bin more than half its own weight beyond the share.
    """
    weights = np.ones(len(values), dtype=np.int64) if weights is None else weights
    total: dict[float, int] = {}
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        if not math.isnan(value):
            total[value + 0.0] = total.get(value + 0.0, 0) + int(weight)
    distinct = sorted(total)
    if len(distinct) <= max_bins:
        return list(itertools.pairwise(distinct))
    gaps, held, left = [], 0, sum(total.values())
    for k, value in enumerate(distinct):
        bins_left = max_bins - len(gaps)
        if k and bins_left > 1 and (2 * held + total[value]) * bins_left > 2 * left:
            gaps.append((distinct[k - 1], value))
            left -= held
            held = 0
        held += total[value]
    return gaps


def bins_of(values: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """The number of cuts below each value; 255 for missing values."""
    return np.array(
        [MISSING if math.isnan(v) else sum(e < v for e in cuts.tolist()) for v in values.tolist()]
    )


# ---------------------------------------------------------------- histograms, search, margins


def histograms(bins: np.ndarray, features: np.ndarray, q: np.ndarray) -> np.ndarray:
    out = np.zeros((len(features), 256, q.shape[1]), dtype=np.int64)
    for k, feature in enumerate(features):
        for row, b in enumerate(bins[feature]):
            out[k, b] += q[row]
    return out


def hash_bins(bins: np.ndarray, features: np.ndarray) -> list[int]:
    """A hash of every row's bins in the listed features, in arithmetic modulo 2^64."""
    out = []
    for row in range(bins.shape[1]):
        h = 0x9E3779B97F4A7C15
        for feature in features:
            h = (h ^ int(bins[feature, row])) * 0xBF58476D1CE4E5B9 % 2**64
        h = (h ^ (h >> 29)) * 0x94D049BB133111EB % 2**64
        out.append(h ^ (h >> 32))
    return out


def all_stumps(n_bins: int, has_missing: bool, categorical: bool = False) -> list[tuple[int, int, int]]:
    """(cut, missing side, polarity) of every stump of a feature, in the order in which ties are won."""
    sides = (0, 1) if has_missing else (0,)
    cuts = [(cut, side) for cut in range(n_bins if categorical else n_bins - 1) for side in sides]
    if has_missing and not categorical:
        cuts.append((n_bins - 1, 0))
    return [(cut, side, polarity) for cut, side in cuts for polarity in (1, -1)]


def stump_column(
    bins: np.ndarray, cut: int, side: int, polarity: int, categorical: bool = False
) -> np.ndarray:
    left = np.where(bins == MISSING, bool(side), bins == cut if categorical else bins <= cut)
    return np.where(left, polarity, -polarity)


def all_sets(order: list[int], has_missing: bool) -> list[tuple[int, int, int]]:
    """(place of the last, missing side, polarity) of every set of two codes or more, not all of them."""
    sides = (0, 1) if has_missing else (0,)
    return [(last, side, p) for last in range(1, len(order) - 1) for side in sides for p in (1, -1)]


def set_column(bins: np.ndarray, codes: list[int], side: int, polarity: int) -> np.ndarray:
    left = np.where(bins == MISSING, bool(side), np.isin(bins, codes))
    return np.where(left, polarity, -polarity)


def label_order(codes: np.ndarray, n: int, weights: np.ndarray, values: np.ndarray) -> list[int]:
    """The codes by their smoothed mean, in exact arithmetic; ties go to the first."""
    w, v = [Fraction(float(x)) for x in weights], [Fraction(float(x)) for x in values]
    mean = sum((a * b for a, b in zip(w, v, strict=True)), Fraction(0)) / sum(w)
    found = []
    for code in range(n):
        own = np.flatnonzero(codes == code).tolist()
        total = sum((w[i] * v[i] for i in own), Fraction(0)) + 10 * mean
        found.append(total / (sum((w[i] for i in own), Fraction(0)) + 10))
    return sorted(range(n), key=lambda code: (found[code], code))


def stump_gain(
    edge: float, cross: float, curvature: float, total_edge: float, l1: float, l2: float, intercept: bool
) -> float:
    """Drop of the quadratic model when the stump's weight (and the intercept) moves, times two."""
    slope, bend = edge - l1, curvature + l2
    if intercept and curvature > 0:
        slope -= cross / curvature * total_edge
        bend = max(curvature - cross * cross / curvature, 1e-4 * curvature) + l2
    return slope * slope / bend if slope > 0 and bend > 0 else slope


def search(hist, n_bins, kind, mask, edge_unit, curvature_unit, l1, l2, gain, intercept):
    """Per feature the (score, edge, stump) of every allowed stump, best first, and the largest edge."""
    largest, ranked = -math.inf, []
    for f, h in enumerate(hist):
        at = np.arange(256)
        total, curvature = (int(s) for s in h.sum(axis=0))
        found = []
        categorical = bool(kind[f] & 2)
        for cut, side, polarity in all_stumps(int(n_bins[f]), bool(kind[f] & 1), categorical):
            if mask[f, cut] & (1 << (2 * side + (polarity < 0))):
                continue
            signs = stump_column(at, cut, side, polarity, categorical).astype(object)
            edge = int(signs @ h[:, 0].astype(object)) * edge_unit
            cross = int(signs @ h[:, 1].astype(object)) * curvature_unit
            score = edge
            if gain:
                score = stump_gain(
                    edge, cross, curvature * curvature_unit, total * edge_unit, l1, l2, intercept
                )
            largest = max(largest, edge)
            found.append((score, edge, (cut, side, polarity)))
        ranked.append(sorted(found, key=lambda one: -one[0]))
    return ranked, largest


def margins(bins, features, tables, base, sign):
    out = np.full(bins.shape[1], float(base))
    for table, feature in zip(tables, features, strict=True):
        out += table[bins[feature]]
    return out if sign is None else out * sign


def signed_weights(bins, features, signs, q, width):
    out = np.zeros((len(q), width), dtype=np.int64)
    for k, feature in enumerate(features):
        for row in range(len(q)):
            out[row, k] = q[row] * int(signs[k, bins[feature, row]])
    return out


# ---------------------------------------------------------------- losses and sums over rows


def loss_rows(loss: str, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss, -loss' and loss'' of every row in extended precision; the exponential's may be huge.

    z: the margin; of the squared loss the residual.
    """
    z = np.asarray(z, dtype=np.longdouble)
    if loss == "squared":
        return z * z / 2, -z, np.ones_like(z)
    if loss == "exponential":
        e = np.exp(-z)
        return e, e, e
    e = np.exp(-np.abs(z))
    v = np.where(z < 0, 1, e) / (1 + e)
    return np.log1p(e) + np.maximum(0, -z), v, e / (1 + e) ** 2


def row_weights(count: np.ndarray | None, factor: np.ndarray | None, rows: int) -> np.ndarray:
    weights = np.ones(rows, dtype=np.longdouble)
    weights = weights if count is None else weights * count
    return weights if factor is None else weights * factor


def exact_sum(values: np.ndarray) -> float:
    """The sum of extended numbers, each as two doubles."""
    high = values.astype(np.float64)
    low = (values - high).astype(np.float64)
    return math.fsum(high.tolist() + low.tolist())


def loss_pass(loss, F, target, D, step, count, factor) -> dict[str, float]:
    """The sums of ``_kernels.loss_pass`` by name; those of the exponential are relative to e^shift."""
    z = F if D is None else F + step * D
    d = np.zeros(len(F)) if D is None else D
    shift = -float(z.min()) if loss == "exponential" else 0.0
    z = np.asarray(z, dtype=np.longdouble) + shift
    value, v, h = loss_rows(loss, z if target is None else z - target)
    w = row_weights(count, factor, len(F))
    return {
        "shift": shift,
        "loss": exact_sum(w * value),
        "derivative": exact_sum(w * np.abs(v)),
        "curvature": exact_sum(w * h),
        "slope": exact_sum(-w * v * d),
        "bend": exact_sum(w * h * d * d),
        "largest": float(np.abs(v).max()),
    }


def dual_pass(loss, F, target, theta, count, factor) -> float:
    """``sum w (-conjugate(-theta v))`` with v = -loss'(F)."""
    z = np.asarray(F, dtype=np.longdouble)
    theta = np.longdouble(theta)
    if loss == "squared":
        v = theta * (target - z)
        return exact_sum(row_weights(count, factor, len(F)) * (v * target - v * v / 2))
    v = theta * loss_rows(loss, z)[1]
    if loss == "exponential":
        value = v - v * (np.log(theta) - z)
    else:
        e = np.exp(-np.abs(z))
        rest = (1 - theta) + theta * np.where(z < 0, e, 1) / (1 + e)
        value = -v * np.log(np.where(v > 0, v, 1)) - rest * np.log(np.where(rest > 0, rest, 1))
    return exact_sum(row_weights(count, factor, len(F)) * value)


def fixed_scale(total: float, total_count: float) -> float:
    """The largest power of two that keeps ``total`` and half a unit per rounding inside 62 bits."""
    if not total > 0:
        return 1.0
    room = (2.0**62 - 0.5 * total_count) / total
    return 2.0 ** max(-1000, min(1000, math.frexp(room)[1] - 1))


def quantise(values, sign, count, factor, scales, use_sign):
    width, rows = values.shape
    out = np.empty((rows, width), dtype=np.int64)
    for c, row in itertools.product(range(width), range(rows)):
        x = float(values[c, row]) * (1.0 if factor is None else float(factor[row]))
        k = round(x * float(scales[c])) * (1 if count is None else int(count[row]))
        out[row, c] = -k if sign is not None and use_sign[c] and sign[row] < 0 else k
    return out


# ---------------------------------------------------------------- columns stored as such


def dense_margins(a, columns, weights):
    out = np.zeros(a.shape[1])
    for column, weight in zip(columns, weights, strict=True):
        out += weight * a[column]
    return out


def dense_edges(a, columns, q):
    return np.array([sum(int(x) * int(k) for x, k in zip(a[j], q, strict=True)) for j in columns], np.int64)


def dense_gram(a, left, columns, q):
    pairs = ([a[i].astype(object) * a[k] * q.astype(object) for k in columns] for i in left)
    sums = [[int(product.sum()) for product in row] for row in pairs]
    return np.array(sums, dtype=np.int64).reshape(len(left), len(columns))


def dense_edges_real(a, columns, value, count, scale):
    times = np.ones(a.shape[1], dtype=np.int64) if count is None else count
    return np.array(
        [
            sum(int(n) * round(float(v * x * scale)) for x, v, n in zip(a[j], value, times, strict=True))
            for j in columns
        ],
        dtype=np.int64,
    )


def dense_gram_real(a, left, columns, value, count, scale):
    rows = [dense_edges_real(a, columns, a[i] * value, count, scale) for i in left]
    return np.array(rows, dtype=np.int64).reshape(len(left), len(columns))


def pack_signs(a) -> np.ndarray:
    """Bit k of byte [g, i] is set where entry i of line 8 g + k is -1."""
    return np.packbits(np.asarray(a) < 0, axis=0, bitorder="little")


def lbfgs_direction(steps, changes, x, upper, gradient) -> np.ndarray:
    """The BFGS inverse as a matrix, updated pair by pair, on the weights that may move."""
    free = np.where(gradient < 0, x < upper, x > 0)
    pairs = [(s[free], y[free]) for s, y in zip(steps, changes, strict=True)]
    pairs = [(s, y) for s, y in pairs if s @ y > 1e-12 * np.sqrt((s @ s) * (y @ y))]
    inverse = np.eye(int(free.sum()))
    if pairs:
        s, y = pairs[-1]
        inverse *= (s @ y) / (y @ y)
    for s, y in pairs:
        left = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    d = np.zeros(len(x))
    d[free] = -inverse @ gradient[free]
    return d


# ---------------------------------------------------------------- the master's quadratic


def quadratic_model(q, gradient, x0, slope, knee, curve, x) -> float:
    step, over = x - x0, np.maximum(0.0, x - knee)
    return float(gradient @ step + 0.5 * step @ q @ step + slope @ x + 0.5 * curve @ (over * over))


def quadratic_violation(q, gradient, x0, slope, knee, curve, upper, x) -> float:
    """The steepest descent that is left to a feasible move: 0 exactly at the optimum."""
    g = gradient + q @ (x - x0) + slope + curve * np.maximum(0.0, x - knee)
    down, up = np.where(x > 0, g, 0.0), np.where(x < upper, -g, 0.0)
    return float(np.max(np.concatenate([down, up]), initial=0.0))


# ---------------------------------------------------------------- prediction


def predict_steps(columns, rows, cuts, offsets, levels, missing, base):
    """Scores and the contribution of every feature."""
    score, parts = np.full(rows, float(base)), np.empty((len(columns), rows))
    for k, column in enumerate(columns):
        own = cuts[offsets[k] : offsets[k + 1]]
        for row, x in enumerate(np.asarray(column, dtype=np.float64).tolist()):
            at = sum(e < x for e in own.tolist())
            parts[k, row] = missing[k] if math.isnan(x) else levels[offsets[k] + k + at]
        score += parts[k]
    return score, parts
