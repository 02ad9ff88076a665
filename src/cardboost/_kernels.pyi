from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I8 = NDArray[np.int8]
Totals = tuple[float, float, float]
Scale = tuple[float, bool]

def bin_columns(
    columns: list[NDArray[Any]], weights: I64 | None, max_bins: int, threads: int
) -> tuple[U8, F64, I32, I64, int]: ...
def apply_cuts(columns: list[NDArray[Any]], cuts: F64, offsets: I64, threads: int) -> U8: ...
def digest_rows(
    columns: list[NDArray[Any]], positive: U8, count: I64 | None, weight: F64 | None, threads: int
) -> tuple[int, int]: ...
def histograms(bins: U8, features: I32, q: I64, threads: int) -> I64: ...
def hash_bins(bins: U8, features: I32, threads: int) -> NDArray[np.uint64]: ...
def search(
    hist: I64,
    n_bins: I32,
    kind: U8,
    mask: U8,
    edge_unit: float,
    curvature_unit: float,
    l1: float,
    l2: float,
    gain: bool,
    intercept: bool,
) -> tuple[F64, F64, I32, I8, U8, float]: ...
def margins(bins: U8, features: I32, tables: F64, base: float, sign: I8 | None, threads: int) -> F64: ...
def stump_bits(bins: U8, features: I32, signs: I8, threads: int) -> U64: ...
def signed_weights(bins: U8, features: I32, signs: I8, q: I64, width: int, threads: int) -> I64: ...
def loss_pass(
    loss: int,
    F: F64,
    target: F64 | None,
    D: F64 | None,
    step: float,
    count: I64 | None,
    factor: F64 | None,
    totals: Totals,
    rows_out: F64 | None,
    threads: int,
) -> tuple[float, float, float, float, float, float, float]: ...
def dual_pass(
    loss: int,
    F: F64,
    target: F64 | None,
    theta: float,
    count: I64 | None,
    factor: F64 | None,
    totals: Totals,
    threads: int,
) -> float: ...
def loss_extremes(
    loss: int, F: F64, target: F64 | None, D: F64 | None, step: float, threads: int
) -> tuple[float, float, float, float]: ...
def loss_sums(
    loss: int,
    F: F64,
    target: F64 | None,
    D: F64 | None,
    step: float,
    count: I64 | None,
    factor: F64 | None,
    scales: Sequence[Scale],
    smallest: float,
    rows_out: F64 | None,
    threads: int,
) -> tuple[int, int, int, int, int]: ...
def dual_sum(
    loss: int,
    F: F64,
    target: F64 | None,
    theta: float,
    count: I64 | None,
    factor: F64 | None,
    scale: Scale,
    sizes: bool,
    threads: int,
) -> int: ...
def loss_pass_in_parts(
    loss: int,
    totals: Totals,
    extremes: Callable[[], Sequence[float]],
    sums: Callable[[Sequence[Scale], float, bool], Sequence[int]],
) -> tuple[float, float, float, float, float, float, float]: ...
def dual_pass_in_parts(
    loss: int,
    theta: float,
    totals: Totals,
    extremes: Callable[[], Sequence[float]],
    dual: Callable[[Scale, bool], int],
) -> float: ...
def quantise(
    values: F64,
    sign: I8 | None,
    count: I64 | None,
    factor: F64 | None,
    largest_factor: float,
    scales: F64,
    largest: F64,
    use_sign: U8,
    threads: int,
) -> I64: ...
def dense_margins(a: NDArray[Any], columns: I32, weights: F64, threads: int) -> F64: ...
def dense_edges(a: I8, signs: bool, columns: I32, q: I64, threads: int) -> I64: ...
def dense_edges_real(
    a: F64, columns: I32, value: F64, count: I64 | None, scale: float, quick: bool, threads: int
) -> I64: ...
def dense_gram(a: I8, signs: bool, left: I32, columns: I32, q: I64, threads: int) -> I64: ...
def dense_gram_real(
    a: F64, left: I32, columns: I32, value: F64, count: I64 | None, scale: float, quick: bool, threads: int
) -> I64: ...
def pack_signs(a: NDArray[Any], by_column: bool) -> tuple[bool, U64, U64, I32]: ...
def sign_edges(grouped: U64, q: I64, threads: int) -> I64: ...
def sign_gram(grouped: U64, done: int, q: I64, threads: int) -> I64: ...
def sign_counts(grouped: U64, done: int, rows: int, threads: int) -> I64: ...
def sign_margins(grouped: U64, weights: F64, rows: int, threads: int) -> F64: ...
def lbfgs_signs(
    by_column: U64,
    by_row: U64,
    loss: int,
    count: I64 | None,
    factor: F64 | None,
    totals: Totals,
    l1: F64,
    l2: F64,
    limit: F64,
    z: F64,
    F: F64,
    edges: F64,
    pairs: F64,
    numbers: F64,
    counts: I64,
    tolerance: float,
    most: int,
    threads: int,
) -> tuple[int, int, F64]: ...
def lbfgs_dense(
    a: NDArray[Any],
    signs: bool,
    largest: float,
    loss: int,
    count: I64 | None,
    factor: F64 | None,
    totals: Totals,
    l1: F64,
    l2: F64,
    limit: F64,
    z: F64,
    F: F64,
    edges: F64,
    pairs: F64,
    numbers: F64,
    counts: I64,
    tolerance: float,
    most: int,
    threads: int,
) -> tuple[int, int, F64]: ...
def minimise_quadratic(
    q: F64,
    gradient: F64,
    x0: F64,
    slope: F64,
    knee: F64,
    curve: F64,
    upper: F64,
    tolerance: float,
    max_iterations: int,
) -> tuple[F64, float, int]: ...
def minimise_on_simplex(
    q: F64, gradient: F64, x0: F64, tolerance: float, most_changes: int
) -> tuple[F64, float, int]: ...
def score_supports(
    q: F64,
    gradient: F64,
    x0: F64,
    slope: F64,
    curve: F64,
    upper: F64,
    members: I32,
    offsets: I64,
    tolerance: float,
    threads: int,
) -> F64: ...
def bound_nodes(
    loss: int,
    packed: U8 | None,
    dense: F64 | None,
    share: F64,
    l1: F64,
    l2: F64,
    l0: F64,
    upper: F64,
    charged: U8,
    max_terms: int,
    state: I8,
    start: F64,
    tau: F64,
    cutoff: float,
    max_steps: int,
    threads: int,
    floors: F64 | None = None,
    caps: F64 | None = None,
    role: U8 | None = None,
    twin: I32 | None = None,
    objective: float = 0.0,
    curve: F64 | None = None,
    curved: U8 | None = None,
) -> tuple[F64, F64, F64, F64, I8, I32, F64, F64, F64]: ...
def price_levels(
    packed: U8, s: F64, l1: F64, l2: F64, l0: F64, step: F64, top: I32, levels: I32
) -> tuple[float, I32, F64, F64]: ...
def tabu_moves(
    packed: U8,
    s: F64,
    l1: F64,
    l2: F64,
    l0: F64,
    step: F64,
    top: I32,
    counted: U8,
    max_terms: int,
    tenure: I64,
    moves: int,
    tolerance: float,
    levels: I32,
    until: I64,
    state: I64,
    elite: I32,
    values: F64,
) -> int: ...
def predict_steps(
    columns: list[NDArray[Any]],
    rows: int,
    cuts: F64,
    offsets: I64,
    levels: F64,
    missing: F64,
    base: float,
    with_contributions: bool,
    threads: int,
) -> tuple[F64, F64, int]: ...
def net_hidden(
    z: F64, w: F64, activation: int, t: F64, q: F64, shared: bool, a: F64, threads: int
) -> tuple[F64, F64]: ...
def net_errors(
    z: F64, a: F64, activation: int, t: F64, q: F64, v: F64, threads: int
) -> tuple[float, F64, F64]: ...
def find_infinite(columns: list[NDArray[Any]], threads: int) -> int: ...
def shortest_decimal(x: float, y: float) -> float: ...
def max_threads() -> int: ...
def fixed_scale(total: float, total_count: float) -> float: ...
def logistic_rows(f: F64, y: F64, s: F64, pull: F64, curvature: F64) -> float: ...
def logistic_dual(pull: F64, s: F64, theta: float) -> float: ...
def rows_pass(
    x: F64, z: F64, l2: float, intercept: bool, squared: bool, y: F64, s: F64, out: F64, threads: int
) -> tuple[float, float, F64]: ...
def quasi_newton(
    gradient: F64, scale: F64, factor: F64 | None, root: F64 | None, pairs: F64, held: int
) -> F64: ...
def column_sums_dense(x: F64, which: I32, pull: F64, threads: int) -> F64: ...
def column_sums_csc(values: F64, index: I32, starts: I64, which: I32, pull: F64, threads: int) -> F64: ...
def column_scores_csc(values: F64, index: I32, starts: I64, which: I32, coef: F64, rows: int) -> F64: ...
def sweep_dense(
    x: F64,
    which: I32,
    w: F64,
    g: F64,
    l1: float,
    l2: float,
    intercept: bool,
    g0: float,
    tolerance: float,
    most: int,
    beta: F64,
    shift: F64,
) -> tuple[int, float, float]: ...
def sweep_csc(
    values: F64,
    index: I32,
    starts: I64,
    which: I32,
    w: F64,
    g: F64,
    l1: float,
    l2: float,
    intercept: bool,
    g0: float,
    tolerance: float,
    most: int,
    beta: F64,
    shift: F64,
) -> tuple[int, float, float]: ...
def sweep_gram(
    q: F64 | F32,
    a: F64,
    total: float,
    l1: float,
    l2: float,
    intercept: bool,
    g0: float,
    tolerance: float,
    most: int,
    beta: F64,
    g: F64,
) -> tuple[int, float, float]: ...
