"""Boosted networks as estimators: predictions, files, stages, choice of nets, other learners, bad input."""

from __future__ import annotations

import json
import warnings
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from cardboost import NeuralBoostClassifier, NeuralBoostRegressor, load_model
from cardboost.boosting.neural_learners import IgnoredWeightsWarning
from cardboost.certificate import checker
from cardboost.problem.vector_losses import SquaredOutputs, VectorLoss
from marks import first

QUICK = {
    "max_iter": 4,
    "early_stopping": False,
    "l2": 0.01,
    "net_iter": 40,
    "random_state": 0,
    "n_jobs": 1,
}
IRIS = load_iris(return_X_y=True)
X, Y = make_friedman1(150, 6, noise=0.5, random_state=0)


@parametrize_with_checks([NeuralBoostClassifier(**QUICK), NeuralBoostRegressor(**QUICK)])
def test_scikit_learns_checks(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        check(estimator)


@pytest.mark.long
@parametrize_with_checks(
    [
        NeuralBoostClassifier(max_iter=3, random_state=0),
        NeuralBoostClassifier(**QUICK | {"loss": "squared", "max_terms": 2}),
        NeuralBoostRegressor(max_iter=3, random_state=0),
        NeuralBoostRegressor(**QUICK | {"loss": "absolute", "refit": "last"}),
        NeuralBoostRegressor(**QUICK | {"loss": "huber", "max_terms": 2}),
        NeuralBoostRegressor(**QUICK | {"estimator": DecisionTreeRegressor(max_depth=2)}),
    ]
)
def test_scikit_learns_checks_of_other_settings(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        check(estimator)


# ------------------------------------------------------------------------------------ fits


@pytest.mark.parametrize("loss", ["auto", "logistic", "cross_entropy", "squared"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes(loss, classes):
    rows = IRIS[1] < classes
    names = np.array(["b", "c", "a"])[IRIS[1][rows]]
    model = NeuralBoostClassifier(**QUICK | {"loss": loss}).fit(IRIS[0][rows], names)
    assert model.classes_.tolist() == sorted(set(names))
    assert model.score(IRIS[0][rows], names) > 0.96
    p = model.predict_proba(IRIS[0][rows])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (model.classes_[np.argmax(p, axis=1)] == model.predict(IRIS[0][rows])).all()
    score = model.decision_function(IRIS[0][rows])
    assert score.shape == ((100,) if classes == 2 else (150, 3))
    assert np.isfinite(score).all()


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_several_outputs(loss):
    both = np.column_stack([Y, 1000.0 * X[:, 0]])
    model = NeuralBoostRegressor(**QUICK | {"loss": loss}).fit(X, both)
    assert model.predict(X).shape == (150, 2)
    assert model.score(X, both) > 0.6
    one = NeuralBoostRegressor(**QUICK | {"loss": loss}).fit(X, Y[:, None])
    assert one.predict(X).shape == (150, 1)
    assert np.array_equal(
        one.predict(X)[:, 0], NeuralBoostRegressor(**QUICK | {"loss": loss}).fit(X, Y).predict(X)
    )


def test_outliers_hardly_move_absolute_and_huber():
    spoilt = Y.copy()
    spoilt[::10] += 500.0
    errors = {
        loss: np.median(np.abs(NeuralBoostRegressor(**QUICK | {"loss": loss}).fit(X, spoilt).predict(X) - Y))
        for loss in ("squared", "absolute", "huber")
    }
    assert errors["absolute"] < 0.2 * errors["squared"]
    assert errors["huber"] < 0.2 * errors["squared"]


@pytest.mark.parametrize("kind", [NeuralBoostClassifier, NeuralBoostRegressor])
def test_stages_end_with_the_model(kind):
    y = (Y.mean() < Y).astype(int) if kind is NeuralBoostClassifier else Y
    for more in ({}, {"refit": "last", "learning_rate": 0.5}, {"max_terms": 2}):
        model = kind(**QUICK | more).fit(X, y)
        stages = list(model.staged_predict(X))
        assert len(stages) == 4 + ("max_terms" in more)
        assert np.array_equal(stages[-1], model.predict(X)) or np.allclose(stages[-1], model.predict(X))
        shorter = kind(**QUICK | more | {"max_iter": 2, "max_terms": None}).fit(X, y)
        np.testing.assert_allclose(stages[1], shorter.predict(X), rtol=1e-9)
    assert len(model.loss_curve_) == 4


def test_equal_seeds_and_any_threads():
    one = NeuralBoostRegressor(**QUICK).fit(X, Y)
    assert np.array_equal(one.predict(X), NeuralBoostRegressor(**QUICK | {"n_jobs": 3}).fit(X, Y).predict(X))
    assert np.array_equal(one.predict(X), clone(one).fit(X, Y).predict(X))
    other = NeuralBoostRegressor(**QUICK | {"random_state": 1}).fit(X, Y)
    assert not np.array_equal(one.predict(X), other.predict(X))


def test_inputs_are_not_changed_and_units_do_not_matter():
    given, wanted = X.copy(), Y.copy()
    model = NeuralBoostRegressor(**QUICK).fit(given, wanted)
    assert np.array_equal(given, X)
    assert np.array_equal(wanted, Y)
    scaled = NeuralBoostRegressor(**QUICK).fit(X * 1024.0, Y * 4096.0)
    np.testing.assert_allclose(scaled.predict(X * 1024.0), 4096.0 * model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("how", first(1, [False, "cv"]))
def test_order_and_repeated_rows_do_not_matter(how):
    weight = np.random.default_rng(0).integers(1, 4, 150)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(150), weight))
    for loss in ("squared", "absolute", "huber"):
        model = NeuralBoostRegressor(**QUICK | {"loss": loss, "early_stopping": how, "max_iter": 2})
        wanted = model.fit(X, Y, sample_weight=weight).predict(X)
        assert np.array_equal(clone(model).fit(X[order], Y[order]).predict(X), wanted)
    y = np.digitize(Y, [12.0, 16.0])
    model = NeuralBoostClassifier(**QUICK | {"early_stopping": how, "max_iter": 2, "max_terms": 1})
    wanted = model.fit(X, y, sample_weight=weight).predict_proba(X)
    again = clone(model).fit(X[order], y[order])
    assert np.array_equal(again.predict_proba(X), wanted)
    assert model.certificate_.verify(X[order], y[order])


def test_rows_without_weight_do_not_count():
    weight = np.where(np.arange(150) < 100, 1.0, 0.0)
    model = NeuralBoostRegressor(**QUICK).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(
        model.predict(X), NeuralBoostRegressor(**QUICK).fit(X[:100], Y[:100]).predict(X), rtol=1e-9
    )
    y = (Y > 14).astype(int)
    heavy = NeuralBoostClassifier(**QUICK | {"max_iter": 1, "class_weight": {1: 50.0}}).fit(X, y)
    plain = NeuralBoostClassifier(**QUICK | {"max_iter": 1}).fit(X, y)
    assert heavy.predict(X).sum() > plain.predict(X).sum()


# ------------------------------------------------------------------------------------ how much to fit


@pytest.mark.parametrize("how", first(2, [True, "cv", "auto"]))
def test_held_out_rows_choose_rounds_and_decay(how):
    rng = np.random.default_rng(0)
    noisy = X[:, 3] + rng.normal(0, 1.0, 150)
    careful = NeuralBoostRegressor(max_iter=6, early_stopping=how, random_state=0, validation_fraction=0.3)
    careful.fit(X, noisy)
    rash = NeuralBoostRegressor(max_iter=6, early_stopping=False, random_state=0).fit(X, noisy)
    fresh = make_friedman1(500, 6, random_state=1)[0]
    truth = fresh[:, 3]
    errors = [float(np.mean((own.predict(fresh) - truth) ** 2)) for own in (careful, rash)]
    assert errors[0] < 0.5 * errors[1]
    assert careful.l2_ >= careful.l2
    assert careful.ensemble_.n_terms <= 6
    assert len(careful.validation_curve_) >= careful.n_iter_
    assert rash.l2_ == rash.l2
    assert rash.validation_curve_ == ()


def test_the_user_s_decay_is_the_least():
    model = NeuralBoostRegressor(max_iter=2, l2=0.5, random_state=0).fit(X, Y)
    assert model.l2_ >= 0.5


# ------------------------------------------------------------------------------------ few of many nets


@pytest.mark.parametrize("loss", ["squared", "logistic", "cross_entropy", "absolute"])
def test_few_nets_with_a_certificate(loss):
    y = np.digitize(Y, [12.0, 16.0]) if loss == "cross_entropy" else (Y > 14.0).astype(int)
    kind = NeuralBoostClassifier if loss in ("logistic", "cross_entropy") else NeuralBoostRegressor
    y = y if kind is NeuralBoostClassifier else Y
    weight = np.random.default_rng(0).integers(1, 4, 150)
    model = kind(**QUICK | {"loss": loss, "max_terms": 2, "max_iter": 8, "net_iter": 10})
    model.fit(X, y, sample_weight=weight)
    assert 1 <= model.ensemble_.n_terms <= 2
    certificate = model.certificate_
    assert certificate.verify(X, y, sample_weight=weight)
    assert not certificate.verify(X + 0.01, y, sample_weight=weight)
    assert certificate.lower_bound <= certificate.objective
    assert 0.0 <= certificate.guarantee <= 1.0
    changed = deepcopy(certificate.to_dict())
    changed["solution"]["objective"] *= 0.99
    A, target, s = certificate.view(X, y, weight)
    assert checker.check(certificate.to_dict(), A, target, s) == []
    assert checker.check(changed, A, target, s)


def test_the_choice_is_the_best_of_all_choices():
    """Of 6 nets the best 2 by least squares, with the decay that the certificate states."""
    from itertools import combinations

    model = NeuralBoostRegressor(**QUICK | {"max_iter": 6, "max_terms": 2, "net_iter": 8}).fit(X, Y)
    A, target, s = model.certificate_.view(X, Y, None)
    l2 = np.array(model.certificate_.content["columns"]["l2"])
    best = np.inf
    for pair in combinations(range(6), 2):
        use = [0, *(2 + k for k in pair)]  # the constant and the nets, of either sign
        B, price = A[:, use], l2[use]
        w = np.linalg.solve(B.T @ (s[:, None] * B) + np.diag(price), B.T @ (s * target))
        best = min(best, 0.5 * float(s @ (B @ w - target) ** 2) + 0.5 * float(price @ w**2))
    assert model.certificate_.objective == pytest.approx(best, rel=1e-6)
    assert model.certificate_.lower_bound <= best * (1 + 1e-9)


# ------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("kind", ["two", "three", "number", "numbers", "none"])
def test_files_round_trip_to_the_bit(kind, tmp_path):
    y = {
        "two": np.where(Y > 14, "yes", "no"), "three": np.digitize(Y, [12, 16]), "number": Y,
        "numbers": np.column_stack([Y, -Y]), "none": np.full(150, 2.5),
    }[kind]  # fmt: skip
    model = (NeuralBoostClassifier if kind in ("two", "three") else NeuralBoostRegressor)(**QUICK).fit(X, y)
    model.save(tmp_path / "nets.json")
    again = load_model(tmp_path / "nets.json")
    assert np.array_equal(
        again.predict(X).reshape(len(X), -1), np.asarray(model.predict(X)).reshape(len(X), -1)
    )
    assert again.ensemble.n_terms == model.ensemble_.n_terms == (0 if kind == "none" else 4)
    if kind in ("two", "three"):
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="card"):
        again.card()
    with pytest.raises(ValueError, match="feature"):
        again.contributions(X)


def test_frames_keep_their_names(tmp_path):
    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    model = NeuralBoostRegressor(**QUICK).fit(frame, y)
    model.save(tmp_path / "nets.json")
    turned = frame[frame.columns[::-1]]
    again = load_model(tmp_path / "nets.json")
    assert np.array_equal(again.predict(frame), model.predict(frame))
    for own in (model, again):
        with pytest.raises(ValueError, match="feature names"):
            own.predict(turned)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda d: d["nets"][1].update(gamma="x"), r"ensemble\.nets\[1\]\.gamma"),
        (lambda d: d["nets"][0]["hidden"].pop(), r"ensemble\.nets\[0\]\.hidden"),
        (lambda d: d["nets"][0]["hidden"][2].pop(), r"ensemble\.nets\[0\]\.hidden\[2\]"),
        (lambda d: d["nets"][0]["bias"].append(1.0), r"ensemble\.nets\[0\]"),
        (lambda d: d["nets"][0]["out"][0].append(1.0), r"ensemble\.nets\[0\]\.out"),
        (lambda d: d["nets"][0]["offset"].append(1.0), r"ensemble\.nets\[0\]\.offset"),
        (lambda d: d["nets"][1].pop("bias"), r"ensemble\.nets\[1\]"),
        (lambda d: d["nets"][1].update(more=1), r"ensemble\.nets\[1\]"),
        (lambda d: d.update(activation="sine"), r"ensemble\.activation"),
        (lambda d: d.update(loss="hinge"), r"ensemble\.loss"),
        (lambda d: d["scale"].__setitem__(0, 0.0), r"ensemble\.scale"),
        (lambda d: d["mean"].pop(), r"ensemble\.mean"),
        (lambda d: d.update(intercept=[1.0, 2.0, 3.0, 4.0]), r"ensemble\."),
        (lambda d: d.update(nets={}), r"ensemble\.nets"),
        (lambda d: d.update(classes=["a"]), r"ensemble\.classes"),
    ],
)
def test_damaged_files_are_refused_with_the_path(change, path, tmp_path):
    file = tmp_path / "nets.json"
    NeuralBoostClassifier(**QUICK).fit(*IRIS).save(file)
    document = json.loads(file.read_text())
    change(document["ensemble"])
    file.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=path):
        load_model(file)


