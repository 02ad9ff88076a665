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

# ---------------------------------------------------------------- the shortest decimal in a gap


def digits_of(e: float) -> int:
    """Significant decimal digits of a number as it prints; none of zero."""
    return len(Decimal(repr(e)).normalize().as_tuple().digits) if e else 0


def decimals_in_gap(x: float, y: float, digits: int) -> set[float]:
    """Numbers of the gap [x, y), without zero, that have so many significant digits or fewer.

    Those around the middle of the gap and around its ends are among them.
    """
    sign, middle = (1 if y > 0 else -1), (Fraction(x) + Fraction(y)) / 2
    near = float(middle)  # where decimals are denser than floats, the floats around the middle count
    candidates = set()
    for start in (middle, x, y, near, math.nextafter(near, -math.inf), math.nextafter(near, math.inf)):
        power = Decimal(float(start)).adjusted() if start else -324
        for exponent in range(power - digits, power + 3 - digits):  # a power of ten may print as one below
            grid = Fraction(10) ** exponent
            whole = round(abs(Fraction(start)) / grid)
            for n in (whole - 1, whole, whole + 1):
                n = min(max(n, 10 ** (digits - 1)), 10**digits - 1)
                if n * grid < Fraction(2) ** 1024 - Fraction(2) ** 970:  # what a float can hold
                    candidates.add(sign * float(n * grid))
    return {c for c in candidates if x <= c < y}


def shortest_decimal(x: float, y: float) -> float:
    """The number in [x, y) with the fewest significant digits, then nearest to the middle, then the lower.

    Zero is the shortest. A gap from -1, -0.1, ... to 0 gives its beginning, which has one decimal less.
    """
    if x <= 0.0 < y:
        return 0.0
    if y == 0.0 and x >= -1.0 and set(f"{Decimal(repr(x)):f}") <= set("-0.1") and digits_of(x) == 1:
        return x
    middle = (Fraction(x) + Fraction(y)) / 2
    for digits in range(1, 18):
        if decimals := decimals_in_gap(x, y, digits):
            return min(decimals, key=lambda c: (abs(Fraction(c) - middle), c))
    raise AssertionError("17 digits are enough for any float")


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
    means = []
    for code in range(n):
        rows = np.flatnonzero(codes == code).tolist()
        total = sum((w[i] * v[i] for i in rows), Fraction(0)) + 10 * mean
        means.append(total / (sum((w[i] for i in rows), Fraction(0)) + 10))
    return sorted(range(n), key=lambda code: (means[code], code))


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
        bins = np.arange(256)
        total, curvature = (int(s) for s in h.sum(axis=0))
        stumps = []
        categorical = bool(kind[f] & 2)
        for cut, side, polarity in all_stumps(int(n_bins[f]), bool(kind[f] & 1), categorical):
            if mask[f, cut] & (1 << (2 * side + (polarity < 0))):
                continue
            signs = stump_column(bins, cut, side, polarity, categorical).astype(object)
            edge = int(signs @ h[:, 0].astype(object)) * edge_unit
            cross = int(signs @ h[:, 1].astype(object)) * curvature_unit
            score = edge
            if gain:
                score = stump_gain(
                    edge, cross, curvature * curvature_unit, total * edge_unit, l1, l2, intercept
                )
            largest = max(largest, edge)
            stumps.append((score, edge, (cut, side, polarity)))
        ranked.append(sorted(stumps, key=lambda one: -one[0]))
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
    if loss == "squared_hinge":
        short = np.maximum(0, 1 - z)
        return short * short, 2 * short, np.where(z < 1, np.longdouble(2), np.longdouble(0))
    if loss == "smooth_hinge":
        short, corner = np.maximum(0, 1 - z), np.longdouble(1) / 4
        value = np.where(short < corner, short * short / (2 * corner), short - corner / 2)
        v = np.minimum(1, short / corner)
        return value, v, np.where(short > 0, v / np.where(short > 0, short, 1), 0)  # the parabola over it
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
    elif loss == "squared_hinge":
        value = v - v * v / 4
    elif loss == "smooth_hinge":
        value = v - v * v / 8
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


