"""Two classes, more classes and regression on the command line: roles, dates, tests by groups and by time."""

import csv
import io
import json

import numpy as np
import pytest

from cardboost import CardBoostClassifier, CardBoostRegressor, load_model
from cardboost.cli.main import main
from marks import first

QUICK = ["--max-terms", "3", "--hot-start", "10", "--threads", "1"]
LABELS = {
    "binary": lambda score: np.where(score > 0, "ill", "fit"),
    "multiclass": lambda score: np.array(["low", "mid", "top"])[np.digitize(score, [-0.5, 0.5])],
    "regression": lambda score: np.round(10 * score, 3),
}


def write_csv(path, columns, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def table(task, rows=240, seed=0):
    """Numbers, labels, an identifier, a constant, dates, patients with three visits each, and a target."""
    rng = np.random.default_rng(seed)
    age, dose = rng.normal(50, 12, rows).round(1), rng.normal(size=rows).round(3)
    ward = rng.choice(["north", "south", "west"], rows)
    day = np.datetime64("2023-01-01") + rng.integers(0, 700, rows)
    late = (day - np.datetime64("2023-12-17")).astype(int) / 700
    score = (age - 50) / 12 + 0.8 * (ward == "west") + late + 0.4 * rng.normal(size=rows)
    return {
        "id": [f"CUST-{k:06d}" for k in range(1000, 1000 + rows)],
        "age": age.tolist(),
        "dose": dose.tolist(),
        "ward": ward.tolist(),
        "site": ["A"] * rows,
        "seen": [f"{str(d)[8:]}.{str(d)[5:7]}.{str(d)[:4]}" for d in day],
        "patient": [f"p{k // 3}" for k in range(rows)],
        "outcome": LABELS[task](score).tolist(),
    }


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=list(LABELS))
def task(request, work):
    write_csv(work / "data.csv", table(request.param))
    return request.param


def run(capsys, *words):
    code = main(list(words))
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_from_a_table_to_all_verbs(task, work, capsys):
    words = ["--target", "outcome", "--group", "patient", *QUICK]
    code, out, err = run(capsys, "fit", "data.csv", *words)
    assert code == 0, err
    for name, role in (("id", "identifier"), ("site", "constant"), ("seen", "date"), ("ward", "categorical")):
        assert any(line.split()[:2] == [name, role] for line in out.splitlines())
    for name in ("id", "site", "seen"):
        assert f"left out: '{name}'" in err
    model = load_model("run/model.json")
    assert model.kind == task
    assert list(model.ensemble.feature_names) == ["age", "dose", "ward"]
    card = (work / "run/card.txt").read_text()
    assert "Left out of the table: id, site, seen, patient." in " ".join(card.split())
    header = (work / "run/card.h").read_text()
    assert "ward" in header

    code, out, err = run(capsys, "certify", "run/model.json", "data.csv")
    assert code == 0, out + err
    code, out, err = run(capsys, "prove", "run/model.json", "data.csv", "--max-nodes", "20", "--quiet")
    assert code == 0, err
    assert run(capsys, "certify", "run/model.json", "data.csv", "--json")[0] == 0

    code, out, err = run(
        capsys, "predict", "run/model.json", "data.csv", "--keep", "id,outcome", "--reasons", "1"
    )
    assert code == 0, err
    scored, data = rows_of(out), table(task)
    assert [row["id"] for row in scored] == data["id"]
    if task == "regression":
        close = [abs(float(row["prediction"]) - float(row["outcome"])) for row in scored]
        assert np.mean(close) < 8
    else:
        assert np.mean([row["class"] == row["outcome"] for row in scored]) > 0.6
    assert all(row["reason 1"].split()[0] in ("age", "dose", "ward") for row in scored)

    code, out, err = run(
        capsys, "evaluate", "run/model.json", "data.csv", "--by", "ward", "--resamples", "20"
    )
    assert code == 0, err
    assert max(map(len, out.splitlines())) < 80
    code, out, _ = run(capsys, "evaluate", "run/model.json", "data.csv", "--json", "--resamples", "0")
    facts = json.loads(out)
    assert (facts["task"], facts["rows"]) == (task, 240)


