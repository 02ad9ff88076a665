"""Bad shapes, types, indices and ranges are refused at the door, in every kernel, with a Python exception."""

from __future__ import annotations

import numpy as np
import pytest

from cardboost import _kernels

ROWS = 10
BINS = np.zeros((3, ROWS), dtype=np.uint8)
FEATURES = np.array([0, 2], dtype=np.int32)
Q = np.zeros((ROWS, 2), dtype=np.int64)
F = np.zeros(ROWS)
TOTALS = (10.0, 10.0, 1.0)
COLUMNS = [np.arange(10.0), np.arange(10)]
A8 = np.ones((3, ROWS), dtype=np.int8)
A64 = np.ones((3, ROWS))
SIGNS = np.ones((2, 256), dtype=np.int8)
V2 = np.zeros(2)
OFFSETS = np.array([0, 1, 2])
PACKED = np.zeros((1, ROWS), dtype=np.uint8)
TOP = np.array([3, 3], dtype=np.int32)

#: what the quasi-Newton steps of both kinds of matrices share
BOX = {
    "loss": 0, "count": None, "factor": None, "totals": TOTALS, "l1": np.zeros((2, 2)), "l2": np.ones((2, 2)),
    "limit": np.ones((2, 2)), "z": np.zeros(2), "F": np.zeros(ROWS), "edges": np.zeros(2),
    "pairs": np.zeros((2, 3, 2)), "numbers": np.zeros(2), "counts": np.zeros(4, np.int64), "tolerance": 1e-8,
    "most": 2, "threads": 1,
}  # fmt: skip

#: what the sweeps of linear models share
SWEEP = {
    "l1": 0.1,
    "l2": 0.1,
    "intercept": True,
    "g0": 0.0,
    "tolerance": 1e-9,
    "most": 3,
    "beta": np.zeros(2),
}
LINEAR = {"which": FEATURES, "w": np.ones(ROWS), "g": np.ones(2), "shift": np.zeros(ROWS)}
CSC = {
    "values": np.ones(4),
    "index": np.array([0, 9, 3, 4], np.int32),
    "starts": np.array([0, 2, 2, 4]),
    "which": FEATURES,
}

