"""The card in a notebook, the figure of the step functions, and contributions as shap takes them."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from cardboost import CardBoostClassifier, CardBoostRegressor
from cardboost.model.explanation import Explanation

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
QUICK = {"max_terms": 4, "hot_start": 8, "n_jobs": 1}


def people(rows=300):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "<b>$x$</b>", "nurse", "a label that is far too long"], rows),
            "age": rng.integers(18, 90, rows).astype(float),
            "noise": rng.normal(size=rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "age"] = np.nan
    score = frame.age.fillna(20) / 50 + 1.5 * (frame.job == "<b>$x$</b>") + rng.normal(size=rows)
    return frame, np.where(score > 1.6, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    X, y = people()
    model = CardBoostClassifier(categorical_features=["job"], **QUICK).fit(X, y)
    iris = load_iris()
    several = CardBoostClassifier(**QUICK).fit(iris.data, iris.target)
    data = load_diabetes()
    number = CardBoostRegressor(**QUICK).fit(data.data, data.target)
    return {
        "two classes": (model, X, y),
        "several classes": (several, iris.data, iris.target),
        "regression": (number, data.data, data.target),
    }


# ------------------------------------------------------------------------------------------------ notebooks


def test_a_fitted_model_shows_its_card(fitted):
    model, *_ = fitted["two classes"]
    html = model._repr_mimebundle_()["text/html"]
    assert model._repr_html_().partition("<details>")[0] == html.partition("<details>")[0]
    assert "How to read this card" in html
    assert "&lt;b&gt;$x$&lt;/b&gt;" in html
    assert "<b>" not in html.partition("<details>")[0]
    assert "sk-top-container" in html.partition("<details>")[2]  # scikit-learn's diagram
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


def test_other_estimators_show_what_scikit_learn_shows(fitted):
    X, y = fitted["several classes"][1:]
    learners = CardBoostClassifier(dictionary=DecisionTreeClassifier(max_depth=2), **QUICK).fit(X, y == 1)
    inside = make_pipeline(fitted["two classes"][0])
    for estimator in (CardBoostClassifier(), learners, inside):
        html = estimator._repr_mimebundle_()["text/html"]
        assert html.startswith("<style>")
        assert "How to read" not in html


# ------------------------------------------------------------------------------------------------ figures


@pytest.mark.parametrize("name", ["two classes", "several classes", "regression"])
def test_the_figure(name, fitted, tmp_path):
    import matplotlib.pyplot as plt

    model, X, y = fitted[name]
    used = len(model.ensemble_.features_used)
    for arguments, axes in (((), used), ((X,), 2 * used), ((X, y), 3 * used)):
        figure = model.plot(*arguments)
        figure.savefig(tmp_path / "card.png")
        assert len(figure.axes) == axes
        plt.close(figure)
    assert len(model.plot(max_features=1).axes) == 1
    plt.close("all")


def test_the_figure_shows_levels_and_means(fitted):
    import matplotlib.pyplot as plt

    model, X, y = fitted["two classes"]
    figure = model.plot(X, y)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    order = np.argsort(-model.feature_importances_, kind="stable")
    assert [title for title in titles if title] == [
        X.columns[j] for j in order if model.feature_importances_[j]
    ]
    upper = next(axes for axes in figure.axes if axes.get_title(loc="left") == "age")
    (step,) = [step for step in model.ensemble_.step_functions() if step.name == "age"]
    drawn = upper.patches[0].get_data()
    assert drawn.values.tolist() == step.distinct()[1]
    assert drawn.edges[1:-1].tolist() == step.distinct()[0]
    assert upper.lines[1].get_ydata().tolist() == [step.missing]
    means = figure.axes[figure.axes.index(upper) + 2].patches[0].get_data()
    line = np.searchsorted(step.cuts, X.age[X.age.notna()])
    rates = [np.mean(y[X.age.notna()][line == k] == "yes") for k in range(len(step.cuts) + 1)]
    np.testing.assert_allclose(means.values, rates)
    plt.close("all")


def test_what_a_figure_refuses(fitted):
    model, X, y = fitted["two classes"]
    with pytest.raises(ValueError, match="y: the targets of which rows"):
        model.plot(y=y)
    with pytest.raises(ValueError, match="y: expected one target for each of 300 rows"):
        model.plot(X, y[:5])
    with pytest.raises(ValueError, match="max_features must be"):
        model.plot(max_features=0)


def test_matplotlib_is_an_extra(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"cardboost\[plot\]"):
        fitted["two classes"][0].plot()


# ------------------------------------------------------------------------------------------------ explain


@pytest.mark.parametrize("name", ["two classes", "several classes", "regression"])
def test_contributions_add_up(name, fitted):
    model, X, _ = fitted[name]
    score = model.predict(X) if name == "regression" else model.decision_function(X)
    card = model.explain(X)
    assert isinstance(card, Explanation)
    assert len(card) == len(X)
    assert (card.values == model.contributions(X)).all()
    total = card.base_values.copy()
    for j in range(model.n_features_in_):
        total += card.values[:, j]
    assert (total == score).all()  # in the order of the features, to the bit
    centred = model.explain(X, background=X[:100])
    np.testing.assert_allclose(centred.base_values + centred.values.sum(axis=1), score, rtol=0, atol=1e-12)
    np.testing.assert_allclose(centred.base_values[0], score[:100].mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(centred.values[:100].mean(axis=0), 0, atol=1e-12)
    assert card.data.shape == (len(X), model.n_features_in_)
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    assert card.feature_names == list(names)


def test_an_explanation_of_shap_where_it_is_installed(fitted, monkeypatch):
    class Given:
        def __init__(self, values, base_values, data, feature_names):
            self.values, self.base_values, self.data, self.names = values, base_values, data, feature_names

    shap = ModuleType("shap")
    shap.Explanation = Given
    monkeypatch.setitem(sys.modules, "shap", shap)
    model, X, _ = fitted["two classes"]
    made = model.explain(X)
    assert type(made) is Given
    assert (made.values == model.contributions(X)).all()
    assert made.data[0, 0] == X.job[0]
