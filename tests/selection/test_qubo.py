"""Selection in bits: the model is what it says, and no sampler, however bad, does harm."""

from __future__ import annotations

import copy
import itertools
import math
import re
import sys
from dataclasses import replace

import dimod
import numpy as np
import pytest
from enumeration import Enumeration
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from cardboost import CardBoostClassifier
from cardboost.data.weights import RowWeights
from cardboost.dictionary.columns import ColumnStore, MatrixPool
from cardboost.problem.losses import SquaredLoss, get_loss
from cardboost.problem.prices import FeatureLimits, Prices
from cardboost.problem.risk import EmpiricalRisk
from cardboost.selection import qubo
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import polish
from cardboost.selection.qubo import QuadraticModel, Sampler, accepts, anneal, in_bits
from cardboost.selection.selection_problem import SelectionProblem
from cardboost.solvers import select_columns
from marks import first

TOLERANCE = 1e-7


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_references():
    """Threads of BLAS cost more than they bring on problems this small."""
    with threadpool_limits(1):
        yield


def make(A, prices, max_terms=None, loss="exponential", target=None):
    pool = MatrixPool(ColumnStore(np.ascontiguousarray(A.T)), np.arange(A.shape[1], dtype=np.int32))
    kind = SquaredLoss() if target is not None else get_loss(loss)
    risk = EmpiricalRisk(kind, RowWeights.make(len(A), None), None, target=target)
    return SelectionProblem(pool, risk, prices, max_terms)