def sign_words(a) -> np.ndarray:
    """Bit k of word [g, i] is set where entry i of line 64 g + k is -1."""
    vectors, length = a.shape
    words = (vectors + 63) // 64
    out = np.zeros((words, length), dtype=np.uint64)
    for k, i in zip(*np.nonzero(a < 0), strict=True):
        out[k // 64, i] |= np.uint64(1) << np.uint64(k % 64)
    return out


def pack_signs(A) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By column, by row, and the two columns that every stored one stands for."""
    last: dict[bytes, int] = {}
    sides: list[list[int]] = []
    stored = []
    for j, column in enumerate(np.asarray(A).astype(np.int8).T):
        side = int(column[0] < 0)
        content = -column if side else column
        k = last.get(content.tobytes())
        if k is None or sides[k][side] >= 0:
            last[content.tobytes()] = k = len(sides)
            sides.append([-1, -1])
            stored.append(content)
        sides[k][side] = j
    matrix = np.array(stored).T
    return sign_words(matrix), sign_words(matrix.T), np.array(sides, dtype=np.int32).T


# ---------------------------------------------------------------- quasi-Newton steps


def lbfgs_direction(steps, changes, slope) -> np.ndarray:
    """The BFGS inverse as a matrix, updated pair by pair, on the weights that may move."""
    free = slope != 0
    pairs = [(s[free], y[free]) for s, y in zip(steps, changes, strict=True)]
    pairs = [(s, y) for s, y in pairs if s @ y > 1e-12 * np.sqrt((s @ s) * (y @ y))]
    inverse = np.eye(int(free.sum()))
    if not steps:
        inverse *= 0.1 / np.max(np.abs(slope), initial=1e-300)
    if pairs:
        s, y = pairs[-1]
        inverse *= (s @ y) / (y @ y)
    for s, y in pairs:
        left = np.eye(len(s)) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    d = np.zeros(len(slope))
    d[free] = -inverse @ slope[free]
    return d


def lbfgs_steps(A, loss, weight, l1, l2, limit, z, most, capacity):
    """Objective, weights, margins and edges of the first points. Prices and limits: for z > 0, for z < 0."""
    share = weight / weight.sum()

    def evaluate(z):
        F, side = A @ z, (z <= 0).astype(int)
        own_l1, own_l2 = np.choose(side, l1), np.choose(side, l2)
        rows = np.exp(-F) if loss == 0 else np.logaddexp(0.0, -F)
        v = np.exp(-F) if loss == 0 else 1.0 / (1.0 + np.exp(F))
        value = share @ rows + own_l1 @ np.abs(z) + 0.5 * own_l2 @ z**2
        return value, z, F, A.T @ (share * v)

    points, steps, changes = [evaluate(z)], [], []
    while len(points) < most:
        value, z, _, edges = points[-1]
        rise, fall = l1[0] + l2[0] * z - edges, l1[1] - l2[1] * z + edges
        above = (z > 0) | ((z == 0) & (rise < fall))
        up, outward, box = (np.where(above, *two) for two in ((1, -1), (rise, fall), limit))
        slope = np.where(np.where(outward < 0, np.abs(z) < box, z != 0), up * outward, 0.0)
        d, length = lbfgs_direction(steps, changes, slope), 1.0
        while True:
            trial = up * np.clip(up * (z + length * d), 0, box)
            point = evaluate(trial)
            if point[0] <= value + 1e-4 * slope @ (trial - z) or length < 1e-10:
                break
            length *= 0.5
        curves = [np.where(w > 0, l2[0], l2[1]) * w for w in (trial, z)]
        steps, changes = [*steps, trial - z], [*changes, curves[0] - curves[1] - (point[3] - edges)]
        steps, changes = steps[-capacity:], changes[-capacity:]
        points.append(point)
    return points


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
        feature_cuts = cuts[offsets[k] : offsets[k + 1]]
        for row, x in enumerate(np.asarray(column, dtype=np.float64).tolist()):
            index = sum(e < x for e in feature_cuts.tolist())
            parts[k, row] = missing[k] if math.isnan(x) else levels[offsets[k] + k + index]
        score += parts[k]
    return score, parts


def node_bound(A, columns, state, w):
    """D(u) for the row weights of w in a node: columns are free (0), in (1) or out (2)."""
    share, charged = columns["share"], columns["charged"].astype(bool)
    F = A @ w
    if columns["loss"] == 0:
        v, risk = np.exp(-F), np.exp(-F)
    else:
        v, risk = 1.0 / (1.0 + np.exp(F)), np.log1p(np.exp(-F))
    u = share * v
    excess = np.maximum(0.0, A.T @ u - columns["l1"])
    with np.errstate(divide="ignore"):
        best = np.where(columns["l2"] > 0, excess / np.where(columns["l2"] > 0, columns["l2"], 1.0), np.inf)
    best = np.where(excess > 0, np.minimum(best, columns["upper"]), 0.0)
    worth = excess * best - 0.5 * columns["l2"] * best**2 - columns["l0"]
    usable = columns["upper"] > 0
    inside = charged & (state == 1)
    value = (
        share @ risk + u @ F - worth[inside & usable].sum() - np.maximum(worth[~charged & usable], 0.0).sum()
    )
    terms = np.sort(np.maximum(worth[charged & (state == 0) & usable], 0.0))[::-1]
    if columns["max_terms"] >= 0:
        terms = terms[: max(0, columns["max_terms"] - int(inside.sum()))]
    return value - terms.sum()


def curvature_left(loss, F, floors, caps):
    """The least mean of the loss's curvature from F to any margin between floor and cap, by quadrature.

    The weights of the mean are 2 (1 - t) over t from 0 to 1.
    """
    t, weight = np.polynomial.legendre.leggauss(60)
    t, weight = 0.5 * (t + 1.0), (1.0 - 0.5 * (t + 1.0)) * weight
    ends = floors + np.linspace(0.0, 1.0, 41)[:, None] * (caps - floors)
    margins = F[None, :, None] + (ends - F)[:, :, None] * t
    curve = np.exp(-margins) if loss == 0 else 0.25 / np.cosh(0.5 * margins) ** 2
    at_F = np.exp(-F) if loss == 0 else 0.25 / np.cosh(0.5 * F) ** 2
    return np.minimum((curve @ weight).min(axis=0), np.where((floors <= F) & (caps >= F), at_F, np.inf))


def curved_node_bound(A, columns, state, w, centre, aside, limits, objective):
    """The bound at w with curvature set aside, and the least eigenvalue of the curvature that remains.

    Floors and caps hold for the whole problem and are narrowed around the centre.
    """
    share, inside, loss = columns["share"], (state != 2) | (w != 0) | (centre != 0), columns["loss"]
    (floors, caps), F = limits, A @ centre
    room = objective - node_bound(A, columns, state, centre)
    left = (A * (share * curvature_left(loss, F, floors, caps))[:, None]).T @ A
    spans = np.einsum("ij,jk,ik->i", A[:, inside], np.linalg.inv(left[np.ix_(inside, inside)]), A[:, inside])
    width, margins = np.sqrt(2.0 * room * spans), A @ w
    floors, caps, F = np.maximum(floors, F - width), np.minimum(caps, F + width), margins
    left = (A * (share * curvature_left(loss, F, floors, caps))[:, None]).T @ A - np.diag(aside)
    least = np.linalg.eigvalsh(left[np.ix_(inside, inside)])[0]
    # the tangent plus d (v - w)^2 / 2, minimised column by column
    risk = np.exp(-F) if loss == 0 else np.logaddexp(0.0, -F)
    u = share * (np.exp(-F) if loss == 0 else 1.0 / (1.0 + np.exp(F)))
    v = np.linspace(0.0, 1.0, 20001)[:, None] * columns["upper"]
    values = (columns["l1"] - A.T @ u) * v + 0.5 * columns["l2"] * v * v + 0.5 * aside * (v - w) ** 2
    used, unused = values.min(axis=0) + columns["l0"], 0.5 * aside * w**2
    best = np.where(state == 1, used, np.where(state == 2, unused, np.minimum(used, unused)))
    total = share @ risk + u @ F
    if columns["max_terms"] < 0:
        return total + best.sum(), least
    gains = np.sort((unused - best)[state == 0])[::-1][: columns["max_terms"] - np.count_nonzero(state == 1)]
    return total + np.where(state == 0, unused, best).sum() - gains.sum(), least


# ---------------------------------------------------------------- tabu search over levels


def level_objective(a, s, l1, l2, l0, step, levels) -> float:
    """The objective at weights ``step * levels``; ``a`` has one line of +-1 per column."""
    w = step * levels
    price = l1 * w + 0.5 * l2 * w * w + np.where(levels > 0, l0, 0.0)
    return exact_sum(s * np.exp(-(w @ a))) + exact_sum(price)


def price_levels(a, s, l1, l2, l0, step, top, levels):
    """Best level above 0 of every column, with the changes of the objective for going there and to 0."""
    now = level_objective(a, s, l1, l2, l0, step, levels)
    best, rise, drop = np.zeros(len(a), dtype=np.int32), np.zeros(len(a)), np.zeros(len(a))
    for j in range(len(a)):
        changes = []
        for level in range(top[j] + 1):
            other = levels.copy()
            other[j] = level
            changes.append(level_objective(a, s, l1, l2, l0, step, other) - now)
        drop[j] = changes[0]
        if top[j] > 0:
            best[j] = 1 + int(np.argmin(changes[1:]))
            rise[j] = changes[best[j]]
    return now, best, rise, drop


def tabu_moves(
    a, s, l1, l2, l0, step, top, counted, max_terms, tenure, moves, tolerance, levels, random, kept
):
    """Levels and moves at the end of a tabu search, and the best local optima, support by support."""
    levels, until, clock, elite = levels.copy(), np.zeros(len(a), dtype=int), 0, {}
    mask = 2**64 - 1

    def draw(least, most):
        nonlocal random
        random = z = (random + 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return least + (z ^ (z >> 31)) % (most - least + 1)

    incumbent = math.inf
    for done in range(moves):
        value, best, rise, drop = price_levels(a, s, l1, l2, l0, step, top, levels)
        least, used = tolerance * value, int(np.sum((levels > 0) & counted))
        better, uphill, barred_ones = [], [], []
        for j in np.flatnonzero(top > 0):
            if levels[j] > 0 and best[j] != levels[j] and rise[j] < -least:
                better.append((rise[j], j, best[j]))
            if levels[j] == 0 and counted[j] and 0 <= max_terms <= used:
                continue
            price, to = (drop[j], 0) if levels[j] > 0 else (rise[j], best[j])
            barred = counted[j] and until[j] > clock
            if price < -least and (not barred or value + price < incumbent - least):
                better.append((price, j, to))
            if counted[j]:
                barred_ones.append((until[j], j, to))
                if not barred:
                    uphill.append((price, j, to))
        if not better:
            incumbent, key = min(incumbent, value), tuple(levels > 0)
            elite[key] = min(elite.get(key, math.inf), value)
            elite = dict(sorted(elite.items(), key=lambda item: item[1])[:kept])
        choices = better or uphill or barred_ones
        if not choices:
            return levels, done, elite
        _, j, to = min(choices, key=lambda move: move[:2])
        if counted[j] and (levels[j] > 0) != (to > 0):
            clock += 1
            until[j] = clock + draw(*(tenure[2:] if to > 0 else tenure[:2]))
        levels[j] = to
    return levels, moves, elite


# ---------------------------------------------------------------- linear models


def logistic_rows(f, y, s):
    """Loss, pull and curvature of every row."""
    z = np.asarray(y) * f
    loss = float(np.sum(s * np.logaddexp(0.0, -z)))
    with np.errstate(over="ignore"):
        q = 1.0 / (1.0 + np.exp(z))
        rest = 1.0 / (1.0 + np.exp(-z))
    return loss, s * y * q, s * q * rest


def logistic_dual(pull, s, theta):
    total = 0.0
    for u, weight in zip(pull, s, strict=True):
        v = theta * min(1.0, abs(u) / weight)
        total -= weight * sum(part * math.log(part) for part in (v, 1.0 - v) if part > 0.0)
    return total


def rows_pass(x, z, l2, intercept, squared, y, s):
    """Loss, objective, scores, pull, curvature, and the derivatives of the two."""
    f = x @ z[:-1] + z[-1]
    if squared:
        loss, pull, curvature = float(np.sum(s * (y - f) ** 2)) / 2.0, s * (y - f), np.array(s)
    else:
        loss, pull, curvature = logistic_rows(f, y, s)
    slope = -np.append(x.T @ pull, np.sum(pull) * intercept)
    coef = np.append(z[:-1], 0.0)
    return loss, loss + l2 / 2.0 * float(coef @ coef), f, pull, curvature, slope, slope + l2 * coef


def quasi_newton(gradient, inverse, pairs):
    """-H gradient, with H the inverse of the Hessian after BFGS updates of ``inverse``."""
    h = np.array(inverse)
    for step, change in pairs:
        rest = np.eye(len(step)) - np.outer(step, change) / (step @ change)
        h = rest @ h @ rest.T + np.outer(step, step) / (step @ change)
    return -h @ gradient


def sweep_columns(x, which, w, g, l1, l2, intercept, g0, sweeps, beta):
    """Coordinate descent on the quadratic model, the intercept always at its best: beta, X d, its change."""
    beta, start = np.array(beta, dtype=float), np.array(beta, dtype=float)
    total = float(np.sum(w))
    intercept = intercept and total > 0.0
    columns = x[:, which]

    def best_change():
        shift = columns @ (beta - start)
        return shift, -(g0 + float(np.sum(w * shift))) / total if intercept else 0.0

    for _ in range(sweeps):
        for k in range(len(which)):
            column = columns[:, k]
            shift, c = best_change()
            mean = float(np.sum(w * column)) / total if intercept else 0.0
            raw = float(np.sum(w * column**2))
            curve = raw - mean**2 * total
            curve = (curve if curve > 1e-13 * raw else 0.0) + l2
            if curve <= 0.0:
                beta[k] = 0.0 if l1 > 0.0 else beta[k]
                continue
            z = curve * beta[k] - (g[k] + float(np.sum(column * w * (shift + c))) + l2 * beta[k])
            beta[k] = math.copysign(max(abs(z) - l1, 0.0), z) / curve
    return beta, *best_change()


def net_hidden(Z1, W, activation, T, Q, shared):
    """Activations with a column of ones, normal equations of the last layer (one Gram matrix per output)."""
    S = Z1 @ W
    A = np.tanh(S) if activation == 0 else np.maximum(S, 0.0) if activation == 1 else 1.0 / (1.0 + np.exp(-S))
    A1 = np.column_stack([A, np.ones(len(Z1))])
    Q = np.repeat(Q[:, :1], T.shape[1], axis=1) if shared else Q
    grams = [(A1 * Q[:, o : o + 1]).T @ A1 for o in range(1 if shared else T.shape[1])]
    return A1, np.array(grams), A1.T @ (Q * T)


def net_errors(Z1, A1, activation, T, Q, V):
    """Half the weighted squares of the errors, and the gradients by both layers."""
    error, A = A1 @ V - T, A1[:, :-1]
    slope = 1.0 - A * A if activation == 0 else (A > 0) * 1.0 if activation == 1 else A * (1.0 - A)
    E = Q * error
    return 0.5 * float(np.sum(E * error)), Z1.T @ ((E @ V[:-1].T) * slope), A1.T @ E
