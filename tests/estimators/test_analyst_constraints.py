"""An analyst's constraints: cuts, excluded and included features, groups, sides of missing values.

Every fit is held against the optimum of the constrained problem by enumeration, and every certificate against
both checkers.
"""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import second_checker
from cardboost import CardBoostClassifier, CardBoostRegressor, load_model, pareto_front
from cardboost.certificate import checker
from certificate.forgeries import derived
from marks import first

L1, L2, BOX = 1e-3, 0.05, 1.0
NAMES = ["age", "income", "sex"]


# ---------------------------------------------------------------- the optimum by enumeration


def stumps(X, demands):
    """All stumps that the demands allow, and their features; equal ones of a feature once."""
    by_feature = bool(demands.get("must_include") or demands.get("at_most_one_of"))
    sides = demands.get("missing", "learn")
    found = {}
    for f, name in enumerate(NAMES):
        values = X[:, f]
        if name in (demands.get("exclude") or ()):
            continue
        side = sides.get(name, "learn") if isinstance(sides, dict) else sides
        way = (demands.get("monotonic_cst") or {}).get(name, 0)
        cuts = (demands.get("cuts") or {}).get(name, np.unique(values[~np.isnan(values)]))
        for cut, polarity, left in itertools.product([*cuts, np.inf], (1, -1), (True, False)):
            if way == polarity and np.isfinite(cut):
                continue
            if side != "learn" and (polarity if left else -polarity) != (-1 if side == "worst" else 1):
                continue
            h = np.where(np.where(np.isnan(values), left, values <= cut), polarity, -polarity).astype(float)
            if abs(h.sum()) < len(h):
                found.setdefault((f if by_feature else -1, h.tobytes()), (h, f))
    return np.array([h for h, _ in found.values()]), np.array([f for _, f in found.values()], dtype=int)


def allowed(features, demands):
    used = {NAMES[f] for f in features}
    groups = demands.get("at_most_one_of") or ()
    must = set(demands.get("must_include") or ())
    return must <= used and all(len(used & set(group)) <= 1 for group in groups)


def optimum(X, y, k, demands):
    """The least objective of k terms or fewer; a term that has to be there may have no weight."""
    sign = np.where(y, 1.0, -1.0)
    H, features = stumps(X, demands)
    supports = [
        support
        for size in range(k + 1)
        for support in itertools.combinations(range(len(H)), size)
        if allowed(features[list(support)], demands)
    ]
    if not demands.get("must_include"):  # a smaller one is a part of these
        most = max(map(len, supports))
        supports = [support for support in supports if len(support) == most] + [()]
    padded = np.array([[*support, *[len(H)] * (k - len(support))] for support in supports], dtype=int)
    columns = np.concatenate([H, np.zeros((1, len(sign)))])[padded] * sign  # (supports, k, rows)
    A = np.concatenate([np.tile(sign, (len(supports), 1, 1)), columns], axis=1)
    w = momentum = np.zeros(A.shape[:2])
    step, t = 1.0 / (0.25 * (k + 1) + L2), 1.0
    high = np.array([30.0] + [BOX] * k)
    low = np.array([-30.0] + [0.0] * k)
    for _ in range(150):
        slope = -1.0 / (1.0 + np.exp(np.einsum("skm,sk->sm", A, momentum)))
        gradient = np.einsum("skm,sm->sk", A, slope) / len(sign)
        gradient[:, 1:] += L1 + L2 * momentum[:, 1:]
        new = np.clip(momentum - step * gradient, low, high)
        after = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        momentum, w, t = new + (t - 1.0) / after * (new - w), new, after

    def value(w, A):
        loss = np.logaddexp(0.0, -np.einsum("...km,...k->...m", A, w)).mean(axis=-1)
        return loss + L1 * w[..., 1:].sum(axis=-1) + 0.5 * L2 * (w[..., 1:] ** 2).sum(axis=-1)

    best = np.argsort(value(w, A))[:4]
    box = list(zip(low, high, strict=True))
    fits = [minimize(value, w[i], (A[i],), bounds=box, options={"ftol": 1e-14, "gtol": 1e-9}) for i in best]
    return float(min(fit.fun for fit in fits))


def small_table(seed, rows=14):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rows, 3)).astype(float)
    if seed % 3:
        X[rng.random(X.shape) < 0.15] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) + rng.normal(size=rows) > 1.5
    if y.all() or not y.any():
        y[0] = not y[0]
    return pd.DataFrame(X, columns=NAMES), y