def test_the_model_is_that_of_the_estimator(task, work):
    pandas = pytest.importorskip("pandas")
    assert (
        main(["fit", "data.csv", "--target", "outcome", *QUICK, "--drop", "id,site,seen,patient", "--quiet"])
        == 0
    )
    frame = pandas.read_csv("data.csv")
    kind = CardBoostRegressor if task == "regression" else CardBoostClassifier
    twin = kind(max_terms=3, hot_start=10, n_jobs=1).fit(frame[["age", "dose", "ward"]], frame["outcome"])
    model = load_model("run/model.json")
    assert model.ensemble.to_dict() == twin.ensemble_.to_dict()
    twins = twin.certificate_ if task == "multiclass" else [twin.certificate_]
    contents = model.certificate if task == "multiclass" else [model.certificate]
    assert contents == [certificate.to_dict() for certificate in twins]


def test_a_front_for_every_task(task, work, capsys):
    words = ["--target", "outcome", "--group", "patient", "--sizes", "1-2", "--folds", "2", "--threads", "1"]
    code, _, err = run(capsys, "pareto", "data.csv", *words)
    assert code == 0, err
    assert load_model("front/model.json").kind == task
    assert run(capsys, "certify", "front/model.json", "data.csv")[0] == 0


def test_parts_of_dates_are_features(task, work, capsys):
    words = ["--target", "outcome", *QUICK, "--date", "seen=year,month,age", "--quiet"]
    assert run(capsys, "fit", "data.csv", *words)[0] == 0
    model = load_model("run/model.json")
    assert set(model.ensemble.feature_names) >= {"seen (year)", "seen (month)", "seen (age)"}
    assert run(capsys, "certify", "run/model.json", "data.csv")[0] == 0
    code, out, err = run(capsys, "predict", "run/model.json", "data.csv")
    assert code == 0, err
    assert len(rows_of(out)) == 240


@pytest.mark.parametrize(
    "words", first(2, [["--group", "patient"], ["--holdout-by", "seen"], ["--holdout-by", "patient"], []])
)
def test_what_is_held_out(task, work, capsys, words):
    fit = ["fit", "data.csv", "--target", "outcome", *QUICK, "--holdout", "0.3", "--seed", "1", *words]
    code, out, err = run(capsys, *fit)
    assert code == 0, err
    assert any(line.startswith("test ") for line in out.splitlines())
    notes = load_model("run/model.json").training["data"]["holdout"]
    assert 40 <= notes["rows"] <= 90
    assert notes["latest"] == (words == ["--holdout-by", "seen"])
    code, out, err = run(capsys, "certify", "run/model.json", "data.csv")
    assert code == 0, out + err
    assert f"{240 - notes['rows']} rows" in out


def test_rows_set_aside_and_class_weights_are_remembered(task, work, capsys):
    words = ["--validation-fraction", "0.25"]
    if task != "regression":
        words += ["--class-weight", "balanced"]
    code, _, err = run(capsys, "fit", "data.csv", "--target", "outcome", *QUICK, *words)
    assert code == 0, err
    code, out, err = run(capsys, "certify", "run/model.json", "data.csv")
    assert code == 0, out + err


def test_a_config_repeats_a_run(task, work, capsys):
    words = ["--target", "outcome", *QUICK, "--date", "seen=year", "--group", "patient", "--holdout", "0.2"]
    assert run(capsys, "fit", "data.csv", *words, "--quiet")[0] == 0
    assert run(capsys, "fit", "--config", "run/config.toml", "--out", "again", "--quiet")[0] == 0
    assert (work / "again/model.json").read_text() == (work / "run/model.json").read_text()


