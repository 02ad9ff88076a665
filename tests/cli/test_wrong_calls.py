"""Calls that cannot be meant: one sentence that names the option as it is typed, and no word of Python."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from cardboost.cli.main import main

FIT = "fit patients.csv --target died --drop cost,stage --hot-start 5 --threads 1 --quiet"
PARETO = "pareto patients.csv --target died --drop cost,stage --sizes 1-2 --hot-start 5 --quiet"
#: what no message of the command says
PYTHON = re.compile(
    r"np\.|numpy|sklearn\.|n_splits|n_samples|test_size|\bof X\b|\b[a-z]+_[a-z]+\b|\(\)|Traceback"
)


def patients(n=120):
    rng = np.random.default_rng(0)
    age, pressure = rng.integers(18, 88, n), rng.normal(130, 20, n).round()
    town = rng.choice(["Oslo", "Bergen", "Bodo", "Vard\u00f8"], n)
    custno = rng.choice(np.arange(10**5, 10**6), n // 2)[rng.integers(0, n // 2, n)]
    score = (age - 50) / 15 + (pressure - 130) / 30 + (town == "Oslo") + rng.normal(size=n)
    stage = np.array(["a", "b", "c"])[np.digitize(score, [-0.5, 1])]
    lines = ["custno,age,pressure,town,died,cost,stage"]
    rows = zip(custno, age, pressure, town, score > 0.5, 100 * score + 500, stage, strict=True)
    lines += [f"{c},{a},{p:.0f},{t},{int(d)},{x:.1f},{s}" for c, a, p, t, d, x, s in rows]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    Path(folder / "patients.csv").write_text(patients(), encoding="utf-8")
    Path(folder / "fewer.csv").write_text(patients(60), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in ("--out run --max-terms 3", "--out points --points 5 --max-terms 2"):
            assert main(shlex.split(f"{FIT} {words}")) == 0
    return folder


@pytest.fixture
def work(models, monkeypatch):
    monkeypatch.chdir(models)
    return models


WRONG = [
    (
        "prove run/model.json fewer.csv",
        "fewer.csv does not hold the rows that the model was trained on.",
    ),
    (
        f"{FIT} --monotonic ages=increasing",
        "--monotonic ages: there is no such feature; did you mean 'age'?",
    ),
    (
        f"{FIT} --monotonic age=increasing,pressure=up",
        "--monotonic: expected increasing or decreasing, got 'up'.",
    ),
    (
        f"{FIT} --monotonic age=up,pressure=increasing",
        "--monotonic: expected increasing or decreasing, got 'up'.",
    ),
    (
        f"{FIT} --monotonic custno=increasing",
        "--monotonic custno: this column is no feature, its role is identifier.",
    ),
    (
        f"{FIT} --feature-cost cost=2",
        "--feature-cost cost: there is no such feature;",
    ),
    (
        f"{FIT} --feature-cost died=2",
        "--feature-cost died: there is no such feature;",
    ),
    (
        f"{FIT} --class-weight 7=2",
        "--class-weight 7=2: there is no such class; they are '0' and '1'.",
    ),
    (
        f"{FIT} --class-weight 0=1,7=2",
        "--class-weight 7=2: there is no such class; they are '0' and '1'.",
    ),
    (
        f"{FIT} --max-bytes 10",
        "--max-bytes: no card fits into 10 bytes;",
    ),
    (
        f"{FIT} --points 3 --loss hinge",
        "whole points are log-odds, and need --loss logistic or exponential.",
    ),
    (
        f"{FIT} --holdout-by town",
        "--holdout-by needs --holdout:",
    ),
    (
        f"{FIT} --validation-fraction 0.999",
        "--validation-fraction 0.999: the rows cannot be split: of 120 rows, some class would",
    ),
    (
        f"{FIT} --moulds age=1",
        "there is no option --moulds. See",
    ),
    (
        "fit patients.csv --target cost --drop died,stage --positive 3",
        "--positive is for two classes;",
    ),
    (
        "predict patients.csv run/model.json",
        "patients.csv is not a model file such as run/model.json; the model",
    ),
    (
        "predict run/model.json patients.csv --out patients.csv",
        "--out would replace 'patients.csv', which is read",
    ),
    (
        "predict run/model.json 'pat*.csv' --out ./patients.csv",
        "--out would replace './patients.csv', which is",
    ),
    (
        "predict run/model.json patients.csv --out run/model.json",
        "--out would replace 'run/model.json', which is",
    ),
    (
        "export run/model.json --format c --out run/model.json",
        "--out would replace 'run/model.json', which is read",
    ),
    (
        "prove run/model.json patients.csv --out patients.csv",
        "--out would replace 'patients.csv', which is read",
    ),
    (
        "prove points/model.json patients.csv",
        "points/model.json has whole points, and prove goes on with the",
    ),
    (
        "export run/model.json --format c-int16 --scale nope=1",
        "--scale: 'nope' is no feature that the model uses.",
    ),
    (
        "export run/model.json --format c --prefix 1x",
        "--prefix: expected up to 24 letters,",
    ),
    (
        "export run/model.json --format sql --out none/x.sql",
        "cannot write 'none/x.sql': the folder",
    ),
    (
        f"{PARETO} --max-terms 3",
        "there is no option --max-terms here; --sizes names the numbers of terms.",
    ),
    (
        f"{PARETO} --holdout-by town",
        "there is no option --holdout-by here; --group keeps",
    ),
    (
        f"{PARETO} --scoring rocauc",
        "--scoring rocauc: scikit-learn has no scorer of this name; did you mean",
    ),
    (
        f"{PARETO} --scoring nope",
        "--scoring nope: scikit-learn has no scorer of this name;",
    ),
    (
        f"{PARETO} --folds 1000",
        "--folds 1000: class 0 has only ",
    ),
    (
        f"{PARETO} --folds 5 --group town",
        "--folds 5: --group town has only 4 groups.",
    ),
    (
        "pareto patients.csv --target cost --drop died,stage --scoring accuracy",
        "--scoring accuracy is for classes;",
    ),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_the_sentence(work, capsys, words, sentence):
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    assert main(shlex.split(words)) == 2
    seen = capsys.readouterr()
    assert sentence in seen.err
    assert not PYTHON.search(re.sub(r"(?<=are ).*_.*|`[^`]*`|did you mean \w+", "", seen.err)), seen.err
    assert seen.err.splitlines()[-1].startswith(f"cardboost {words.split()[0]}: ")
    assert {path: path.read_bytes() for path in before} == before, "no file has changed"


def test_a_table_among_the_files_of_a_run_is_not_replaced(work, capsys):
    (work / "mine").mkdir()
    for name, verb in (("card.txt", "fit"), ("table.csv", "pareto")):
        table = work / "mine" / name
        table.write_text(patients(), encoding="utf-8")
        assert main([verb, f"mine/{name}", "--target", "died", "--out", "mine"]) == 2
        assert f"--out would replace 'mine/{name}', which is read here" in capsys.readouterr().err
        assert table.read_text(encoding="utf-8") == patients()


def test_the_standard_input_is_not_replaced(work, capsys, monkeypatch):
    with open("patients.csv") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["predict", "run/model.json", "-", "--out", "patients.csv"]) == 2
    assert "--out would replace 'patients.csv'" in capsys.readouterr().err
    assert main(["predict", "run/model.json", "patients.csv", "--out", "/dev/null"]) == 0


def test_several_pairs_in_one_word(work):
    """As columns are: a,b,c, or the option again."""
    one = "--monotonic age=increasing,pressure=decreasing --class-weight 0=1,1=2 --feature-cost age=0,town=1"
    two = (
        "--monotonic age=increasing --monotonic pressure=decreasing --class-weight 0=1 --class-weight 1=2 "
        "--feature-cost age=0 --feature-cost town=1"
    )
    for words, folder in ((one, "one"), (two, "two")):
        assert main(shlex.split(f"{FIT} {words} --max-terms 2 --out {folder}")) == 0
    for name in ("model.json", "config.toml"):
        assert (work / "one" / name).read_bytes() == (work / "two" / name).read_bytes()


# ------------------------------------------------------------------------------------------- unfamiliar rows


def remarks(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().err.splitlines()


def changed(change):
    """The table of patients with some cells changed: ``change(column, row, cell)``."""
    header, *lines = patients().splitlines()
    names = header.split(",")
    rows = [
        [change(name, k, cell) for name, cell in zip(names, line.split(","), strict=True)]
        for k, line in enumerate(lines)
    ]
    Path("new.csv").write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")


@pytest.fixture
def model(work):
    folder = work / "seen"
    if not folder.exists():
        options = "--numeric custno --max-terms 6 --l2 0.01 --max-features 3 --out seen"
        assert main(shlex.split(f"{FIT} {options}")) == 0
    return "seen/model.json"


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_unknown_labels_are_told(model, capsys, verb):
    towns = ["Rome", "Paris", "Lyon", "Nice"]
    same_rows = "these are the rows that the model was trained on; on new rows it is usually worse."
    expected = [f"cardboost evaluate: {same_rows}"] if verb == "evaluate" else []
    assert remarks(capsys, verb, model, "patients.csv") == expected
    changed(lambda name, k, cell: towns[k % 4] if name == "town" else cell)
    (line,) = remarks(capsys, verb, model, "new.csv")
    assert line == (
        f"cardboost {verb}: column 'town': all 120 labels are unknown to the model, such as 'Rome', 'Paris', "
        "'Lyon'; they count as missing."
    )
    changed(lambda name, k, cell: ["Rome", ""][k % 2] if name == "town" and k < 10 else cell)
    (line,) = remarks(capsys, verb, model, "new.csv")
    assert "column 'town': 5 of 115 labels are unknown to the model, such as 'Rome'; they" in line


@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_lost_numbers_are_told(model, capsys, verb):
    changed(lambda name, k, cell: "" if name == "age" and k % 3 else cell)
    (line,) = remarks(capsys, verb, model, "new.csv")
    assert line == (
        f"cardboost {verb}: column 'age' has no number in 80 of 120 rows; in training 0 % were missing."
    )
    changed(lambda name, k, cell: "" if name == "age" and k % 2 else cell)
    assert remarks(capsys, verb, model, "new.csv") == []


def test_what_was_missing_in_training_is_no_news(work, capsys):
    changed(lambda name, k, cell: "" if name == "age" and k % 3 else cell)
    words = FIT.replace("patients.csv", "new.csv")
    assert main(shlex.split(f"{words} --drop town --max-terms 4 --out lacking")) == 0
    assert remarks(capsys, "predict", "lacking/model.json", "new.csv") == []


def test_reasons_and_contributions_together_are_explained(work, capsys):
    asked = ("--reasons", "1", "--contributions")
    (line,) = remarks(capsys, "predict", "run/model.json", "patients.csv", *asked)
    assert "contributions add up to the score; reasons do not" in line
    assert remarks(capsys, "predict", "run/model.json", "patients.csv", "--reasons", "1") == []
