"""Every verb end to end: what it prints, what it writes, and its exit code."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cardboost import CardBoostClassifier, load_model
from cardboost.cli import files
from cardboost.cli.main import main
from cardboost.cli.progress import HEADER
from cardboost.data.frame import Frame

QUICK = ["--max-terms", "3", "--hot-start", "10", "--threads", "1"]


def make_rows(rows=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    X[rng.random((rows, 4)) < 0.05] = np.nan
    positive = np.nan_to_num(X[:, 0]) + 0.6 * np.nan_to_num(X[:, 2]) + 0.3 * rng.normal(size=rows) > 0
    return dict(zip(["age", "bmi", "dose", "noise level"], X.T, strict=True)), positive


def write_csv(path, columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        cells = [["" if v != v else v for v in np.asarray(own).tolist()] for own in columns.values()]
        writer.writerows(zip(*cells, strict=True))
    return str(path)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data(work):
    features, positive = make_rows()
    labels = np.where(positive, "ill", "fit")
    return write_csv(work / "data.csv", {**features, "state": labels}), features, positive


def run(capsys, *words):
    code = main(list(words))
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_demo(work, capsys):
    code, out, _ = run(capsys, "demo", "--max-terms", "3")
    assert code == 0
    for part in (
        "Scorecard for malignant = 1",
        "pool",
        "dictionary",
        "test       accuracy",
        "verified",
    ):
        assert part in out
    assert max(map(len, out.splitlines())) < 80
    folder = work / "cardboost-demo"
    assert {p.name for p in folder.iterdir()} == {
        "model.json",
        "card.txt",
        "card.h",
        "test_vectors.h",
        "log.jsonl",
        "train.csv",
        "test.csv",
    }
    model, train, test = (str(folder / name) for name in ("model.json", "train.csv", "test.csv"))
    assert run(capsys, "certify", model, train, "--target", "malignant")[0] == 0
    assert run(capsys, "certify", model, test, "--target", "malignant")[0] == 1
    code, out, _ = run(capsys, "predict", model, test)
    assert code == 0
    assert len(out.splitlines()) == 172


def next_lines(out):
    """The commands that are printed at the end, as words."""
    lines = out.split("\nNext:\n")[1].replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines]


def test_what_comes_next_can_be_copied(work, capsys):
    said = run(capsys, "demo", "--max-terms", "2", "--out", "my demo")[1]
    commands = next_lines(said)
    assert [words[:2] for words in commands] == [
        ["cardboost", verb] for verb in ("predict", "evaluate", "certify", "fit")
    ]
    for _, *words in commands:
        code, out, _ = run(capsys, *words)
        assert code == 0, words
    for _, *words in next_lines(out):
        assert run(capsys, *words)[0] == 0, words
    assert run(capsys, "pareto", "my demo/train.csv", "--target", "malignant", "--sizes", "1-2")[0] == 0


def test_what_comes_next_names_the_command_that_runs(monkeypatch):
    monkeypatch.setattr(sys, "argv", [".venv/bin/cardboost", "demo"])
    monkeypatch.setenv("PATH", "")
    assert files.shell_line("predict", "a b") == "  .venv/bin/cardboost predict 'a b'"
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert files.shell_line("predict") == "  cardboost predict"


def test_another_command_of_that_name_is_not_named(work, monkeypatch):
    for folder in ("ours", "other"):
        (work / folder).mkdir()
        (work / folder / "cardboost").write_text("")
    monkeypatch.setattr(sys, "argv", ["ours/cardboost", "demo"])
    monkeypatch.setattr(shutil, "which", lambda name: f"other/{name}")
    assert files.shell_line("predict") == "  ours/cardboost predict"
    monkeypatch.setattr(shutil, "which", lambda name: f"{work}/ours/{name}")
    assert files.shell_line("predict") == "  cardboost predict"


def test_nothing_comes_next_after_the_standard_input(data, work, capsys, monkeypatch):
    path = data[0]
    for verb, options in (("fit", QUICK), ("pareto", ["--sizes", "1-2", "--folds", "2", "--hot-start", "5"])):
        with open(path) as file:
            monkeypatch.setattr(sys, "stdin", file)
            code, out, _ = run(capsys, verb, "-", "--target", "state", *options)
        assert code == 0
        assert "Next:" not in out
        assert " - " not in out.split("The files")[1]


def test_fit_writes_the_model_that_python_fits(data, work, capsys):
    path, features, positive = data
    code, out, err = run(capsys, "fit", path, "--target", "state", *QUICK, "--out", "out/run")
    assert (code, err) == (0, "")
    assert "Scorecard for state = ill" in out
    assert "cardboost certify out/run/model.json" in out
    model = load_model(work / "out/run/model.json")
    twin = CardBoostClassifier(max_terms=3, hot_start=10, n_jobs=1)
    twin.fit(Frame(features, len(positive)), np.where(positive, "ill", "fit"))
    assert json.dumps(model.ensemble.to_dict()) == json.dumps(twin.ensemble_.to_dict())
    assert model.certificate == twin.certificate_.to_dict()
    assert (work / "out/run/card.txt").read_text() in out + "\n"

    log = log_of(work / "out/run")
    assert [line["event"] for line in log] == ["start", *["round"] * len(twin.trace_), "end"]
    assert log[0]["data"]["classes"] == {"fit": int((~positive).sum()), "ill": int(positive.sum())}
    assert log[0]["parameters"]["max_terms"] == 3
    assert log[1]["columns"] == 0
    assert log[-1]["objective"] == twin.certificate_.objective
    assert not log[-1]["interrupted"]


def test_fit_selects_again_after_every_candidate(data, work, capsys):
    path, features, positive = data
    words = ["fit", path, "--target", "state", "--max-terms", "3", "--max-iter", "12", "--threads", "1"]
    code, _, err = run(capsys, *words, "--hot-start", "0", "--reselect", "--selector", "polish")
    assert (code, err) == (0, "")
    twin = CardBoostClassifier(
        max_terms=3, hot_start=0, max_iter=12, reselect=True, selector="polish", n_jobs=1
    )
    twin.fit(Frame(features, len(positive)), np.where(positive, "ill", "fit"))
    log = log_of(work / "run")
    assert {"hot_start": 0, "reselect": True, "selector": "polish"}.items() <= log[0]["parameters"].items()
    assert [line["columns"] for line in log[1:-1]] == list(range(13))
    assert log[-1]["objective"] == twin.certificate_.objective
    assert run(capsys, "certify", "run/model.json", path, "--target", "state")[0] == 0
    code, out, err = run(capsys, *words, "--hot-start", "0")
    assert (code, out) == (2, "")
    assert "--hot-start 0 needs --reselect" in err
    code, out, err = run(capsys, *words, "--selector", "tabu")
    assert (code, "Scorecard" in out) == (2, False)
    assert "Tabu search" in err


def test_progress_of_the_proof(data, capsys, monkeypatch):
    monkeypatch.setattr("cardboost.cli.progress._PLAIN_SECONDS", 0.0)
    words = ["fit", data[0], "--target", "state", *QUICK, "--l2", "0.01", "--selector", "exact"]
    code, _, err = run(capsys, *words)
    assert code == 0
    head, *lines = err.splitlines()
    assert head == HEADER
    stages = [
        re.match(r"(finding candidates|choosing terms|proving|binning|model)", line)[1] for line in lines
    ]
    assert {"finding candidates", "proving", "model"} <= set(stages)
    assert stages[-1] == "model"
    for line in lines:
        assert len(line) == len(HEADER)
    assert re.fullmatch(r"model, [a-z ]+ +3 +0\.\d+ +0\.\d+ +\d+\.\d % +\d+\.\d", lines[-1])
    assert run(capsys, *words, "--quiet")[1:] == ("", "")


def test_the_same_command_writes_the_same_model(data, work, capsys):
    for out in ("one", "two"):
        assert run(capsys, "fit", data[0], "--target", "state", *QUICK, "--out", out, "--quiet") == (
            0,
            "",
            "",
        )
    for name in ("model.json", "card.txt", "card.h", "test_vectors.h", "config.toml"):
        assert (work / "one" / name).read_bytes() == (work / "two" / name).read_bytes()


def test_fit_writes_the_c_that_export_writes(data, work, capsys):
    """The header and its self-test are those of the verb, and the self-test passes."""
    code, out, _ = run(capsys, "fit", data[0], "--target", "state", *QUICK)
    assert code == 0
    assert "card.h is C without floating point (c-int16)" in out
    (work / "again").mkdir()
    files = ["--out", "again/card.h", "--test-vectors", "again/test_vectors.h"]
    assert run(capsys, "export", "run/model.json", "--format", "c-int16", *files)[0] == 0
    for name in ("card.h", "test_vectors.h"):
        assert (work / "run" / name).read_bytes() == (work / "again" / name).read_bytes()
    assert '#include "card.h"' in (work / "run/test_vectors.h").read_text()
    (work / "run/main.c").write_text(
        '#include "test_vectors.h"\nint main(void) { return cardboost_self_test(); }\n'
    )
    subprocess.run(["gcc", "-std=c99", "-o", "main", "main.c"], cwd=work / "run", check=True)
    assert subprocess.run(["./main"], cwd=work / "run", check=False).returncode == 0


def refusing(monkeypatch, *formats):
    """Exports to these formats are not possible."""
    from cardboost import export

    def refuse(ensemble, path, options):
        raise ValueError("a reason.")

    for name in formats:
        monkeypatch.setitem(export.FORMATS, name, refuse)


def test_floats_where_whole_numbers_are_not_proven(data, work, capsys, monkeypatch):
    refusing(monkeypatch, "c-int16")
    code, out, _ = run(capsys, "fit", data[0], "--target", "state", *QUICK)
    assert code == 0
    assert "card.h is C that takes floats (c)" in out
    assert "cardboost_class(const float *x)" in (work / "run/card.h").read_text()
    _, out, _ = run(capsys, "fit", data[0], "--target", "state", *QUICK, "--json")
    assert json.loads(out)["header"]["format"] == "c"


def test_no_header_of_an_earlier_model_is_left(data, work, capsys, monkeypatch):
    assert run(capsys, "fit", data[0], "--target", "state", *QUICK, "--quiet")[0] == 0
    refusing(monkeypatch, "c-int16", "c")
    code, out, _ = run(capsys, "fit", data[0], "--target", "state", *QUICK)
    assert code == 0
    assert "There is no card.h: a reason." in out
    assert {path.name for path in (work / "run").iterdir()} == {
        "model.json",
        "card.txt",
        "log.jsonl",
        "config.toml",
    }
    _, out, _ = run(capsys, "fit", data[0], "--target", "state", *QUICK, "--json")
    result = json.loads(out)
    assert result["header"] == {"format": None, "remark": "There is no card.h: a reason."}
    assert result["files"] == ["run/model.json", "run/card.txt", "run/log.jsonl", "run/config.toml"]


def test_the_positive_class_can_be_chosen(data, work, capsys):
    path, _, positive = data
    code, _, _ = run(capsys, "fit", path, "--target", "state", *QUICK, "--positive", "fit")
    assert code == 0
    model = load_model(work / "run/model.json")
    assert model.classes == ("ill", "fit")
    assert run(capsys, "certify", "run/model.json", path, "--target", "state")[0] == 0
    _, out, _ = run(capsys, "predict", "run/model.json", path)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (
        np.mean([row["class"] == ("ill" if p else "fit") for row, p in zip(rows, positive, strict=True)])
        > 0.8
    )
    assert all((float(row["score"]) > 0) == (row["class"] == "fit") for row in rows)


def test_fit_as_json_with_held_out_rows_and_weights(work, capsys):
    features, positive = make_rows()
    columns = {**features, "name": ["x"] * 150, "w": np.arange(150) % 3, "y": positive.astype(int)}
    path = write_csv(work / "data.csv", columns)
    words = ["--target", "y", "--weight", "w", "--drop", "name", "--holdout", "0.3", "--json", *QUICK]
    code, out, _ = run(capsys, "fit", path, *words)
    assert code == 0
    result = json.loads(out)
    assert result["data"]["holdout"]["rows"] == 45
    assert set(result["scores"]) == {"training", "test"}
    assert result["terms"] <= 3
    code, out, _ = run(capsys, "certify", "run/model.json", path, "--target", "y", "--weight", "w", "--json")
    assert code == 0
    assert json.loads(out)["bounds"] == result["bounds"]
    assert run(capsys, "certify", "run/model.json", path)[0] == 0  # target and weight as noted in the file


def test_a_model_without_selection(data, capsys):
    code, out, _ = run(capsys, "fit", data[0], "--target", "state", "--max-terms", "none", "--max-iter", "30")
    assert code == 0
    assert "terms: see run/card.txt for the card" in out
    assert run(capsys, "certify", "run/model.json", data[0], "--target", "state")[0] == 0


def test_a_card_of_the_hinge_has_scores_and_no_probabilities(data, capsys):
    code, out, _ = run(capsys, "fit", data[0], "--target", "state", *QUICK, "--loss", "hinge")
    assert code == 0
    assert "smooth_hinge loss" in out
    assert "log loss" not in out
    assert run(capsys, "certify", "run/model.json", data[0], "--target", "state")[0] == 0
    assert run(capsys, "predict", "run/model.json", data[0])[1].splitlines()[0] == "score,class"


def test_predict_by_names(data, work, capsys):
    path, features, _ = data
    run(capsys, "fit", path, "--target", "state", *QUICK)
    ensemble = load_model(work / "run/model.json").ensemble
    score = ensemble.decision_function(Frame(features, 150))
    used = [ensemble.feature_name(j) for j in ensemble.features_used]
    assert len(used) < 4
    shuffled = {"id": ["text"] * 150, **{name: features[name] for name in reversed(used)}}
    other = write_csv(work / "other.csv", shuffled)
    code, _, _ = run(capsys, "predict", "run/model.json", other, "--out", "scores.csv", "--contributions")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO((work / "scores.csv").read_text(encoding="utf-8"))))
    assert [float(row["score"]) for row in rows] == score.tolist()
    chance = ensemble.predict_proba(Frame(features, 150))[:, 1]
    assert [float(row["probability"]) for row in rows] == chance.tolist()
    assert {row["class"] for row in rows} == {"ill", "fit"}
    parts = [[float(row[key]) for key in row if key.startswith("contribution:")] for row in rows]
    assert [len(own) for own in parts] == [len(used) + 1] * 150
    np.testing.assert_allclose(np.sum(parts, axis=1), score, rtol=0, atol=1e-12)

    del shuffled[used[0]]
    code, out, err = run(capsys, "predict", "run/model.json", write_csv(work / "other.csv", shuffled))
    assert (code, out) == (2, "")
    assert f"has no column {used[0]!r}, which the model needs" in err


def test_models_without_names_take_x0_x1(work, capsys):
    features, positive = make_rows()
    X = np.column_stack(list(features.values()))
    CardBoostClassifier(max_terms=2, hot_start=5).fit(X, positive).save("model.json")
    named = write_csv(work / "data.csv", {**{f"x{j}": X[:, j] for j in range(4)}, "y": positive})
    assert run(capsys, "certify", "model.json", named, "--target", "y")[0] == 0
    assert run(capsys, "predict", "model.json", named)[0] == 0
    code, _, err = run(capsys, "certify", "model.json", named)
    assert code == 2
    assert "--target is needed" in err
    code, _, err = run(capsys, "predict", "model.json", write_csv(work / "other.csv", features))
    assert code == 2
    assert "call them x0, x1" in err


def test_certify_says_first_that_the_data_are_others(data, work, capsys):
    path = data[0]
    run(capsys, "fit", path, "--target", "state", *QUICK)
    lines = Path(path).read_text().splitlines()
    (work / "fewer.csv").write_text("\n".join(lines[:-3]) + "\n")
    code, out, _ = run(capsys, "certify", "run/model.json", "fewer.csv", "--target", "state")
    assert code == 1
    assert out.startswith("The certificate is about other data.")
    assert "bounds[" not in out


def test_certify_finds_what_was_changed(data, work, capsys):
    path = data[0]
    run(capsys, "fit", path, "--target", "state", *QUICK)
    document = json.loads((work / "run/model.json").read_text())

    def verdict(change):
        changed = json.loads(json.dumps(document))
        change(changed)
        (work / "changed.json").write_text(json.dumps(changed))
        return run(capsys, "certify", "changed.json", path, "--target", "state")

    def heavier(changed):
        changed["ensemble"]["terms"][0]["weight"] *= 1.5

    def shifted(changed):
        changed["ensemble"]["intercept"] += 0.25

    def fewer(changed):
        changed["ensemble"]["terms"].pop()

    def doubled(changed):
        changed["ensemble"]["terms"][1] = changed["ensemble"]["terms"][0]

    def bolder(changed):
        changed["certificate"]["bounds"][0]["guarantee"] = 0.999

    def broken(changed):
        changed["certificate"] = {"digest": 7}

    expected = [
        (heavier, "ensemble.terms[0]"),
        (shifted, "ensemble.intercept"),
        (fewer, "ensemble.terms"),
        (doubled, "ensemble.terms[1]"),
        (bolder, "bounds[0].guarantee"),
        (broken, "NOT hold"),
    ]
    for change, place in expected:
        code, out, err = verdict(change)
        assert code == 1, change
        assert place in out, change
        assert err == ""
    code, _, err = verdict(lambda changed: changed.update(certificate=None))
    assert code == 2
    assert "holds no certificate" in err
    code, _, err = verdict(lambda changed: changed["ensemble"].update(classes=["fit", "well"]))
    assert code == 2
    assert "column 'state': the label \"ill\" is none of the model's classes" in err


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("a,y\n1,0\n2,1\n", ["--target", "Y"], "has no column 'Y': did you mean 'y'?"),
        ("a,y\n1,0\n2,1\n", ["--target", "state"], "has no column 'state'"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--drop", "b"], "has no column 'b'"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--drop", "y"], "this column is already given by --target"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--drop", "a"], "no column to learn from"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--weight", "w"], "has no column 'w'"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--weight", "a", "--drop", "a"], "already given by --weight"),
        ("a,w,y\n1,-1,0\n2,1,1\n", ["--target", "y", "--weight", "w"], "weights must not be negative"),
        ("a,w,y\n1,,0\n2,1,1\n", ["--target", "y", "--weight", "w"], "has missing values"),
        ("a,w,y\n1,0,0\n2,0,1\n", ["--target", "y", "--weight", "w"], "is zero in every row"),
        (
            "a,w,y\n1,0,0\n2,1,1\n",
            ["--target", "y", "--weight", "w"],
            "class 0 of the target 'y' has no row with a weight above 0",
        ),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--positive", "2"], "the classes of 'y' are 0 and 1"),
        (
            "a,y\n1,0\n2,1\n",
            ["--target", "y", "--holdout", "0.9"],
            "leaves no rows for the test, or not all",
        ),
        ("a,y\n1,0\n2,0\n", ["--target", "y"], "the target 'y' is 0 in every row"),
        ("a,y\n1,0\n", ["--target", "y"], "is 0 in every row"),
        ("a,y\n", ["--target", "y"], "has a header but no rows"),
        ("", ["--target", "y"], "is empty"),
        ("a,y\n1,0\n2,\n", ["--target", "y"], "line 3: the target 'y' is missing"),
        ("a,y\n1,0\n2,1\n3,2\n", ["--target", "y", "--task", "binary"], "has 3 different values, not two"),
        ("a,y\n1,u\n2,v\n", ["--target", "y", "--task", "regression"], "holds 'u', which is not a number"),
        ("a,y\n1,0\n2,1\n3,2\n", ["--target", "y", "--positive", "1"], "--positive is for two classes"),
        ("a,y\n1,.5\n2,1\n3,2\n", ["--target", "y", "--points", "5"], "whole points are for two classes"),
        ("a,y\n1,.5\n2,1\n3,2\n", ["--target", "y", "--class-weight", "balanced"], "is for classes"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--date", "a=year"], "holds no dates"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--date", "a=hours"], "expected"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--holdout-by", "a"], "--holdout-by needs --holdout"),
        (
            "a,y\n1,0\n2,1\n",
            ["--target", "y", "--max-terms", "0"],
            "expected a whole number of at least 1, or auto, or none",
        ),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--max-bins", "300"], "expected a whole number from 2 to 255"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--l1", "nan"], "expected a number of at least 0"),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--time", "0"], "expected a number above 0"),
        (
            "a,y\n1,0\n2,1\n",
            ["--target", "y", "--loss", "huber"],
            "expected logistic, exponential, squared_hinge, hinge or squared, got 'huber'",
        ),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--delimiter", "ab"], "expected one character"),
        (",y\n1,0\n2,1\n", ["--target", "y"], "column 1 has no name"),
        ("a,y\n1,0\n2,1\n", [], "cardboost fit: --target is needed. See `cardboost fit --help`."),
        ("a,y\n1,0\n2,1\n", ["--target", "y", "--out", "data.csv"], "cannot make the folder"),
    ],
)
def test_bad_input_gets_one_sentence(work, capsys, text, words, sentence):
    (work / "data.csv").write_text(text)
    code, out, err = run(capsys, "fit", "data.csv", *words)
    assert (code, "Scorecard" in out) == (2, False)
    assert sentence in err
    assert err.count("\n") == 1
    assert not (work / "run/model.json").exists()


def test_two_rows_are_enough(work, capsys):
    (work / "data.csv").write_text("a,y\n1,0\n2,1\n")
    assert run(capsys, "fit", "data.csv", "--target", "y")[0] == 0
    assert run(capsys, "certify", "run/model.json", "data.csv", "--target", "y")[0] == 0


def test_a_bad_model_file(work, capsys):
    (work / "data.csv").write_text("a,y\n1,0\n2,1\n")
    (work / "model.json").write_text("{}")
    for path, sentence in (("model.json", "format: expected"), ("none.json", "no such file")):
        for verb in ("predict", "certify"):
            code, _, err = run(capsys, verb, path, "data.csv")
            assert code == 2
            assert sentence in err
            assert err.count("\n") == 1


def test_a_linear_model_predicts_and_has_no_certificate_to_check_here(work, capsys):
    from cardboost.model import save
    from cardboost.model.linear import LinearModel, LinearScore

    save(work / "model.json", LinearModel("logistic", 1, ("age",), (0, 1), (LinearScore(0.0, (0,), (1.0,)),)))
    (work / "rows.csv").write_text("age,state\n1,0\n-2.5,1\n")
    assert run(capsys, "predict", "model.json", "rows.csv")[1].splitlines()[0] == "score,probability,class"
    code, out, err = run(capsys, "certify", "model.json", "rows.csv", "--target", "state")
    assert (code, out) == (2, "")
    assert "model.json holds no card" in err
    assert err.count("\n") == 1
    assert "only models of stumps" in run(capsys, "export", "model.json", "--format", "c")[2]


def test_as_a_command_of_its_own(data, work, capsys):
    command = [sys.executable, "-m", "cardboost.cli.main"]
    words = ["fit", data[0], "--target", "state", *QUICK, "--out", "run"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, cwd=work, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Scorecard for state = ill" in done.stdout
    code, _, err = run(capsys, "fit", "none.csv", "--target", "state")
    assert code == 2
    assert err == "cardboost fit: cannot read 'none.csv': no such file or directory.\n"


def test_text_that_cannot_be_shown_gets_escapes(work, capsys):
    from cardboost.model import Ensemble, Term, save

    save("model.json", Ensemble("logistic", 0.0, (Term(0, 0.5, 1, False, 1.0),), ("a",), 1, ("\ud800", "é")))
    (work / "data.csv").write_text("a\n0\n1\n")
    code, out, _ = run(capsys, "predict", "model.json", "data.csv")
    assert code == 0
    assert [row["class"] for row in csv.DictReader(io.StringIO(out))] == ["é", "\\ud800"]
    assert run(capsys, "predict", "model.json", "data.csv", "--out", "scores.csv")[0] == 0
    assert (work / "scores.csv").read_text(encoding="utf-8") == out
    rows = "".join(f"{k / 7},{int(k > 40)}\n" for k in (9 * k % 80 for k in range(80)))
    (work / "größe.csv").write_text(f"größe,y\n{rows}", encoding="utf-8")
    command = [sys.executable, "-X", "utf8=0", "-m", "cardboost.cli.main"]
    words = ["fit", "größe.csv", "--target", "y", "--threads", "1"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, *words], capture_output=True, cwd=work, timeout=600, env=plain)
    assert done.returncode == 0
    assert b"gr\\xf6\\xdfe" in done.stdout
    assert b"column 'gr\\xf6\\xdfe' alone separates the target" in done.stderr
    assert "größe" in (work / "run/card.txt").read_text(encoding="utf-8")


def test_regularisation_is_chosen_and_told(work, capsys):
    """By cross-validation, or as it is given; on the screen, in JSON, in the model and in config.toml."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 90)).round(1)
    lines = [f"{a[i]},{b[i]},{int(a[i] + 0.3 * b[i] > rng.normal())}" for i in range(90)]
    (work / "t.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    fit = ["fit", "t.csv", "--target", "y", "--hot-start", "8"]
    code, out, _ = run(capsys, *fit, "--max-terms", "auto")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("l2 ")]
    notes = json.loads((work / "run" / "model.json").read_text())["training"]["regularisation"]
    assert notes["reason"] == "chosen by cross-validation"
    terms = f"{notes['max_terms']} term{'s' if notes['max_terms'] > 1 else ''}"
    assert line == f"l2         {notes['l2']:g}, at most {terms}, chosen by cross-validation"
    assert 'max-terms = "auto"' in (work / "run" / "config.toml").read_text()
    code, out, _ = run(
        capsys, "fit", "--config", "run/config.toml", "--l2", "0.5", "--max-terms", "1", "--json"
    )
    assert code == 0
    assert json.loads(out)["regularisation"] == {"l2": 0.5, "max_terms": 1, "reason": "given"}