# ------------------------------------------------------------------------------------ other learners


def test_any_regressor_takes_the_place_of_the_net(tmp_path):
    for estimator in (DecisionTreeRegressor(max_depth=3), SVR(), Ridge()):
        model = NeuralBoostRegressor(**QUICK | {"estimator": estimator}).fit(X, Y)
        assert model.score(X, Y) > 0.5
        assert model.ensemble_.n_terms <= 4
        with pytest.raises(ValueError, match="built-in"):
            model.save(tmp_path / "x.json")
    both = np.column_stack([Y, -Y])  # SVR has one output
    assert NeuralBoostRegressor(**QUICK | {"estimator": SVR()}).fit(X, both).predict(X).shape == (150, 2)
    tree = DecisionTreeRegressor(max_depth=2)
    model = NeuralBoostClassifier(**QUICK | {"estimator": tree, "max_terms": 2}).fit(*IRIS)
    assert model.ensemble_.n_terms <= 2
    assert model.certificate_.verify(*IRIS)
    assert model.score(*IRIS) > 0.9
    assert len(list(model.staged_predict(IRIS[0]))) == 5


def test_a_learner_that_ignores_weights_is_named_once():
    estimator = KNeighborsRegressor()
    with pytest.warns(IgnoredWeightsWarning, match="KNeighborsRegressor") as caught:
        NeuralBoostClassifier(**QUICK | {"estimator": estimator}).fit(*IRIS)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeuralBoostRegressor(**QUICK | {"estimator": estimator}).fit(X, Y)  # all rows weigh the same