def random_problem(seed, n=6, free=0, max_terms=None, l0=0.02, l2=0.0, loss="exponential", box=np.inf):
    """Columns of signs that agree with most rows; the first ``free`` ones are not charged."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((30, n)) < rng.uniform(0.5, 0.75, n), 1.0, -1.0)
    charged = np.arange(n) >= free
    top = np.where(charged, box, 5.0)
    prices = Prices(
        np.where(charged, 1e-3, 0.0), np.where(charged, l2, 0.0), np.where(charged, l0, 0.0), top, charged
    )
    return make(A, prices, max_terms, loss)


def optimum(problem):
    A, p = problem.pool.dense(), problem.prices
    share = np.full(len(A), 1.0 / len(A))
    loss = problem.risk.loss.name
    return Enumeration(A, share, loss, p.l1, p.l2, p.l0, p.max_weight, p.charged).best(problem.max_terms)


def true_objective(problem, weights):
    return problem.objective(problem.risk.evaluate(problem.pool.margins(weights)).value, weights)


def check(problem, result, in_part=False):
    """What holds whatever the sampler does."""
    at, p = result.incumbent, problem.prices
    assert at.objective == pytest.approx(true_objective(problem, at.weights), abs=1e-12)
    assert np.array_equal(at.support, np.flatnonzero((at.weights > 0) & p.charged))
    assert problem.allows(at.support)
    assert (at.weights >= 0).all()
    assert (at.weights <= p.max_weight).all()
    assert at.objective == min(result.sampling.builtin, result.sampling.sampled)
    assert result.sampling.builtin == polish(problem)[0].objective
    for own in result.sampling.rounds:
        assert in_part or own.polished <= own.refitted


# ---------------------------------------------------------------- the model


@pytest.mark.parametrize("seed", range(12))
def test_the_minimum_of_the_bits_is_that_of_the_model(seed):
    """Over all assignments, against all fixed-point weights with what the columns in use cost."""
    rng = np.random.default_rng(seed)
    n, bits = (3, 3) if seed % 2 else (4, 2)
    root = rng.normal(size=(n + 1, n))
    model = QuadraticModel(float(rng.normal()), rng.normal(size=n) - 1.0, root.T @ root)
    price = np.where(rng.random(n) < 0.75, rng.choice([0.01, 0.3, 2.0], n), 0.0)
    columns = np.sort(rng.permutation(n)[: n - seed % 3 // 2])
    top, fixed = rng.uniform(0.5, 3.0, n), np.zeros(n)
    left = np.setdiff1d(np.arange(n), columns)
    fixed[left] = rng.random(len(left))
    model_in_bits = in_bits(model, price, columns, bits, top, fixed)
    least = math.inf
    for levels in itertools.product(range(2**bits), repeat=len(columns)):
        weights = fixed.copy()
        weights[columns] = top[columns] * np.array(levels) / (2**bits - 1)
        value = model(weights) + price[columns][weights[columns] > 0].sum()
        least = min(least, value)
        # the assignment of these weights has exactly this energy
        own = model_in_bits.sample(weights)
        assert model_in_bits.weights(own) == pytest.approx(weights)
        assert model_in_bits.energies(own[None])[0] == pytest.approx(value)
    bqm = model_in_bits.to_dimod()
    assert (
        bqm.num_variables == model_in_bits.variables == len(columns) * bits + np.count_nonzero(price[columns])
    )
    answers = dimod.ExactSolver().sample(bqm)
    samples = answers.record.sample[:, np.argsort(np.array(answers.variables))].astype(np.int8)
    energies = model_in_bits.energies(samples)
    assert energies == pytest.approx(answers.record.energy)
    assert energies.min() == pytest.approx(least)
    for sample, energy in zip(samples, energies, strict=True):
        weights = model_in_bits.weights(sample)
        assert energy >= model(weights) + price[columns][weights[columns] > 0].sum() - 1e-9


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_model_touches_the_objective(loss):
    problem = random_problem(1, l0=0.0, l2=0.1, loss=loss)
    at = np.random.default_rng(0).random(6)
    model = QuadraticModel.at(problem, at)
    assert model(at) == pytest.approx(true_objective(problem, at))
    for step in 1e-3 * np.eye(6):
        assert model(at + step) == pytest.approx(true_objective(problem, at + step), abs=1e-8)
    alone, saved = model.best_alone(at)
    for j in range(6):
        without, best = at.copy(), at.copy()
        without[j], best[j] = 0.0, alone[j]
        assert saved[j] == pytest.approx(model(without) - model(best))
        assert model(best) <= model(best + 0.1 * np.eye(6)[j])


def test_the_model_of_a_regression_is_exact():
    rng = np.random.default_rng(5)
    A, n = rng.choice([-1.0, 1.0], (40, 6)), 6
    same = np.ones(n)
    prices = Prices(1e-3 * same, 0.01 * same, 0.01 * same, np.inf * same, same > 0)
    problem = make(A, prices, target=A @ rng.random(n) + rng.normal(size=40))
    model, far = QuadraticModel.at(problem, np.zeros(n)), 3.0 * rng.random(n)
    assert model(far) + 0.01 * n == pytest.approx(true_objective(problem, far))
    check(problem, anneal(problem, dimod.ExactSolver, bits=2, max_variables=12))


# ---------------------------------------------------------------- the rounds


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"max_terms": 2},
        {"max_terms": 2, "l0": 0.0},
        {"free": 2},
        {"free": 1, "max_terms": 1},
        {"box": 0.3},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_no_answer_is_below_the_optimum(more, l2, loss, seed):
    """And with a few columns the sampler's route ends at it."""
    problem = random_problem(seed, loss=loss, l2=l2, **more)
    result = anneal(problem, "tabu", bits=4)
    check(problem, result)
    assert result.sampling.fallback is None
    assert all(own.agrees for own in result.sampling.rounds)
    least = optimum(problem)
    assert least - TOLERANCE <= result.incumbent.objective
    assert result.sampling.sampled <= least + 0.01 * abs(least)


@pytest.mark.parametrize("more", [{}, {"max_terms": 2}, {"free": 2}], ids=str)
def test_an_exact_solver_within_few_variables(more):
    problem = random_problem(3, n=7, **more)
    result = anneal(problem, dimod.ExactSolver(), max_variables=13)
    check(problem, result)
    assert result.sampling.fallback is None
    assert all(own.variables <= 13 for own in result.sampling.rounds)
    assert result.incumbent.objective >= optimum(problem) - TOLERANCE