#: a call that is right, as keyword arguments
RIGHT = {
    "bin_columns": {"columns": COLUMNS, "weights": None, "max_bins": 255, "threads": 1},
    "apply_cuts": {"columns": COLUMNS, "cuts": V2, "offsets": OFFSETS, "threads": 1},
    "digest_rows": {
        "columns": COLUMNS, "positive": np.zeros(ROWS, np.uint8), "count": None, "weight": None, "threads": 1,
    },
    "histograms": {"bins": BINS, "features": FEATURES, "q": Q, "threads": 1},
    "hash_bins": {"bins": BINS, "features": FEATURES, "threads": 1},
    "find_infinite": {"columns": COLUMNS, "threads": 1},
    "search": {
        "hist": np.zeros((2, 256, 2), np.int64), "n_bins": np.array([3, 255], np.int32),
        "kind": np.zeros(2, np.uint8), "mask": np.zeros((2, 256), np.uint8), "edge_unit": 1.0,
        "curvature_unit": 1.0, "l1": 0.0, "l2": 0.0, "gain": True, "intercept": True,
    },
    "margins": {
        "bins": BINS, "features": FEATURES, "tables": np.zeros((2, 256)), "base": 0.0, "sign": None,
        "threads": 1,
    },
    "signed_weights": {
        "bins": BINS, "features": FEATURES, "signs": SIGNS, "q": Q[:, 0].copy(), "width": 2, "threads": 1,
    },
    "stump_bits": {"bins": BINS, "features": FEATURES, "signs": SIGNS, "threads": 1},
    "loss_pass": {
        "loss": 1, "F": F, "target": None, "D": None, "step": 0.0, "count": None, "factor": None,
        "totals": TOTALS, "rows_out": None, "threads": 1,
    },
    "dual_pass": {
        "loss": 1, "F": F, "target": None, "theta": 1.0, "count": None, "factor": None, "totals": TOTALS,
        "threads": 1,
    },
    "loss_extremes": {"loss": 1, "F": F, "target": None, "D": None, "step": 0.0, "threads": 1},
    "loss_sums": {
        "loss": 1, "F": F, "target": None, "D": None, "step": 0.0, "count": None, "factor": None,
        "scales": [(1.0, False)] * 5, "smallest": 0.0, "rows_out": None, "threads": 1,
    },
    "dual_sum": {
        "loss": 1, "F": F, "target": None, "theta": 1.0, "count": None, "factor": None, "scale": (1.0, False),
        "sizes": False, "threads": 1,
    },
    "loss_pass_in_parts": {
        "loss": 1, "totals": TOTALS, "extremes": lambda: [0.0] * 4, "sums": lambda *scaling: [2**50] * 5,
    },
    "dual_pass_in_parts": {
        "loss": 1, "theta": 1.0, "totals": TOTALS, "extremes": lambda: [0.0] * 4,
        "dual": lambda *scaling: 2**60,
    },
    "quantise": {
        "values": np.zeros((2, ROWS)), "sign": None, "count": None, "factor": None, "largest_factor": 1.0,
        "scales": V2, "largest": V2, "use_sign": np.zeros(2, np.uint8), "threads": 1,
    },
    "dense_margins": {"a": A8, "columns": FEATURES, "weights": V2, "threads": 1},
    "dense_edges": {"a": A8, "signs": True, "columns": FEATURES, "q": Q[:, 0].copy(), "threads": 1},
    "dense_edges_real": {
        "a": A64, "columns": FEATURES, "value": F, "count": None, "scale": 1.0, "quick": True, "threads": 1,
    },
    "dense_gram": {
        "a": A8, "signs": True, "left": FEATURES, "columns": FEATURES, "q": Q[:, 0].copy(), "threads": 1,
    },
    "dense_gram_real": {
        "a": A64, "left": FEATURES, "columns": FEATURES, "value": F, "count": None, "scale": 1.0,
        "quick": True, "threads": 1,
    },
    "pack_signs": {"a": A8, "by_column": False},
    "sign_edges": {"grouped": np.zeros((1, 2), np.uint64), "q": Q[:, 0].copy(), "threads": 1},
    "sign_gram": {"grouped": np.zeros((1, 2), np.uint64), "done": 1, "q": Q[:, 0].copy(), "threads": 1},
    "sign_counts": {"grouped": np.zeros((1, 2), np.uint64), "done": 1, "rows": ROWS, "threads": 1},
    "sign_margins": {"grouped": np.zeros((1, 2), np.uint64), "weights": V2, "rows": ROWS, "threads": 1},
    "lbfgs_signs": {
        "by_column": np.zeros((1, 2), np.uint64), "by_row": np.zeros((1, ROWS), np.uint64), **BOX,
    },
    "lbfgs_dense": {"a": A64[:2], "signs": True, "largest": 1.0, **BOX},
    "minimise_quadratic": {
        "q": np.eye(2), "gradient": V2, "x0": V2, "slope": V2, "knee": V2, "curve": V2, "upper": V2,
        "tolerance": 1e-9, "max_iterations": 5,
    },
    "minimise_on_simplex": {
        "q": np.eye(2), "gradient": V2, "x0": np.ones(2), "tolerance": 1e-9, "most_changes": 5,
    },
    "score_supports": {
        "q": np.eye(2), "gradient": V2, "x0": V2, "slope": V2, "curve": V2, "upper": V2, "tolerance": 1e-9,
        "members": np.array([0, 1, 1], np.int32), "offsets": np.array([0, 2, 3]), "threads": 1,
    },
    "bound_nodes": {
        "loss": 1, "packed": np.zeros((1, ROWS), np.uint8), "dense": None, "share": np.full(ROWS, 0.1),
        "l1": V2, "l2": V2, "l0": V2, "upper": np.ones(2), "charged": np.ones(2, np.uint8), "max_terms": -1,
        "state": np.zeros((3, 2), np.int8), "start": np.zeros((3, 2)), "tau": np.zeros(3), "cutoff": 1.0,
        "max_steps": 5, "threads": 1,
    },
    "price_levels": {
        "packed": PACKED, "s": F, "l1": V2, "l2": V2, "l0": V2, "step": V2, "top": TOP,
        "levels": np.array([0, 3], np.int32),
    },
    "tabu_moves": {
        "packed": PACKED, "s": F, "l1": V2, "l2": V2, "l0": V2, "step": V2, "top": TOP,
        "counted": np.ones(2, np.uint8), "max_terms": 1, "tenure": np.array([1, 2, 1, 2]), "moves": 3,
        "tolerance": 1e-9, "levels": np.zeros(2, np.int32), "until": np.zeros(2, np.int64),
        "state": np.zeros(2, np.int64), "elite": np.zeros((3, 2), np.int32), "values": np.full(3, np.inf),
    },
    "logistic_rows": {
        "f": F, "y": np.ones(ROWS), "s": np.ones(ROWS), "pull": F.copy(), "curvature": F.copy(),
    },
    "logistic_dual": {"pull": F, "s": np.ones(ROWS), "theta": 0.5},
    "rows_pass": {
        "x": np.ones((ROWS, 3)), "z": np.zeros(4), "l2": 0.0, "intercept": True, "squared": False,
        "y": np.ones(ROWS), "s": np.ones(ROWS), "out": np.zeros((3, ROWS)), "threads": 1,
    },
    "quasi_newton": {
        "gradient": V2, "scale": V2, "factor": np.eye(2), "root": np.ones((2, 1)),
        "pairs": np.ones((3, 2, 2)), "held": 3,
    },
    "column_sums_dense": {"x": A64, "which": FEATURES, "pull": F, "threads": 1},
    "column_sums_csc": {**CSC, "pull": F, "threads": 1},
    "column_scores_csc": {**CSC, "coef": V2, "rows": ROWS},
    "sweep_dense": {"x": A64, **LINEAR, **SWEEP},
    "sweep_csc": {**CSC, **LINEAR, **SWEEP},
    "sweep_gram": {"q": np.eye(2), "a": np.zeros(2), "total": 1.0, **SWEEP, "g": np.zeros(2)},
    "net_hidden": {
        "z": np.zeros((2, 3, 64)), "w": np.zeros((3, 4)), "activation": 0, "t": np.zeros((2, 1, 64)),
        "q": np.zeros((2, 1, 64)), "shared": True, "a": np.zeros((2, 5, 64)), "threads": 1,
    },
    "net_errors": {
        "z": np.zeros((2, 3, 64)), "a": np.zeros((2, 5, 64)), "activation": 0, "t": np.zeros((2, 1, 64)),
        "q": np.zeros((2, 1, 64)), "v": np.zeros((5, 1)), "threads": 1,
    },
    "predict_steps": {
        "columns": COLUMNS, "rows": ROWS, "cuts": V2, "offsets": OFFSETS, "levels": np.zeros(4),
        "missing": V2, "base": 0.0, "with_contributions": True, "threads": 1,
    },
}  # fmt: skip