class Numb(LinearRegression):
    """Says nothing finite."""

    def predict(self, X):
        return np.full(len(X), np.nan)


def test_a_learner_that_diverges_leaves_a_finite_model():
    model = NeuralBoostRegressor(**QUICK | {"estimator": Numb()}).fit(X, Y)
    assert model.ensemble_.n_terms == 0
    np.testing.assert_allclose(model.predict(X), Y.mean())


def test_nets_of_skorch_get_single_precision():
    class NeuralNet(Ridge):
        def fit(self, X, y):
            assert X.dtype == y.dtype == np.float32
            assert y.ndim == 2
            return super().fit(X, y)

        def predict(self, X):
            assert X.dtype == np.float32
            return super().predict(X)

    NeuralNet.__module__ = "skorch.regressor"
    assert NeuralBoostRegressor(**QUICK | {"estimator": NeuralNet()}).fit(X, Y).score(X, Y) > 0.5


def test_the_same_loop_with_networks_of_scikit_learn():
    peer = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", max_iter=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NeuralBoostRegressor(**QUICK | {"estimator": peer}).fit(X, Y)
    assert len({own.regressor.random_state for own in model.ensemble_.learners}) == 4
    assert model.score(X, Y) > 0.8


class Pseudo(VectorLoss):
    """sqrt(1 + |f - y|^2) - 1, a loss of one's own."""

    name = "pseudo"

    def rows(self, y, f):
        return np.sqrt(1.0 + np.sum((f - y) ** 2, axis=1)) - 1.0

    def gradient(self, y, f):
        return (f - y) / (self.rows(y, f) + 1.0)[:, None]

    def hessian(self, y, f):
        root = (self.rows(y, f) + 1.0)[:, None, None]
        r = f - y
        return np.eye(y.shape[1]) / root - r[:, :, None] * r[:, None, :] / root**3