@pytest.mark.parametrize("name", ["tabu", "annealing"])
def test_equal_seeds_give_equal_results(name):
    problem = random_problem(7, n=12, max_terms=4, free=2)
    first, second = (anneal(problem, name, seed=3) for _ in range(2))
    check(problem, first)
    assert first.sampling.rounds == second.sampling.rounds
    assert np.array_equal(first.incumbent.weights, second.incumbent.weights)


def test_a_start_is_where_the_first_model_is_made():
    problem = random_problem(8, n=8, max_terms=3)
    start = np.zeros(8)
    check_start = anneal(problem, "tabu", start)
    assert check_start.sampling.rounds[0] != anneal(problem, "tabu").sampling.rounds[0]
    assert problem.allows(check_start.incumbent.support)
    assert not start.any()


@pytest.mark.parametrize("most", [2, 3, 5, 12, 30, 61, 1000])
@pytest.mark.parametrize("free", [0, 2])
def test_there_are_no_more_variables_than_wanted(most, free):
    problem = random_problem(11, n=10, free=free, max_terms=3)
    result = anneal(problem, "tabu", max_variables=most)
    check(problem, result)
    assert result.sampling.rounds
    for own in result.sampling.rounds:
        assert own.variables <= most
        assert 1 <= own.bits <= 6
    if most == 1000:
        assert result.sampling.rounds[0].columns == 10
        assert result.sampling.rounds[0].bits == 6


def test_a_wide_pool_is_cut_down_without_being_asked(monkeypatch):
    monkeypatch.setattr(qubo, "_MOST_VARIABLES", 20)
    result = anneal(random_problem(12, n=10), "tabu")
    assert max(own.variables for own in result.sampling.rounds) <= 20
    result = anneal(random_problem(12, n=10), "tabu", max_variables=40)
    assert max(own.variables for own in result.sampling.rounds) > 20


def test_large_tables_are_searched_in_part_and_scored_on_all_rows():
    rng = np.random.default_rng(40)
    A, same = np.where(rng.random((60_000, 18)) < rng.uniform(0.5, 0.7, 18), 1.0, -1.0), np.ones(18)
    problem = make(A, Prices(1e-3 * same, 0.1 * same, 0.002 * same, np.inf * same, same > 0), 4)
    assert sketch_rows(merge_rows(problem)).risk.weights.total < len(A)
    check(problem, anneal(problem, "tabu", rounds=2), in_part=True)


@pytest.mark.parametrize("k", [0, 1, 3, 8, 20])
def test_the_limit_on_terms_holds(k):
    problem = random_problem(13, n=9, free=1, l0=0.0, max_terms=k)
    result = anneal(problem, "tabu")
    check(problem, result)
    assert len(result.incumbent.support) <= k
    assert (result.sampling.rounds[0].multiplier > 0) == (k < 8)


def test_columns_that_may_not_be_used():
    problem = random_problem(14)
    shut = replace(problem, prices=replace(problem.prices, max_weight=np.zeros(6)))
    result = anneal(shut, "tabu")
    assert result.sampling.rounds == ()
    assert "no column" in result.sampling.fallback
    some = np.where(np.arange(6) < 3, 0.0, np.inf)
    half = replace(problem, prices=replace(problem.prices, max_weight=some))
    result = anneal(half, "tabu")
    check(half, result)
    assert result.sampling.rounds[0].columns == 3


def test_no_time():
    problem = random_problem(15)
    result = anneal(problem, "tabu", late=lambda: True)
    assert result.sampling.rounds == ()
    assert "no time" in result.sampling.fallback
    assert problem.allows(result.incumbent.support)


# ---------------------------------------------------------------- samplers that misbehave


class Fake:
    """Random answers; says what it was asked."""

    parameters: dict[str, list[str]] = {"num_reads": [], "seed": []}  # noqa: RUF012

    def __init__(self):
        self.asked = []

    def sample(self, bqm, **given):
        self.asked.append(given)
        return self.answer(bqm, np.random.default_rng(given.get("seed")))

    def answer(self, bqm, rng):
        samples = rng.integers(0, 2, (4, bqm.num_variables), dtype=np.int8)
        return dimod.SampleSet.from_samples_bqm((samples, list(bqm.variables)), bqm)


