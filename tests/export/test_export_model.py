"""One function for all formats: files, options, messages; and how large C is on small processors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cross import cross_tool
from exported import random_ensemble, random_multiclass, stumps, tool
from sklearn.tree import DecisionTreeClassifier

from cardboost import CardBoostClassifier, CardBoostRegressor, load_model
from cardboost.cli.main import main
from cardboost.export import FORMATS, export_model
from cardboost.export import measure as measuring
from cardboost.export.measure import TARGETS, Target, measure


def test_every_format_writes_what_it_returns(tmp_path):
    for k, name in enumerate(FORMATS):
        path = tmp_path / f"file {k}"
        content = export_model(random_ensemble(1), name, path)
        data = path.read_bytes()
        assert (data if isinstance(content, bytes) else data.decode("utf-8")) == content
        assert export_model(random_ensemble(1), name) == content
    assert len(list(tmp_path.iterdir())) == len(FORMATS)


def test_json_is_a_model_file(tmp_path):
    own = random_multiclass(2)
    export_model(own, "json", tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").ensemble == own


def test_test_vectors_name_their_header(tmp_path):
    export_model(stumps((0, 0.5, 1.0)), "c", tmp_path / "card.h", test_vectors=tmp_path / "vectors.h")
    assert '#include "card.h"' in (tmp_path / "vectors.h").read_text()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("cobol",), {}, "format: expected 'c', 'c-int16', .*, 'json', found 'cobol'"),
        (("c",), {"depth": 3}, "depth: this format has no such option; its options are: number, prefix"),
        (("c",), {"number": "int16"}, "number: the format says it"),
        (("json",), {"indent": 2}, "its options are: none"),
        (("python",), {"name": "a b"}, "name: expected the name of a function"),
        (("python",), {"name": "if"}, "name: expected the name of a function"),
        (("python",), {"by": "magic"}, "by: expected"),
        (("sql",), {"output": "label"}, "output: expected 'score', 'class' or 'probability'"),
        (("sql",), {"table": 3}, "table: expected a name"),
    ],
)
def test_wrong_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        export_model(stumps((0, 0.5, 1.0)), *arguments, **options)


def test_classes_in_sql():
    with pytest.raises(ValueError, match="two classes"):
        export_model(random_multiclass(1), "sql", output="class")
    with pytest.raises(ValueError, match="needs a classifier"):
        export_model(random_ensemble(3, loss="squared"), "sql", output="class")


def test_a_failed_export_leaves_the_old_file(tmp_path):
    path = tmp_path / "card.h"
    path.write_text("old")
    with pytest.raises(ValueError):
        export_model(stumps((0, 0.5, 1.0)), "c", path, prefix="no good")
    assert path.read_text() == "old"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        export_model(stumps((0, 0.5, 1.0)), "c", tmp_path / "nowhere" / "card.h")


# ------------------------------------------------------------------------------------------------ estimators


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2


def test_estimators_export(data, tmp_path):
    X, y = data
    for model, target in (
        (CardBoostClassifier(max_terms=3, l2=0.01, hot_start=5, n_jobs=1), y > 0.5),
        (CardBoostRegressor(max_terms=3, l2=0.01, hot_start=5, n_jobs=1), y),
    ):
        model.fit(X, target)
        space = {}
        exec(model.export("python", tmp_path / "score.py"), {}, space)
        wanted = model.ensemble_.decision_function(X)
        assert [space["score"](row) for row in X] == wanted.tolist()
        assert (tmp_path / "score.py").is_file()
        assert "static inline" in model.export("c-int16", prefix="mine")


def test_learners_are_refused(data):
    X, y = data
    model = CardBoostClassifier(
        dictionary=DecisionTreeClassifier(max_depth=2), max_iter=3, hot_start=3, n_jobs=1
    )
    model.fit(X, y > 0.5)
    for name in FORMATS:
        with pytest.raises(ValueError, match="only models of stumps can be exported"):
            model.export(name)


# ------------------------------------------------------------------------------------------------ the verb


def run(capsys, *words):
    code = main(list(words))
    seen = capsys.readouterr()
    return code, seen.out, seen.err


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export_model(random_ensemble(1), "json", "model.json")
    return tmp_path


def test_the_verb(saved, capsys):
    code, out, err = run(
        capsys, "export", "model.json", "--format", "c", "--out", "card.h", "--test-vectors", "tests.h"
    )
    assert (code, err) == (0, "")
    assert "card.h" in out
    assert "tests.h" in out
    assert '#include "card.h"' in (saved / "tests.h").read_text()
    code, out, err = run(capsys, "export", "model.json", "--format", "python")
    assert (code, err) == (0, "")
    assert out == export_model(random_ensemble(1), "python")
    words = (
        "export",
        "model.json",
        "--format",
        "c-int16",
        "--prefix",
        "mine",
        "--probability",
        "--scale",
        "x0=10",
    )
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "mine_probability" in out
    assert "Scale 10.0" in out
    assert (
        json.loads(run(capsys, "export", "model.json", "--format", "json")[1])["version"] == 3
    )  # linear models have 4


def test_the_options_of_the_verb(saved, capsys):
    def export(format, *words):
        assert run(capsys, "export", "model.json", "--format", format, *words)[::2] == (0, "")

    model = random_ensemble(1)
    export("javascript", "--module", "--name", "risk", "--out", "card.mjs")
    assert (saved / "card.mjs").read_text() == export_model(model, "javascript", module=True, name="risk")
    export("excel", "--rows", "7", "--out", "card.xlsx")
    assert (saved / "card.xlsx").read_bytes() == export_model(model, "excel", rows=7)
    export("c-int16", "--no-missing", "--layout", "ifs", "--out", "card.h")
    assert (saved / "card.h").read_text() == export_model(model, "c-int16", missing=False, layout="ifs")
    (saved / "rows.csv").write_text("x5,x4,x3,x2,x1,x0,more\n5,a,1.5,-2,0,12345,z\n,,,,0.125,1,z\n")
    export("c", "--out", "card.h", "--test-vectors", "plain.h")
    export("c", "--out", "card.h", "--test-vectors", "rows.h", "--vectors-from", "rows.csv")
    assert "12345.0f" not in (saved / "plain.h").read_text()
    assert "12345.0f" in (saved / "rows.h").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "cobol"], "expected c, c-int16, python, sql, javascript, excel, onnx or json"),
        (["--format", "onnx"], "--format onnx needs --out"),
        (["--format", "sql", "--prefix", "a"], "--prefix goes with --format c and c-int16 only"),
        (["--format", "c", "--scale", "x0=1"], "--scale goes with --format c-int16 only"),
        (["--format", "c-int16", "--scale", "x0"], "--scale x0: write it as FEATURE=CODES_PER_UNIT"),
        (["--format", "c-int16", "--scale", "x9=1"], "no feature that the model uses"),
        (["--format", "c", "--prefix", "9"], "prefix"),
        (["--format", "c", "--out", "no/where.h"], "does not exist"),
        (["--format", "sql", "--measure"], "--measure goes with"),
        (["--format", "excel"], "--format excel needs --out"),
        (["--format", "excel", "--rows", "0", "--out", "a.xlsx"], "--rows: expected a whole number"),
        (["--format", "python", "--module"], "--module goes with --format javascript only"),
        (["--format", "c", "--name", "f"], "--name goes with --format python and javascript only"),
        (["--format", "sql", "--layout", "ifs"], "--layout goes with"),
        (["--format", "json", "--no-missing"], "--no-missing goes with"),
        (["--format", "c", "--out", "card.h", "--vectors-from", "rows.csv"], "--vectors-from adds rows to"),
        (
            ["--format", "c", "--out", "card.h", "--test-vectors", "t.h", "--vectors-from", "rows.csv"],
            "cannot read 'rows.csv'",
        ),
    ],
)
def test_wrong_words(saved, capsys, words, message):
    code, out, err = run(capsys, "export", "model.json", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_model_that_is_none(saved, capsys):
    (saved / "model.json").write_text("{}")
    code, _, err = run(capsys, "export", "model.json", "--format", "c")
    assert code == 2
    assert "not a model file" in err


# ------------------------------------------------------------------------------------------------ sizes


def test_sizes_on_this_computer(monkeypatch):
    """The way of measuring, with a compiler that is always there."""
    tool("gcc")
    monkeypatch.setattr(measuring, "TARGETS", (Target("this computer", "", (), ("-lgcc",)),))
    (few,) = measure(stumps((0, 0.5, 1.0)), number="int16")
    (more,) = measure(random_ensemble(1, terms=30), number="int16")
    assert few.target == "this computer"
    assert 0 < few.header < more.header
    assert 0 < few.linked < more.linked
    monkeypatch.setattr(measuring, "TARGETS", (Target("nowhere", "no-such-", (), ()),))
    assert measure(stumps((0, 0.5, 1.0))) == []


def test_sizes_on_a_cortex_m0(saved, capsys, monkeypatch):
    cross_tool("arm-none-eabi-gcc")
    monkeypatch.setattr(measuring, "TARGETS", TARGETS[:1])
    ensemble = stumps(
        *((k, 10.0 * k + 0.5, 1.0 + k / 8) for k in range(10)), intercept=0.1, missing_left=True
    )
    sizes = {number: measure(ensemble, number=number)[0] for number in ("int16", "float")}
    assert sizes["int16"].target == TARGETS[0].name
    assert sizes["int16"].linked <= 150
    assert sizes["float"].linked <= 250  # no helpers for floating point
    assert sizes["int16"].linked == sizes["int16"].header
    other = measure(ensemble, number="int16", layout="ifs")[0]
    assert sizes["int16"].linked < other.linked  # the smaller layout was taken
    code, out, _ = run(capsys, "export", "model.json", "--format", "c", "--out", "card.h", "--measure")
    assert code == 0
    assert "Cortex-M0" in out
