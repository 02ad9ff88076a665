"""Large tables: their passes are made once and counted, and nothing optional follows when time is up."""

from __future__ import annotations

import pickle
import time
from collections import Counter

import numpy as np
import pytest

from cardboost import CardBoostClassifier, CardBoostRegressor, load_model, pareto_front
from cardboost.boosting import candidates
from cardboost.certificate.checker import data_digest
from cardboost.certificate.checker.bounds import gather
from cardboost.cli import prove as verb
from cardboost.cli.main import main
from cardboost.pareto import compute
from cardboost.problem import budget
from cardboost.problem.budget import Budget, Stage
from cardboost.selection import merge, nodes
from cardboost.solvers import select_columns


def signs(rows, columns, seed=0):
    return np.where(np.random.default_rng(seed).random((rows, columns)) < 0.55, 1, -1).astype(np.int8)


def table(rows, features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=rows) > 0


# ---------------------------------------------------------------- the limits themselves


def taken(work):
    """Seconds of the wall or of the processor, whichever are fewer: other work must not decide a test."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return min(time.perf_counter() - wall, time.process_time() - cpu)


def holds(work, limit, tries=3):
    assert min(taken(work) for _ in range(tries)) <= 1.1 * limit + 0.5


@pytest.mark.long
@pytest.mark.parametrize("limit", [1.0, 3.0])
@pytest.mark.parametrize("kind", ["signs", "numbers"])
def test_columns_of_a_large_matrix(kind, limit):
    A = signs(300_000, 300) if kind == "signs" else np.random.default_rng(0).normal(size=(100_000, 300))
    holds(lambda: select_columns(A, max_terms=10, time_limit=limit), limit)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:time_limit")
def test_the_proof_of_a_large_table():
    X, y = table(300_000, 40)
    model = CardBoostClassifier(max_terms=5, l2=0.01, time_limit=4, n_jobs=1).fit(X, y)
    assert model.ensemble_.n_terms > 0
    holds(lambda: model.prove(X, y, time_limit=1.0), 1.0)
    assert model.certificate_.verify(X, y)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:time_limit")
def test_the_front_of_a_large_table():
    X, y = table(100_000, 40)
    estimator = CardBoostClassifier(l2=0.01, n_jobs=1)
    holds(lambda: pareto_front(X, y, estimator=estimator, time_limit=3.0), 3.0)


# ---------------------------------------------------------------- nothing twice


@pytest.fixture
def merges(monkeypatch):
    """How often rows were compared, by how many there were."""
    count: Counter[int] = Counter()
    compare = merge._distinct_rows

    def counted(columns):
        count[max(columns.shape)] += 1
        return compare(columns)

    monkeypatch.setattr(merge, "_distinct_rows", counted)
    return count


@pytest.mark.parametrize("method", ["exact", "auto", "polish", "tabu"])
def test_rows_of_a_matrix_are_merged_once(merges, method):
    A = signs(900, 12)  # more distinct rows than a part of the columns has
    select_columns(A, max_terms=3, method=method, max_nodes=50)
    distinct = len(np.unique(A, axis=0))
    assert merges[900] == 1
    assert distinct < 900
    assert merges[distinct] <= 1  # of the first ten columns


def test_rows_are_merged_as_often_for_many_sizes_as_for_few(merges):
    X, y = table(701, 4)
    counts = []
    for sizes in ([1, 2], [1, 2, 3, 4, 5, 6]):
        merges.clear()
        pareto_front(
            X, y, sizes=sizes, cv=2, random_state=0, estimator=CardBoostClassifier(l2=0.01, max_iter=20)
        )
        counts.append(merges[701])
    assert counts[0] == counts[1]


def test_the_table_is_digested_once_for_all_sizes(monkeypatch):
    from cardboost.data.table import Table

    calls, digest = [], Table.digest
    monkeypatch.setattr(Table, "digest", lambda *given, **more: calls.append(1) or digest(*given, **more))
    X, y = table(300, 3)
    for own, target in ((CardBoostClassifier, y), (CardBoostRegressor, X[:, 0] ** 2)):
        calls.clear()
        front = pareto_front(X, target, sizes=[1, 2, 3], cv=2, estimator=own(max_iter=10), random_state=0)
        assert all(point.model.certificate_.verify(X, target) for point in front)
        assert len(calls) == 1


# ---------------------------------------------------------------- faster passes say the same


def plain_rows(A):
    """Distinct rows in the order of their bits, as words of 64."""
    planes = np.concatenate([A > 0, A == 0], axis=1) if (A == 0).any() else A > 0
    bits = np.packbits(planes, axis=1)
    packed = np.zeros((len(A), -(-planes.shape[1] // 64) * 8), dtype=np.uint8)
    packed[:, : bits.shape[1]] = bits
    _, first, group = np.unique(packed.view(np.uint64), axis=0, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


@pytest.mark.parametrize("entries", [(-1, 1), (-1, 0, 1), (1,), (0, 1)])
@pytest.mark.parametrize("columns", [1, 8, 31, 64, 65, 200])
def test_distinct_rows_and_equal_columns(entries, columns):
    rng = np.random.default_rng(columns)
    for rows in (1, 2, 40, 400):
        kinds = rng.choice(entries, size=(max(1, rows // 3), columns)).astype(np.int8)
        A = kinds[rng.integers(len(kinds), size=rows)]
        A[:, -1] = rng.choice(entries, size=rows)  # rows that differ in their last word only
        A = np.ascontiguousarray(A[:, np.sort(rng.integers(columns, size=columns))])
        first, group = merge._distinct_rows(np.ascontiguousarray(A.T))
        expected = plain_rows(A)
        assert np.array_equal(first, expected[0])
        assert np.array_equal(group, expected[1])
        real = np.where(A == 0, -0.0, A) * (1.0 + (A > 0))
        real[:, rng.random(columns) < 0.5] += 0.0
        for own in (A, real, np.asfortranarray(real)):
            equal = [next(i for i in range(j + 1) if (own[:, i] == own[:, j]).all()) for j in range(columns)]
            assert merge.equal_columns(own).tolist() == equal


@pytest.mark.parametrize("kind", ["i1", "i4", "u1", "?", "f2", "f4", "f8", ">f8", ">i2", "g"])
@pytest.mark.parametrize("order", ["C", "F", "every other"])
def test_a_matrix_of_any_type_is_digested_as_the_checker_does(kind, order):
    rng = np.random.default_rng(0)
    A = rng.integers(0, 2, size=(60, 10)) if kind in ("?", "u1") else rng.integers(-2, 3, size=(60, 10))
    A = A.astype(kind)
    A = A[::2, ::2] if order == "every other" else np.array(A, order=order)
    for weight in (None, rng.integers(0, 3, size=len(A)), rng.random(len(A)) * (rng.random(len(A)) < 0.8)):
        found = select_columns(A, max_terms=2, sample_weight=weight, max_nodes=20)
        assert found.certificate.content["data"]["digest"] == data_digest(A, None, weight)
        assert found.certificate.verify(A, None, weight)


@pytest.mark.parametrize(("rows", "bins"), [(40, 2), (40, 5), (60, 255), (400, 255)])
def test_candidates_are_restored_as_from_the_whole_dictionary(rows, bins):
    """Where it surely has other stumps, only the features of the pool are read again."""
    X, y = table(rows, 3)
    X = np.round(X, 1)
    for hot_start in (1, 40, 400):
        options = {"max_terms": 2, "hot_start": hot_start, "max_bins": bins, "n_jobs": 1}
        model = CardBoostClassifier(**{"l2": 0.01, **options}).fit(X, y)
        content = model.certificate_.to_dict()
        restored = candidates.restored_candidates(content, model.ensemble_, (X, y, None), 1)
        whole = gather(content, X, y)
        problem, n_free = candidates._problem(content, whole, 1)
        assert np.array_equal(restored.problem.pool.dense(), problem.pool.dense())
        assert np.array_equal(restored.problem.risk.weights.normalised, problem.risk.weights.normalised)
        listed = len(content["columns"]["feature"]) == len(problem.prices) - n_free
        assert restored.complete == (listed and not whole.stumps.any_unseen)


# ---------------------------------------------------------------- nothing optional when time is up


def test_no_search_is_begun_that_cannot_come_to_anything(monkeypatch):
    A = signs(300, 12)
    monkeypatch.setattr(nodes, "first_seconds", lambda problem: 1e6)
    late = select_columns(A, max_terms=3, loss="logistic", time_limit=1000.0)
    assert late.nodes == 0
    assert late.status == "time limit"
    assert late.certificate.verify(A)
    free = select_columns(A, max_terms=3, loss="logistic")
    assert free.status == "optimal"


def test_the_end_of_a_stage(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budget, "clock", lambda: now[0])
    mine = Budget(10.0, started=now[0])
    assert mine.left_in(Stage.ALL) == 10.0
    now[0] += 3.0
    assert mine.left_in(Stage.SEARCH) == mine.share(Stage.SEARCH) - 3.0
    now[0] += 30.0
    assert mine.left_in(Stage.ALL) == 0.0
    assert Budget().left_in(Stage.SEARCH) == np.inf


@pytest.mark.parametrize("classes", [2, 3])
def test_where_checking_takes_all_the_time_nothing_is_made_of_the_rows(monkeypatch, classes):
    X, _ = table(300, 4)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, np.arange(1, classes))
    model = pickle.loads(pickle.dumps(CardBoostClassifier(max_terms=3, l2=0.01, n_jobs=1).fit(X, y)))
    before, ensemble = model.certificate_, model.ensemble_
    with pytest.raises(ValueError, match="does not hold for these rows"):
        model.prove(X[:-1], y[:-1], time_limit=1e-6)
    monkeypatch.setattr(candidates, "gather", lambda *given: pytest.fail("the rows are read again"))
    assert model.prove(X, y, time_limit=1e-6) is model
    assert model.certificate_ is before
    assert model.ensemble_ is ensemble


def test_a_fold_for_which_there_is_no_time_is_not_begun(monkeypatch):
    """Folds of a second each: in two and a half seconds there is time for two."""
    now, begun = [0.0], []

    def run(work, number, deadline, stopped):
        begun.append(number)
        now[0] += 1.0
        return compute.FoldResult(number, (0.0,), (None,), (None,), False)

    monkeypatch.setattr(budget, "clock", lambda: now[0])
    monkeypatch.setattr(compute.FrontWork, "run_fold", run)
    X, y = table(60, 3)
    work = compute.FrontWork.make(X, y, [1], 5, None, CardBoostClassifier(l2=0.01), None, 1, 0)
    for seconds, expected in ((2.5, 2), (0.5, 1), (np.inf, 5)):
        begun.clear()
        assert len(list(work._folds(Budget(seconds, started=now[0])))) == expected
        assert len(begun) == expected


def test_the_time_of_cardboost_prove_begins_before_the_files_are_read(tmp_path, monkeypatch):
    X, y = table(300, 3)
    data, folder = tmp_path / "data.csv", tmp_path / "run"
    np.savetxt(data, np.column_stack([np.round(X, 2), y]), delimiter=",", header="a,b,c,y", comments="")
    assert main(["fit", str(data), "--target", "y", "--max-terms", "3", "--out", str(folder), "--quiet"]) == 0
    before = load_model(folder / "model.json").certificate
    read, late = verb.read_model_and_data, [0.0]

    def slow(*given):
        late[0] = 1000.0
        return read(*given)

    monkeypatch.setattr(verb, "read_model_and_data", slow)
    monkeypatch.setattr(budget, "clock", lambda: late[0] + time.perf_counter())
    monkeypatch.setattr(candidates, "gather", lambda *given: pytest.fail("the search is begun"))
    assert main(["prove", str(folder / "model.json"), str(data), "--time", "100", "--quiet"]) == 0
    assert load_model(folder / "model.json").certificate == before
