"""JavaScript: scores to the bit, probabilities but for a few last bits, and names that stay text."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from cross import application
from exported import (
    HOSTILE,
    fixed_models,
    float64_values,
    random_ensemble,
    raw_rows,
    table_of,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardboost.data.categories import Categories
from cardboost.export import export_model
from cardboost.export.javascript import export_javascript
from cardboost.model import Ensemble, MulticlassEnsemble, Term
from cardboost.model.files import Model
from cardboost.model.operating_point import OperatingPoint
from cardboost.model.reasons import ensemble_reasons
from cardboost.model.scorecard import OddsScale, Scorecard
from marks import first

from drawn_models import bits, drawn_ensembles, drawn_multiclass  # isort: skip

MODELS = fixed_models()
MODELS["threshold"] = replace(random_ensemble(1), operating_point=OperatingPoint(-0.8, "fpr<=0.1"))
SCRIPT_NAMES = (
    "</script><!--",
    "<script>",
    "\u2028\u2029",
    "__proto__",
    "constructor",
    "${x}`",
    "*/ //\r",
    '"];',
    "\0",
)

# a missing value is written as [k]: one of four that mean it
RUN = """
const fs = require("fs"), path = require("path");
const {rows, names, files} = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const missing = [null, undefined, NaN, ""];
const plain = (value) => Array.isArray(value) ? missing[value[0]] : value;
const out = files.map((file) => {
  const score = require(path.resolve(file));
  return rows.map((row) => {
    row = row.map(plain);
    if (!names) return score(row);
    const named = {};
    names.forEach((name, k) => Object.defineProperty(named, name, { value: row[k], enumerable: true }));
    const found = score(named);
    if (JSON.stringify(found) !== JSON.stringify(score(row))) throw new Error("not the same by position");
    return found;
  });
});
fs.writeFileSync(process.argv[3], JSON.stringify(out));
"""


def run(model, rows, folder, seed=0):
    """The answers of Node.js, rows read by name and by position."""
    rng = np.random.default_rng(seed)
    ensemble = getattr(model, "ensemble", model)
    empty = [j in ensemble.categories and "" in _labels(ensemble, j) for j in range(ensemble.n_features)]

    def cell(value, j):
        return [int(rng.integers(3 if empty[j] else 4))] if value is None or value != value else value

    (folder / "run.js").write_text(RUN)
    (folder / "model.js").write_text(export_javascript(model), encoding="ascii")
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    cells = [[cell(value, j) for j, value in enumerate(row)] for row in rows]
    given = {"rows": cells, "names": names, "files": [str(folder / "model.js")]}
    (folder / "rows.json").write_text(json.dumps(given))
    command = [
        application("node"),
        str(folder / "run.js"),
        str(folder / "rows.json"),
        str(folder / "out.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "out.json").read_text())[0]


def _labels(ensemble, j):
    return (*ensemble.categories[j].kept, *ensemble.categories[j].rare)


def column(answers, *names):
    return np.array([next(answer[name] for name in names if name in answer) for answer in answers])


def check(model, rows, folder):
    """Scores to the bit; probabilities to 4 units in the last place, as exp is rounded elsewhere, those of
    several classes to 8; classes, contributions, reasons."""
    table = table_of(model, rows)
    answers = run(model, rows, folder)
    wanted = model.decision_function(table)
    assert bits(column(answers, "score", "scores", "prediction")) == bits(wanted)
    if model.classes is not None:
        found = [answer["class"] for answer in answers]
        assert found == model.predict(table).tolist()
        chance = model.predict_proba(table)
        chance = chance[:, 1] if wanted.ndim == 1 else chance
        off = np.abs(column(answers, "probability", "probabilities") - chance)
        assert (off <= (4 if wanted.ndim == 1 else 8) * np.spacing(chance)).all()
    used = list(model.features_used)
    added = [[entry["contribution"] for entry in answer["contributions"]] for answer in answers]
    assert bits(added) == bits(model.contributions(table)[:, used])
    reasons = ensemble_reasons(model, table, model.n_features)
    several = isinstance(model, MulticlassEnsemble)  # their lines are those of all classes together
    for answer, own in zip(answers, reasons, strict=True):
        given = [
            (entry["feature"], several or entry["text"], entry["strength"]) for entry in answer["reasons"]
        ]
        assert given == [(reason.name, several or reason.text, reason.points) for reason in own]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rows", first(1, [300, 10_000]))
def test_every_cut(rows, name, tmp_path):
    check(MODELS[name], raw_rows(MODELS[name], rows, float64_values), tmp_path)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(drawn_ensembles(), drawn_multiclass()))
def test_drawn_models(tmp_path, ensemble):
    rows = raw_rows(ensemble, 100, float64_values)
    if ensemble.kind == "binary":  # a score that is the threshold is not above it
        score = float(ensemble.decision_function(table_of(ensemble, rows))[0])
        ensemble = replace(ensemble, operating_point=OperatingPoint(score, "fpr<=0.1"))
    check(ensemble, rows, tmp_path)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_other_losses(loss, tmp_path):
    model = random_ensemble(7, loss=loss)
    rows = raw_rows(model, 200, float64_values)
    if loss == "squared_hinge":
        check(model, rows, tmp_path)
    else:
        assert "probability" not in run(model, rows, tmp_path)[0]


@pytest.mark.parametrize("scale", [None, OddsScale(600.0, 30.0, 20.0)])
def test_a_scorecard_speaks_in_points(scale, tmp_path):
    terms = (
        Term(0, 2.5, 1, False, 1.5),
        Term(0, 4.0, -1, True, 0.5),
        Term(1, 10.0, -1, False, 1.0),
        Term(2, None, 1, True, 2.0, category="b"),
    )
    unit = 0.5 if scale is None else scale.unit("logistic")
    terms = tuple(Term(**{**vars(term), "weight": term.weight / 0.5 * unit}) for term in terms)
    labels = {2: Categories(("a", "b"), ("c",))}
    model = Ensemble("logistic", 0.125, terms, ("age", "dose", "kind"), 3, ("no", "yes"), labels, unit)
    card = Scorecard(model, scale=scale)
    rows = raw_rows(model, 300, float64_values)
    answers, table = run(card, rows, tmp_path), table_of(model, rows)
    assert column(answers, "points").tolist() == card.total(table).tolist()
    assert [answer["class"] for answer in answers] == card.predict(table).tolist()
    added = [[entry["contribution"] for entry in answer["contributions"]] for answer in answers]
    assert added == card.points(table).tolist()
    np.testing.assert_allclose(column(answers, "probability"), card.predict_proba(table)[:, 1], rtol=1e-13)
    for answer, own in zip(answers, card.reasons(table, 3), strict=True):
        given = [(entry["feature"], entry["text"], entry["strength"]) for entry in answer["reasons"]]
        assert given == [(reason.name, reason.text, reason.points) for reason in own]
    for subject in (card, Model(model, None, {"scorecard": card.notes()})):
        assert export_model(subject, "javascript") == export_javascript(card)


def test_names_and_labels_stay_text(tmp_path):
    names = (*SCRIPT_NAMES, *HOSTILE)
    labels = Categories(tuple(sorted(SCRIPT_NAMES)))
    terms = tuple(Term(j, 0.5, 1, False, 1.0 + j) for j in range(len(names)))
    terms = (*terms, Term(len(names), None, 1, False, 0.5, category="__proto__"))
    model = Ensemble(
        "logistic", 0.25, terms, (*names, "label"), len(names) + 1, SCRIPT_NAMES[:2], {len(names): labels}
    )
    check(model, raw_rows(model, 300, float64_values), tmp_path)
    text = export_javascript(model)
    assert text.isascii()
    assert not any(mark in text for mark in ("</", "<!--", "<script", "\r"))


def test_script_and_module(tmp_path):
    model = random_ensemble(1)
    (tmp_path / "script.js").write_text(export_javascript(model, name="risk"))
    (tmp_path / "card.mjs").write_text(export_javascript(model, name="risk", module=True))
    row = json.dumps([0.5, 1, 2, "7", "a", "5"])
    (tmp_path / "module.mjs").write_text(
        f'import {{ risk }} from "./card.mjs"; console.log(JSON.stringify(risk({row})));'
    )
    page = (
        'const vm = require("vm"), fs = require("fs"), page = vm.createContext({});'
        f'vm.runInContext(fs.readFileSync("{tmp_path}/script.js", "utf8"), page);'
        f"console.log(JSON.stringify(vm.runInContext('this.risk({row})', page)));"
    )
    printed = [
        subprocess.run([application("node"), *command], capture_output=True, text=True, check=True).stdout
        for command in ([str(tmp_path / "module.mjs")], ["-e", page])
    ]
    assert printed[0] == printed[1]
    wanted = model.decision_function(table_of(model, [[0.5, 1, 2, 7, "a", 5]]))
    assert json.loads(printed[0])["score"] == wanted[0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": 1}, 'the row has no "dose"'),
        ([1], 'the row has no "dose"'),
        ({"age": "old", "dose": 1}, '"age" is no finite number: old'),
        ({"age": 1e999, "dose": 1}, '"age" is no finite number: Infinity'),
        (None, "a row is an object"),
    ],
)
def test_rows_that_are_refused(row, message, tmp_path):
    terms = (Term(0, 2.5, 1, False, 1.0), Term(1, 2.5, 1, False, 1.0))
    model = Ensemble("logistic", 0.0, terms, ("age", "dose"), 2, (0, 1))
    text = json.dumps(row).replace("Infinity", "1e999")
    (tmp_path / "card.js").write_text(export_javascript(model))
    (tmp_path / "try.js").write_text(
        f'try {{ require("./card.js")({text}) }} catch (e) {{ console.log(e.message) }}'
    )
    command = [application("node"), str(tmp_path / "try.js")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(message)


def test_what_cannot_be_exported():
    for name in ("9", "a b", "class", "é", 3):
        with pytest.raises(ValueError, match="name: expected"):
            export_javascript(random_ensemble(1), name=name)
    with pytest.raises(ValueError, match="module: expected"):
        export_javascript(random_ensemble(1), module="yes")
    labels = {0: Categories((1, 2**53 + 1))}
    terms = (Term(0, None, 1, False, 1.0, category=1),)
    with pytest.raises(ValueError, match="more digits than numbers in JavaScript"):
        export_javascript(Ensemble("logistic", 0.0, terms, None, 1, (0, 1), labels))