def test_a_loss_of_one_s_own(tmp_path):
    both = np.column_stack([Y / 5.0, X[:, 3]])
    model = NeuralBoostRegressor(**QUICK | {"loss": Pseudo()}).fit(X, both)
    assert model.score(X, both) > 0.8
    model.save(tmp_path / "own.json")
    assert load_model(tmp_path / "own.json").ensemble.loss == "own"
    classifier = NeuralBoostClassifier(**QUICK | {"loss": Pseudo()}).fit(*IRIS)
    assert classifier.score(*IRIS) > 0.9
    assert not hasattr(classifier, "predict_proba")


# ------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        ({"hidden": 2.5}, "hidden must be a whole number"),
        ({"net_iter": 0}, "net_iter"),
        ({"activation": "sine"}, "activation must be one of 'tanh'"),
        ({"loss": "hinge"}, "loss must be one of 'auto'"),
        ({"loss": SquaredOutputs}, "loss must be one of"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"learning_rate": 2.0}, "learning_rate must be at most 1"),
        ({"refit": "none"}, "refit must be one of 'all', 'last'"),
        ({"l2": -1.0}, "l2 must be a number of at least 0"),
        ({"max_terms": 0}, "max_terms"),
        ({"early_stopping": "yes"}, "early_stopping must be 'auto'"),
        ({"early_stopping": True, "validation_fraction": 1.5}, "validation_fraction"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_arguments(parameters, words):
    for kind, y in ((NeuralBoostRegressor, Y), (NeuralBoostClassifier, (Y > 14).astype(int))):
        with pytest.raises(ValueError, match=words):
            kind(**QUICK | parameters).fit(X, y)


@pytest.mark.parametrize("estimator", [object(), "tree", DecisionTreeRegressor, 3])
def test_what_is_no_regressor(estimator):
    with pytest.raises(TypeError, match="estimator must be a regressor with fit, predict"):
        NeuralBoostRegressor(estimator=estimator).fit(X, Y)


def test_wrong_tables():
    broken = X.copy()
    broken[3, 2] = np.nan
    for kind, y in ((NeuralBoostRegressor, Y), (NeuralBoostClassifier, (Y > 14).astype(int))):
        for wrong in (broken, np.where(np.isnan(broken), np.inf, broken)):
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                kind(**QUICK).fit(wrong, y)
        model = kind(**QUICK).fit(X, y)
        with pytest.raises(ValueError, match="NaN"):
            model.predict(broken)
        with pytest.raises(ValueError, match="features"):
            model.predict(X[:, :3])
        with pytest.raises(ValueError, match="inconsistent"):
            kind(**QUICK).fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        NeuralBoostRegressor(**QUICK).fit(X, np.where(np.arange(150) == 5, np.nan, Y))
    with pytest.raises(ValueError, match="only one class"):
        NeuralBoostClassifier(**QUICK).fit(X, np.ones(150))
    assert np.isfinite(NeuralBoostRegressor(**QUICK).fit(X * 1e300, Y).predict(X * 1e300)).all()


def test_constant_targets_and_more_outputs_than_rows():
    flat = NeuralBoostRegressor(random_state=0).fit(X, np.full(150, 3.5))
    np.testing.assert_allclose(flat.predict(X), 3.5)
    wide = np.random.default_rng(0).normal(size=(6, 20))
    model = NeuralBoostRegressor(**QUICK).fit(X[:6], wide)
    assert np.isfinite(model.predict(X)).all()
    assert model.predict(X).shape == (150, 20)
    partly = NeuralBoostRegressor(**QUICK).fit(X, np.column_stack([Y, np.full(150, 7.0)]))
    np.testing.assert_allclose(partly.predict(X)[:, 1], 7.0, atol=1e-6)


def test_constant_columns():
    wide = np.column_stack([X, np.full(150, 1e9), np.zeros(150)])
    model = NeuralBoostRegressor(**QUICK).fit(wide, Y)
    assert np.isfinite(model.predict(wide)).all()
    assert model.score(wide, Y) > 0.8


def test_verbose_prints_every_round(capsys):
    NeuralBoostRegressor(**QUICK | {"verbose": 1}).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[cardboost] net 1: loss ")


@pytest.mark.parametrize("scale", [1e300, 1e200, 1e-200, 1e-320])
def test_numbers_of_any_size(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    model = NeuralBoostRegressor(max_iter=2, early_stopping=False, random_state=0, n_jobs=1)
    np.testing.assert_allclose(model.fit(X, y * scale).predict(X) / scale, y, atol=0.5)
    assert model.fit(X * scale, y).score(X * scale, y) > 0.8