CURVED = {
    **RIGHT["bound_nodes"], "loss": 0, "max_steps": 0, "floors": -np.ones(ROWS),
    "caps": np.ones(ROWS), "role": np.full(2, 2, np.uint8), "twin": np.arange(2, dtype=np.int32),
    "objective": 1.0, "curve": np.ones((3, 2)), "curved": np.ones(3, np.uint8),
}  # fmt: skip

RAGGED = [np.zeros(10), np.zeros(9)]
TEN = np.zeros(10)

#: one argument changed to something wrong
WRONG = [
    ("bin_columns", "columns", RAGGED),
    ("bin_columns", "columns", [np.zeros((10, 2))]),
    ("bin_columns", "columns", [np.zeros(10, dtype=complex)]),
    ("bin_columns", "columns", [np.zeros(10, dtype=np.float16)]),
    ("bin_columns", "columns", [np.array(["a"] * 10)]),
    ("bin_columns", "columns", ["text"]),
    ("bin_columns", "columns", None),
    ("bin_columns", "max_bins", 1),
    ("bin_columns", "max_bins", 256),
    ("bin_columns", "max_bins", 2.5),
    ("bin_columns", "weights", np.ones(9, dtype=np.int64)),
    ("bin_columns", "weights", np.ones((10, 1), dtype=np.int64)),
    ("apply_cuts", "columns", RAGGED),
    ("apply_cuts", "offsets", np.array([0, 1])),
    ("apply_cuts", "offsets", np.array([1, 1, 2])),
    ("apply_cuts", "offsets", np.array([0, 2, 1])),
    ("apply_cuts", "offsets", np.array([0, 1, 3])),
    ("apply_cuts", "offsets", np.array([0, -1, 2])),
    ("apply_cuts", "offsets", np.array([0, 2**62, 2])),
    ("digest_rows", "positive", np.zeros(9, np.uint8)),
    ("digest_rows", "count", np.ones(9, np.int64)),
    ("digest_rows", "weight", np.ones(11)),
    ("histograms", "features", np.array([0, 3], np.int32)),
    ("histograms", "features", np.array([-1], np.int32)),
    ("histograms", "features", np.array([[0]], np.int32)),
    ("histograms", "q", np.zeros((9, 2), np.int64)),
    ("histograms", "q", np.zeros((10, 3), np.int64)),
    ("histograms", "q", np.zeros((10, 0), np.int64)),
    ("histograms", "bins", BINS[0]),
    ("hash_bins", "features", np.array([0, 3], np.int32)),
    ("hash_bins", "features", np.array([-1], np.int32)),
    ("find_infinite", "columns", RAGGED),
    ("search", "hist", np.zeros((2, 255, 2), np.int64)),
    ("search", "hist", np.zeros((2, 256, 1), np.int64)),
    ("search", "n_bins", np.array([3, 256], np.int32)),
    ("search", "n_bins", np.array([3, -1], np.int32)),
    ("search", "n_bins", np.array([3], np.int32)),
    ("search", "kind", np.zeros(3, np.uint8)),
    ("search", "mask", np.zeros((2, 255), np.uint8)),
    ("margins", "features", np.array([0, 9], np.int32)),
    ("margins", "tables", np.zeros((1, 256))),
    ("margins", "tables", np.zeros((2, 255))),
    ("margins", "sign", np.ones(9, np.int8)),
    ("signed_weights", "features", np.array([0, 3], np.int32)),
    ("signed_weights", "signs", np.ones((3, 256), np.int8)),
    ("signed_weights", "q", np.zeros(9, np.int64)),
    ("signed_weights", "width", 1),
    ("signed_weights", "width", 3),
    ("stump_bits", "features", np.array([0, 3], np.int32)),
    ("stump_bits", "features", np.array([-1, 0], np.int32)),
    ("stump_bits", "signs", np.ones((3, 256), np.int8)),
    ("stump_bits", "signs", np.ones((2, 255), np.int8)),
    ("stump_bits", "bins", BINS[0]),
    ("loss_pass", "loss", 2),  # without a target
    ("loss_pass", "loss", 5),
    ("loss_pass", "loss", -1),
    ("loss_pass", "target", np.zeros(10)),  # with a loss that has none
    ("loss_pass", "D", np.zeros(9)),
    ("loss_pass", "count", np.ones(9, np.int64)),
    ("loss_pass", "factor", np.ones(9)),
    ("loss_pass", "totals", (1.0, 2.0)),
    ("loss_pass", "rows_out", np.zeros((2, 9))),
    ("loss_pass", "rows_out", np.zeros((1, 10))),
    ("loss_extremes", "loss", 2),
    ("loss_extremes", "D", np.zeros(9)),
    ("loss_sums", "scales", [(1.0, False)] * 4),
    ("loss_sums", "scales", [(-1.0, False)] * 5),
    ("loss_sums", "scales", [(float("inf"), True)] * 5),
    ("loss_sums", "count", np.ones(9, np.int64)),
    ("loss_sums", "rows_out", np.zeros((2, 9))),
    ("dual_sum", "theta", 0.0),
    ("dual_sum", "scale", (float("nan"), False)),
    ("dual_sum", "factor", np.ones(9)),
    ("loss_pass_in_parts", "loss", 9),
    ("dual_pass_in_parts", "theta", 2.0),
    ("dual_pass", "loss", 7),
    ("dual_pass", "loss", 2),
    ("dual_pass", "target", np.zeros(10)),
    ("dual_pass", "theta", 0.0),
    ("dual_pass", "theta", 1.5),
    ("dual_pass", "theta", float("nan")),
    ("dual_pass", "count", np.ones(9, np.int64)),
    ("quantise", "scales", np.ones(1)),
    ("quantise", "largest", np.ones(3)),
    ("quantise", "use_sign", np.ones(1, np.uint8)),
    ("quantise", "sign", np.ones(9, np.int8)),
    ("quantise", "count", np.ones(9, np.int64)),
    ("dense_margins", "a", np.ones((3, ROWS), dtype=np.float32)),
    ("dense_margins", "columns", np.array([0, 3], np.int32)),
    ("dense_margins", "weights", np.zeros(3)),
    ("dense_edges", "columns", np.array([-1], np.int32)),
    ("dense_edges", "q", np.zeros(9, np.int64)),
    ("dense_edges_real", "columns", np.array([5], np.int32)),
    ("dense_edges_real", "value", np.zeros(9)),
    ("dense_edges_real", "count", np.zeros(9, np.int64)),
    ("dense_gram", "left", np.array([3], np.int32)),
    ("dense_gram", "columns", np.array([-3], np.int32)),
    ("dense_gram", "q", np.zeros(11, np.int64)),
    ("dense_gram_real", "left", np.array([3], np.int32)),
    ("dense_gram_real", "columns", np.array([3], np.int32)),
    ("dense_gram_real", "value", np.zeros(11)),
    ("dense_gram_real", "count", np.zeros(11, np.int64)),
    ("pack_signs", "a", np.zeros((2, 3), np.int32)),
    ("pack_signs", "a", np.zeros(3)),
    ("pack_signs", "a", np.zeros((3, 0))),
    ("pack_signs", "a", np.zeros((0, 3))),
    *[
        (kernel, name, value)
        for kernel in ("sign_edges", "sign_gram")
        for name, value in (
            ("grouped", np.zeros((2, 2), np.uint64)), ("grouped", np.zeros(2, np.uint64)),
            ("q", np.zeros(65, np.int64)), ("q", np.zeros(0, np.int64)),
        )
    ],
    *[(kernel, "done", count) for kernel in ("sign_gram", "sign_counts") for count in (-1, 3)],
    *[("sign_counts", "rows", value) for value in (0, 65, -1, 2**63, 2**64 - 1)],
    ("sign_margins", "grouped", np.zeros((2, 2), np.uint64)),
    ("sign_margins", "weights", np.zeros(3)),
    *[("sign_margins", "rows", value) for value in (0, 65, -1, 2**63, 2**64 - 1)],
    ("lbfgs_signs", "by_column", np.zeros((2, 2), np.uint64)),
    ("lbfgs_signs", "by_column", np.zeros((1, 3), np.uint64)),
    ("lbfgs_signs", "by_row", np.zeros((1, 9), np.uint64)),
    ("lbfgs_signs", "by_row", np.zeros((2, ROWS), np.uint64)),
    ("lbfgs_dense", "a", np.ones((3, ROWS))),
    ("lbfgs_dense", "a", np.ones((2, 9))),
    ("lbfgs_dense", "a", np.ones((2, ROWS), np.float32)),
    *[
        (kernel, name, value)
        for kernel in ("lbfgs_signs", "lbfgs_dense")
        for name, value in (
            ("loss", 2), ("loss", 5), ("count", np.ones(9, np.int64)), ("factor", np.ones(9)),
            ("l1", np.zeros((2, 3))), ("l1", np.full((2, 2), -1.0)), ("l1", np.zeros(2)),
            ("l2", np.zeros((2, 2))), ("l2", np.ones((1, 2))), ("l2", np.full((2, 2), np.nan)),
            ("limit", np.ones((3, 2))), ("limit", np.full((2, 2), np.nan)), ("z", np.zeros(3)),
            ("z", np.zeros(2, np.float32)),
            ("F", np.zeros(9)), ("edges", np.zeros(3)), ("pairs", np.zeros((2, 0, 2))),
            ("pairs", np.zeros((1, 3, 2))), ("pairs", np.zeros((2, 3, 3))), ("numbers", np.zeros(3)),
            ("counts", np.zeros(3, np.int64)), ("counts", np.array([1, 3, 0, 0])),
            ("counts", np.array([1, -1, 0, 0])), ("counts", np.array([1, 0, 4, 0])), ("most", 0),
            ("most", 2 * 10**6),
        )
    ],
    ("minimise_quadratic", "q", np.eye(3)),
    ("minimise_quadratic", "q", np.zeros((2, 3))),
    *[("minimise_quadratic", name, np.zeros(3)) for name in ("gradient", "x0", "slope", "knee")],
    *[("minimise_quadratic", name, np.zeros(3)) for name in ("curve", "upper")],
    ("minimise_on_simplex", "q", np.eye(3)),
    ("minimise_on_simplex", "q", np.zeros((2, 3))),
    *[("minimise_on_simplex", name, np.zeros(3)) for name in ("gradient", "x0")],
    ("minimise_on_simplex", "x0", np.array([1.0, -0.5])),
    ("minimise_on_simplex", "x0", np.array([1.0, np.nan])),
    ("score_supports", "q", np.eye(3)),
    *[("score_supports", name, np.zeros(3)) for name in ("gradient", "x0", "slope", "curve", "upper")],
    ("score_supports", "members", np.array([0, 1, 2], np.int32)),
    ("score_supports", "members", np.array([0, 1], np.int32)),
    ("score_supports", "offsets", np.array([0, 4, 3])),
    ("score_supports", "offsets", np.array([1, 2, 3])),
    ("score_supports", "offsets", np.empty(0, np.int64)),
    ("bound_nodes", "loss", 2),
    ("bound_nodes", "loss", -1),
    ("bound_nodes", "packed", None),
    ("bound_nodes", "packed", np.zeros((2, ROWS), np.uint8)),
    ("bound_nodes", "packed", np.zeros((1, 9), np.uint8)),
    ("bound_nodes", "dense", np.zeros((2, ROWS))),
    ("bound_nodes", "share", np.zeros(9)),
    *[("bound_nodes", name, np.zeros(3)) for name in ("l1", "l2", "l0", "upper")],
    *[("bound_nodes", name, np.full(2, -1.0)) for name in ("l1", "l2", "l0", "upper")],
    *[("bound_nodes", name, np.full(2, np.nan)) for name in ("l1", "l2", "l0", "upper")],
    ("bound_nodes", "upper", np.full(2, np.inf)),
    ("bound_nodes", "charged", np.ones(3, np.uint8)),
    ("bound_nodes", "state", np.zeros((3, 3), np.int8)),
    ("bound_nodes", "state", np.full((3, 2), 3, np.int8)),
    ("bound_nodes", "start", np.zeros((2, 2))),
    ("bound_nodes", "start", np.full((3, 2), np.nan)),
    ("bound_nodes", "tau", np.zeros(2)),
    ("bound_nodes", "tau", np.full(3, -1.0)),
    *[
        (kernel, name, value)
        for kernel in ("price_levels", "tabu_moves")
        for name, value in [
            *[(name, np.zeros(3)) for name in ("l1", "l2", "l0", "step")],
            ("packed", np.zeros((2, ROWS), np.uint8)),
            ("packed", np.zeros((0, ROWS), np.uint8)),
            ("s", np.zeros(ROWS + 1)),
            ("step", np.array([0.1, -0.1])),
            ("step", np.array([0.1, np.nan])),
            ("step", np.array([0.1, 1000.0])),
            ("top", np.array([3, 3, 3], np.int32)),
            ("top", np.array([3, -1], np.int32)),
            ("top", np.array([3, 2**30], np.int32)),
            ("levels", np.array([0, 4], np.int32)),
            ("levels", np.array([-1, 0], np.int32)),
            ("levels", np.zeros(3, np.int32)),
        ]
    ],
    ("tabu_moves", "counted", np.ones(3, np.uint8)),
    *[("tabu_moves", "tenure", np.array(value)) for value in ([1, 2, 1], [2, 1, 1, 2], [1, 2, 3, 2])],
    ("tabu_moves", "tenure", np.array([-1, 2, 1, 2])),
    ("tabu_moves", "tenure", np.array([1, 2, 1, 2**40])),
    ("tabu_moves", "moves", 2**50),
    *[("tabu_moves", "tolerance", value) for value in (-1.0, np.nan)],
    ("tabu_moves", "levels", np.zeros(2, np.int64)),
    ("tabu_moves", "until", np.zeros(3, np.int64)),
    *[("tabu_moves", "state", np.array(value)) for value in ([0], [-1, 0], [2**60, 0])],
    ("tabu_moves", "elite", np.zeros((3, 3), np.int32)),
    ("tabu_moves", "elite", np.zeros((2, 2), np.int32)),
    ("tabu_moves", "values", np.zeros(2)),
    *[("logistic_rows", name, np.zeros(9)) for name in ("f", "y", "s", "pull", "curvature")],
    ("logistic_rows", "pull", np.zeros(ROWS, np.float32)),
    ("logistic_dual", "s", np.ones(9)),
    *[("logistic_dual", "theta", value) for value in (-0.1, 1.1, np.nan)],
    *[("rows_pass", name, np.zeros(9)) for name in ("x", "z", "y", "s", "out")],
    ("rows_pass", "z", np.zeros(3)),
    ("rows_pass", "out", np.zeros((2, ROWS))),
    ("rows_pass", "out", np.zeros((3, ROWS), np.float32)),
    *[("quasi_newton", name, np.zeros(9)) for name in ("gradient", "scale", "factor", "root", "pairs")],
    *[("quasi_newton", name, np.ones((3, 1))) for name in ("factor", "root")],
    *[("quasi_newton", "pairs", np.ones(shape)) for shape in ((2, 2, 2), (3, 1, 2), (3, 2, 3))],
    *[("quasi_newton", "held", value) for value in (-1, 4)],
    ("column_sums_dense", "pull", np.zeros(9)),
    ("column_sums_dense", "which", np.array([3], np.int32)),
    ("column_sums_dense", "which", np.array([-1], np.int32)),
    ("column_scores_csc", "coef", np.zeros(3)),
    ("column_scores_csc", "rows", -1),
    ("column_scores_csc", "rows", 9),
    ("column_sums_csc", "pull", np.zeros(9)),
    *[
        (kernel, name, value)
        for kernel in ("column_sums_csc", "column_scores_csc", "sweep_csc")
        for name, value in (
            ("which", np.array([3], np.int32)), ("which", np.array([-1], np.int32)), ("values", np.ones(3)),
            ("index", np.array([0, 10, 3, 4], np.int32)), ("index", np.array([0, -1, 3, 4], np.int32)),
            ("starts", np.array([0, 2, 2, 5])), ("starts", np.array([-1, 2, 2, 4])),
            ("starts", np.array([3, 2, 2, 4])), ("starts", np.empty(0, np.int64)),
        )
    ],
    *[
        (kernel, name, value)
        for kernel in ("sweep_dense", "sweep_csc")
        for name, value in (
            ("which", np.array([0, 3], np.int32)), ("w", np.ones(9)), ("g", np.ones(3)),
            ("shift", np.ones(9)),
        )
    ],
    *[
        (kernel, name, value)
        for kernel in ("sweep_dense", "sweep_csc", "sweep_gram")
        for name, value in (
            ("l1", -1.0), ("l2", -1.0), ("l1", np.nan), ("tolerance", -1.0), ("most", -1),
            ("beta", np.ones(3)), ("beta", np.ones(2, np.float32)),
        )
    ],
    *[("sweep_gram", name, np.zeros(3)) for name in ("a", "g")],
    ("sweep_gram", "q", np.zeros((2, 3))),
    *[
        (kernel, name, value)
        for kernel in ("net_hidden", "net_errors")
        for name, value in (
            ("z", np.zeros((2, 3, 63))), ("z", np.zeros((1, 3, 64))), ("z", np.zeros((2, 0, 64))),
            ("activation", -1), ("activation", 3), ("t", np.zeros((1, 1, 64))), ("t", np.zeros((2, 0, 64))),
            ("q", np.zeros((2, 2, 64))), ("q", np.zeros((2, 1, 63))), ("a", np.zeros((2, 0, 64))),
            ("a", np.zeros((1, 5, 64))), ("a", np.zeros((2, 5, 63))),
        )
    ],
    ("net_hidden", "w", np.zeros((2, 4))),
    ("net_hidden", "w", np.zeros((3, 0))),
    ("net_hidden", "a", np.zeros((2, 4, 64))),
    ("net_hidden", "a", np.zeros((2, 5, 64), np.float32)),
    ("net_errors", "v", np.zeros((4, 1))),
    ("net_errors", "v", np.zeros((5, 2))),
    ("predict_steps", "columns", RAGGED),
    ("predict_steps", "columns", [TEN]),
    ("predict_steps", "rows", 9),
    ("predict_steps", "rows", 11),
    ("predict_steps", "rows", -1),
    ("column_scores_csc", "rows", 2**61),
    ("predict_steps", "offsets", np.array([0, 3, 2])),
    ("predict_steps", "offsets", np.array([0, 1, 1])),
    ("predict_steps", "offsets", np.array([1, 1, 2])),
    ("predict_steps", "offsets", np.array([0, 2])),
    ("predict_steps", "levels", np.zeros(3)),
    ("predict_steps", "missing", np.zeros(1)),
]  # fmt: skip


