"""More columns of the features in use, where a limit or a cost keeps other features out.

Columns are generated for all features alike. Once few features are chosen, the pool holds only some columns
of each; boosting on the chosen features alone brings the others, and the choice is made again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cardboost.dictionary.base import Scoring
from cardboost.dictionary.stump_pool import StumpPool
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.master.newton import Master
from cardboost.problem.budget import Late, never
from cardboost.problem.prices import PriceRule
from cardboost.selection.polish import polish
from cardboost.selection.selection_problem import Incumbent, SelectionProblem

_NEW_COLUMNS = 24  # about so many in a round, over all features in use
_ROUNDS = {True: 2, False: 4}  # where terms are limited or paid for, and where they are not
_WORTH = 1e-3  # share of the objective that a round must gain for another one


def deepen(
    problem: SelectionProblem, incumbent: Incumbent, dictionary: StumpDictionary, rule: PriceRule,
    late: Late = never,
) -> tuple[SelectionProblem, Incumbent]:  # fmt: skip
    """Add columns of the chosen features to the pool and choose again while that helps.

    Parameters
    ----------
    problem : SelectionProblem
        Over a pool of stumps, which grows.
    incumbent : Incumbent
        The choice so far.
    dictionary : StumpDictionary
        Where new columns come from.
    rule : PriceRule
        The regularisation of every column.
    late : callable
        Asked between rounds whether to stop.

    Returns
    -------
    problem : SelectionProblem
        The problem over the grown pool.
    incumbent : Incumbent
        A choice that is no worse.
    """
    pool = problem.pool
    assert isinstance(pool, StumpPool)
    for _ in range(_ROUNDS[problem.max_terms is not None or rule.l0 != 0.0]):
        if late() or len(incumbent.support) == 0:
            break
        before = pool.n_columns
        _boost_chosen_features(problem, incumbent, dictionary, rule)
        if pool.n_columns == before:
            break
        prices = rule.prices(pool.n_columns, pool.n_free)
        problem = replace(problem, prices=prices, groups=pool.features.copy())
        incumbent = replace(
            incumbent, weights=np.concatenate([incumbent.weights, np.zeros(pool.n_columns - before)])
        )
        choice, _ = polish(problem, incumbent.weights, late, again=True)
        gain = incumbent.objective - choice.objective
        incumbent = choice if gain >= 0.0 else incumbent
        if gain <= _WORTH * abs(incumbent.objective):
            break
    return problem, incumbent


def _boost_chosen_features(
    problem: SelectionProblem, incumbent: Incumbent, dictionary: StumpDictionary, rule: PriceRule
) -> None:
    """Generate columns of the features in use only; all of them join the pool."""
    pool = problem.pool
    features = np.unique(pool.features[incumbent.support])
    columns = np.flatnonzero(np.isin(pool.features, features) | ~problem.prices.charged)
    narrow, convex = pool.subset(columns), replace(rule, l0=0.0)
    assert isinstance(narrow, StumpPool)
    master = Master(
        narrow, problem.risk, lambda now: convex.prices(now.n_columns, now.n_free), incumbent.weights[columns]
    )
    for _ in range(max(2, min(10, _NEW_COLUMNS // len(features)))):
        master.solve(tol=None, max_iter=2)
        scoring = Scoring("gain", rule.l1, rule.l2)
        proposals = dictionary.columns_of(features, master.point, len(features), narrow, scoring)
        if len(proposals.atoms) == 0:
            break
        pool.append(proposals.atoms)
        narrow.append(proposals.atoms)
        master.extend()
