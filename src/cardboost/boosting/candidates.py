"""The columns that a training chose from, over distinct rows: enough to choose again, without the table.

From here the proof of a fit goes on, and cards in whole points are chosen. After a fit the candidates are at
hand; later they are made from the certificate and the rows it is about.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker import check, structure_faults
from cardboost.certificate.checker.bounds import Evidence, gather, read_rows
from cardboost.certificate.checker.data import Table
from cardboost.certificate.writer import ProvenScope, read_leaves, with_points, with_proof
from cardboost.data.categories import OTHER, Categories
from cardboost.data.weights import RowWeights
from cardboost.model.ensemble import Ensemble, Term
from cardboost.problem.bound import OPTIMAL
from cardboost.problem.budget import Budget, Stage
from cardboost.problem.losses import LOSSES, SQUARED
from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.problem.risk import risk_of
from cardboost.selection import exact, whole_points
from cardboost.selection.merge import merge_rows, stored_pool
from cardboost.selection.polish import polish
from cardboost.selection.select import most_leaves, time_for_nodes
from cardboost.selection.selection_problem import Incumbent, SelectionProblem, require
from cardboost.selection.whole_points import Scale, choose_points

Array = NDArray[np.float64]
#: makes the model of weights over the columns, in whole points of a unit if one is given
MakeModel = Callable[[Array, float | None], Ensemble]


@dataclass(frozen=True, eq=False)
class Candidates:
    """``problem``: over stored columns (merge_rows). ``weights`` and ``certified``: what was chosen.

    ``complete``: there are no other stumps than these.
    """

    model: MakeModel
    loss: str
    positive: Any
    n_free: int
    problem: SelectionProblem
    weights: Array
    certified: dict[str, Any]
    complete: bool = False

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.certified, self.positive)

    @property
    def null_model(self) -> tuple[float, float]:
        """Intercept and objective of the empty model."""
        null = self.certified["null"]
        return null["intercept"], null["objective"]

    def in_points(
        self,
        most: int,
        max_terms: int | None = None,
        scale: Scale | None = None,
        late: Callable[[], bool] = lambda: False,
    ) -> tuple[Ensemble, Certificate]:
        """The best card in whole points that is found, at most ``most`` per term, with its certificate.

        ``max_terms``: fewer terms than the training was allowed; the bound for more holds for fewer.
        """
        problem = self.problem
        require(whole_points.accepts(problem))
        must = () if problem.limits is None else problem.limits.must_include
        if max_terms is not None and max_terms < len(must):
            raise ValueError(f"must_include names {len(must)} features, which {max_terms} terms cannot use.")
        if max_terms is not None and (problem.max_terms is None or max_terms < problem.max_terms):
            problem = replace(problem, max_terms=max_terms)
        chosen = choose_points(problem, self.weights, most, scale=scale, late=late)
        unit = chosen.unit if chosen.points.any() else scale.unit if scale is not None else 1.0
        content = with_points(self.certified, chosen.weights, self.n_free, chosen.objective, unit, most)
        return self.model(chosen.weights, unit), Certificate(content, self.positive)

    def proved(
        self, budget: Budget, max_nodes: int | None, progress: exact.Progress | None = None
    ) -> Candidates:
        """Go on from the leaves of the certificate with exact search, or with local search where exact search
        cannot take the problem. The model is never worse afterwards, nor is any bound. A warning says why the
        proof could not go on, where more time would not help."""
        problem = self.problem
        if budget.late(Stage.SEARCH):
            return self
        objective = float(self.certified["solution"]["objective"])
        support = np.flatnonzero((self.weights > 0) & problem.prices.charged)
        incumbent = Incumbent(support, self.weights, objective)
        pool = next(bound for bound in self.certified["bounds"] if bound["scope"] == "pool")
        refusal = exact.accepts(problem)
        if refusal is not None:
            warnings.warn(f"The bound stays as it is: {refusal} Local search went on.", stacklevel=5)
            better = polish(problem, self.weights, budget.end_of(Stage.SEARCH))[0]
            return self._with(better if better.objective < objective else incumbent, None)
        problem = merge_rows(problem)
        if not time_for_nodes(problem, budget, Stage.SEARCH):
            return self
        result = exact.exact_search(
            problem, incumbent, max_nodes=max_nodes, late=budget.end_of(Stage.SEARCH),
            most_leaves=most_leaves(problem), progress=progress, proof_late=budget.end_of(Stage.LEAVES),
            begin_at=read_leaves(pool["leaves"], self.n_free, pool["columns"]),
        )  # fmt: skip
        best = result.incumbent if result.incumbent.objective < objective else incumbent
        proven, written = None, min(leaf.bound for leaf in result.leaves)
        if result.lower_bound - written > OPTIMAL * abs(float(self.certified["null"]["objective"])):
            warnings.warn(
                f"The search has a lower bound of {result.lower_bound:.6g}, but the leaves that prove it are "
                f"more than a certificate holds: it claims {written:.6g}. More time will not help.",
                stacklevel=5,
            )
        if written > min(leaf["bound"] for leaf in pool["leaves"]):
            proven = ProvenScope("pool", problem.pool.n_columns, result.leaves, result.centre)
        return self._with(best, proven)

    def _with(self, incumbent: Incumbent, pool: ProvenScope | None) -> Candidates:
        """With another model, and with another proof over the pool; where the pool holds every stump, the
        dictionary has the same proof."""
        proofs = {} if pool is None else {"pool": pool}
        if pool is not None and self.complete and len(self.certified["bounds"]) == 2:
            proofs["dictionary"] = replace(pool, scope="dictionary")
        content = with_proof(self.certified, incumbent.weights, self.n_free, incumbent.objective, proofs)
        return replace(self, weights=incumbent.weights, certified=content)


def restored_candidates(
    content: Mapping[str, Any],
    ensemble: Ensemble,
    rows: tuple[Any, Any, Any],
    threads: int,
    late: Callable[[], bool] = lambda: False,
) -> Candidates | None:
    """The candidates of a fit, made again from its certificate; None where checking it took all the time.

    Parameters
    ----------
    content : the certificate
    ensemble : the model that it is about
    rows : X, labels (True for the positive rows) or targets, and weights, of the fit
    threads : to use
    late : asked whether time is up

    Raises
    ------
    ValueError
        The certificate does not hold for these rows, or leaves nothing to choose.
    """
    plain = dict(content)
    for fault in structure_faults(plain):
        raise ValueError(f"this is no certificate to go on from: {fault}.")
    if plain["kind"] != "stumps":
        raise ValueError("prove goes on with the choice of stumps; this model is made of other learners.")
    if plain["problem"].get("radius") is not None:
        raise ValueError("a soft margin is solved, not chosen: there is nothing to go on with.")
    if plain.get("points") is not None:
        raise ValueError(
            "prove the card with weights first, then choose whole points: scorecard() after prove()."
        )
    faults = check(plain, *rows)
    if faults:
        raise ValueError(f"the certificate does not hold for these rows: {faults[0]}.")
    if late():
        return None
    incomplete = _surely_incomplete(plain)
    # of a dictionary that has more stumps than these only the features of the pool are read again
    evidence = gather(plain | {"dictionary": None} if incomplete else plain, *rows)
    problem, n_free = _problem(plain, evidence, threads)
    weights = np.zeros(problem.pool.n_columns)
    intercept = plain["solution"]["intercept"]
    weights[:n_free] = [max(intercept, 0.0), max(-intercept, 0.0)][:n_free]
    for column, weight in plain["solution"]["weights"]:
        weights[n_free + column] = weight
    table = read_rows(plain, *rows)
    make = lambda weights, unit: _ensemble(plain, ensemble, weights, n_free, unit, table)  # noqa: E731
    positive = None if ensemble.classes is None else ensemble.classes[1]
    listed = len(plain["columns"]["feature"]) == len(problem.prices) - n_free
    complete = listed and not incomplete and evidence.stumps is not None and not evidence.stumps.any_unseen
    return Candidates(make, ensemble.loss, positive, n_free, problem, weights, plain, complete)


def _surely_incomplete(content: dict[str, Any]) -> bool:
    """Whether a feature alone has more cuts, each another stump, than there are columns."""
    cuts = [] if content["dictionary"] is None else content["dictionary"]["cuts"]
    return max(map(len, cuts), default=0) > len(content["columns"]["feature"])


def _problem(content: dict[str, Any], evidence: Evidence, threads: int) -> tuple[SelectionProblem, int]:
    """The choice among the columns of the pool, over distinct rows; and how many are the intercept's."""
    problem, columns = content["problem"], content["columns"]
    n = next(bound["columns"] for bound in content["bounds"] if bound["scope"] == "pool")
    box = problem["intercept_box"]
    n_free, dense = 0, evidence.rows.a[:, :n]
    if box is not None:
        free = evidence.rows.free.astype(np.int8)
        n_free, dense = 2, np.column_stack([free, -free, dense])

    def column(key: str, of_free: float) -> Array:
        values = [np.inf if value is None else value for value in columns[key][:n]]
        return np.array([of_free] * n_free + values, dtype=np.float64)

    charged = np.array([False] * n_free + columns["charged"][:n], dtype=bool)
    prices = Prices(
        column("l1", 0.0), column("l2", 0.0), column("l0", 0.0), column("max_weight", box), charged
    )
    loss = SQUARED if problem["loss"] == SQUARED.name else LOSSES[problem["loss"]]
    target = evidence.rows.target if problem["target"] is not None else None
    weights = RowWeights.make(len(dense), evidence.rows.share)
    risk = risk_of(loss, weights, None, threads, target)
    costs = problem["feature_costs"]
    limits = FeatureLimits.make(
        problem["max_features"], None if costs is None else np.array(costs),
        problem.get("at_most_one_of", ()), problem.get("must_include", ()),
    )  # fmt: skip
    groups = np.array([-1] * n_free + columns["feature"][:n], dtype=np.int32)
    pool = stored_pool(dense, threads)
    used = None if limits is None else groups
    return SelectionProblem(pool, risk, prices, problem["max_terms"], used, limits), n_free


