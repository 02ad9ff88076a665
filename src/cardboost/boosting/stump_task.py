"""Training on all stumps of a table, and what a certificate about stumps says of data and dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.boosting.candidates import Candidates
from cardboost.boosting.early_stopping import HeldOutBins
from cardboost.boosting.numbered_columns import StumpNumbers
from cardboost.boosting.path import BoostingPath, ModelFrame, cut_value
from cardboost.boosting.task import Choice, Proof, TrainingSettings, TrainingTask
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.writer import CertifiedProblem, ProvenScope, intercept_of, write_certificate
from cardboost.dictionary.base import ColumnPool
from cardboost.dictionary.stumps import StumpDictionary, StumpPool
from cardboost.master.newton import Master
from cardboost.master.simplex import soft_point
from cardboost.model.ensemble import Ensemble
from cardboost.problem.bound import Leaf, dual_bound, soft_bound
from cardboost.problem.budget import Stage
from cardboost.problem.prices import FeatureLimits, PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.relaxation import dictionary_relaxation

Array = NDArray[np.float64]

#: beyond which a file does not name all cuts: a certificate then covers the candidates only
MAX_CUTS_IN_FILE = 200_000


@dataclass(frozen=True)
class DataFacts:
    """What the certificate says of the data."""

    n_rows: int
    n_features: int
    digest: Callable[[], str]
    class_weight: tuple[float, float] = (1.0, 1.0)
    target: tuple[float, float] | None = None  # mean and standard deviation of a real target


@dataclass(frozen=True, eq=False)
class StumpTask(TrainingTask):
    """All stumps of a table over the rows to train on.

    Parameters
    ----------
    dictionary, risk, earlier, held_out
        See :class:`~cardboost.boosting.task.TrainingTask`.
    facts : DataFacts
        What the certificate says of the data.
    frame : ModelFrame
        What the models are called.
    """

    dictionary: StumpDictionary
    risk: EmpiricalRisk
    facts: DataFacts
    frame: ModelFrame
    earlier: BoostingPath | None = None
    held_out: HeldOutBins | None = None

    @property
    def sign(self) -> NDArray[np.int8] | None:
        return self.risk.sign

    @property
    def positive(self) -> Any:
        return None if self.frame.classes is None else self.frame.classes[1]

    @property
    def dictionary_fits_file(self) -> bool:
        """Whether a certificate can name every cut, and so cover all stumps."""
        return sum(len(cuts) for cuts in self.dictionary.matrix.cuts) <= MAX_CUTS_IN_FILE

    def ensemble(self, pool: StumpPool, weights: Array, unit: float | None = None) -> Ensemble:  # type: ignore[override]
        return self.frame.ensemble(pool.stumps, weights, pool.n_free, unit)

    def path(self, pool: StumpPool, stages: tuple[Array, ...]) -> BoostingPath:  # type: ignore[override]
        return BoostingPath(self.frame, pool.stumps, pool.n_free, stages)

    def null_model(self, constant: Array, value: Callable[[Array], float]) -> tuple[float, float]:
        empty = self.dictionary.pool()
        return intercept_of(constant, empty.n_free), value(empty.margins(constant))

    # ------------------------------------------------------------------------------------ proofs

    def prove_convex(self, master: Master, rule: PriceRule) -> Proof:
        point, pool = master.point, master.pool
        edges = pool.edges(point)
        bound, theta = dual_bound(point, edges, master.prices, sizes=pool.sizes)
        scopes = []
        if self.dictionary_fits_file:
            unseen_edge = self.dictionary.best_columns(point, 1, pool, "edge").bound
            wide = dual_bound(
                point, edges, master.prices, None, unseen_edge, rule.prices(1, 0), sizes=pool.sizes
            )
            leaf = Leaf(master.weights, wide[1], wide[0])
            scopes.append(ProvenScope("dictionary", pool.n_columns, [leaf]))
            if bound < wide[0]:  # with the scale of before, fewer columns prove no less
                bound, theta = wide
        scopes.append(ProvenScope("pool", pool.n_columns, [Leaf(master.weights, theta, bound)]))
        return Proof(pool, rule, master.weights, master.objective, scopes)

    def prove_choice(self, choice: Choice, settings: TrainingSettings, complete: bool | None) -> Proof:
        pool, search = choice.problem.pool, choice.search
        assert isinstance(pool, StumpPool)
        assert search.root is not None  # local search came first
        pool.place_missing(np.ones(pool.n_columns))  # of all columns: another choice may use them
        scopes = [ProvenScope("pool", pool.n_columns, search.leaves, search.centre)]
        listed = pool
        if complete is None:
            complete = self._is_complete(pool)
        if complete:
            scopes.append(replace(scopes[0], scope="dictionary"))  # every stump is in the pool
        elif self.dictionary_fits_file:
            listed = pool.subset(np.arange(pool.n_columns))
            outer = dictionary_relaxation(
                replace(choice.problem, pool=listed), self.dictionary, choice.rule, search.root,
                settings.budget.end_of(Stage.DICTIONARY),
            ).leaf  # fmt: skip
            scopes.append(ProvenScope("dictionary", listed.n_columns, [outer]))
            if outer.bound > min(leaf.bound for leaf in search.leaves):
                # what bounds the dictionary bounds the pool
                leaf = self._narrowed(outer, choice, listed)
                scopes[0] = ProvenScope("pool", pool.n_columns, [leaf])
        return Proof(listed, choice.rule, choice.weights, choice.objective, scopes, complete)

    def _narrowed(self, leaf: Leaf, choice: Choice, listed: StumpPool) -> Leaf:
        """The leaf of a wider pool as one of the pool that was chosen from, where its bound may be higher."""
        problem = choice.problem
        point = self.risk.evaluate(listed.margins(leaf.weights))
        edges = listed.edges(point)[: problem.pool.n_columns]
        bound, theta = dual_bound(
            point, edges, problem.prices, problem.max_terms, groups=problem.groups, limits=problem.limits,
            sizes=problem.pool.sizes,
        )  # fmt: skip
        if bound < leaf.bound:  # with the scale of before, fewer columns prove no less
            return leaf
        return Leaf(leaf.weights, theta, bound)

    def _is_complete(self, pool: StumpPool) -> bool:
        """Whether the pool holds every stump that there is, and a file can name all of them."""
        if not self.dictionary_fits_file:
            return False
        point = self.risk.evaluate(np.zeros(self.dictionary.matrix.n_rows))
        return self.dictionary.best_columns(point, 1, pool, "edge").bound == -np.inf

    def numbered_columns(self) -> StumpNumbers:
        return StumpNumbers(self.dictionary, self.risk)

    def prove_on_simplex(self, pool: ColumnPool, weights: Array, best: Array, radius: float) -> Proof:
        objective = soft_point(self.risk, pool.margins(weights))[0]
        value, point = soft_point(self.risk, pool.margins(best))
        edges = pool.edges(point) / point.value
        mean, most = float(best @ edges), float(edges.max(initial=0.0))
        leaf = Leaf(best, 1.0, soft_bound(value, mean, most, radius))
        scopes = [ProvenScope("pool", pool.n_columns, [leaf])]
        if self.dictionary_fits_file:
            most = max(most, self.dictionary.best_columns(point, 1, pool, "edge").bound / point.value)
            leaf = Leaf(best, 1.0, soft_bound(value, mean, most, radius))
            scopes.insert(0, ProvenScope("dictionary", pool.n_columns, [leaf]))
        return Proof(pool, PriceRule(0.0, 0.0, intercept_box=radius), weights, objective, scopes)

    def candidates(
        self, pool: ColumnPool, choice: Choice, proof: Proof, certificate: Certificate
    ) -> Candidates:
        assert isinstance(pool, StumpPool)
        stumps, n_free = pool.stumps, pool.n_free
        return Candidates(
            lambda weights, unit: self.frame.ensemble(stumps, weights, n_free, unit),
            self.frame.loss,
            self.positive,
            n_free,
            choice.search.problem,
            choice.weights,
            dict(certificate.content),
            proof.complete,
        )

    def certificate(self, proof: Proof, loss: str, null: tuple[float, float], **limits: Any) -> Certificate:
        problem = self._certified_problem(proof, loss, **limits)
        content = write_certificate(problem, proof.weights, proof.objective, null, proof.scopes)
        return Certificate(content, self.positive)

    def _certified_problem(
        self,
        proof: Proof,
        loss: str,
        *,
        max_terms: int | None = None,
        limits: FeatureLimits | None = None,
        radius: float | None = None,
    ) -> CertifiedProblem:
        """What a certificate of these columns is about."""
        pool, rule, facts = proof.pool, proof.rule, self.facts
        assert isinstance(pool, StumpPool)
        n_free, matrix, monotonic = pool.n_free, self.dictionary.matrix, self.dictionary.monotonic
        stumps, categories = pool.stumps[n_free:], matrix.categories
        feature, cut, one_of = stumps.feature.tolist(), stumps.cut.tolist(), stumps.one_of.tolist()
        columns: dict[str, list[Any]] = {"feature": feature, "cut": [], "category": [], "first": []}
        for j, k, is_set in zip(feature, cut, one_of, strict=True):
            labels = categories[j]
            columns["cut"].append(None if labels else _cut_in_file(matrix.cuts[j], k))
            columns["category"].append(labels.label(k) if labels and not is_set else None)
            columns["first"].append(k + 1 if is_set else None)
        columns |= {"polarity": stumps.polarity.tolist(), "missing_left": stumps.missing_left.tolist()}
        return CertifiedProblem(
            kind="stumps",
            loss=loss,
            max_terms=max_terms,
            columns=columns,
            prices=rule.prices(len(stumps), 0),
            rows=facts.n_rows,
            features=facts.n_features,
            digest=facts.digest(),
            n_free=n_free,
            intercept_box=rule.intercept_box if n_free else None,
            class_weight=facts.class_weight,
            unseen=rule.prices(1, 0),
            cuts=matrix.cuts,
            max_features=None if limits is None else limits.max_features,
            feature_costs=None if limits is None else limits.costs,
            target=facts.target,
            categories=categories,
            monotonic=() if monotonic is None else monotonic.tolist(),
            orders=self.dictionary.orders,
            radius=radius,
        )


def _cut_in_file(cuts: Array, cut: int) -> float | None:
    value = cut_value(cuts, cut)
    return None if np.isinf(value) else value
