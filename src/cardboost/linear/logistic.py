"""``SparseLogisticRegression``: two classes or more, l1 and l2, or at most k features, with a certificate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from cardboost.data.arguments import whole
from cardboost.data.labels import class_codes, class_factors, sample_weights, search_seed
from cardboost.linear.base import Data, LinearEstimator, SeparableDataWarning, raw_weights
from cardboost.linear.design import Array, Design
from cardboost.linear.problem import Fit, ScoreProblem, SoftmaxProblem
from cardboost.linear.subset import best_subset
from cardboost.model.base import class_probabilities
from cardboost.model.linear import LinearModel, LinearScore
from cardboost.problem.trace import Status

MULTI_CLASS = ("ovr", "multinomial")
_CERTAIN = 20.0  # a score at which a probability is 0 or 1 to eight digits
_SEPARABLE = (
    "The classes can be separated, or nearly so: without l1 or l2 the coefficients grow without end. They "
    "are those at which the fit was stopped. Give l1 or l2."
)


@dataclass(frozen=True, eq=False)
class _ClassRows:
    """The rows of a fit: those of positive weight, with the codes of their classes."""

    design: Design
    codes: NDArray[np.intp]
    s: Array
    classes: NDArray[Any]
    factors: Array | None
    data: Data  # of the fit

    def sign(self, k: int) -> Array:
        return np.where(self.codes == k, 1.0, -1.0)

    @property
    def about(self) -> dict[str, Any]:
        """What a certificate says of the classes."""
        factors = None if self.factors is None else tuple(self.factors.tolist())
        return {"classes": _plain(self.classes), "class_weight": factors}


@dataclass(kw_only=True, eq=False, repr=False)
class SparseLogisticRegression(ClassifierMixin, LinearEstimator):
    """Logistic regression with few coefficients and a certificate of optimality.

    Minimises ``mean log loss + l1 |coef|_1 + l2/2 |coef|_2^2``. The mean is weighted by ``sample_weight`` and
    ``class_weight``; the intercept is not regularised.

    Parameters
    ----------
    l1 : float, default=0.0
        L1 regularisation, at least 0. scikit-learn's ``C`` on m rows is ``1 / (m * l1)``.
    l2 : float, default=0.0
        L2 regularisation, at least 0. scikit-learn's ``C`` on m rows is ``1 / (m * l2)``.
    solver : {"auto", "newton", "prox-newton", "gradient"}, default="auto"
        "newton" is for ``l1=0``. "auto" is "newton" for ``l1=0`` and "prox-newton" otherwise.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    tol : float, default=1e-6
        Relative duality gap at which the solver stops.
    class_weight : dict, "balanced" or None, default=None
        A factor for every class; "balanced" gives all classes the same total weight.
    max_iter : int, default=10_000
        Limit on the number of steps.
    max_features : int or None, default=None
        At most this many features, chosen by exact search. X must be dense.
    multi_class : {"ovr", "multinomial"}, default="ovr"
        With three classes or more: one score for each class against the rest, or softmax.
    warm_start : bool, default=False
        Start from the coefficients of the previous fit.
    accelerate : bool, default=True
        With ``solver="gradient"``: accelerated steps with restarts instead of plain ones.
    random_state : int, RandomState or None, default=None
        Seed of the search for at most ``max_features`` features.
    n_jobs : int or None, default=None
        Number of threads; None for all cores.
    verbose : int, default=0
        Above 0, print a line for every fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_scores, n_features_in_)
        Coefficients; one score for two classes, otherwise one for each class.
    intercept_ : ndarray of shape (n_scores,)
        Intercepts.
    classes_ : ndarray
        Labels in ascending order.
    certificate_ : LinearCertificate, Certificate (``max_features``) or a list of them
        Objective, lower bound and how to check them. A list with "ovr" and three classes or more.
    model_ : LinearModel
        The fitted model without the estimator; :meth:`save` writes it.
    n_iter_ : int
        Number of steps of the solver, or of nodes with ``max_features``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray
        Names of the features, if X had names.

    Warns
    -----
    SeparableDataWarning
        With ``l1 = l2 = 0`` on classes that a plane separates: there is no finite optimum, and the fit stops
        with almost no loss.
    ConvergenceWarning
        ``max_iter`` was reached before ``tol``.

    See Also
    --------
    SparseLinearRegression : The same for real targets.
    CardBoostClassifier : Scorecards of decision stumps.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost import SparseLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> y = X[:, 0] - X[:, 3] > 0
    >>> model = SparseLogisticRegression(l1=0.05).fit(X, y)
    >>> np.flatnonzero(model.coef_[0]), model.certificate_.relative_gap < 1e-6
    (array([0, 3]), True)
    >>> model.certificate_.verify(X, y)
    True
    """

    class_weight: Any = None
    max_features: int | None = None
    multi_class: str = "ovr"
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.max_features is None
        return tags

    # ------------------------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows of finite numbers.
        y : array of shape (n_samples,)
            Labels of two classes or more.
        sample_weight : array of shape (n_samples,) or None, default=None
            Row weights of at least 0. A row of weight 2 counts as two rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_arguments()
        if self.multi_class not in MULTI_CLASS:
            names = ", ".join(map(repr, MULTI_CLASS))
            raise ValueError(f"multi_class must be one of {names}; got {self.multi_class!r}.")
        rows = self._class_rows(X, y, sample_weight)
        scores = 1 if len(rows.classes) == 2 else len(rows.classes)
        self.classes_ = rows.classes
        self._softmax = scores > 1 and self.multi_class == "multinomial"
        targets = [1] if scores == 1 else [*range(scores)]
        limit, columns = self.max_features, rows.design.columns
        if limit is not None and whole("max_features", limit, 0) < columns:
            fits, certificates = self._fit_subsets(rows, targets)
            separable = False
        else:
            fits, certificates, separable = self._fit_scores(rows, targets)
        self.coef_ = np.vstack([fit.coef for fit in fits])
        self.intercept_ = np.hstack([fit.intercept for fit in fits])
        self.n_iter_ = max(1, *(fit.n_iter for fit in fits))
        self.certificate_: Any = certificates[0] if len(certificates) == 1 else certificates
        if separable:
            warnings.warn(_SEPARABLE, SeparableDataWarning, stacklevel=2)
        else:
            self._warn_of_limits(fits)
        return self

    def _class_rows(self, X: Any, y: Any, sample_weight: Any) -> _ClassRows:
        X = self._read(X, reset=True)
        n_rows = X.shape[0]
        classes, codes = class_codes(y, n_rows)
        data = X, classes[codes], sample_weight
        raw = sample_weights(sample_weight, n_rows)
        if raw is not None:  # classes that have rows of positive weight
            present = np.bincount(codes[raw > 0.0], minlength=len(classes)) > 0
            if np.count_nonzero(present) < 2:
                raise ValueError(
                    "Classifier can't train when only one class is present: the others have no positive "
                    "weight."
                )
            raw = np.where(present[codes], raw, 0.0)
            classes, codes = classes[present], np.maximum((np.cumsum(present) - 1)[codes], 0)
        factors = None
        if self.class_weight is not None:
            some = np.arange(n_rows) if raw is None else np.flatnonzero(raw > 0.0)
            factors = class_factors(
                self.class_weight, classes, codes[some], None if raw is None else raw[some]
            )
        weight = raw_weights(raw, n_rows)
        weight = weight if factors is None else weight * (factors / factors.max())[codes]
        rows = self._fitted_rows(X, codes, weight)
        return _ClassRows(rows.design, rows.y, rows.s, classes, factors, data)

    def _fit_scores(self, rows: _ClassRows, targets: list[int]) -> tuple[list[Fit], list[Any], bool]:
        """Softmax, one score for two classes, or one for every class against the rest."""
        before = self._before((len(targets), rows.design.columns))
        problems: list[tuple[Any, Any, int | None]] = [
            (self._against_rest(rows, target), k, target) for k, target in enumerate(targets)
        ]
        if self._softmax:
            arguments = (rows.design, rows.codes, rows.s, "softmax", *self._prices())
            problems = [(SoftmaxProblem(*arguments, n_classes=len(targets)), slice(None), None)]
        fits, certificates, separable = [], [], False
        merged = rows.design.matrix, rows.classes[rows.codes], rows.s
        for problem, k, target in problems:
            fit = self._solve(problem, None if before is None else (before[0][k], before[1][k]))
            certificate = self._certificate(problem.loss, fit, merged, rows.data, target=target, **rows.about)
            if target is None:
                separable = fit.status is Status.SEPARABLE
            else:
                separable |= self.l1 == 0 == self.l2 and _separable(problem, fit)
            certificates.append(certificate)
            fits.append(replace(fit, coef=certificate.coef.copy(), intercept=certificate.intercept.copy()))
        return fits, certificates, separable

    def _against_rest(self, rows: _ClassRows, target: int) -> ScoreProblem:
        return ScoreProblem(rows.design, rows.sign(target), rows.s, "logistic", *self._prices())

    def _fit_subsets(self, rows: _ClassRows, targets: list[int]) -> tuple[list[Fit], list[Any]]:
        """The best coefficients on few features, one score for two classes or one for every class."""
        if rows.design.sparse:
            raise TypeError(
                "Sparse data is not supported with max_features: the exact search stores every column."
            )
        if self._softmax:
            raise ValueError("max_features is for two classes, or for multi_class='ovr'.")
        subsets = [
            best_subset(
                self._against_rest(rows, target), self.max_features,
                seed=search_seed(self.random_state), n_jobs=self.n_jobs, target=target, **rows.about,
            )
            for target in targets
        ]  # fmt: skip
        return [fit for fit, _ in subsets], [certificate for _, certificate in subsets]

    def _path_problem(self, X: Any, y: Any, sample_weight: Any) -> ScoreProblem:
        rows = self._class_rows(X, y, sample_weight)
        if len(rows.classes) != 2:
            raise ValueError(f"path is for two classes; y has {len(rows.classes)}.")
        return self._against_rest(rows, 1)

    # ------------------------------------------------------------------------------------ predicting

    def decision_function(self, X: Any) -> Array:
        """Scores of the rows.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one score, above 0 for ``classes_[1]``; otherwise one for each class.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class of every row; a score of exactly 0 is ``classes_[0]``.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        score = self.decision_function(X)
        codes = (score > 0).astype(np.intp) if score.ndim == 1 else np.argmax(score, axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One column for each class, in the order of ``classes_``.
        """
        return class_probabilities(self.decision_function(X), self._loss())

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to predict for.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; minus infinity where a probability is 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _loss(self) -> str:
        return "softmax" if self._softmax else "logistic"

    @property
    def model_(self) -> LinearModel:
        check_is_fitted(self)
        scores = tuple(LinearScore.of(coef, b) for coef, b in zip(self.coef_, self.intercept_, strict=True))
        return LinearModel(self._loss(), self.n_features_in_, self._names(), _plain(self.classes_), scores)


def _plain(labels: NDArray[Any]) -> tuple[Any, ...]:
    """Labels as Python objects."""
    return tuple(label.item() if hasattr(label, "item") else label for label in labels)


def _separable(problem: ScoreProblem, fit: Fit) -> bool:
    """Whether every row is on its side, which proves it, or some are as far out as if it were so."""
    margins = problem.y * problem.scores(fit.coef, fit.intercept)
    return bool((margins > 0.0).all() or np.abs(margins).max() > _CERTAIN)