def some_demands(seed):
    """One or two demands, by turns, so that every one and every pair of them comes up."""
    rng = np.random.default_rng(1000 + seed)
    every = {
        "exclude": [["age"], ["sex"], ["age", "sex"]],
        "cuts": [{"age": [0.5]}, {"age": [0, 1], "income": [1]}, {"age": [], "sex": [7]}],
        "missing": ["worst", "best", {"age": "worst", "income": "best"}],
        "at_most_one_of": [
            [["age", "income"]],
            [["age", "income", "sex"]],
            [["age", "sex"], ["sex", "income"]],
        ],
        "must_include": [["sex"], ["age"], ["sex", "income"]],
        "monotonic_cst": [{"age": 1}, {"age": -1, "income": 1}],
    }
    names = list(every)
    chosen = {names[seed % 6], names[(seed // 6) % 6]}
    return {name: every[name][int(rng.integers(len(every[name])))] for name in names if name in chosen}


def fitted(demands, X, y, k=2, **more):
    options = {"max_terms": k, "l1": L1, "l2": L2, "max_weight": BOX, "hot_start": 8, "n_jobs": 1, **more}
    return CardBoostClassifier(**options, **demands).fit(X, y)


def breaks(model, demands):
    """What of the demands the terms of a model break."""
    terms = model.ensemble_.terms
    features = [term.feature for term in terms]
    if not allowed(features, demands) or {NAMES[f] for f in features} & set(demands.get("exclude") or ()):
        return "features"
    sides = demands.get("missing", "learn")
    for term in terms:
        name = NAMES[term.feature]
        cuts = (demands.get("cuts") or {}).get(name)
        if cuts is not None and np.isfinite(term.cut) and term.cut not in cuts:
            return "cuts"
        side = sides.get(name, "learn") if isinstance(sides, dict) else sides
        if side != "learn" and (term.missing_left == (term.polarity > 0)) != (side == "best"):
            return "missing"
    return None


@pytest.mark.parametrize("seed", first(40, range(400)))
def test_bound_and_objective_enclose_the_optimum_by_enumeration(seed):
    X, y = small_table(seed)
    demands, k = some_demands(seed), 1 + (seed // 36) % 2
    if len(demands.get("must_include", ())) > k:
        k = 2
    H, features = stumps(X.to_numpy(), demands)
    choices = (support for size in (1, 2) for support in itertools.combinations(range(len(H)), min(size, k)))
    if demands.get("must_include") and not any(allowed(features[list(own)], demands) for own in choices):
        with pytest.raises(ValueError, match="must_include"):  # what no model can meet
            fitted(demands, X, y, k)
        return
    model = fitted(demands, X, y, k)
    certificate = model.certificate_
    assert breaks(model, demands) is None
    best = optimum(X.to_numpy(), y, k, demands)
    for bound in certificate.scopes.values():
        assert bound.lower_bound <= best + 1e-7
    assert best <= certificate.objective + 1e-7
    content = certificate.to_dict()
    assert checker.check(content, X, y) == []
    assert second_checker.check(content, X, y) == []
    assert content["version"] == (6 if set(demands) <= {"cuts", "monotonic_cst"} else 7)


# ---------------------------------------------------------------- forgeries


def larger(rows=150):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 3)).round(1), columns=NAMES)
    y = (X["age"] + X["income"] + rng.normal(0, 0.4, rows) > 0).to_numpy()
    X.loc[::5, "age"] = np.nan
    return X, y


def without(content, **changes):
    content["problem"] |= changes
    return content


def plain(content):
    """As if there had never been constraints."""
    for key in ("excluded", "missing", "at_most_one_of", "must_include"):
        del content["problem"][key]
    content["version"] = 6
    return content


def of_another(content, X, y, demands):
    """The model of a fit without these demands."""
    other = fitted({}, X, y, 3, max_weight=None).certificate_.to_dict()
    return other | {"version": 7, "problem": other["problem"] | {
        key: content["problem"][key] for key in ("excluded", "missing", "at_most_one_of", "must_include")
    }}  # fmt: skip


def not_charged(content):
    """Limits on features would not count this column."""
    content |= {"dictionary": None, "unseen": None, "bounds": content["bounds"][-1:]}
    content["columns"]["charged"][0] = False
    return content


FORGERIES = {
    "excluded dropped": ({"exclude": ["income"]}, lambda c, X, y: plain(c)),
    "another excluded": ({"exclude": ["income"]}, lambda c, X, y: without(c, excluded=[2])),
    "an excluded feature used": ({"exclude": ["income"]}, lambda c, X, y: of_another(c, X, y, {})),
    "sides dropped": ({"missing": "best"}, lambda c, X, y: plain(c)),
    "other sides": ({"missing": "best"}, lambda c, X, y: without(c, missing=[-1, 0, 0])),
    "another side used": ({"missing": "best"}, lambda c, X, y: of_another(c, X, y, {})),
    "a group dropped": ({"at_most_one_of": [["age", "income"]]}, lambda c, X, y: plain(c)),
    "another group": (
        {"at_most_one_of": [["age", "income"]]},
        lambda c, X, y: without(c, at_most_one_of=[[0, 2]]),
    ),
    "two of a group": ({"at_most_one_of": [["age", "income"]]}, lambda c, X, y: of_another(c, X, y, {})),
    "a feature added": ({"must_include": ["age"]}, lambda c, X, y: without(c, must_include=[0, 2])),
    "a feature not used": ({"must_include": ["sex"]}, lambda c, X, y: of_another(c, X, y, {})),
    "more features than terms": (
        {"must_include": ["sex"]},
        lambda c, X, y: without(c, must_include=[0, 1, 2], max_terms=2),
    ),
    "features out of order": ({"exclude": ["sex"]}, lambda c, X, y: without(c, excluded=[2, 2])),
    "no such feature": ({"exclude": ["sex"]}, lambda c, X, y: without(c, excluded=[3])),
    "no sides": ({"missing": "worst"}, lambda c, X, y: without(c, missing=[])),
    "an empty group": (
        {"at_most_one_of": [["age", "income"]]},
        lambda c, X, y: without(c, at_most_one_of=[[0, 1], []]),
    ),
    "a column of a group not charged": (
        {"at_most_one_of": [["age", "income"]]},
        lambda c, X, y: not_charged(c),
    ),
    "costs beside which the loss is lost": (
        {"must_include": ["sex"], "feature_costs": {"sex": 0.1}},
        lambda c, X, y: without(c, feature_costs=[0.0, 0.0, 1e17]),
    ),
    "too few sides": ({"missing": "worst"}, lambda c, X, y: without(c, missing=[-1])),
    "a version that knows nothing of it": ({"exclude": ["sex"]}, lambda c, X, y: c | {"version": 6}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_constraint_is_refused_by_both_checkers(name):
    X, y = larger()
    demands, forge = FORGERIES[name]
    # the worth of every term in use counts where there may be any number of them
    k = None if name in ("a group dropped", "another group") else 3
    content = fitted(demands, X, y, k, max_weight=None).certificate_.to_dict()
    assert checker.check(content, X, y) == []
    forged = derived(forge(copy.deepcopy(content), X, y))
    assert checker.check(forged, X, y)
    assert second_checker.check(forged, X, y)


def test_a_feature_that_must_be_used_proves_more():
    """Its cost is part of every bound, and a file that does not demand it is refused."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.integers(0, 2, (200, 3)).astype(float), columns=NAMES)
    y = (X["age"] + X["income"] + 0.3 * rng.normal(size=200) > 0.7).to_numpy()
    free = fitted({}, X, y, 2, max_weight=None).certificate_
    model = fitted({"must_include": ["sex"], "feature_costs": {"sex": 0.1}}, X, y, 2)
    assert "sex" in {NAMES[f] for f in model.ensemble_.features_used}
    assert model.certificate_.lower_bound > free.lower_bound + 0.1
    forged = derived(without(model.certificate_.to_dict(), must_include=[]))
    assert checker.check(forged, X, y)
    assert second_checker.check(forged, X, y)


def test_costs_beside_which_the_loss_is_lost_are_refused():
    X, y = larger()
    with pytest.raises(ValueError, match="the features of must_include cost 1e"):
        fitted({"must_include": ["sex"], "feature_costs": {"sex": 1e9}}, X, y, 2, max_weight=None)


def test_a_constant_target_explains_no_required_feature():
    X, _ = larger()
    with pytest.raises(ValueError, match="must_include: all targets are equal"):
        CardBoostRegressor(must_include=["sex"], l2=0.01).fit(X, np.ones(len(X)))


def test_a_poor_model_has_no_guarantee_where_a_required_feature_costs_more_than_it_gains():
    """A guarantee of 1 is for models that are as good as the empty one, or as the bound."""
    X, y = larger(40)
    demands = {"must_include": ["sex"], "feature_costs": {"sex": 1.0}}
    model = fitted(demands, X, y, 1, max_weight=None)
    certificate = model.certificate_
    assert certificate.lower_bound > certificate.to_dict()["null"]["objective"]
    content = copy.deepcopy(certificate.to_dict())
    for bound in content["bounds"]:
        for leaf in bound["leaves"]:
            leaf["bound"] -= 0.1
    weaker = derived(content)
    assert weaker["bounds"][0]["guarantee"] == 0.0
    assert not checker.check(weaker, X, y)
    assert not second_checker.check(weaker, X, y)
    flattering = copy.deepcopy(weaker)
    for bound in flattering["bounds"]:
        bound["guarantee"] = 1.0
    flattering["digest"] = checker.content_digest(flattering)
    assert checker.check(flattering, X, y)
    assert second_checker.check(flattering, X, y)


# ---------------------------------------------------------------- everything else that a model does

DEMANDS = [
    {"cuts": {"age": [-0.5, 0, 0.5]}},
    {"exclude": ["income"]},
    {"missing": "worst"},
    {"missing": {"age": "best"}},
    {"at_most_one_of": [["age", "income"]]},
    {"must_include": ["sex"]},
    {"must_include": ["sex"], "at_most_one_of": [["age", "income"]], "missing": "worst", "max_features": 2},
]


@pytest.mark.parametrize("demands", DEMANDS)
def test_cards_in_points_files_copies_and_proofs_keep_the_constraints(demands, tmp_path):
    X, y = larger()
    model = fitted(demands, X, y, 3, max_weight=None)
    assert breaks(model, demands) is None
    card = model.scorecard(points=5)
    assert breaks(type("Card", (), {"ensemble_": card.ensemble}), demands) is None
    assert card.certificate.verify(X, y)
    model.save(tmp_path / "model.json")
    saved = load_model(tmp_path / "model.json")
    assert saved.certificate == model.certificate_.to_dict()
    again = clone(model).fit(X, y)
    assert again.certificate_.to_dict() == model.certificate_.to_dict()
    with pytest.warns(UserWarning, match="exact search") if set(demands) & {
        "at_most_one_of", "must_include"
    } else np.errstate():  # fmt: skip
        again.prove(X, y, max_nodes=20)
    assert breaks(again, demands) is None
    assert again.certificate_.verify(X, y)
    assert again.certificate_.objective <= model.certificate_.objective


@pytest.mark.parametrize("demands", DEMANDS)
def test_a_front_keeps_the_constraints(demands):
    X, y = larger(90)
    estimator = CardBoostClassifier(hot_start=8, n_jobs=1, **demands)
    for point in pareto_front(X, y, estimator=estimator, sizes=[1, 2], cv=2):
        assert breaks(point.model, demands) is None
        assert point.model.certificate_.verify(X, y)


def test_more_classes_and_a_number():
    X, _ = larger()
    classes = np.digitize(X["income"], [-0.5, 0.5])
    demands = {"must_include": ["sex"], "exclude": ["age"], "at_most_one_of": [["age", "income"]]}
    model = fitted(demands, X, classes, 3, max_weight=None)
    for ensemble in model.ensemble_.ensembles:
        assert 2 in ensemble.features_used
        assert 0 not in ensemble.features_used
    for certificate in model.certificate_:
        assert certificate.to_dict()["version"] == 7
    assert all(certificate.verify(X, classes == c) for c, certificate in enumerate(model.certificate_))
    with pytest.raises(ValueError, match="two classes"):
        fitted({"missing": {"age": "worst"}}, X, classes)
    regressor = CardBoostRegressor(max_terms=3, hot_start=8, missing="worst", **demands)
    regressor.fit(X, X["income"] + 0.5 * X["sex"])
    assert {1, 2} == set(regressor.ensemble_.features_used)
    assert regressor.certificate_.verify(X, X["income"] + 0.5 * X["sex"])


def test_a_missing_value_is_where_it_was_put_also_where_none_was_missing_in_training():
    X, y = larger()
    for side, extreme in (("worst", min), ("best", max)):
        model = CardBoostClassifier(max_terms=6, hot_start=12, missing=side).fit(X, y)
        values = np.linspace(-3, 3, 61)
        for name in NAMES:
            rows = pd.DataFrame({other: np.zeros(62) for other in NAMES})
            rows[name] = [*values, np.nan]
            scores = model.decision_function(rows)
            assert (
                scores[-1] <= scores.min() + 1e-12 if extreme is min else scores[-1] >= scores.max() - 1e-12
            )


def test_positions_name_features_too_and_columns_stay_in_the_table():
    X, y = larger()
    by_name = fitted(
        {"exclude": ["age"], "must_include": ["sex"], "at_most_one_of": [["age", "income"]]}, X, y
    )
    by_place = fitted({"exclude": [0], "must_include": [2], "at_most_one_of": [[0, 1]]}, X.to_numpy(), y)
    assert by_name.certificate_.to_dict() == by_place.certificate_.to_dict()
    assert by_name.n_features_in_ == 3
    statement = " ".join(by_name.certificate_.lines())
    for part in ("feature 0 not used", "at most one of features 0 and 1", "feature 2 always used"):
        assert part in statement
    other = " ".join(fitted({"missing": {"age": "worst"}}, X, y).certificate_.lines())
    assert "missing values of feature 0 on the side of the lower score" in other


WRONG = [
    ({"exclude": ["agee"]}, "exclude names 'agee'.*did you mean 'age'"),
    ({"exclude": "age"}, "exclude must be a list"),
    ({"exclude": [3]}, "neither a feature name nor a position below 3"),
    ({"must_include": [True]}, "neither a feature name"),
    ({"must_include": ["age"], "exclude": ["age"]}, "must_include and exclude both name .*'age'"),
    ({"must_include": NAMES, "max_terms": 2}, "must_include names 3 features, but max_terms=2"),
    ({"must_include": NAMES, "max_features": 1}, "must_include names 3 features, but max_features=1"),
    (
        {"must_include": ["age", "sex"], "at_most_one_of": [["age", "sex"]]},
        "must_include names .*'age' and .*'sex', but at_most_one_of allows only one",
    ),
    ({"must_include": ["sex"], "cuts": {"sex": [100]}}, "must_include names .*'sex', but no stump"),
    ({"at_most_one_of": ["age", "sex"]}, r"list of groups.*write \[\[...\]\]"),
    ({"at_most_one_of": "age"}, "list of groups"),
    ({"cuts": [1, 2]}, "cuts must be a dict"),
    ({"cuts": {"age": 3}}, "cuts of .*'age' must be a list"),
    ({"cuts": {"age": [np.nan]}}, "must be finite numbers"),
    ({"cuts": {"age": ["a"]}}, "must be finite numbers"),
    ({"cuts": {"age": range(300)}}, "at most 254"),
    ({"missing": "low"}, '"learn", "worst" or "best"; got'),
    ({"missing": {"age": 1}}, "missing of .*'age'"),
    ({"missing": "zero"}, '"zero" is not available'),
    ({"must_include": ["age"], "reselect": True}, "reselect=True does not go with must_include"),
    ({"at_most_one_of": [["age"]], "selector": "exact"}, "exact search does not take limits"),
]


@pytest.mark.parametrize(("demands", "message"), WRONG)
def test_what_no_model_can_meet_is_refused_with_a_sentence(demands, message):
    X, y = larger(60)
    with pytest.raises(ValueError, match=message):
        CardBoostClassifier(**demands).fit(X, y)


def test_labels_have_no_cuts_but_sides_for_missing_values():
    X, y = larger()
    X["town"] = np.array(["a", "b", "c", "d", "e", None], dtype=object)[np.arange(150) % 6]
    y = y ^ (X["town"] == "b").to_numpy()
    with pytest.raises(ValueError, match="'town' holds categories, which have no cuts"):
        CardBoostClassifier(cuts={"town": [1]}).fit(X, y)
    for side in ("worst", "best"):
        model = CardBoostClassifier(max_terms=4, hot_start=12, missing=side, must_include=["town"]).fit(X, y)
        content = model.certificate_.to_dict()
        assert second_checker.check(content, X, y) == []
        assert checker.check(content, X, y) == []
        for term in model.ensemble_.terms:
            assert (term.missing_left == (term.polarity > 0)) == (side == "best")


def test_folds_in_which_a_feature_is_constant_do_without_it():
    """Regularisation and thresholds by cross-validation, and sizes that leave room for every demand."""
    X, y = larger()
    X["sex"] = (np.arange(150) == 7).astype(float)
    demands = {"must_include": ["sex", "age"], "at_most_one_of": [["age", "income"]]}
    model = CardBoostClassifier(max_terms="auto", threshold="recall>=0.5", hot_start=8, **demands).fit(X, y)
    assert model.max_terms_ >= 2
    assert breaks(model, demands) is None
    assert model.certificate_.verify(X, y)
