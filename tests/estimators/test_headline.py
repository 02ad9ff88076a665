"""The headline is what is proven of the widest scope, and more candidates never make it look better."""

from __future__ import annotations

import numpy as np
import pytest

from cardboost import CardBoostClassifier, CardBoostRegressor
from cardboost.certificate.certificate import Certificate


def table(seed, rows=200, features=4):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, features)), 2)
    score = X[:, 0] + 0.7 * X[:, 1] ** 2 - 0.5 * X[:, 2] * (X[:, 3] > 0)
    return X, score + rng.normal(0, 0.7, rows)


SETTINGS = [
    {"max_terms": 3},
    {"max_terms": 6, "l2": 0.0},
    {"max_terms": None, "l0": 0.02},
    {"max_terms": 4, "l0": 0.005, "loss": "exponential"},
    {"max_terms": 3, "loss": "squared_hinge"},
    {"max_terms": 4, "fit_intercept": False, "max_iter": 45},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_the_bound_over_all_stumps_does_not_depend_on_the_number_of_candidates(settings, seed):
    X, score = table(seed)
    options = {"max_weight": 1.5, "selector": "polish"} | settings
    bounds = [
        CardBoostClassifier(**{"l2": 0.01, **options}, hot_start=n)
        .fit(X, score > 0.3)
        .certificate_.lower_bound
        for n in (5, 12, 40)
    ]
    assert max(bounds) - min(bounds) <= 1e-6 * max(bounds)


def test_the_bound_over_all_stumps_of_a_regression_does_not_depend_on_them_either():
    X, score = table(2)
    bounds = [
        CardBoostRegressor(max_terms=4, l2=0.01, max_weight=1.5, hot_start=n)
        .fit(X, score)
        .certificate_.lower_bound
        for n in (5, 12, 40)
    ]
    assert max(bounds) - min(bounds) <= 1e-6 * max(bounds)


@pytest.mark.parametrize("seed", range(3))
def test_fewer_candidates_do_not_make_a_better_headline(seed):
    X, score = table(seed)
    few, many = (
        CardBoostClassifier(max_terms=4, l2=0.01, max_weight=1.5, hot_start=n)
        .fit(X, score > 0.3)
        .certificate_
        for n in (6, 40)
    )
    assert few.scopes["pool"].guarantee > few.guarantee
    assert few.guarantee <= many.guarantee + 1e-6
    assert few.objective >= many.objective - 1e-12


def test_the_headline_is_that_of_the_widest_scope():
    X, score = table(3)
    model = CardBoostClassifier(max_terms=3, l2=0.01).fit(X, score > 0.3).prove(max_nodes=5000)
    certificate = model.certificate_
    assert list(certificate.scopes) == ["dictionary", "pool"]
    dictionary, pool = certificate.scopes["dictionary"], certificate.scopes["pool"]
    assert certificate.scope == "dictionary"
    assert (certificate.lower_bound, certificate.guarantee) == (dictionary.lower_bound, dictionary.guarantee)
    assert dictionary.lower_bound <= pool.lower_bound <= certificate.objective
    assert certificate.status == "optimal among candidates"
    assert certificate.headline.startswith("optimal among 40 candidate terms, ")
    assert "of the best possible improvement among all" in certificate.headline
    assert certificate.headline in " ".join(model.card().split())
    assert certificate.headline in repr(certificate)


def test_where_every_stump_is_a_candidate_the_proof_is_about_all_of_them():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(150, 8)).astype(float)
    y = X[:, 0] + X[:, 1] - X[:, 2] + rng.normal(0, 0.5, 150) > 0.5
    model = CardBoostClassifier(max_terms=3, l2=0.01, reselect=True).fit(X, y).prove(max_nodes=5000)
    certificate = model.certificate_
    assert certificate.status == "optimal"
    assert certificate.headline == "optimal among all 16 stumps"
    assert certificate.scopes["dictionary"].leaves == certificate.scopes["pool"].leaves
    assert certificate.faults(X, y) == []


def test_only_the_candidates_are_named_where_only_they_are_proven(monkeypatch):
    monkeypatch.setattr("cardboost.dictionary.stumps.MAX_CUTS_IN_FILE", 3)
    X, score = table(4)
    model = CardBoostClassifier(max_terms=3, l2=0.01).fit(X, score > 0.3).prove(max_nodes=5000)
    certificate = model.certificate_
    assert list(certificate.scopes) == ["pool"]
    assert certificate.status == "optimal among candidates"
    assert certificate.headline.startswith("optimal among 40 candidate terms")
    assert certificate.verify(X, score > 0.3)


