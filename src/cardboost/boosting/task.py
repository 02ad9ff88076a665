"""One ensemble to train: a dictionary over its rows, the risk there, and how its model is proved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.candidates import Candidates
from cardboost.boosting.numbered_columns import NumberedColumns
from cardboost.boosting.path import BoostingPath
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import ProvenScope
from cardboost.dictionary.base import ColumnPool, Criterion, Dictionary
from cardboost.master.newton import Master
from cardboost.problem.budget import Budget
from cardboost.problem.losses import Loss
from cardboost.problem.prices import FeatureLimits, PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.problem.trace import Record
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
    fit_intercept: bool
    threads: int
    callback: RoundCallback | None = None
    budget: Budget = field(default_factory=Budget)
    max_features: int | None = None
    feature_costs: Array | None = None
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
        return FeatureLimits.make(self.max_features, self.feature_costs)

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
    """

    pool: ColumnPool
    rule: PriceRule
    weights: Array
    objective: float
    scopes: list[ProvenScope]
    complete: bool = False


class TrainingTask(ABC):
    """What is trained on, for two classes or a number.

    Attributes
    ----------
    dictionary : Dictionary
        The weak learners over the training rows.
    risk : EmpiricalRisk
        The mean loss over these rows.
    sign : array of int8 or None
        Label of every row, -1 or 1; None for a number.
    positive : label
        That of the rows with sign 1.
    earlier : BoostingPath or None
        Where a warm start goes on from.
    held_out : HeldOutBins, HeldOutRows or None
        Rows that end the generation of columns early.
    """

    dictionary: Dictionary
    risk: EmpiricalRisk
    earlier: BoostingPath | None = None
    held_out: Any = None

    @property
    @abstractmethod
    def sign(self) -> NDArray[np.int8] | None: ...

    @property
    @abstractmethod
    def positive(self) -> Any: ...

    @abstractmethod
    def ensemble(self, pool: ColumnPool, weights: Array, unit: float | None = None) -> Any:
        """The model of these weights over the first columns of a pool; ``unit``: of whole points."""

    def path(self, pool: ColumnPool, stages: tuple[Array, ...]) -> BoostingPath | None:
        """The models of all rounds, where they are kept; ``stages``: their weights."""
        return None

    def search_options(self, pool: ColumnPool, options: SearchOptions) -> SearchOptions:
        """The selector for the columns of this pool."""
        return options

    @abstractmethod
    def prove_convex(self, master: Master, rule: PriceRule) -> Proof:
        """Nothing was chosen: the gap of the convex problem is the proof."""

    @abstractmethod
    def prove_choice(self, choice: Choice, settings: TrainingSettings, complete: bool | None) -> Proof:
        """Bound any choice among the columns generated, and among all columns where that is possible.

        ``complete``: whether there are no columns outside of the pool, where that is known.
        """

    @abstractmethod
    def numbered_columns(self) -> NumberedColumns:
        """The columns by number, for solvers on the simplex."""

    @abstractmethod
    def prove_on_simplex(self, pool: ColumnPool, weights: Array, best: Array, radius: float) -> Proof:
        """Bound the soft margin of all weights of the sum ``radius``, from the ``best`` weights found.

        ``weights``: those of the model, which may use fewer columns.
        """

    def candidates(
        self, pool: ColumnPool, choice: Choice, proof: Proof, certificate: Certificate
    ) -> Candidates | None:
        """What can be chosen from again without the table, where that is possible."""
        return None

    @abstractmethod
    def certificate(self, proof: Proof, loss: str, null: tuple[float, float], **limits: Any) -> Certificate:
        """The claims of a proof in a file.

        ``null``: intercept and objective of the empty model; ``limits``: on terms or features, or the
        radius.
        """

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

    @abstractmethod
    def null_model(self, constant: Array, value: Callable[[Array], float]) -> tuple[float, float]:
        """Intercept and objective of the empty model of certificates.

        ``constant``: weights of the intercept's columns; ``value``: the loss at given margins.
        """


def padded(weights: Array, pool: ColumnPool) -> Array:
    """Weights over the first columns of a pool, over all of them."""
    return np.concatenate([weights, np.zeros(pool.n_columns - len(weights))])
