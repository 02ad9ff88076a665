"""More columns of the features in use, where a limit or a cost keeps others out.

Columns are generated for all features alike. Once few of these are chosen, the pool holds only some columns
of each; boosting on the chosen features alone brings the others, and the choice is made again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cardboost.dictionary.stumps import StumpDictionary, StumpPool
from cardboost.master.newton import Master
from cardboost.problem.prices import PriceRule
from cardboost.selection.polish import Incumbent, polish
from cardboost.selection.selection_problem import SelectionProblem

_COLUMNS = 24  # about so many more in a round, over all features in use
_ROUNDS = 2, 4  # where terms are limited or paid for, and where they are not
_WORTH = 1e-3  # share of the objective below which another round does not pay


def deepen(
    problem: SelectionProblem,
    found: Incumbent,
    dictionary: StumpDictionary,
    rule: PriceRule,
    late: Callable[[], bool] = lambda: False,
) -> tuple[SelectionProblem, Incumbent]:
    """Add columns of the chosen features to the pool and choose again while that helps."""
    pool = problem.pool
    assert isinstance(pool, StumpPool)
    for _ in range(_ROUNDS[problem.max_terms is None and rule.l0 == 0.0]):
        features = np.unique(pool.features[found.support])
        if late() or len(features) == 0:
            break
        known = pool.n_columns
        _boost(problem, found, features, dictionary, rule)
        if pool.n_columns == known:
            break
        problem = replace(
            problem, prices=rule.prices(pool.n_columns, pool.n_free), groups=pool.features.copy()
        )
        weights = np.concatenate([found.weights, np.zeros(pool.n_columns - known)])
        chosen, _ = polish(problem, weights, late, again=True)
        worth = found.objective - chosen.objective
        found = chosen if worth >= 0.0 else replace(found, weights=weights)
        if worth <= _WORTH * abs(found.objective):
            break
    return problem, found


def _boost(
    problem: SelectionProblem,
    found: Incumbent,
    features: NDArray[np.int32],
    dictionary: StumpDictionary,
    rule: PriceRule,
) -> None:
    """Generate columns of these features only; all of them join the pool."""
    pool = problem.pool
    own = np.flatnonzero(np.isin(pool.features, features) | ~problem.prices.charged)
    narrow = pool.subset(own)
    convex = replace(rule, l0=0.0)
    master = Master(
        narrow, problem.risk, lambda now: convex.prices(now.n_columns, now.n_free), found.weights[own]
    )
    assert isinstance(narrow, StumpPool)
    for _ in range(max(2, min(10, _COLUMNS // len(features)))):
        master.solve(tol=None, max_iter=2)
        new = dictionary.columns_of(
            features, master.point, len(features), narrow, "gain", rule.l1, rule.l2
        ).atoms
        if len(new) == 0:
            break
        pool.append(new)
        narrow.append(new)
        master.extend()