@pytest.mark.parametrize("kernel", RIGHT)
def test_right_calls_work(kernel):
    getattr(_kernels, kernel)(**RIGHT[kernel])


@pytest.mark.parametrize(("kernel", "name", "value"), WRONG, ids=lambda part: str(part)[:30])
def test_wrong_calls_are_refused(kernel, name, value):
    with pytest.raises((ValueError, TypeError)):
        getattr(_kernels, kernel)(**{**RIGHT[kernel], name: value})


@pytest.mark.parametrize("kernel", sorted(k for k, call in RIGHT.items() if "threads" in call))
@pytest.mark.parametrize("threads", [-3, 0, 7])
def test_any_number_of_threads_is_accepted(kernel, threads):
    getattr(_kernels, kernel)(**{**RIGHT[kernel], "threads": threads})


@pytest.mark.parametrize(
    "rows", [np.full((2, ROWS), np.nan, order="F"), np.full((2, ROWS), np.nan, np.float32)]
)
def test_an_output_is_filled_or_refused(rows):
    """Never filled in a silent copy."""
    try:
        _kernels.loss_pass(**{**RIGHT["loss_pass"], "rows_out": rows})
    except (TypeError, ValueError):
        return
    assert np.isfinite(rows).all()


@pytest.mark.parametrize("kernel", ["loss_pass", "dual_pass"])
def test_the_squared_loss_has_a_target_for_every_row(kernel):
    call = {**RIGHT[kernel], "loss": 2}
    getattr(_kernels, kernel)(**{**call, "target": np.zeros(ROWS)})
    for wrong in (None, np.zeros(ROWS - 1), np.zeros((ROWS, 1)), np.zeros(ROWS + 1)):
        with pytest.raises((ValueError, TypeError)):
            getattr(_kernels, kernel)(**{**call, "target": wrong})


