"""One ensemble to train: a dictionary over its rows, the risk there, and how its model is proved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost import _kernels
from cardboost.boosting.candidates import Candidates
from cardboost.boosting.path import BoostingPath, ModelFrame
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, write_certificate
from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary, Scoring
from cardboost.master.newton import Master
from cardboost.master.simplex import Columns, DictionaryOracle, soft_point
from cardboost.problem.bound import Leaf, dual_bound, soft_bound
from cardboost.problem.budget import Budget, Stage
from cardboost.problem.losses import Loss
from cardboost.problem.prices import FeatureLimits, PriceRule, Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Record, Trace
from cardboost.selection.relaxation import dictionary_relaxation
from cardboost.selection.select import SearchOptions, Selection
from cardboost.selection.selection_problem import SelectionProblem

Array = NDArray[np.float64]

#: sees every round, with a function that makes the model of that round; ends the run by returning true
RoundCallback = Callable[[Record, Callable[[], Any]], object]

#: weight beyond which an intercept means nothing, by loss; the bound is finite only with such a box
INTERCEPT_BOX = {"logistic": 30.0, "exponential": 15.0, "squared_hinge": 15.0, "smooth_hinge": 15.0}


@dataclass(frozen=True)
class TrainingSettings:
    """The parameters of an estimator, checked and resolved; see `CardBoostClassifier` for their meaning."""

    loss: Loss
    max_terms: int | None
    l0: float
    l1: float
    l2: float
    criterion: Criterion
    hot_start: int
    max_iter: int
    max_weight: float | None
    tol: float
    callback: RoundCallback | None = None
    budget: Budget = field(default_factory=Budget)
    max_features: int | None = None
    feature_costs: Array | None = None
    at_most_one_of: tuple[tuple[int, ...], ...] = ()
    must_include: tuple[int, ...] = ()
    intercept_box: float | None = None  # None: that of the loss
    search: SearchOptions = field(default_factory=SearchOptions)
    reselect: bool = False

    @property
    def selects(self) -> bool:
        """Whether there is a choice: a limit on terms or features, or a price of them."""
        return self.max_terms is not None or self.l0 > 0 or self.limits is not None

    @property
    def reselects(self) -> bool:
        """Whether the choice is made again after every column beyond ``hot_start``."""
        return self.reselect and self.selects

    @property
    def limits(self) -> FeatureLimits | None:
        return FeatureLimits.make(
            self.max_features, self.feature_costs, self.at_most_one_of, self.must_include
        )

    @property
    def scoring(self) -> Scoring:
        """By which the dictionary looks for columns."""
        return Scoring(self.criterion, self.l1, self.l2)

    @property
    def selection_rule(self) -> PriceRule:
        """Regularisation of a selection, the price of a term included."""
        return replace(self.price_rule, l0=self.l0)

    @property
    def price_rule(self) -> PriceRule:
        """Regularisation while columns are generated: the price of a term is left to the selection."""
        box = np.inf if self.max_weight is None else self.max_weight
        intercept_box = INTERCEPT_BOX[self.loss.name] if self.intercept_box is None else self.intercept_box
        return PriceRule(self.l1, self.l2, 0.0, box, intercept_box)


@dataclass(frozen=True, eq=False)
class Choice:
    """Columns of a pool chosen within a box that is now fixed, and the search that bounds any choice."""

    rule: PriceRule
    problem: SelectionProblem
    weights: Array
    objective: float
    search: Selection


@dataclass(frozen=True, eq=False)
class Proof:
    """A model and the scopes that bound every other.

    Parameters
    ----------
    pool : ColumnPool
        The columns that the certificate lists.
    rule : PriceRule
        Their regularisation.
    weights : array
        Of the model, over the pool.
    objective : float
        Of the model.
    scopes : list of ProvenScope
        Bounds with their leaves.
    complete : bool
        Whether there are no other columns than those of the pool.
    max_terms, limits
        Of the models that are bounded.
    radius : float or None
        Sum of their weights, where that is given.
    """

    pool: Any
    rule: PriceRule
    weights: Array
    objective: float
    scopes: list[ProvenScope]
    complete: bool = False
    max_terms: int | None = None
    limits: FeatureLimits | None = None
    radius: float | None = None


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained model with its proof.

    Attributes
    ----------
    ensemble
        The model.
    trace : Trace
        One record per round.
    n_iter : int
        Rounds of the model, or columns that were generated for it.
    path : BoostingPath, StagewisePath or None
        The models of all rounds, where they are kept.
    held_out : tuple of float or None
        The loss on held-out rows after every round, if there were any.
    certificate : Certificate or None
        What is claimed of the model, if anything is.
    candidates : Candidates or None
        What was chosen from, where there was a choice among stumps.
    """

    ensemble: Any
    trace: Trace
    n_iter: int
    path: Any = None
    held_out: tuple[float, ...] | None = None
    certificate: Any = None
    candidates: Candidates | None = None


