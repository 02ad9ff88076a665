"""TotalQBoost: selecting again after every new column."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from cardboost import CardBoostClassifier, CardBoostRegressor, FitCallback
from cardboost.boosting import reselecting
from cardboost.boosting.loop import boost
from cardboost.boosting.reselecting import Reselecting, ReselectRule
from cardboost.data.binning import bin_table
from cardboost.data.table import read_table
from cardboost.data.weights import RowWeights
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.problem.losses import get_loss
from cardboost.problem.prices import PriceRule
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection.polish import Polisher
from cardboost.selection.select import SearchOptions
from cardboost.selection.selection_problem import SelectionProblem
from marks import first

PAPER = {"loss": "exponential", "criterion": "edge", "l1": 1e-4, "l2": 0.0, "fit_intercept": False}


def table(seed, rows=200, features=4, levels=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    y = X[:, 0] + X[:, 1] * X[:, 2 % features] + 0.6 * rng.normal(size=rows) > 0.2
    if levels is not None:  # so many different values
        X = np.floor(levels * (np.argsort(np.argsort(X, axis=0), axis=0) / rows))
    return X, y.astype(int)


def model(**options):
    given = {"max_terms": None, "l0": 0.01, "hot_start": 5, "max_iter": 15, "selector": "polish", "n_jobs": 1}
    return CardBoostClassifier(**given | {"reselect": True, "l2": 0.01} | options)


def everything(X, y, loss, intercept):
    """Dictionary, risk and an empty pool."""
    weights, sign = RowWeights.make(len(y), None), np.where(y, 1, -1).astype(np.int8)
    matrix = bin_table(read_table(X), weights, 255, 1)
    dictionary = StumpDictionary(matrix, sign, 1, intercept)
    return dictionary, EmpiricalRisk(get_loss(loss), weights, sign, 1)


def optimum(X, y, loss, intercept, prices, max_terms):
    """The best choice of all stumps there are, by enumeration."""
    dictionary, risk = everything(X, y, loss, intercept)
    pool = dictionary.pool()
    start = risk.evaluate(pool.margins(np.zeros(pool.n_columns)))
    pool.append(dictionary.best_columns(start, 1000, pool).atoms)
    problem = SelectionProblem(pool, risk, prices.prices(pool.n_columns, pool.n_free), max_terms)
    polisher, own = Polisher(problem), range(pool.n_free, pool.n_columns)
    assert len(own) <= 12
    most = len(own) if max_terms is None else max_terms
    supports = (some for size in range(most + 1) for some in itertools.combinations(own, size))
    return min(polisher.refit(some).objective for some in supports), len(own)


@pytest.mark.parametrize("selector", ["auto", "polish", "exact"])
@pytest.mark.parametrize(("loss", "l2"), [("exponential", 0.0), ("logistic", 0.01)])
@pytest.mark.parametrize(("max_terms", "l0"), [(None, 0.01), (2, 0.0)])
def test_a_whole_dictionary_gives_the_optimum(loss, l2, selector, max_terms, l0):
    X, y = table(1, rows=120, features=2, levels=3)
    prices = PriceRule(1e-4, l2, l0, 2.0, 15.0)
    best, columns = optimum(X, y, loss, False, prices, max_terms)
    fit = model(
        hot_start=0, max_iter=50, max_terms=max_terms, l0=l0, l1=1e-4, l2=l2, loss=loss, max_weight=2.0,
        criterion="edge", fit_intercept=False, selector=selector,
    ).fit(X, y)  # fmt: skip
    certificate = fit.certificate_
    assert certificate.objective == pytest.approx(best, rel=1e-8)
    assert certificate.lower_bound <= best + 1e-12
    assert certificate.verify(X, y)
    assert (fit.trace_.status, fit.n_iter_) == ("exhausted", columns)
    if selector == "exact":
        assert certificate.lower_bound == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("hot_start", first(1, [0, 6]))
@pytest.mark.parametrize(
    "options", [PAPER, PAPER | {"selector": "tabu"}, {"loss": "logistic"}, {"max_terms": 4, "l0": 0.0}]
)
def test_the_objective_never_rises(options, hot_start):
    X, y = table(2)
    fit = model(hot_start=hot_start, **options).fit(X, y)
    rounds = [own for own in fit.trace_ if own.n_columns >= hot_start]
    rounds = rounds[1:] if hot_start else rounds  # the last record of the hot start knows no price of terms
    assert [own.n_columns for own in rounds] == list(range(hot_start, rounds[-1].n_columns + 1))
    assert all(later.objective <= earlier.objective for earlier, later in itertools.pairwise(rounds))
    assert fit.certificate_.objective <= rounds[-1].objective + 1e-9
    assert all(own.lower_bound <= fit.certificate_.objective for own in rounds)
    assert fit.certificate_.verify(X, y)


@pytest.mark.parametrize("intercept", [False, True])
def test_no_column_twice_and_every_refit_inside_the_box(intercept):
    X, y = table(3, features=3, levels=6)
    dictionary, risk = everything(X, y, "exponential", intercept)
    pool, seen = dictionary.pool(), []
    rule = ReselectRule(PriceRule(1e-4, 0.0, 0.01, 0.3), None, 25, "edge", SearchOptions("tabu"))
    weighting = Reselecting(pool, risk, rule, np.zeros(pool.n_columns))
    trace = boost(
        dictionary, weighting, rule.stop_rule(pool), [lambda record: seen.append(weighting.weights.copy())]
    )
    weights = weighting.weights
    columns = pool.dense().T
    assert len(np.unique(columns, axis=0)) == len(columns)
    assert len(seen) == len(trace)
    assert (trace.status, trace[-1].n_columns) == ("column limit", 25)
    assert max(own[pool.n_free :].max(initial=0.0) for own in seen) == 0.3
    for record, own in zip(trace, seen, strict=True):
        assert np.count_nonzero(own[pool.n_free :]) == record.n_terms
        value = risk.evaluate(pool.margins(np.pad(own, (0, pool.n_columns - len(own))))).value
        paid = np.sum(own[pool.n_free :] * 1e-4 + 0.01 * (own[pool.n_free :] > 0))
        assert record.objective == pytest.approx(value + paid, rel=1e-9)
    np.testing.assert_array_equal(weights, seen[-1])


def test_without_a_price_and_a_limit_of_terms_it_is_the_ordinary_loop():
    X, y = table(4)
    for options in ({}, {"hot_start": 0}, {"criterion": "edge", "loss": "exponential"}):
        again = model(l0=0.0, max_iter=30, **options).fit(X, y)
        once = model(l0=0.0, max_iter=30, reselect=False, **options | {"hot_start": 3}).fit(X, y)
        assert again.ensemble_ == once.ensemble_
        assert again.trace_.status == once.trace_.status
        assert again.certificate_.objective == once.certificate_.objective


def test_it_finds_what_one_selection_misses():
    X, y = table(5, rows=300)
    once = model(reselect=False, hot_start=8, **PAPER).fit(X, y)
    again = model(hot_start=8, max_iter=40, **PAPER).fit(X, y)
    assert again.certificate_.objective < once.certificate_.objective - 1e-3


def test_status(monkeypatch):
    X, y = table(6)
    monkeypatch.setattr(reselecting, "PATIENCE", 3)
    dear = model(l0=10.0, hot_start=2).fit(X, y)
    assert (dear.trace_.status, dear.n_iter_, dear.ensemble_.n_terms) == ("stagnant", 5, 0)
    assert dear.trace_.message == "many rounds in a row changed nothing"
    assert dear.certificate_.verify(X, y)
    assert model(hot_start=5, max_iter=6).fit(X, y).trace_.status == "column limit"
    late = model(time_limit=1e-9).fit(X, y)
    assert late.trace_.status == "time limit"
    assert late.certificate_.verify(X, y)


def test_a_wish_to_stop_holds_in_the_hot_start_and_after_it():
    X, y = table(7)
    for columns, records in ((3, 4), (7, 9)):
        fit = model().fit(X, y, callback=lambda record, at=columns: record.n_columns == at)
        assert (fit.trace_.status, fit.n_iter_, len(fit.trace_)) == ("stopped", columns, records)
        assert fit.certificate_.verify(X, y)

    class AtOnce(FitCallback):
        def after_round(self, record):
            return record.n_columns > 0

        def stopped(self):
            return True

    asked = model(hot_start=0).fit(X, y, callback=AtOnce())
    assert (asked.trace_.status, asked.n_iter_) == ("stopped", 1)


def test_stages_are_the_models_of_the_rounds():
    X, y = table(8)
    fit = model(**PAPER).fit(X, y)
    stages = list(fit._stages())
    assert len(stages) == len(fit.trace_) + 2
    assert [own.n_terms for own in stages[: len(fit.trace_)]] == [own.n_terms for own in fit.trace_]
    for record, scores in zip(fit.trace_, fit.staged_decision_function(X), strict=False):
        assert np.mean(np.exp(-np.where(y, 1, -1) * scores)) <= record.objective
    np.testing.assert_array_equal(list(fit.staged_predict(X))[-1], fit.predict(X))


def test_a_warm_start_goes_on():
    X, y = table(9)
    warm = model(hot_start=4, max_iter=8, warm_start=True, **PAPER).fit(X, y)
    first = warm.certificate_.objective
    assert warm.n_iter_ == 8
    warm.set_params(max_iter=16).fit(X, y)
    assert (warm.trace_[0].n_columns, warm.n_iter_) == (8, 16)
    assert warm.trace_[0].objective <= first + 1e-9
    assert warm.certificate_.objective <= first + 1e-9
    assert warm.certificate_.verify(X, y)
    once = model(reselect=False, hot_start=6, warm_start=True, **PAPER).fit(X, y)
    once.set_params(reselect=True, max_iter=10).fit(X, y)
    assert (once.trace_[0].n_columns, once.n_iter_) == (6, 10)


@pytest.mark.parametrize("hot_start", [0, 10])
def test_held_out_rows_end_it(hot_start):
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + rng.normal(0, 2, 300) > 0).astype(int)
    fit = model(hot_start=hot_start, max_iter=80, l0=1e-3, validation_fraction=0.3, random_state=1).fit(X, y)
    (losses,) = fit.validation_losses_
    assert len(losses) == len(fit.trace_)
    assert fit.trace_.status == "validation"
    assert fit.n_iter_ < 80
    again = model(hot_start=hot_start, max_iter=80, l0=1e-3, validation_fraction=0.3, random_state=1)
    assert again.fit(X, y).ensemble_ == fit.ensemble_


def test_other_settings():
    X, y = table(11)
    rng = np.random.default_rng(11)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(0, 3, len(y)).astype(float)
    for options in ({"monotonic_cst": [1, 0, 0, 0]}, {"class_weight": "balanced"}, {"max_weight": 0.2}):
        fit = model(**options).fit(X, y, sample_weight=weight)
        assert fit.certificate_.verify(X, y, sample_weight=weight)
    assert max(term.weight for term in fit.ensemble_.terms) <= 0.2


def test_several_classes_and_numbers():
    X, kind = load_wine(return_X_y=True)
    fit = model(max_terms=2, l0=0.0, hot_start=3, max_iter=6).fit(X, kind)
    assert all(own.verify(X, kind == k) for k, own in enumerate(fit.certificate_))
    assert all(own[-1].n_columns == 6 for own in fit.trace_)
    X, y = load_diabetes(return_X_y=True)
    options = {"max_terms": 4, "max_iter": 20, "n_jobs": 1, "reselect": True}
    for hot_start in (0, 10):
        number = CardBoostRegressor(**{"hot_start": hot_start, "l2": 0.01, **options}).fit(X, y)
        assert number.ensemble_.n_terms <= 4
        assert number.certificate_.verify(X, y)
        rounds = [own.objective for own in number.trace_ if own.n_columns > hot_start]
        assert all(later <= earlier for earlier, later in itertools.pairwise(rounds))


@pytest.mark.parametrize("hot_start", [0, 4])
def test_other_weak_learners(hot_start):
    X, y = table(12)
    forest = RandomForestClassifier(15, max_depth=3, random_state=0).fit(X[::2], y[::2])
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    for dictionary, columns in ((forest.estimators_, 12), (tree, None), (["stumps", tree], 12)):
        fit = model(dictionary=dictionary, hot_start=hot_start, max_iter=12, max_terms=3, l0=0.0).fit(X, y)
        assert 0 < fit.ensemble_.n_terms <= 3
        assert fit.certificate_.verify(X, y)
        rounds = [own.objective for own in fit.trace_ if own.n_columns > hot_start]
        assert all(later <= earlier for earlier, later in itertools.pairwise(rounds))
        assert columns is None or fit.n_iter_ == columns


@pytest.mark.parametrize(("selector", "rounds"), [("auto", [0, 5]), ("polish", []), ("tabu", range(6))])
def test_when_tabu_search_takes_part(monkeypatch, selector, rounds):
    """In every selection of the loop; with "auto" in the first, and before the loop gives up."""
    columns, search = [], reselecting.tabu.tabu_search

    def spy(problem, *given, **options):
        columns.append(problem.pool.n_columns)
        return search(problem, *given, **options)

    monkeypatch.setattr(reselecting.tabu, "tabu_search", spy)
    monkeypatch.setattr(reselecting, "PATIENCE", 5)
    X, y = table(16, rows=60)
    fit = model(l0=10.0, hot_start=2, selector=selector, **PAPER).fit(X, y)
    assert (fit.trace_.status, fit.n_iter_) == ("stagnant", 7)
    assert columns == [2 + new for new in rounds]


def test_exact_search_takes_part_in_every_round(monkeypatch):
    columns, search = [], reselecting.exact.exact_search

    def spy(problem, *given, **options):
        columns.append(problem.pool.n_columns)
        return search(problem, *given, **options)

    monkeypatch.setattr(reselecting.exact, "exact_search", spy)
    X, y = table(16, rows=60)
    fit = model(hot_start=2, max_iter=6, selector="exact", **PAPER).fit(X, y)
    assert columns == [2, 3, 4, 5, 6, 6]  # the last one is the proof
    assert fit.certificate_.verify(X, y)


def test_a_sampler_is_asked_in_every_round_until_it_fails():
    pytest.importorskip("dimod")

    class Once:
        """Fails from the second call on."""

        def __init__(self):
            self.parameters, self.properties, self.calls = {}, {}, 0

        def sample(self, model):
            self.calls += 1
            if self.calls > 1:
                raise RuntimeError("no answer")
            import dimod

            return dimod.SampleSet.from_samples_bqm(dict.fromkeys(model.variables, 0), model)

    X, y = table(13, rows=80)
    sampler = Once()
    with pytest.warns(UserWarning, match="built-in search"):
        fit = model(selector=sampler, hot_start=4, max_iter=8).fit(X, y)
    assert sampler.calls == 3  # the first selection, the next one, which fails, and the last
    assert fit.certificate_.verify(X, y)


def test_what_is_refused():
    X, y = table(14, rows=60)
    for options, message in (
        ({"max_features": 2}, "max_features or feature_costs"),
        ({"feature_costs": [0.1, 0, 0, 0]}, "max_features or feature_costs"),
        ({"hot_start": 0, "reselect": False}, "hot_start=0 needs reselect=True"),
        ({"hot_start": -1}, "hot_start must be a whole number of at least 0"),
        ({"reselect": "yes"}, "reselect must be True or False"),
        ({"selector": "tabu"}, "Tabu search"),
    ):
        with pytest.raises(ValueError, match=message):
            model(**options).fit(X, y)
    with pytest.raises(ValueError, match="exact search takes"):
        CardBoostRegressor(l2=0.01, reselect=True, selector="exact").fit(X, y)


@pytest.mark.parametrize("selector", ["auto", "tabu", "exact"])
def test_equal_seeds_and_any_number_of_threads_give_equal_models(selector):
    X, y = table(15)
    options = {**PAPER, "selector": selector, "max_nodes": 40, "hot_start": 5, "max_iter": 9}
    fits = [model(**options, random_state=3).set_params(n_jobs=jobs).fit(X, y) for jobs in (1, 1, 2)]
    assert fits[0].ensemble_ == fits[1].ensemble_ == fits[2].ensemble_
    lines = [[(r.n_columns, r.n_terms, r.objective, r.lower_bound) for r in own.trace_] for own in fits]
    assert lines[0] == lines[1] == lines[2]
    assert math.isfinite(fits[0].trace_[-1].lower_bound)


@pytest.mark.parametrize("every", [3, 1000])
def test_rounds_that_look_at_their_own_column(every, monkeypatch):
    """In between, no other column comes in; the objective never rises; no move with the new one is missed."""
    X, y = table(5)
    dictionary, risk = everything(X, y, "exponential", False)
    prices = PriceRule(1e-4, 0.0, 0.004, 2.0)
    rule = ReselectRule(
        prices, None, 20, "edge", SearchOptions("polish"), all_moves_every=every
    )  # fmt: skip
    allowed, improve = [], Polisher.improve

    def watched(self, at, max_rounds=50, entering=None):
        allowed.append(entering)
        return improve(self, at, max_rounds, entering)

    monkeypatch.setattr(Polisher, "improve", watched)
    pool, seen = dictionary.pool(), []
    weighting = Reselecting(pool, risk, rule, np.zeros(0))
    see = lambda record: seen.append((record, weighting.weights))  # noqa: E731
    boost(dictionary, weighting, rule.stop_rule(pool), [see])
    assert {None if own is None else len(own) for own in allowed} == {None, 1}
    supports = [set(np.flatnonzero(w).tolist()) for _, w in seen]
    for k, (before, after) in enumerate(itertools.pairwise(supports), 1):
        assert seen[k][0].objective <= seen[k - 1][0].objective
        if every == 1000:
            assert after - before <= {k - 1}
    # the last choice is no worse than any that differs by the last column
    last = seen[-1][1]
    problem = SelectionProblem(pool, risk, prices.prices(pool.n_columns, 0), None)
    polisher, new, support = Polisher(problem), pool.n_columns - 1, supports[-1] - {pool.n_columns - 1}
    others = [support | {new}, *(support - {j} | {new} for j in support)]
    value = problem.objective(risk.evaluate(pool.margins(last)).value, last)
    assert value <= min(polisher.refit(own).objective for own in others) + 1e-9