def test_tables_without_rows_are_accepted():
    empty = {"values": np.zeros((2, 0)), "count": np.zeros(0, np.int64), "sign": None}
    assert _kernels.quantise(**{**RIGHT["quantise"], **empty}).shape == (0, 2)
    assert not _kernels.histograms(BINS[:, :0].copy(), FEATURES, Q[:0], 3).any()


def test_arrays_beyond_all_memory_are_refused():
    """Before the sizes are multiplied, as the product would not fit."""
    call = {**RIGHT["predict_steps"], "columns": [], "cuts": np.zeros(0), "offsets": np.zeros(1, np.int64)}
    with pytest.raises(ValueError, match="too large"):
        _kernels.predict_steps(**{**call, "levels": np.zeros(0), "missing": np.zeros(0), "rows": 2**61})


def test_every_kernel_is_covered():
    others = {"shortest_decimal", "max_threads", "fixed_scale"}
    public = {name for name in dir(_kernels) if not name.startswith("_")}
    assert public == set(RIGHT) | others
    assert _kernels.max_threads() >= 1


@pytest.mark.parametrize("gap", [(1.0, 1.0), (2.0, 1.0), (float("nan"), 1.0), (0.5, float("inf"))])
def test_decimals_of_impossible_gaps_do_not_crash(gap):
    try:
        result = _kernels.shortest_decimal(*gap)
    except ValueError:
        return
    assert isinstance(result, float)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("caps", np.ones(9)), ("caps", None), ("caps", np.full(ROWS, np.inf)), ("floors", np.ones(9)),
        ("floors", None), ("floors", np.full(ROWS, np.nan)), ("role", None), ("role", np.ones(3, np.uint8)),
        ("twin", None), ("twin", np.arange(3, dtype=np.int32)), ("twin", np.array([1, 1], np.int32)),
        ("twin", np.array([-1, 0], np.int32)),
        ("objective", np.nan), ("objective", np.inf), ("curve", np.full((3, 2), -1.0)),
        ("curve", np.zeros((3, 3))), ("curve", np.full((3, 2), np.inf)), ("curve", None), ("curved", None),
        ("curved", np.ones(2, np.uint8)),
    ],
)  # fmt: skip
def test_curvature_needs_caps_roles_and_centres_that_fit(name, value):
    _kernels.bound_nodes(**CURVED)
    with pytest.raises(ValueError, match="bound_nodes"):
        _kernels.bound_nodes(**{**CURVED, name: value})