class Raises(Fake):
    def answer(self, bqm, rng):
        raise OSError("the machine is\nout of order.")


class ReturnsNone(Fake):
    def answer(self, bqm, rng):
        return None


class ReturnsEmpty(Fake):
    def answer(self, bqm, rng):
        return dimod.SampleSet.from_samples([], energy=[], vartype="BINARY")


class OtherVariables(Fake):
    def answer(self, bqm, rng):
        return dimod.SampleSet.from_samples_bqm({"a": 1}, dimod.BQM({"a": 1.0}, {}, 0.0, "BINARY"))


class FewerVariables(Fake):
    def answer(self, bqm, rng):
        return [dict.fromkeys(list(bqm.variables)[1:], 1)]


class OtherValues(Fake):
    def answer(self, bqm, rng):
        return [dict.fromkeys(bqm.variables, 2)]


class NoAnswerAtAll(Fake):
    def answer(self, bqm, rng):
        return 17


class NeedsMore(Fake):
    def sample(self, bqm, *, token, **given):
        return self.answer(bqm, np.random.default_rng(0))


class BreaksLater(Fake):
    def answer(self, bqm, rng):
        if len(self.asked) > 1:
            raise RuntimeError("no more")
        return super().answer(bqm, rng)


class Lies(Fake):
    def answer(self, bqm, rng):
        answers = super().answer(bqm, rng)
        answers.record.energy[:] = [-1e9, math.inf, 0.0, math.nan]
        return answers


class IgnoresSeed(Fake):
    def answer(self, bqm, rng):
        return super().answer(bqm, np.random.default_rng())


class ListsNothing(Fake):
    parameters = None

    def sample(self, bqm):
        return self.answer(bqm, np.random.default_rng(0))


class Spins(Fake):
    def answer(self, bqm, rng):
        return super().answer(bqm, rng).change_vartype("SPIN", inplace=False)


class Backwards(Fake):
    def answer(self, bqm, rng):
        order = list(bqm.variables)[::-1]
        samples = rng.integers(0, 2, (4, len(order)), dtype=np.int8)
        return dimod.SampleSet.from_samples_bqm((samples, order), bqm)


class PlainList(Fake):
    def answer(self, bqm, rng):
        return [{v: int(rng.integers(2)) for v in bqm.variables} for _ in range(3)]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Raises, "Raises failed: OSError: the machine is out of order; the built-in search"),
        (ReturnsNone, "ReturnsNone returned nothing"),
        (ReturnsEmpty, "ReturnsEmpty returned no samples"),
        (OtherVariables, "returned other variables"),
        (FewerVariables, "returned other variables"),
        (OtherValues, "values other than 0 and 1"),
        (NoAnswerAtAll, "returned other variables"),
        (NeedsMore, "NeedsMore failed: TypeError.*token"),
    ],
)
def test_an_answer_that_cannot_be_used_is_said_to_be_so(kind, why):
    problem = random_problem(20, max_terms=3)
    result = anneal(problem, kind())
    check(problem, result)
    assert result.sampling.rounds == ()
    assert math.isinf(result.sampling.sampled)
    assert re.search(why, result.sampling.fallback)
    assert result.sampling.fallback.endswith(".")
    assert "\n" not in result.sampling.fallback


def test_what_came_before_a_failure_counts():
    problem = random_problem(20, max_terms=3)
    result = anneal(problem, BreaksLater())
    check(problem, result)
    assert len(result.sampling.rounds) == 1
    assert "no more" in result.sampling.fallback


@pytest.mark.parametrize("kind", [Fake, IgnoresSeed, ListsNothing, Spins, Backwards, PlainList])
def test_any_answer_is_good_enough(kind):
    problem = random_problem(21, free=1, max_terms=3)
    result = anneal(problem, kind())
    check(problem, result)
    assert result.sampling.fallback is None
    assert all(own.agrees for own in result.sampling.rounds)
    assert all(math.isnan(own.stated) == (kind is PlainList) for own in result.sampling.rounds)


