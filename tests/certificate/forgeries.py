"""Forgeries of certificates, made from true ones.

A forgery is a function of a certificate and its data that returns a changed file; what follows from the
change (gaps, guarantee, status, digest) is then filled in as a forger would.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from cardboost import CardBoostClassifier, CardBoostRegressor, SoftMarginClassifier
from cardboost.certificate import checker
from cardboost.certificate.checker.bounds import gather, leaf_bounds
from cardboost.solvers import select_columns


def table(seed=0, rows=120):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, 4)), 2)
    y = X[:, 0] + 0.6 * X[:, 1] - 0.5 * X[:, 2] ** 2 + rng.normal(0, 0.8, rows) > -0.2
    return X, y


@cache
def certified(kind):
    """A true certificate with its data: (content, X, y)."""
    X, y = table()
    if kind == "card":
        model = CardBoostClassifier(max_terms=3, l2=0.01, hot_start=12).fit(X, y)
    elif kind == "priced":
        model = CardBoostClassifier(max_terms=None, l0=0.01, hot_start=12, l2=0.0).fit(X, y)
    elif kind == "features":
        model = CardBoostClassifier(max_terms=3, l2=0.01, max_features=2, feature_costs=[0.01] * 4).fit(X, y)
    elif kind == "regression":
        y = X[:, 0] + 0.5 * X[:, 1] ** 2
        model = CardBoostRegressor(max_terms=3, l2=0.01, hot_start=12).fit(X, y)
    elif kind == "margin":
        model = SoftMarginClassifier(temperature=0.5).fit(X, y)
    elif kind == "points":
        card = CardBoostClassifier(max_terms=3, l2=0.01, hot_start=12).fit(X, y).scorecard(points=5)
        return card.certificate.to_dict(), X, y
    elif kind == "matrix":
        A = np.where(np.random.default_rng(1).random((80, 10)) < 0.6, 1.0, -1.0)
        return select_columns(A, max_terms=3, max_weight=1.0, l2=0.01).certificate.to_dict(), A, None
    content = model.certificate_.to_dict()
    return content, X, y


def derived(content, size=None):
    """What follows from the leaves, the objective and the empty model; then the digest."""
    objective, null = content["solution"]["objective"], content["null"]["objective"]
    reference = objective if content["points"] is None else content["points"]["continuous"]["objective"]
    size = abs(null) if size is None else size
    for bound in content["bounds"]:
        lower = min(objective, reference, *(leaf["bound"] for leaf in bound["leaves"]))
        possible = null - lower
        as_good = float(objective <= max(null, lower) + 1e-9 * size)
        share = as_good if possible <= 1e-9 * size else (null - objective) / possible
        gap = objective - lower
        bound |= {"lower_bound": lower, "gap": gap, "relative_gap": gap / max(abs(objective), 1e-300)}
        bound["guarantee"] = min(1.0, max(0.0, share))
    closed = {bound["scope"] for bound in content["bounds"] if bound["gap"] <= 1e-4 * size}
    if "dictionary" in closed or (closed and not content["candidates"]):
        content["status"] = "optimal"
    else:
        content["status"] = "optimal among candidates" if closed else "feasible"
    content["digest"] = checker.content_digest(content)
    return content


def scope(content, name):
    return next(bound for bound in content["bounds"] if bound["scope"] == name)


def rebound(content, X, y):
    """Every leaf claims what its weights prove of the changed problem."""
    evidence = gather(content, X, y)
    for bound in content["bounds"]:
        values = leaf_bounds(evidence, bound, bound["leaves"])
        for leaf, value in zip(bound["leaves"], values.tolist(), strict=True):
            leaf["bound"] = value if math.isfinite(value) else 0.0


FORGERIES = {}


def forgery(kind):
    def add(function):
        FORGERIES[function.__name__] = kind, function
        return function

    return add


# ---------------------------------------------------------------- the model


@forgery("card")
def a_lower_objective(content, X, y):
    content["solution"]["objective"] *= 0.99


@forgery("card")
def another_weight(content, X, y):
    content["solution"]["weights"][0][1] *= 1.1


@forgery("card")
def a_term_too_many(content, X, y):
    content["problem"]["max_terms"] = 2
    for bound in content["bounds"]:
        for leaf in bound["leaves"]:
            leaf["forced_in"] = leaf["forced_in"][:2]
    rebound(content, X, y)


@forgery("card")
def a_weight_beyond_the_box(content, X, y):
    box = 0.9 * max(w for _, w in content["solution"]["weights"])
    content["columns"]["max_weight"] = [box] * len(content["columns"]["max_weight"])
    content["unseen"]["max_weight"] = box
    rebound(content, X, y)


@forgery("features")
def a_feature_too_many(content, X, y):
    content["problem"]["max_features"] = 1
    rebound(content, X, y)


@forgery("features")
def features_that_cost_less(content, X, y):
    content["problem"]["feature_costs"] = [0.001] * 4


@forgery("points")
def weights_that_are_no_whole_points(content, X, y):
    content["points"]["unit"] *= 0.99


@forgery("points")
def more_points_than_allowed(content, X, y):
    content["points"]["most"] = 1


@forgery("points")
def a_continuous_card_that_is_better_than_it_is(content, X, y):
    content["points"]["continuous"]["objective"] *= 0.98


# ---------------------------------------------------------------- the empty model


@forgery("card")
def an_empty_model_that_costs_more(content, X, y):
    content["null"]["objective"] *= 1.5


@forgery("card")
def an_empty_model_with_a_bad_intercept(content, X, y):
    content["null"]["intercept"] += 0.5
    content["null"]["objective"] = gather(content, X, y).null


@forgery("regression")
def a_target_scale_that_makes_every_loss_small(content, X, y):
    content["problem"]["target"]["scale"] *= 1e6
    content["solution"] = {"intercept": 0.0, "weights": [], "objective": 0.0}
    content["null"] = {"intercept": 0.0, "objective": 0.0}
    for bound in content["bounds"]:
        bound["leaves"] = [{**bound["leaves"][0], "theta": 0.0, "bound": 0.0, "weights": []}]


@forgery("regression")
def a_target_mean_that_makes_every_loss_large(content, X, y):
    content["problem"]["target"]["mean"] += 1e9 * content["problem"]["target"]["scale"]
    content["null"]["intercept"] = -content["problem"]["intercept_box"]
    content["null"]["objective"] = gather(content, X, y).null


# ---------------------------------------------------------------- bounds and leaves


@forgery("card")
def leaves_that_claim_more_than_they_prove(content, X, y):
    for bound in content["bounds"]:
        for leaf in bound["leaves"]:
            leaf["bound"] = content["solution"]["objective"]


@forgery("card")
def leaves_that_claim_a_little_more(content, X, y):
    for bound in content["bounds"]:
        for leaf in bound["leaves"]:
            leaf["bound"] += 1e-7


@forgery("card")
def a_leaf_left_out(content, X, y):
    leaves = scope(content, "pool")["leaves"]
    leaves.sort(key=lambda leaf: leaf["bound"])
    if len(leaves) == 1:
        leaves[0] |= {"forced_in": [0]}
        rebound(content, X, y)
    else:
        del leaves[0]


@forgery("priced")
def a_column_forced_out_everywhere(content, X, y):
    used = content["solution"]["weights"][0][0]
    for leaf in scope(content, "pool")["leaves"]:
        leaf["forced_in"] = [j for j in leaf["forced_in"] if j != used]
        leaf["forced_out"] = sorted({*leaf["forced_out"], used})
        leaf["curve"] = None
    rebound(content, X, y)


@forgery("card")
def fewer_columns_covered(content, X, y):
    last = max(j for j, _ in content["solution"]["weights"])
    pool = scope(content, "pool")
    pool["columns"] = last
    for leaf in pool["leaves"]:
        leaf |= {"forced_in": [], "forced_out": [], "curve": None, "weights": [], "bound": 0.0}


@forgery("card")
def a_pool_that_calls_itself_the_dictionary(content, X, y):
    pool = scope(content, "pool")
    content["bounds"] = [{**pool, "scope": "dictionary", "columns": len(content["columns"]["feature"])}]


@forgery("card")
def the_narrow_scope_first(content, X, y):
    content["bounds"].reverse()


@forgery("card")
def a_status_for_the_wrong_scope(content, X, y):
    return {"status": "optimal"}


@forgery("matrix")
def a_feasible_card_called_optimal(content, X, y):
    leaf = {**content["bounds"][0]["leaves"][0], "forced_in": [], "forced_out": [], "curve": None}
    content["bounds"][0]["leaves"] = [leaf | {"weights": [], "theta": 0.0, "bound": 0.0}]
    return {"status": "optimal"}


@forgery("card")
def curvature_beyond_what_is_left(content, X, y):
    pool = scope(content, "pool")
    n = pool["columns"]
    leaf = {"forced_in": [], "forced_out": [], "theta": 1.0, "intercept": content["solution"]["intercept"],
            "weights": content["solution"]["weights"]}  # fmt: skip
    centre = {"intercept": leaf["intercept"], "centre": leaf["weights"]}
    pool["caps"] = centre
    pool["leaves"] = [leaf | {"curve": centre | {"aside": [[j, 5.0] for j in range(n)]}, "bound": 0.0}]
    rebound(content, X, y)
    pool["leaves"][0]["bound"] = max(pool["leaves"][0]["bound"], content["solution"]["objective"] - 1e-6)


# ---------------------------------------------------------------- prices, boxes, the dictionary


@forgery("card")
def boxes_of_zero_in_the_pool(content, X, y):
    """Columns of the pool that may not be used, while the dictionary claims all stumps."""
    used = {j for j, _ in content["solution"]["weights"]}
    boxes = content["columns"]["max_weight"]
    content["columns"]["max_weight"] = [box if j in used else 0.0 for j, box in enumerate(boxes)]
    rebound(content, X, y)


@forgery("card")
def prices_in_the_pool_that_differ(content, X, y):
    used = {j for j, _ in content["solution"]["weights"]}
    prices = content["columns"]["l1"]
    content["columns"]["l1"] = [price if j in used else 10.0 for j, price in enumerate(prices)]
    rebound(content, X, y)


@forgery("card")
def columns_that_are_not_charged(content, X, y):
    content["columns"]["charged"] = [False] * len(content["columns"]["charged"])


@forgery("card")
def prices_of_unseen_columns(content, X, y):
    content["unseen"]["l1"] = 1.0
    rebound(content, X, y)


@forgery("card")
def a_box_of_unseen_columns(content, X, y):
    content["unseen"]["max_weight"] = 0.0
    rebound(content, X, y)


@forgery("card")
def directions_that_keep_the_model_out(content, X, y):
    used = content["solution"]["weights"][0][0]
    feature, polarity = (content["columns"][key][used] for key in ("feature", "polarity"))
    content["dictionary"]["monotonic"] = [polarity if f == feature else 0 for f in range(4)]
    rebound(content, X, y)


@forgery("card")
def cuts_that_the_model_uses_left_out(content, X, y):
    used = content["solution"]["weights"][0][0]
    content["dictionary"]["cuts"][content["columns"]["feature"][used]] = []
    rebound(content, X, y)


# ---------------------------------------------------------------- soft margins, data


@forgery("margin")
def a_smaller_radius(content, X, y):
    content["problem"]["radius"] *= 0.5
    content["problem"]["intercept_box"] *= 0.5
    rebound(content, X, y)


@forgery("margin")
def a_margin_that_is_better_than_it_is(content, X, y):
    for bound in content["bounds"]:
        for leaf in bound["leaves"]:
            leaf["bound"] += 1e-3


@forgery("card")
def other_class_weights(content, X, y):
    content["problem"]["class_weight"] = [1.0, 3.0]
    rebound(content, X, y)


@forgery("card")
def other_rows(content, X, y):
    content["data"]["rows"] += 1


@forgery("card")
def a_tolerance_of_its_own(content, X, y):
    content["tolerance"] = 1e6


@forgery("card")
def a_version_with_weaker_rules(content, X, y):
    del content["candidates"]
    content |= {"version": 5, "tolerance": 1e6, "status": "optimal"}
    content["bounds"].reverse()
    return {}


@forgery("card")
def class_weights_beyond_all_numbers(content, X, y):
    """Shares of 0 for all rows: nothing would be left to contradict."""
    content["problem"]["class_weight"] = [1.7e308, 1.7e308]
    for solution in (content["solution"], content["null"]):
        solution["objective"] = 0.0
    for bound in content["bounds"]:
        for leaf in bound["leaves"]:
            leaf["bound"] = 0.0


@forgery("card")
def class_weights_that_round_rows_away(content, X, y):
    content["problem"]["class_weight"] = [5e-324, 5e-324]
    content["solution"]["objective"] *= 0.9


@forgery("margin")
def a_radius_that_makes_every_gap_small(content, X, y):
    content["problem"]["radius"] = content["problem"]["intercept_box"] = 1e4
    content["solution"] |= {"weights": [], "intercept": 0.0, "objective": 0.0}
    content["null"] |= {"intercept": 0.0, "objective": 0.0}
    for bound in content["bounds"]:
        bound["leaves"][0] |= {"weights": [], "intercept": 0.0, "bound": -0.9}
    return derived(content, size=1e4)


@forgery("card")
def the_best_of_the_candidates_as_an_old_file(content, X, y):
    """Before version 6 the status spoke of the first scope."""
    content["bounds"].reverse()
    del content["candidates"]
    content |= {"version": 5, "status": "optimal", "tolerance": 1e-4}
    content["digest"] = checker.content_digest(content)
    return content


@forgery("matrix")
def an_old_file_about_some_of_the_columns(content, X, y):
    """The useless column 9 alone, called optimal."""
    content["columns"] = {key: values[-1:] for key, values in content["columns"].items()}
    content["solution"] |= {"weights": [], "objective": content["null"]["objective"]}
    leaf = {"forced_in": [], "forced_out": [], "theta": 1.0, "intercept": 0.0, "weights": [], "curve": None}
    content["bounds"][0] |= {"columns": 1, "leaves": [leaf | {"bound": 0.0}], "caps": None}
    rebound(content, X, y)
    derived(content)
    del content["candidates"]
    content |= {"version": 5, "status": "optimal", "tolerance": 1e-4}
    content["digest"] = checker.content_digest(content)
    return content
