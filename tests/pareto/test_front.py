"""What a front says is so: scores, sizes, certificates, stability, the same for any number of jobs."""

import warnings

import numpy as np
import pytest
from fronts import SIZES, amounts, mixed, numbers, quick, quick_regressor
from sklearn.metrics import get_scorer, log_loss, roc_curve
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from cardboost import CardBoostClassifier, CardBoostRegressor, ParetoFront, load_model, pareto_front
from cardboost.boosting import training
from cardboost.estimators.selecting import fit_sizes
from cardboost.pareto.compute import SIZES as DEFAULT_SIZES
from cardboost.pareto.compute import default_estimator
from cardboost.pareto.picking import RATES
from cardboost.problem.budget import Budget
from marks import first


@pytest.fixture(scope="module")
def binary():
    X, y = numbers()
    return X, y, pareto_front(X, y, sizes=SIZES, cv=3, estimator=quick(), random_state=0)


def test_the_scores_are_those_of_a_plain_loop(binary):
    """The same folds, the same columns, every size scored by hand from the probabilities."""
    X, y, front = binary
    folds = StratifiedKFold(3, shuffle=True, random_state=_seed(0)).split(X, y)
    for k, (kept, held) in enumerate(folds):
        fits = fit_sizes(quick(), X[kept], y[kept], None, SIZES, Budget())
        for point, model in zip(front, fits.models(), strict=True):
            assert point.scores[k] == pytest.approx(
                -log_loss(y[held], model.predict_proba(X[held])), rel=1e-12
            )
            assert model.ensemble_.n_terms <= point.size


def _seed(state):
    return int(np.random.RandomState(state).randint(2**31 - 1))


def test_the_choices_of_a_fold_are_as_good_as_those_of_a_fit_for_one_size(binary):
    X, y, front = binary
    for point in front:
        alone = quick(max_terms=point.size, selector="polish").fit(X, y)
        assert point.model.certificate_.objective <= alone.certificate_.objective * (1 + 1e-9)


def test_means_and_standard_errors(binary):
    _, _, front = binary
    for row, point in zip(front.table(), front, strict=True):
        assert row["mean"] == pytest.approx(np.mean(point.scores), rel=1e-12)
        assert row["standard_error"] == pytest.approx(np.std(point.scores, ddof=1) / np.sqrt(3), rel=1e-12)


def test_sizes_are_kept_and_objectives_fall(binary):
    X, y, front = binary
    assert front.sizes == SIZES
    objectives = [point.model.certificate_.objective for point in front]
    assert objectives == sorted(objectives, reverse=True)
    for point in front:
        assert point.model.ensemble_.n_terms <= point.size == point.model.max_terms
        assert point.model.certificate_.verify(X, y)
        assert point.guarantee("pool") >= point.guarantee("dictionary") > 0


def test_models_are_like_any_other(binary, tmp_path):
    X, y, front = binary
    model = front.pick("best")
    model.save(tmp_path / "model.json")
    assert (load_model(tmp_path / "model.json").predict(X) == model.predict(X)).all()
    assert "Scorecard" in model.card()
    assert model.scorecard(points=5).ensemble.n_terms <= model.max_terms
    assert model.score(X, y) > 0.7
    assert len(list(model.staged_predict(X))) == len(model.trace_) + 2


def test_recalls_are_points_of_the_curve(binary):
    X, y, front = binary
    kept, held = next(StratifiedKFold(3, shuffle=True, random_state=_seed(0)).split(X, y))
    model = fit_sizes(quick(), X[kept], y[kept], None, SIZES, Budget()).models()[-1]
    fpr, tpr, _ = roc_curve(y[held], model.decision_function(X[held]), drop_intermediate=False)
    for rate, share in zip(RATES, front[-1].recalls[0], strict=True):
        assert share == tpr[fpr <= rate].max()


def test_two_jobs_give_the_same_front(binary):
    X, y, front = binary
    other = pareto_front(X, y, sizes=SIZES, cv=3, estimator=quick(), random_state=0, n_jobs=2)
    assert other.to_json() == front.to_json()


def test_equal_seeds_give_equal_fronts_and_others_do_not(binary):
    X, y, front = binary
    again = pareto_front(X, y, sizes=SIZES, cv=3, estimator=quick(), random_state=0)
    assert again.to_json() == front.to_json()
    other = pareto_front(X, y, sizes=SIZES, cv=3, estimator=quick(), random_state=1)
    assert [point.scores for point in other] != [point.scores for point in front]
    assert [point.model.ensemble_ for point in other] == [point.model.ensemble_ for point in front]