@dataclass(frozen=True, eq=False)
class HeldOutBins:
    """Bins of the held-out rows, under the cuts of the training rows, and the risk over them."""

    bins: NDArray[np.uint8]
    risk: EmpiricalRisk

    def margins(self, pool: Any, weights: Array) -> Array:
        """Of a model on these rows: scores times labels."""
        features, tables, base = pool.tables(weights)
        return _kernels.margins(self.bins, features, tables, base, self.risk.sign, self.risk.threads)

    def loss(self, pool: Any, weights: Array) -> float:
        """The mean loss of a model on these rows."""
        return self.risk.evaluate(self.margins(pool, weights)).value


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Held-out rows as the user passed them, for learners that read them, and the risk over them."""

    X: object
    risk: EmpiricalRisk


class NumberedColumns:
    """The columns of a dictionary by number, and the pool of those in use.

    Columns are generated on the way, and their number is their place in the pool.
    """

    def __init__(self, dictionary: Dictionary, risk: EmpiricalRisk) -> None:
        self.oracle: Any = DictionaryOracle(dictionary, risk)
        self.pool: Any = self.oracle.pool

    def start(self, radius: float, earlier: BoostingPath | None = None) -> tuple[Columns, Array]:
        """Columns and weights to begin with: those of an earlier model, or the best column alone."""
        none = np.empty(0, dtype=np.int32)
        _, point = self.oracle.at(none, np.empty(0))
        best = self.oracle.look(point, none, 1).new
        if len(best) == 0:
            raise ValueError("dictionary: no learner tells rows apart, and there is no intercept.")
        return best, np.array([radius])

    def weights(self, columns: Columns, weights: Array) -> Array:
        """Weights over the pool, into which new columns come."""
        full = np.zeros(self.pool.n_columns)
        full[columns] = weights
        return full

    def terms(self, columns: Columns) -> Columns:
        """Those of these columns that are not the intercept's."""
        return columns[columns >= self.pool.n_free]


