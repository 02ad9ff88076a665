"""Solvers on a plain matrix: one row per example, one column per weak learner, the label multiplied in."""

from cardboost.solvers.column_selection import SelectionResult, select_columns
from cardboost.solvers.l1 import minimize_l1
from cardboost.solvers.matrix import SolverResult
from cardboost.solvers.on_simplex import minimize_on_simplex
from cardboost.solvers.stump_columns import Stump, StumpColumns
from cardboost.solvers.thinning import thin_learners

__all__ = [
    "SelectionResult", "SolverResult", "Stump", "StumpColumns",
    "minimize_l1", "minimize_on_simplex", "select_columns", "thin_learners",
]  # fmt: skip