def test_columns_are_generated_once_per_fold(monkeypatch):
    X, y = numbers(120)
    calls, own = [], training.grow

    def counting(*words, **named):
        calls.append(1)
        return own(*words, **named)

    monkeypatch.setattr(training, "grow", counting)
    pareto_front(X, y, sizes=SIZES, cv=3, estimator=quick())
    assert len(calls) == 4


def test_three_classes_categories_and_missing_values():
    X, y = mixed()
    front = pareto_front(X, y, sizes=(1, 2), cv=3, estimator=quick(), scoring="accuracy", random_state=0)
    point = front[1]
    assert point.recalls is None
    assert len(point.certificates) == 3
    assert all(own.n_terms <= 2 for own in point.model.ensemble_.ensembles)
    assert len(point.term_frequency) == point.model.ensemble_.n_terms
    folds = StratifiedKFold(3, shuffle=True, random_state=_seed(0)).split(X, y)
    for k, (kept, held) in enumerate(folds):
        fits = fit_sizes(quick(), X.iloc[kept], y[kept], None, (1, 2), Budget())
        assert point.scores[k] == (fits.models()[1].predict(X.iloc[held]) == y[held]).mean()
    assert {row["class"] for row in front.stability(2)} <= set(y)
    with pytest.raises(ValueError, match="recall_at_fpr is for two classes"):
        front.pick(recall_at_fpr=0.1)


def test_a_number():
    X, y = amounts()
    front = pareto_front(X, y, sizes=(1, 3), cv=3, estimator=quick_regressor(), random_state=0)
    assert front.scoring == "neg_mean_squared_error"
    folds = KFold(3, shuffle=True, random_state=_seed(0)).split(X)
    for k, (kept, held) in enumerate(folds):
        model = fit_sizes(quick_regressor(), X[kept], y[kept], None, (1, 3), Budget()).models()[1]
        assert front[1].scores[k] == pytest.approx(-np.mean((model.predict(X[held]) - y[held]) ** 2))
    assert front.pick("best").certificate_.verify(X, y)


def test_weights_count_in_the_models_and_in_the_scores():
    """A row of weight 2 is the row twice; rows without weight are not there."""
    X, y = numbers(120)
    weight = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
    kept = np.flatnonzero(weight)
    odd = np.arange(len(kept)) % 2 == 0
    splits = [(np.flatnonzero(odd), np.flatnonzero(~odd)), (np.flatnonzero(~odd), np.flatnonzero(odd))]
    front = pareto_front(X, y, sizes=(2,), cv=splits, estimator=quick(), sample_weight=weight)
    twice = np.repeat(kept, weight[kept].astype(int))
    home = np.searchsorted(kept, twice)
    splits = [(np.flatnonzero(odd[home]), np.flatnonzero(~odd[home]))]
    splits.append(splits[0][::-1])
    other = pareto_front(X[twice], y[twice], sizes=(2,), cv=splits, estimator=quick())
    assert front[0].scores == pytest.approx(other[0].scores, rel=1e-12)
    assert front[0].model.ensemble_ == other[0].model.ensemble_


@pytest.mark.parametrize(
    "settings",
    first(
        5,
        [
            {"max_features": 1},
            {"reselect": True, "hot_start": 3, "max_iter": 8},
            {"loss": "exponential", "selector": "tabu"},
            {"validation_fraction": 0.3, "random_state": 0},
            {"max_weight": 0.4, "fit_intercept": False, "selector": "exact"},
            {"feature_costs": [0.0, 0.01, 0.02, 0.0]},
            {"class_weight": "balanced", "l0": 0.01},
        ],
    ),
    ids=lambda own: next(iter(own)),
)
def test_other_settings(settings):
    X, y = numbers(120)
    front = pareto_front(X, y, sizes=(1, 3), cv=2, estimator=quick(**settings), random_state=0)
    for point in front:
        assert point.model.ensemble_.n_terms <= point.size
        assert point.model.get_params() == quick(**settings, max_terms=point.size).get_params()
        if "max_features" in settings:
            assert len(point.model.ensemble_.features_used) <= 1
        if "validation_fraction" not in settings:
            assert point.model.certificate_.verify(X, y)


def test_other_learners_are_fitted_size_by_size():
    from sklearn.tree import DecisionTreeClassifier

    X, y = numbers(120)
    X = np.nan_to_num(X)
    estimator = quick(dictionary=DecisionTreeClassifier(max_depth=2), hot_start=4)
    front = pareto_front(X, y, sizes=(1, 2), cv=2, estimator=estimator, random_state=0)
    assert [point.model.ensemble_.n_terms for point in front] == [1, 2]
    assert front[1].model.certificate_.verify(X, y)
    with pytest.raises(ValueError, match="a front of learners cannot be written"):
        front.to_json()