def test_stated_energies_are_not_believed():
    problem = random_problem(22, max_terms=3)
    lies, honest = anneal(problem, Lies()), anneal(problem, Fake())
    check(problem, lies)
    assert not any(own.agrees for own in lies.sampling.rounds)
    assert [own.energy for own in lies.sampling.rounds] == [own.energy for own in honest.sampling.rounds]
    assert lies.incumbent.objective == honest.incumbent.objective


def test_only_listed_parameters_are_passed_and_the_users_own():
    problem = random_problem(23)
    plain = Fake()
    anneal(problem, plain, seed=5, reads=7)
    assert all(set(given) == {"num_reads", "seed"} and given["num_reads"] == 7 for given in plain.asked)
    assert len({given["seed"] for given in plain.asked}) == len(plain.asked)
    assert all(0 <= given["seed"] < 2**31 for given in plain.asked)
    own = Fake()
    own.parameters = {"seed": []}
    anneal(problem, Sampler(own, num_reads=3, annealing_time=20))
    assert {"num_reads": 3, "annealing_time": 20, "seed": own.asked[0]["seed"]} == own.asked[0]


# ---------------------------------------------------------------- what stands for a sampler


def test_functions_and_classes_make_samplers():
    problem = random_problem(24)
    kept = Fake()
    for source in (Fake, lambda: kept, Sampler(Fake), Sampler(lambda: kept), "annealing"):
        assert anneal(problem, source, rounds=1).sampling.fallback is None
    assert len(kept.asked) == 2


def test_what_is_no_sampler():
    problem = random_problem(25)
    for thing in (17, None, object(), object, lambda: 3, Sampler(3)):
        with pytest.raises(ValueError, match="sampler must be"):
            anneal(problem, thing)
    with pytest.raises(ValueError, match="'annealing'"):
        anneal(problem, "simulated")

    def broken():
        raise KeyError("no key")

    with pytest.raises(RuntimeError, match="makes it failed: KeyError"):
        anneal(problem, broken)


def test_limits_on_features_are_refused():
    problem = random_problem(26)
    assert accepts(problem) is None
    limited = replace(problem, groups=np.arange(6, dtype=np.int32), limits=FeatureLimits(2))
    assert accepts(limited).endswith(".")
    with pytest.raises(ValueError, match="features"):
        anneal(limited, "tabu")


def test_a_held_sampler_is_not_copied():
    class Connection(Fake):
        def __deepcopy__(self, memo):
            raise TypeError("a connection cannot be copied")

    held = Sampler(Connection(), num_reads=5)
    assert copy.deepcopy(held) is held
    assert copy.copy(held) is held
    assert clone(CardBoostClassifier(l2=0.01, selector=held)).selector is held
    assert "num_reads=5" in repr(held)


@pytest.mark.parametrize("module", ["dimod", "dwave"])
def test_without_the_extra(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"cardboost\[quantum\]"):
        anneal(random_problem(27), "tabu")
    with pytest.raises(ImportError, match=r"cardboost\[quantum\]"):
        select_columns(np.ones((3, 2)), max_terms=1, method="qubo")


# ---------------------------------------------------------------- on a matrix


@pytest.mark.parametrize(
    "method",
    ["qubo", Fake, Fake(), Sampler("annealing", num_reads=5)],
    ids=["name", "class", "object", "wrapped"],
)
def test_select_columns(method):
    A = random_problem(30, n=8).pool.dense().astype(float)
    found = select_columns(A, max_terms=3, l0=0.005, method=method, bits=4)
    assert found.certificate.verify(A)
    assert found.sampling.fallback is None
    assert found.objective == pytest.approx(min(found.sampling.builtin, found.sampling.sampled))
    plain = select_columns(A, max_terms=3, l0=0.005, method="polish")
    assert plain.sampling is None
    assert found.objective <= plain.objective * (1 + 1e-9)
    assert found.sampling.builtin == pytest.approx(plain.objective)
