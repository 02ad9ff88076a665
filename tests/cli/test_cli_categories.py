"""Columns of text on the command line: what is inferred, said and refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from cardboost.cli.files import BadInput
from cardboost.cli.fit import command
from cardboost.cli.main import main
from cardboost.cli.model_rows import ModelColumns
from cardboost.cli.training_table import read_training_table
from cardboost.data.categories import Categories
from cardboost.model.ensemble import Ensemble
from cardboost.model.files import Model


def shops(rows=200, seed=0):
    """A file with numbers, text, whole numbers that are names, and an identifier."""
    rng = np.random.default_rng(seed)
    region, zip_, age = (
        rng.choice(["north", "south", ""], rows),
        rng.choice([100, 200, 300], rows),
        rng.normal(size=rows),
    )
    closed = (region == "north") + (zip_ == 200) + 0.3 * rng.normal(size=rows) > 0.7
    lines = ["region,zip,age,name,closed"]
    lines += [f"{r},{z},{a!r},shop {k},{int(c)}" for k, (r, z, a, c) in enumerate(
        zip(region, zip_, age.tolist(), closed, strict=True))]  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shops.csv").write_text(shops())
    return tmp_path


def rows_of(*words):
    return read_training_table(command.arguments(["shops.csv", "--target", "closed", *words]))


def run(capsys, *words):
    code = main(list(words))
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_what_is_inferred(work):
    read = rows_of()
    assert read.facts["categories"] == {"region": 2}
    assert read.facts["features"] == 3
    assert read.facts["missing"] == sum(line.startswith(",") for line in shops().splitlines())
    assert {column.name: str(column.role) for column in read.roles} == {
        "region": "categorical",
        "zip": "numeric",
        "age": "numeric",
        "name": "identifier",
    }
    assert list(read.facts["left_out"]) == ["name"]
    read = rows_of("--categorical", "zip,name")
    assert read.facts["categories"] == {"region": 2, "zip": 3, "name": 200}
    assert read.facts["left_out"] == {}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--categorical", "regoin"], "has no column 'regoin': did you mean 'region'?"),
        (
            ["--categorical", "closed"],
            "--categorical closed: this column is already given by --target.",
        ),
        (
            ["--categorical", "zip", "--drop", "zip"],
            "--categorical zip: this column is already given by --drop.",
        ),
        (
            ["--categorical", "zip", "--weight", "zip"],
            "--categorical zip: this column is already given by --weight.",
        ),
        (["--weight", "name"], "column 'name' holds 'shop 0', which is not a number"),
    ],
)
def test_bad_choices(work, words, sentence):
    with pytest.raises(BadInput) as fault:
        rows_of(*words)
    assert sentence in str(fault.value)


def test_a_stray_cell_is_pointed_out(work, capsys):
    lines = shops().splitlines()
    cells = lines[120].split(",")
    cells[2] = "n.a."
    lines[120] = ",".join(cells)
    (work / "shops.csv").write_text("\n".join(lines))
    code, out, err = run(capsys, "fit", "shops.csv", "--target", "closed")
    assert (code, out) == (2, "")
    assert "shops.csv, line 121: column 'age' holds 'n.a.', but 199 of its 200 cells are numbers" in err
    assert "--categorical age" in err
    assert err.count("\n") == 1


def model(categories=None, certificate=None, training=None):
    ensemble = Ensemble("logistic", 0.0, (), ("region", "zip", "age"), 3, (0, 1))
    if categories is not None:
        object.__setattr__(ensemble, "categories", categories)
    return Model(ensemble, certificate, training)


def kinds(own, names):
    every = ModelColumns.of(own, "model.json", used=False).kinds
    return {name: every[name] for name in names}


def test_columns_are_read_as_the_model_knows_them():
    known = {0: Categories(("north",), ("south",)), 1: Categories((100, 200))}
    names = ["region", "zip", "age"]
    assert kinds(model(known), names) == {"region": "text", "zip": "numbers", "age": "auto"}

    noted = {"data": {"categories": {"region": 2, "zip": 3}}}
    expected = {"region": "categories", "zip": "categories", "age": "numbers"}
    assert kinds(model(training=noted), names) == expected
    assert kinds(model(), names) == dict.fromkeys(names, "auto")
    lists = [{"kept": ["north"], "rare": False}, {"kept": [100], "rare": False}, None]
    certified = {"categories": lists}
    expected = {"region": "text", "zip": "numbers", "age": "numbers"}
    assert kinds(model(certificate=certified), names) == expected
    assert kinds(model(known, certificate={"categories": None}), names) == {
        "region": "text",
        "zip": "numbers",
        "age": "auto",
    }
    for odd in ({"categories": 7}, {"categories": [7]}, {}):
        assert set(kinds(model(certificate=odd), names)) == set(names)


def test_from_fit_to_certify(work, capsys):
    words = [
        "--target",
        "closed",
        "--categorical",
        "zip",
        "--drop",
        "name",
        "--max-terms",
        "3",
        "--hot-start",
        "10",
    ]
    code, out, err = run(capsys, "fit", "shops.csv", *words)
    assert (code, err) == (0, "")
    assert any(line.split()[:3] == ["zip", "categorical", "3"] for line in out.splitlines())
    assert run(capsys, "certify", "run/model.json", "shops.csv")[0] == 0
    code, out, _ = run(capsys, "predict", "run/model.json", "shops.csv")
    assert code == 0
    right = [line.split(",")[2] for line in out.splitlines()[1:]]
    assert np.mean([own == line[-1] for own, line in zip(right, shops().splitlines()[1:], strict=True)]) > 0.8
    code, out, _ = run(capsys, "fit", "shops.csv", *words, "--holdout", "0.3", "--json")
    assert code == 0
    assert json.loads(out)["data"]["categories"] == {"region": 2, "zip": 3}
    assert run(capsys, "certify", "run/model.json", "shops.csv")[0] == 0


def test_labels_that_the_model_no_longer_knows_are_found(work, capsys):
    """A model that takes a certified label for a missing one decides otherwise."""
    words = ["--target", "closed", "--categorical", "zip", "--drop", "name", "--max-terms", "3"]
    run(capsys, "fit", "shops.csv", *words)
    document = json.loads(Path("run/model.json").read_text())
    terms = document["ensemble"]["terms"]
    asked = {label for term in terms for label in (term.get("category"), *term.get("one_of", ()))}
    entry = next(entry for entry in document["ensemble"]["categories"] if set(entry["kept"]) - asked)
    entry["kept"].remove(next(label for label in entry["kept"] if label not in asked))
    Path("bad.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, "certify", "bad.json", "shops.csv")
    assert code == 1
    assert "not the labels that are certified" in out


def test_sets_from_fit_to_certify(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    town = rng.integers(0, 12, 400)
    closed = np.isin(town, [1, 4, 6, 9]) ^ (rng.random(400) < 0.05)
    lines = [
        f"town {t},{x!r},{int(c)}"
        for t, x, c in zip(town, rng.normal(size=400).tolist(), closed, strict=True)
    ]
    (tmp_path / "towns.csv").write_text("\n".join(["town,x,closed", *lines]) + "\n")
    assert (
        run(capsys, "fit", "towns.csv", "--target", "closed", "--max-terms", "1", "--hot-start", "8")[0] == 0
    )
    card = (tmp_path / "run" / "card.txt").read_text()
    assert "is one of town 1, town 4, town 6, town 9" in " ".join(card.split())
    assert run(capsys, "certify", "run/model.json", "towns.csv")[0] == 0
    code, out, _ = run(capsys, "predict", "run/model.json", "towns.csv")
    assert code == 0
    right = [line.split(",")[2] for line in out.splitlines()[1:]]
    assert np.mean(np.array(right).astype(float) == closed) > 0.9
    document = json.loads((tmp_path / "run" / "model.json").read_text())
    (term,) = document["ensemble"]["terms"]
    dropped = term["one_of"].pop(0)
    (tmp_path / "run" / "model.json").write_text(json.dumps(document))
    code, out, _ = run(capsys, "certify", "run/model.json", "towns.csv")
    assert code == 1
    said = " ".join(out.split())
    assert "ensemble.terms[0]: not among the certified terms (feature 0, split is one of" in said
    assert repr(dropped) not in said