def test_scorers_of_all_kinds():
    X, y = numbers(120)

    def share_right(estimator, X, y):
        return float((estimator.predict(X) == y).mean())

    common = {"sizes": (2,), "cv": 2, "estimator": quick(), "random_state": 0}
    by_name = pareto_front(X, y, scoring="accuracy", **common)
    by_scorer = pareto_front(X, y, scoring=get_scorer("accuracy"), **common)
    by_hand = pareto_front(X, y, scoring=share_right, **common)
    assert by_name[0].scores == by_scorer[0].scores == by_hand[0].scores
    assert by_hand.scoring == "share_right"


def test_splitters_of_scikit_learn():
    X, y = numbers(120)
    splitter = ShuffleSplit(4, test_size=0.3, random_state=0)
    front = pareto_front(X, y, sizes=(2,), cv=splitter, estimator=quick())
    assert front.n_folds == front.n_folds_done == 4
    kept, held = next(splitter.split(X, y))
    model = fit_sizes(quick(), X[kept], y[kept], None, (2,), Budget()).models()[0]
    assert front[0].scores[0] == pytest.approx(-log_loss(y[held], model.predict_proba(X[held])), rel=1e-12)


def test_a_term_that_every_fold_has_is_stable():
    """One column decides; a second one is noise of which every fold makes something else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = (X[:, 0] > 0.3).astype(int)
    y[::10] = 1 - y[::10]
    front = pareto_front(X, y, sizes=(1, 3), cv=4, estimator=quick(), random_state=0)
    assert front[0].feature_frequency == ((0, 1.0),)
    assert front[0].term_frequency == (1.0,)
    rows = front.stability(3)
    assert rows[0]["feature"] == "x0"
    assert rows[0]["frequency"] == 1.0
    assert rows[-1]["frequency"] <= 0.5
    shares = [row["frequency"] for row in rows]
    assert sorted(shares) == sorted(front.at(3).term_frequency)


def test_the_default_estimator_follows_from_the_target():
    for y in (["a", "b"], [True, False], [0, 1, 2], [0.0, 1.0], np.arange(20)):
        assert type(default_estimator(y)) is CardBoostClassifier
    for y in ([0.5, 1.5], np.arange(21), np.arange(300.0)):
        assert type(default_estimator(y)) is CardBoostRegressor
    assert tuple(range(1, 21)) == DEFAULT_SIZES


def test_inputs_and_the_users_estimator_stay_as_they_are():
    X, y = mixed(150)
    before, labels, estimator = X.copy(), y.copy(), quick()
    parameters = estimator.get_params()
    pareto_front(X, y, sizes=(1,), cv=2, estimator=estimator)
    assert before.equals(X)
    assert (labels == y).all()
    assert estimator.get_params() == parameters
    assert not hasattr(estimator, "ensemble_")


def test_progress_is_printed_when_asked_for(capsys):
    X, y = numbers(100)
    pareto_front(X, y, sizes=(1, 2), cv=2, estimator=quick(), verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" s  ")[1].split(",")[0] for line in lines] == [
        "all rows", "folds: 1 of 2 done", "folds: 2 of 2 done", "proofs: 1 of 2", "proofs: 2 of 2",
    ]  # fmt: skip
    pareto_front(X, y, sizes=(1,), cv=2, estimator=quick())
    assert capsys.readouterr().out == ""


def test_what_is_shown(binary):
    _, _, front = binary
    text = str(front)
    assert text.splitlines()[2].split()[:3] == ["terms", "used", "features"]
    assert len(text.splitlines()) == 3 + len(SIZES)
    assert max(map(len, text.splitlines())) < 80
    shown = front._repr_html_()
    assert shown.count("<tr>") == 1 + len(SIZES)
    assert shown.count("<svg") == 1
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")
    assert repr(front).startswith("ParetoFront(3 sizes, 1 to 4 terms; neg_log_loss, 3 of 3 folds; complete")


def test_plot(binary):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, _, front = binary
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = front.plot()
    line = axes.get_lines()[0]
    assert tuple(line.get_xdata()) == SIZES
    assert line.get_ydata() == pytest.approx([point.mean for point in front])
    assert {text.get_text() for text in axes.texts} == set(front.marks().values())
    assert front.plot(axes) is axes
    plt.close("all")


def test_plot_without_matplotlib_is_a_sentence(binary, monkeypatch):
    import builtins

    own = builtins.__import__

    def missing(name, *rest, **named):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return own(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install 'cardboost\[plot\]'"):
        binary[2].plot()


@pytest.mark.long
def test_a_front_as_it_comes():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    front = pareto_front(X, y, random_state=0)
    assert front.sizes == DEFAULT_SIZES
    assert front.at(9).mean > front.at(1).mean + 0.15
    assert min(point.guarantee("pool") for point in front) > 0.9
    assert ParetoFront.from_json(front.to_json()).table() == front.table()