class TrainingTask(ABC):
    """What is trained on, for two classes or a number, and how its models are proved.

    A certificate has the scope "pool" for the columns that it lists, and the scope "dictionary" where it can
    name all columns without listing them. A dictionary whose columns can be listed is listed as a whole.

    Attributes
    ----------
    dictionary : Dictionary
        The weak learners over the training rows.
    risk : EmpiricalRisk
        The mean loss over these rows.
    frame : ModelFrame
        What the models are called.
    earlier : BoostingPath or None
        Where a warm start goes on from.
    held_out : HeldOutBins, HeldOutRows or None
        Rows that end the generation of columns early.
    """

    dictionary: Any
    risk: EmpiricalRisk
    frame: ModelFrame
    earlier: BoostingPath | None = None
    held_out: Any = None

    @property
    def sign(self) -> NDArray[np.int8] | None:
        """Label of every row, -1 or 1; None for a number."""
        return self.risk.sign

    @property
    def positive(self) -> Any:
        """Label of the rows with sign 1."""
        return None if self.frame.classes is None else self.frame.classes[1]

    @abstractmethod
    def ensemble(self, pool: Any, weights: Array, unit: float | None = None) -> Any:
        """The model of these weights over the first columns of a pool; ``unit``: of whole points."""

    def path(self, pool: Any, stages: tuple[Array, ...]) -> BoostingPath | None:
        """The models of all rounds, where they are kept; ``stages``: their weights."""
        return None

    def numbered_columns(self) -> NumberedColumns:
        """The columns by number, for solvers on the simplex."""
        return NumberedColumns(self.dictionary, self.risk)

    @abstractmethod
    def null_model(self, constant: Array, value: Callable[[Array], float]) -> tuple[float, float]:
        """Intercept and objective of the empty model of certificates.

        ``constant``: weights of the intercept's columns; ``value``: the loss at given margins.
        """

    @abstractmethod
    def certified_problem(self, proof: Proof, loss: str) -> CertifiedProblem:
        """What a certificate of the columns of a proof is about."""

    def certificate_view(self, pool: Any) -> Any:
        """What makes the matrix of a certificate from rows, where it is about a matrix."""
        return None

    def candidates(
        self, pool: Any, choice: Choice, proof: Proof, certificate: Certificate
    ) -> Candidates | None:
        """What can be chosen from again without the table, where that is possible."""
        return None

    def constant_weights(self, pool: ColumnPool, rule: PriceRule) -> Array:
        """Weights over a pool of the intercept's columns in the empty model."""
        risk = self.risk
        if pool.n_free and risk.target is not None:  # 0, but for the rounding of the mean that was subtracted
            best = risk.weights.mean(risk.target)
        elif pool.n_free and self.sign is not None:
            rare = 1 if risk.weights.share(self.sign > 0) < 0.5 else -1  # whose small share keeps its digits
            best = rare * risk.loss.best_constant(risk.weights.share(self.sign == rare))
        else:
            return np.zeros(pool.n_columns)
        return np.minimum(np.array([max(best, 0.0), max(-best, 0.0)]), rule.intercept_box)

    # ------------------------------------------------------------------------------------ proofs

    def certificate(self, proof: Proof, loss: str, null: tuple[float, float]) -> Certificate:
        """The claims of a proof in a file; ``null``: intercept and objective of the empty model."""
        problem = self.certified_problem(proof, loss)
        content = write_certificate(problem, proof.weights, proof.objective, null, proof.scopes)
        return Certificate(content, self.positive, self.certificate_view(proof.pool))

    def prove_convex(self, master: Master, rule: PriceRule) -> Proof:
        """Nothing was chosen: the gap of the convex problem is the proof."""
        pool, objective = master.pool, master.objective
        self._list_remaining(pool)
        master.extend()
        point, weights, prices = master.point, master.weights, master.prices
        edges, scopes = pool.edges(point), []
        bound, theta = dual_bound(point, edges, prices, sizes=pool.sizes)
        if self.dictionary.fits_file:
            unseen_edge = self.dictionary.best_columns(point, 1, pool).bound
            wide = dual_bound(point, edges, prices, None, unseen_edge, rule.prices(1, 0), sizes=pool.sizes)
            scopes.append(ProvenScope("dictionary", pool.n_columns, [Leaf(weights, wide[1], wide[0])]))
            if bound < wide[0]:  # with the scale of before, fewer columns prove no less
                bound, theta = wide
        scopes.append(ProvenScope("pool", pool.n_columns, [Leaf(weights, theta, bound)]))
        return Proof(pool, rule, weights, objective, scopes)

    def prove_choice(self, choice: Choice, settings: TrainingSettings, complete: bool | None) -> Proof:
        """Bound any choice among the columns generated, and among all columns where that is possible.

        ``complete``: whether there are no columns outside of the pool, where that is known.
        """
        problem, rule, search, dictionary = choice.problem, choice.rule, choice.search, self.dictionary
        pool = listed = problem.pool
        assert search.root is not None  # local search came first
        pool.place_missing(np.ones(pool.n_columns))  # of all columns: another choice may use them
        scopes = [ProvenScope("pool", pool.n_columns, search.leaves, search.centre)]
        to_list = dictionary.remaining(pool) is not None
        if complete is None:
            complete = self._is_complete(pool)
        if complete:
            scopes.append(replace(scopes[0], scope="dictionary"))  # every stump is in the pool
        elif dictionary.fits_file or to_list:
            listed = pool.subset(np.arange(pool.n_columns))
            wider = replace(problem, pool=listed)
            late = settings.budget.end_of(Stage.DICTIONARY)
            outer = dictionary_relaxation(wider, dictionary, rule, search.root, late).leaf
            if to_list:
                self._list_remaining(listed)
                prices = rule.over(listed)
                leaves = [self._leaf_over(leaf, prices, wider) for leaf in (search.root.leaf, outer)]
                leaf = max(leaves, key=lambda leaf: leaf.bound)
                scopes = [ProvenScope("pool", listed.n_columns, (leaf,), search.centre)]
            else:
                scopes.append(ProvenScope("dictionary", listed.n_columns, [outer]))
                if outer.bound > min(leaf.bound for leaf in search.leaves):
                    # what bounds the dictionary bounds the pool, and fewer columns may have a higher bound
                    leaf = self._leaf_over(outer, problem.prices, wider)
                    best = outer if leaf.bound < outer.bound else leaf
                    scopes[0] = ProvenScope("pool", pool.n_columns, [best])
        weights = padded(choice.weights, listed)
        bounded = problem.max_terms, problem.limits
        return Proof(listed, rule, weights, choice.objective, scopes, complete, *bounded)

    def prove_on_simplex(self, pool: ColumnPool, weights: Array, best: Array, radius: float) -> Proof:
        """Bound the soft margin of all weights of the sum ``radius``, from the ``best`` weights found.

        ``weights``: those of the model, which may use fewer columns.
        """
        self._list_remaining(pool)
        weights, best = padded(weights, pool), padded(best, pool)
        objective = soft_point(self.risk, pool.margins(weights))[0]
        value, point = soft_point(self.risk, pool.margins(best))
        edges = pool.edges(point) / point.value
        mean, most = float(best @ edges), float(edges.max(initial=0.0))
        leaf = Leaf(best, 1.0, soft_bound(value, mean, most, radius))
        scopes = [ProvenScope("pool", pool.n_columns, [leaf])]
        if self.dictionary.fits_file:
            most = max(most, self.dictionary.best_columns(point, 1, pool).bound / point.value)
            leaf = Leaf(best, 1.0, soft_bound(value, mean, most, radius))
            scopes.insert(0, ProvenScope("dictionary", pool.n_columns, [leaf]))
        rule = PriceRule(0.0, 0.0, intercept_box=radius)
        return Proof(pool, rule, weights, objective, scopes, radius=radius)

    def _list_remaining(self, pool: ColumnPool) -> None:
        """Put every other column of the dictionary into the pool, where they can be listed."""
        remaining = self.dictionary.remaining(pool)
        if remaining:
            pool.append(remaining)

    def _is_complete(self, pool: ColumnPool) -> bool:
        """Whether the pool holds every column that there is, and a file can name all of them."""
        if not self.dictionary.fits_file:
            return False
        point = self.risk.evaluate(np.zeros(self.risk.weights.n_rows))
        return bool(self.dictionary.best_columns(point, 1, pool).bound == -np.inf)

    def _leaf_over(self, leaf: Leaf, prices: Prices, problem: SelectionProblem) -> Leaf:
        """A leaf with its bound over the first columns of the pool of a problem, those that have prices."""
        pool = problem.pool
        weights = padded(leaf.weights, pool)
        if leaf.theta == 0.0:
            return replace(leaf, weights=weights)
        point = self.risk.evaluate(pool.margins(weights))
        edges = pool.edges(point)[: len(prices)]
        bound, theta = dual_bound(
            point, edges, prices, problem.max_terms, groups=problem.groups, limits=problem.limits,
            sizes=pool.sizes,
        )  # fmt: skip
        return Leaf(weights, theta, bound)


def padded(weights: Array, pool: ColumnPool) -> Array:
    """Weights over the first columns of a pool, over all of them."""
    return np.concatenate([weights, np.zeros(pool.n_columns - len(weights))])