def test_roles_can_be_given(work, capsys):
    write_csv(work / "data.csv", table("binary"))
    words = [
        "--target",
        "outcome",
        *QUICK,
        "--categorical",
        "id",
        "--id",
        "ward",
        "--numeric",
        "age,dose",
        "--json",
    ]
    code, out, _ = run(capsys, "fit", "data.csv", *words)
    assert code == 0
    roles = {column["name"]: column["role"] for column in json.loads(out)["columns"]}
    assert (roles["id"], roles["ward"], roles["site"]) == ("categorical", "identifier", "constant")


@pytest.mark.parametrize(
    ("cells", "words", "expected", "remark"),
    [
        (["0", "1"], [], "binary", None),
        (["no", "yes"], [], "binary", None),
        (["1", "2", "3"], [], "multiclass", "has 3 different whole numbers: classes"),
        (["1", "2", "3"], ["--task", "regression"], "regression", None),
        (["0.5", "1.5", "2.5"], [], "regression", "has 3 different numbers: regression"),
        (["0.5", "1.5", "2.5"], ["--task", "multiclass"], "multiclass", None),
        ([str(k) for k in range(30)], [], "regression", "has 30 different numbers: regression"),
    ],
)
def test_the_task_is_guessed_and_said(work, capsys, cells, words, expected, remark):
    rng = np.random.default_rng(0)
    target = [cells[k % len(cells)] for k in range(120)]
    write_csv(work / "data.csv", {"a": rng.normal(size=120).round(4).tolist(), "y": target})
    code, _, err = run(capsys, "fit", "data.csv", "--target", "y", *QUICK, "--max-terms", "1", *words)
    assert code == 0, err
    assert load_model("run/model.json").kind == expected
    assert (remark in err) if remark else "different" not in err


def test_a_leak_and_a_small_table_are_said(work, capsys):
    data = table("binary", rows=45)
    data["settled"] = [int(label == "ill") + 0.25 for label in data["outcome"]]
    write_csv(work / "data.csv", data)
    _, _, err = run(capsys, "fit", "data.csv", "--target", "outcome", *QUICK)
    assert "column 'settled' alone separates the target almost perfectly" in err
    assert "there are only 45 rows" in err


def test_points_are_written_and_evaluated(work, capsys):
    write_csv(work / "data.csv", table("binary"))
    assert run(capsys, "fit", "data.csv", "--target", "outcome", *QUICK, "--points", "5", "--quiet")[0] == 0
    _, out, _ = run(capsys, "predict", "run/model.json", "data.csv", "--json", "--reasons", "2")
    rows = [json.loads(line) for line in out.splitlines()]
    assert all(isinstance(row["points"], int) for row in rows)
    card = load_model("run/model.json").scorecard()
    assert {row["class"] for row in rows if row["points"] >= card.threshold} == {"ill"}
    _, out, _ = run(capsys, "evaluate", "run/model.json", "data.csv", "--resamples", "0")
    assert f"{card.threshold} points" in out


def test_european_files_and_several_files(work, capsys):
    data = table("binary")
    comma = {
        name: [str(cell).replace(".", ",") if isinstance(cell, float) else cell for cell in cells]
        for name, cells in data.items()
    }
    write_csv(work / "de.csv", comma, delimiter=";")
    half = {name: cells[:120] for name, cells in data.items()}
    write_csv(work / "part1.csv", half)
    write_csv(work / "part2.csv", {name: cells[120:] for name, cells in data.items()})
    write_csv(work / "all.csv", data)
    models = []
    for files in (["all.csv"], ["de.csv"], ["part1.csv", "part2.csv"], ["part*.csv"]):
        assert run(capsys, "fit", *files, "--target", "outcome", *QUICK, "--quiet")[0] == 0
        models.append(load_model("run/model.json"))
        assert run(capsys, "certify", "run/model.json", *files)[0] == 0
        assert run(capsys, "predict", "run/model.json", *files)[1].count("\n") == 241
    assert all(model.ensemble == models[0].ensemble for model in models)