def _ensemble(
    content: dict[str, Any],
    like: Ensemble,
    weights: Array,
    n_free: int,
    unit: float | None,
    table: Table,
) -> Ensemble:
    """The model of these weights over the columns of a certificate, in the words of another model."""
    scaling = content["problem"]["target"] or {"mean": 0.0, "scale": 1.0}
    terms, categories = [], {}
    for j in np.flatnonzero(weights[n_free:]).tolist():
        term = _term(content, j, float(weights[n_free + j]) * scaling["scale"])
        terms.append(term)
        labels = (content["categories"] or [None] * like.n_features)[term.feature]
        if labels is not None and term.feature not in categories:
            same = like.categories.get(term.feature)
            categories[term.feature] = same or _categories(labels, table, term.feature)
    intercept = float(weights[0] - weights[1]) if n_free else 0.0
    intercept = intercept * scaling["scale"] + scaling["mean"]
    return replace(like, intercept=intercept, terms=tuple(terms), categories=categories, unit=unit)


def _categories(labels: dict[str, Any], table: Table, feature: int) -> Categories:
    """The categories of a feature: the labels that a certificate keeps, and the others of the table."""
    rare: list[Any] = []
    if labels["rare"]:
        codes, seen = table.labels(feature)
        used = np.unique(codes[(table.weight > 0) & (codes >= 0)])
        rare = sorted({seen[code] for code in used.tolist()} - set(labels["kept"]))
    return Categories(tuple(labels["kept"]), tuple(rare))


def _term(content: dict[str, Any], j: int, weight: float) -> Term:
    """Column j of a certificate as a term."""
    columns = content["columns"]
    feature, cut, category = (columns[key][j] for key in ("feature", "cut", "category"))
    first = columns.get("first", [None] * len(columns["feature"]))[j]
    question: dict[str, Any] = {"cut": np.inf if cut is None else cut}
    if first is not None:
        labels = content["categories"][feature]
        every = [*labels["kept"], OTHER]
        question = {"cut": None, "one_of": tuple(every[code] for code in sorted(labels["order"][:first]))}
    elif category is not None:
        question = {"cut": None, "category": OTHER if isinstance(category, dict) else category}
    return Term(
        feature,
        weight=weight,
        polarity=columns["polarity"][j],
        missing_left=columns["missing_left"][j],
        **question,
    )
