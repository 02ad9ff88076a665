"""``SparseLinearRegression``: squared or absolute loss, l1 and l2, with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from cardboost.data.labels import real_targets
from cardboost.linear.base import Data, LinearEstimator, raw_weights
from cardboost.linear.design import Array, FittedRows
from cardboost.linear.problem import AbsoluteProblem, ScoreProblem
from cardboost.model.linear import LinearModel, LinearScore

LOSSES = ("squared", "absolute")
_FLATTEST = 1e-11  # range of the targets beside their middle, at least


@dataclass(kw_only=True, eq=False, repr=False)
class SparseLinearRegression(RegressorMixin, LinearEstimator):
    """Linear regression with few coefficients and a certificate of optimality.

    Minimises ``mean loss + l1 |coef|_1 + l2/2 |coef|_2^2``. The loss of a row is half its squared residual,
    or its absolute residual. The mean is weighted by ``sample_weight``; the intercept is not regularised.

    Parameters
    ----------
    loss : {"squared", "absolute"}, default="squared"
        Loss of a row.
    l1 : float, default=0.0
        L1 regularisation, at least 0: ``alpha`` of scikit-learn's ``Lasso``.
    l2 : float, default=0.0
        L2 regularisation, at least 0.
    solver : {"auto", "newton", "prox-newton", "gradient"}, default="auto"
        "newton" is for ``l1=0``. "auto" is "newton" for ``l1=0`` and "prox-newton" otherwise. The absolute
        loss has solvers for linear and quadratic programs: "auto" only.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    max_iter : int, default=10_000
        Limit on the number of steps.
    warm_start : bool, default=False
        Start from the coefficients of the previous fit (squared loss).
    accelerate : bool, default=True
        With ``solver="gradient"``: accelerated steps with restarts instead of plain ones.
    n_jobs : int or None, default=None
        Number of threads; None for all cores.
    verbose : int, default=0
        Above 0, print a line for every fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Coefficients.
    intercept_ : float
        Intercept.
    certificate_ : LinearCertificate
        Objective, lower bound and how to check them.
    model_ : LinearModel
        The fitted model without the estimator; :meth:`save` writes it.
    n_iter_ : int
        Number of steps of the solver.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if X had names.

    Warns
    -----
    ConvergenceWarning
        ``max_iter`` was reached before ``tol``.

    See Also
    --------
    SparseLogisticRegression : The same for classes.
    CardBoostRegressor : Scorecards of decision stumps.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost import SparseLinearRegression
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> model = SparseLinearRegression(l1=0.1).fit(X, [1.0, 3.0, 5.0, 7.0])
    >>> np.round(model.coef_, 3), model.certificate_.relative_gap < 1e-6
    (array([1.92, 0.  ]), True)
    """

    loss: str = "squared"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows of finite numbers.
        y : array of shape (n_samples,)
            Real targets.
        sample_weight : array of shape (n_samples,) or None, default=None
            Row weights of at least 0. A row of weight 2 counts as two rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_arguments()
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}; got {self.loss!r}.")
        if self.loss == "absolute" and self.solver != "auto":
            raise ValueError(f"loss='absolute' has its own solvers: use solver='auto'; got {self.solver!r}.")
        rows, data = self._rows(X, y, sample_weight)
        if self.fit_intercept:
            _refuse_flat(rows.y)
        kind = AbsoluteProblem if self.loss == "absolute" else ScoreProblem
        problem = kind(rows.design, rows.y, rows.s, self.loss, *self._prices())
        fit = self._solve(problem, self._before((rows.design.columns,)))
        self.certificate_ = self._certificate(
            self.loss, fit, (rows.design.matrix, rows.y, rows.s), data,
            dual=None if fit.dual is None else rows.spread(fit.dual),
        )  # fmt: skip
        self.coef_ = self.certificate_.coef[0].copy()
        self.intercept_ = float(self.certificate_.intercept[0])
        self.n_iter_ = max(1, fit.n_iter)
        self._warn_of_limits([fit])
        return self

    def _path_problem(self, X: Any, y: Any, sample_weight: Any) -> ScoreProblem:
        if self.loss != "squared":
            raise ValueError(f"path is for loss='squared'; got {self.loss!r}.")
        rows, _ = self._rows(X, y, sample_weight)
        return ScoreProblem(rows.design, rows.y, rows.s, "squared", *self._prices())

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[FittedRows, Data]:
        """The rows of a fit, and the data as they were read."""
        X = self._read(X, reset=True)
        target = real_targets(y, X.shape[0])
        rows = self._fitted_rows(X, target, raw_weights(sample_weight, X.shape[0]))
        return rows, (X, target, sample_weight)

    def predict(self, X: Any) -> Array:
        """Predicted targets of the rows.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        return self._scores(X)[:, 0]

    @property
    def model_(self) -> LinearModel:
        check_is_fitted(self)
        score = LinearScore.of(self.coef_, self.intercept_)
        return LinearModel(self.loss, self.n_features_in_, self._names(), None, (score,))


def _refuse_flat(y: Array) -> None:
    """Refuse targets whose intercept would be rounded by more than the loss can bear."""
    low, high = float(y.min()), float(y.max())
    if low < high and high / 2.0 - low / 2.0 < _FLATTEST * abs(low / 2.0 + high / 2.0):
        raise ValueError(
            f"y lies between {low:.17g} and {high:.17g}, which leaves too few digits for what varies: "
            "subtract a constant from it."
        )