STATEMENT = {
    "max_terms": ("at most 3 terms", {"max_terms": 3}),
    "l0": ("0.02 x terms", {"max_terms": None, "l0": 0.02}),
    "l1": ("0.003 x sum of weights", {"max_terms": 3, "l1": 0.003}),
    "l2": ("0.07 x half the sum of squared weights", {"max_terms": 3, "l2": 0.07}),
    "box": ("weights from 0 to 1.25", {"max_terms": 3, "max_weight": 1.25}),
    "loss": ("mean exponential loss", {"max_terms": 3, "loss": "exponential"}),
    "features": ("at most 2 features", {"max_terms": 3, "max_features": 2}),
    "costs": ("0.01 for each feature in use", {"max_terms": 3, "feature_costs": [0.01] * 4}),
    "monotonic": ("1 feature only rising or only falling", {"max_terms": 3, "monotonic_cst": [1, 0, 0, 0]}),
    "intercept": ("intercept from -30 to 30", {"max_terms": 3}),
    "candidates": ("40 candidate terms", {"max_terms": 3}),
    "scope": ("stumps", {"max_terms": 3}),
    "tolerance": ("1e-9 of the empty model's objective", {"max_terms": 3}),
    "classes": ("rows weigh 1 (negative) and 3 (positive)",
                {"max_terms": 3, "class_weight": {False: 1, True: 3}}),
    "rows": ("200 rows, 4 features, digest", {"max_terms": 3}),
}  # fmt: skip


@pytest.fixture(scope="module")
def certificates():
    """Of every set of options once."""
    X, score = table(5)
    fits: dict[str, Certificate] = {}
    for _, options in STATEMENT.values():
        if str(options) not in fits:
            fits[str(options)] = (
                CardBoostClassifier(**{"l2": 0.01, **options}).fit(X, score > 0.3).certificate_
            )
    return fits


@pytest.mark.parametrize("part", STATEMENT)
def test_nothing_that_matters_stays_unprinted(certificates, part):
    wanted, options = STATEMENT[part]
    certificate = certificates[str(options)]
    assert wanted in "\n".join(certificate.lines())
    if part not in ("candidates", "tolerance"):
        assert wanted in repr(certificate)


def test_a_regression_says_how_its_target_is_scaled():
    X, score = table(5)
    certificate = CardBoostRegressor(max_terms=3, l2=0.01).fit(X, score * 10 + 5).certificate_
    scaling = certificate.content["problem"]["target"]
    text = "\n".join(certificate.lines())
    assert f"in standard deviations of {scaling['scale']:.6g} from {scaling['mean']:.6g}" in text


def test_without_a_candidate_nothing_is_called_optimal():
    X, score = table(3)
    model = CardBoostClassifier(max_terms=3, l2=0.01, time_limit=1e-9).fit(X, score > 0.3)
    assert model.ensemble_.n_terms == 0
    assert model.certificate_.headline.startswith("no candidate term was generated, at least 0.00 %")


def test_the_card_of_several_classes_has_the_certificate_of_each():
    X, score = table(3)
    model = CardBoostClassifier(max_terms=2, l2=0.01).fit(X, np.digitize(score, [-0.5, 0.8]))
    card = " ".join(model.card().split())
    for label, certificate in zip(model.classes_, model.certificate_, strict=True):
        assert f"Certificate for {label} " in card
        assert certificate.headline in card


def test_the_scopes_can_be_printed():
    X, score = table(3)
    assert len(repr(CardBoostClassifier(max_terms=3, l2=0.01).fit(X, score > 0.3).certificate_.scopes)) < 600


def test_certificates_of_earlier_versions_have_the_same_headline():
    X, score = table(6)
    content = CardBoostClassifier(max_terms=3, l2=0.01).fit(X, score > 0.3).certificate_.to_dict()
    old = {**content, "version": 5, "tolerance": 1e-4, "status": "optimal", "bounds": content["bounds"][::-1]}
    del old["candidates"]
    assert Certificate(old).headline == Certificate(content).headline
    assert Certificate(old).status == Certificate(content).status
