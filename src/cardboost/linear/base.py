"""What both linear estimators share: arguments, reading, weights, the file."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from cardboost.certificate.checker.linear import ROUNDING
from cardboost.certificate.linear import LinearCertificate
from cardboost.data.arguments import flag, number, whole
from cardboost.data.exact import require_exact_columns, unmasked
from cardboost.data.labels import sample_weights
from cardboost.data.threads import blas_threads, usable_threads
from cardboost.estimators.column_roles import warn_of_matrix
from cardboost.linear.absolute import least_absolute
from cardboost.linear.design import Array, Design, FittedRows, comparable, fitted_rows
from cardboost.linear.gradient import gradient
from cardboost.linear.newton import newton
from cardboost.linear.problem import (
    BOX,
    AbsoluteProblem,
    Coefficients,
    Fit,
    LinearProblem,
    ScoreProblem,
    SoftmaxProblem,
)
from cardboost.linear.proximal import ProximalSolver, largest_price
from cardboost.linear.softmax import solve_softmax
from cardboost.model.files import save_fitted
from cardboost.model.linear import LinearModel
from cardboost.problem.trace import Status

Data = tuple[Any, Any, Any]  # X, y and sample_weight

SOLVERS = ("auto", "gradient", "newton", "prox-newton")
_CLEARLY = 0.999  # of the objective without features: a model that rounding has not made better
_WORTH_THREADS_ONCE = 1e6  # entries of a table that is read once, for which a second thread pays
_WORTH_THREADS = 2e8  # multiplications for which a second thread of BLAS pays


class SeparableDataWarning(UserWarning):
    """Classes that a plane separates, with l1 = l2 = 0: the coefficients have no finite optimum."""


@dataclass(frozen=True, eq=False)
class LinearPath:
    """Optima along a path of prices: one row or entry per price, from the highest to the lowest."""

    l1s: Array
    coefs: Array
    intercepts: Array
    objectives: Array
    gaps: Array
    supports: tuple[NDArray[np.intp], ...]
    statuses: tuple[str, ...]


@dataclass(kw_only=True, eq=False, repr=False)
class LinearEstimator(BaseEstimator, ABC):
    """Base of both estimators, with the parameters that they share. Not for use by itself."""

    l1: float = 0.0
    l2: float = 0.0
    solver: str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 10_000
    warm_start: bool = False
    accelerate: bool = True
    n_jobs: int | None = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------------------------ arguments

    def _check_arguments(self) -> None:
        for name in ("l1", "l2"):
            number(name, getattr(self, name), 0.0)
        number("tol", self.tol, 0.0, strict=True)
        whole("max_iter", self.max_iter, 1)
        for name in ("fit_intercept", "warm_start", "accelerate"):
            flag(name, getattr(self, name))
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(map(repr, SOLVERS))}; got {self.solver!r}.")
        if self.solver == "newton" and self.l1 > 0:
            raise ValueError(
                f"solver='newton' has no l1; got l1={self.l1!r}. Use 'prox-newton', 'gradient' or 'auto'."
            )

    # ------------------------------------------------------------------------------------ reading

    def _read(self, X: Any, reset: bool) -> Any:
        require_exact_columns(X, "X")
        matrix = validate_data(
            self,
            unmasked(X),
            reset=reset,
            accept_sparse=("csr", "csc"),
            dtype=np.float64,
            accept_large_sparse=True,
        )
        if reset:
            warn_of_matrix(X, matrix)
        return matrix

    def _fitted_rows(self, X: Any, y: NDArray[Any], weight: Array) -> FittedRows:
        rows = fitted_rows(X, y, weight, usable_threads(self.n_jobs))
        if self.fit_intercept:
            rows.design.refuse_flat_columns()
        return rows

    def _scores(self, X: Any) -> Array:
        """(rows, scores)."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        return np.asarray(X @ np.atleast_2d(self.coef_).T) + self.intercept_

    # ------------------------------------------------------------------------------------ solving

    def _prices(self) -> tuple[float, float, bool]:
        return float(self.l1), float(self.l2), bool(self.fit_intercept)

    def _before(self, shape: tuple[int, ...]) -> Coefficients | None:
        """Where a warm start begins: the coefficients of the previous fit, if they are of this shape."""
        usable = self.warm_start and hasattr(self, "coef_") and self.coef_.shape == shape
        return (self.coef_, self.intercept_) if usable else None

    def _solve(self, problem: LinearProblem, before: Coefficients | None) -> Fit:
        problem, centres, middle = problem.centred()
        if before is not None:
            before = before[0], before[1] + before[0] @ centres - middle
        with solving(problem.design):
            fit = self._run(problem, before)
        fit = replace(fit, intercept=fit.intercept - fit.coef @ centres + middle)
        if not (np.isfinite(fit.coef).all() and np.isfinite(fit.intercept).all()):
            raise ValueError("X or y holds numbers too large for a linear model: scale the columns.")
        if self.verbose:
            print(
                f"[cardboost] {fit.n_iter} iterations, objective {fit.objective:.8g}, "
                f"bound {fit.lower_bound:.8g}: {fit.status}"
            )
        return fit

    def _run(self, problem: LinearProblem, before: Coefficients | None) -> Fit:
        solver, tol, most = self.solver, float(self.tol), int(self.max_iter)
        if solver == "auto":
            solver = "prox-newton" if self.l1 > 0 else "newton"
        if solver == "prox-newton" and self.l1 == 0 == self.l2:
            solver = "newton"  # without regularisation the steps on the quadratic model are Newton steps
        if isinstance(problem, AbsoluteProblem):
            return least_absolute(problem, tol, most)
        assert isinstance(problem, ScoreProblem | SoftmaxProblem)
        if solver == "gradient":
            return gradient(problem, tol, most, before, bool(self.accelerate))
        if isinstance(problem, SoftmaxProblem):
            return solve_softmax(problem, solver, tol, most, before)
        if solver == "newton":
            return newton(problem, tol, most, before)
        return ProximalSolver(problem, before).solve(problem.l1, tol, most)

    def _certificate(self, loss: str, fit: Fit, rows: Data, data: Data, **about: Any) -> LinearCertificate:
        """The certificate on ``data``, as they came to ``fit``, of this model, or of the one without features
        where rounding has made this one worse: the objectives of the certificate decide.

        ``rows``: the merged rows in their fixed order, with weights that include those of the classes.
        """
        certificate = LinearCertificate(
            loss, *self._prices(), np.atleast_2d(fit.coef).copy(), np.array(fit.intercept, ndmin=1),
            fit.objective, fit.lower_bound, fit.objective, str(fit.status),
            box=BOX if self.l1 == 0 == self.l2 else None, **about,
        )  # fmt: skip
        entries = len(data[1]) * fit.coef.size
        with blas_threads(usable_threads(self.n_jobs) if entries > _WORTH_THREADS_ONCE else 1):
            first = certificate.recomputed(*data)
            if first.objective <= _CLEARLY * first.null_objective:
                return first
            plain = replace(certificate, class_weight=None).no_worse_than_empty(*rows)
            settled = replace(certificate, coef=plain.coef, intercept=plain.intercept)
            return settled.no_worse_than_empty(*data, rounding=ROUNDING).recomputed(*data)

    def _warn_of_limits(self, fits: list[Fit]) -> None:
        """Called by ``fit``: the warning points to the line of the user."""
        for fit in fits:
            if fit.status is Status.ITERATION_LIMIT:
                reached = f"max_iter={self.max_iter} was reached with a gap of {fit.gap:.2g}"
                warnings.warn(f"{reached}, above tol={self.tol:g}.", ConvergenceWarning, stacklevel=3)

    def path(
        self, X: Any, y: Any, l1s: Any = None, n: int = 20, *, sample_weight: Any = None, ratio: float = 0.01
    ) -> LinearPath:
        """Compute the optima for falling ``l1``, each from the one before.

        For two classes, or the squared loss. The estimator itself is not changed.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        l1s : array or None, default=None
            Values of ``l1``. None: ``n`` values, from the smallest at which no feature is used down to
            ``ratio`` times that.
        n : int, default=20
            Number of values.
        ratio : float, default=0.01
            The last value divided by the first.

        Returns
        -------
        LinearPath
            Coefficients, intercepts, objectives and gaps, one for each value.
        """
        self._check_arguments()
        copy = type(self)(**self.get_params(deep=False))
        problem, centres, middle = replace(copy._path_problem(X, y, sample_weight), l1=0.0).centred()
        with solving(problem.design):
            if l1s is None:
                n, ratio = whole("n", n, 1), number("ratio", ratio, 0.0, strict=True)
                l1s = (largest_price(problem) or 1.0) * np.geomspace(1.0, ratio, n)
            else:
                l1s = np.sort(np.asarray(l1s, dtype=np.float64).ravel())[::-1]
                if len(l1s) == 0 or not np.isfinite(l1s).all() or (l1s < 0.0).any():
                    raise ValueError("l1s must hold finite numbers of at least 0, one or more.")
            solver = ProximalSolver(problem)
            fits = [solver.solve(float(l1), float(self.tol), int(self.max_iter)) for l1 in l1s]
        return LinearPath(
            np.array(l1s),
            np.array([fit.coef for fit in fits]),
            np.array([fit.intercept - float(fit.coef @ centres) + middle for fit in fits]),
            np.array([fit.objective for fit in fits]),
            np.array([fit.gap for fit in fits]),
            tuple(np.flatnonzero(fit.coef) for fit in fits),
            tuple(str(fit.status) for fit in fits),
        )

    @abstractmethod
    def _path_problem(self, X: Any, y: Any, sample_weight: Any) -> ScoreProblem:
        """The problem whose path is asked for."""

    # ------------------------------------------------------------------------------------ the file

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(map(str, names))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model and certificate as JSON; :func:`cardboost.load_model` reads them.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """
        check_is_fitted(self)
        save_fitted(path, self.model_, self.certificate_, self)

    def card(self) -> str:
        """The model as a card to read and print, the largest coefficients on top.

        Returns
        -------
        str
            Lines of text.
        """
        from cardboost.model.card import render_card

        check_is_fitted(self)
        certificate = self.certificate_
        lines = [] if isinstance(certificate, list) else certificate.lines()
        return render_card(self.model_, certificate_lines=lines)

    @property
    @abstractmethod
    def model_(self) -> LinearModel:
        """The fitted model without the estimator: what :meth:`save` writes."""


def raw_weights(sample_weight: Any, n_rows: int) -> Array:
    """One weight of at least 0 per row, at most 1."""
    raw = sample_weights(sample_weight, n_rows)
    return np.ones(n_rows) if raw is None else comparable(raw)


@contextmanager
def solving(design: Design) -> Iterator[None]:
    """As many threads in NumPy's products as they are worth, and no more than the kernels have. Steps that
    are not finite end a search, without a word."""
    work = float(design.rows) * min(design.columns, 3000) ** 2
    threads = design.threads if work > _WORTH_THREADS else 1
    with blas_threads(threads), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        yield
