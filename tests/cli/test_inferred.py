"""What is said about the columns of a file before the fit, and in JSON after it."""

import json

import numpy as np
import pytest

from cardboost.cli.inferred import column_lines, describe, remark_lines
from cardboost.cli.main import main
from cardboost.data.frame import Coded, Frame


def facts(**columns):
    n_rows = len(next(iter(columns.values())))
    values = {}
    for name, own in columns.items():
        if any(isinstance(cell, str) for cell in own):
            labels = tuple(sorted({cell for cell in own if cell is not None}))
            values[name] = Coded(
                labels, np.array([-1 if c is None else labels.index(c) for c in own], np.int32)
            )
        else:
            values[name] = np.array(own, dtype=float)
    return {own.name: own for own in describe(Frame(values, n_rows))}


def test_kinds():
    nan = np.nan
    found = facts(
        number=[1.5, 2, nan, 4],
        flag=[0, 1, nan, 1],
        answer=["yes", "no", "no", None],
        Truth=["True", "False", "True", "True"],
        town=["Rome", "Oslo", "Rome", "Rome"],
        empty=[nan] * 4,
        two=[1, 2, 1, 2],
    )
    assert {name: own.kind for name, own in found.items()} == {
        "number": "numbers",
        "flag": "yes/no",
        "answer": "yes/no",
        "Truth": "yes/no",
        "town": "categories",
        "empty": "empty",
        "two": "numbers",
    }
    assert (found["number"].distinct, found["number"].missing, found["number"].example) == (3, 1, 1.5)
    assert (found["town"].distinct, found["town"].missing, found["town"].example) == (2, 0, "Rome")
    assert (found["empty"].distinct, found["empty"].missing, found["empty"].example) == (0, 4, None)


def test_remarks():
    nan = np.nan
    found = facts(
        fine=[3, 1, 2, 2],
        same=[7, 7, 7, 7],
        some=["a", None, "a", "a"],
        empty=[nan] * 4,
        name=["a", "b", "c", "d"],
        row=[1, 2, 3, 4],
        **{"odd name": ["a", "b", "c", "d"]},
    )
    said = {name: own.remark for name, own in found.items()}
    assert said["fine"] is None
    assert said["same"] == "column 'same' has the same value in every row."
    assert said["some"] == "column 'some' has the same value in every row that has one."
    assert said["empty"] == "column 'empty' has no values: it cannot be used."
    assert said["row"].endswith("counts the rows and looks like an identifier: --drop row leaves it out.")
    assert said["odd name"].endswith("looks like an identifier: --drop 'odd name' leaves it out.")
    assert len(remark_lines(list(found.values()))) == 6


def test_many_distinct_numbers_are_not_counted():
    numbers = np.arange(50_000) % 997.0
    found = facts(many=np.random.default_rng(0).normal(size=50_000), few=numbers)
    assert found["many"].distinct is None
    assert found["few"].distinct == 997
    head, many, few = column_lines(list(found.values()))
    assert "over 1,000" in many
    assert few.split() == ["few", "numbers", "997", "0", "0"]
    assert head.split() == ["column", "kind", "distinct", "missing", "example"]


def test_the_table_is_narrow_and_short():
    columns = {f"column with a rather long name {k}": ["long text " * 30, "b", "b", "b"] for k in range(200)}
    columns["column with a rather long name 150"] = ["a", "a", "a", "a"]
    lines = column_lines(list(facts(**columns).values()))
    assert max(map(len, lines)) < 80
    assert len(lines) == 33
    assert lines[-1] == "... and 169 more columns"
    many = facts(**{f"c{k}": [1, 1, 1] for k in range(20)})
    assert len(remark_lines(list(many.values()))) == 13


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.normal(size=80)
    lines = [f"{k},{a:.3f},same,,{int(a > 0)}" for k, a in enumerate(age)]
    (tmp_path / "data.csv").write_text("\n".join(["id,age,site,note,ill", *lines]))
    return "data.csv"


WORDS = ["--target", "ill", "--max-terms", "2", "--hot-start", "5", "--threads", "1"]


def test_fit_shows_the_columns_first(path, capsys):
    assert main(["fit", path, *WORDS]) == 0
    seen = capsys.readouterr()
    assert seen.out.startswith("data.csv: 80 rows (")
    assert seen.out.index("column  kind") < seen.out.index("Scorecard")
    assert [line.split("column ")[1].split(" ")[0] for line in seen.err.splitlines()] == [
        "'id'",
        "'site'",
        "'note'",
    ]
    assert main(["fit", path, *WORDS, "--quiet"]) == 0
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "")


def test_json_has_everything_a_script_needs(path, capsys):
    assert main(["fit", path, *WORDS, "--json", "--holdout", "0.25"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {
        "cardboost", "terms", "points", "features_used", "classes", "objective", "null_objective", "status",
        "bounds",
        "scope", "lower_bound", "guarantee", "scores", "stopped_because", "interrupted", "seconds",
        "parameters", "data", "columns", "card", "header", "files",
    }  # fmt: skip
    assert set(result["columns"][0]) == {"name", "kind", "distinct", "missing", "example", "remark"}
    assert {"format", "delimiter", "encoding", "compression", "rows", "classes"} <= set(result["data"])
    assert result["bounds"][0]["lower_bound"] <= result["objective"] <= result["null_objective"]
    assert result["files"] == [
        "run/model.json",
        "run/card.txt",
        "run/card.h",
        "run/test_vectors.h",
        "run/log.jsonl",
        "run/config.toml",
    ]
    assert "Scorecard for ill = 1" in result["card"]


def test_numbers_that_a_float_rounds_are_remarked_on():
    found = facts(id=[2.0**53 + 2, 3.0, -5.0], near=[2.0**53, 3.0, -5.0])
    assert found["id"].remark == (
        "column 'id' has numbers above 2^53, whose last digits are rounded: --drop id leaves it out."
    )
    assert found["near"].remark is None
