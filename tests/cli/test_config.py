"""Configurations: what is printed is read again as it was, and what cannot be meant is refused."""

import os
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardboost.cli.config import config_text
from cardboost.cli.files import BadInput
from cardboost.cli.main import cardboost, main

FIT, PARETO = (cardboost.get_command(None, name) for name in ("fit", "pareto"))
NEEDED = ["data.csv", "--target", "y"]
QUICK = ["--max-terms", "2", "--hot-start", "5", "--threads", "1"]
#: of options: no text that no file name and no header can hold
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
NAME = TEXT.filter(lambda text: not text.startswith("-"))

#: words that an option takes, by what help calls its value
VALUES = {
    "N": st.integers(2, 16).map(str),
    "X": st.floats(1e-6, 1e6).map(repr),
    "FRACTION": st.floats(0.01, 0.99).map(repr),
    "SECONDS": st.floats(0.01, 1e9).map(repr),
    "COLUMN": TEXT,
    "LABEL": TEXT,
    "DIR": NAME,
    "CHAR": st.sampled_from([",", ";", "tab", "|", "'", " ", "\\"]),
    "RANGE": st.sampled_from(["5", "0..5", "-3..7"]),
    "LIST": st.sampled_from(["1-4", "1,3,9-12"]),
    "RULE": st.sampled_from(["1se", "best", "3"]),
    "THRESHOLD": st.sampled_from(["0.3", "recall>=0.9", "fp=1,fn=20"]),
    "COLUMN=WAY": st.tuples(TEXT, st.sampled_from(["increasing", "decreasing"])).map("=".join),
    "COLUMN=X": st.tuples(TEXT, st.floats(0, 10).map(repr)).map("=".join),
    "COLUMN=X,X": st.tuples(TEXT, st.sampled_from(["", "1", "2.5,-1,1e300"])).map("=".join),
    "COLUMN,COLUMN": st.tuples(TEXT, TEXT).map(",".join),
    "LABEL=X": st.one_of(st.just("balanced"), st.tuples(TEXT, st.floats(0, 10).map(repr)).map("=".join)),
    "COLUMN=PARTS": st.tuples(TEXT, st.sampled_from(["", "year", "age,month"])).map("=".join),
}
NOT_DRAWN = ("--config", "--print-config", "--help", "--json", "--quiet")


@st.composite
def commands(draw):
    """A verb with words for some of its options."""
    command = draw(st.sampled_from([FIT, PARETO]))
    words = draw(st.lists(NAME, min_size=1, max_size=2))
    drawn = [own for own in command.params if isinstance(own, click.Option) and own.opts[0] not in NOT_DRAWN]
    for param in drawn:
        if not (param.required or draw(st.booleans())):
            continue
        if param.is_flag:
            words.append(draw(st.sampled_from([*param.opts, *param.secondary_opts])))
            continue
        value = VALUES.get(param.type.name)
        words_of = getattr(param.type, "words", ())
        if words_of and (value is None or draw(st.booleans())):
            value = st.sampled_from(words_of)
        value = TEXT if value is None else value  # of scorers, which are not looked at here
        many = 2 if param.multiple and param.name not in ("class_weight", "missing") else 1
        for own in draw(st.lists(value, min_size=1, max_size=many)):
            words += [param.opts[0], own]
    return command, words


@given(commands())
def test_what_is_printed_is_read_again_as_it_was(tmp_path_factory, drawn):
    command, words = drawn
    before = command.arguments(words)
    path = Path(tmp_path_factory.getbasetemp()) / "law.toml"
    text = config_text(command, before)
    path.write_text(text, encoding="utf-8")
    after = command.arguments(["--config", str(path)])
    folder = str(path.parent)

    def found(name):
        return name if name in ("-", "") else os.path.join(folder, name)

    before.data, before.out, before.config = tuple(map(found, before.data)), found(before.out), str(path)
    assert vars(after) == vars(before)
    assert config_text(command, command.arguments(["--config", str(path)])).count("\n") == text.count("\n")
    # the command line goes before the file
    other = command.arguments(
        ["--config", str(path), "z.csv", "--target", "z", "--l2", "0.5", "--no-reselect"]
    )
    assert (other.data, other.target, other.l2, other.reselect) == (("z.csv",), "z", 0.5, False)


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).round(2)
    rows = [f"{a},{b},{c},{int(a + b > 0)}" for a, b, c in X]
    Path("data.csv").write_text("\n".join(["a,b,c,y", *rows]) + "\n")
    return tmp_path


def write(text, path="card.toml"):
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return path


def test_a_run_is_a_file(work, capsys):
    write(
        """
data = "../data.csv"
target = "y"
max_terms = 2
hot-start = 5
threads = 1
drop = ["c"]
out = "run"
must-include = ["b"]
at-most-one-of = [["a"]]
missing = "worst"
[cuts]
b = [0, 1.5]
[monotonic]
a = "increasing"
[class-weight]
1 = 2
""",
        "models/card.toml",
    )
    assert main(["fit", "--config", "models/card.toml"]) == 0
    capsys.readouterr()
    used = tomllib.loads((work / "models/run/config.toml").read_text(encoding="utf-8"))
    assert used["data"] == ["../../data.csv"]
    assert (used["max-terms"], used["monotonic"], used["class-weight"]) == (
        2,
        {"a": "increasing"},
        {"1": 2.0},
    )
    assert {"l1", "selector", "bits"} <= set(used)  # defaults too: a later version may have others
    assert not {"out", "json", "quiet", "config"} & set(used)
    assert main(["fit", "--config", "models/run/config.toml", "--out", "again", "--quiet"]) == 0
    for name in ("model.json", "card.txt"):
        assert (work / "again" / name).read_bytes() == (work / "models/run" / name).read_bytes()
    assert main(["certify", "again/model.json", "data.csv"]) == 0


def test_pareto_writes_its_configuration(work, capsys):
    words = ["--sizes", "1-2", "--folds", "2", "--hot-start", "5", "--threads", "1"]
    assert main(["pareto", *NEEDED, *words, "--quiet"]) == 0
    assert main(["pareto", "--config", "front/config.toml", "--out", "again", "--quiet"]) == 0
    assert (work / "again/front.json").read_bytes() == (work / "front/front.json").read_bytes()
    assert (work / "again/config.toml").read_bytes() == (work / "front/config.toml").read_bytes()


def test_printing_does_nothing_else(work, capsys):
    assert main(["fit", *NEEDED, *QUICK, "--print-config"]) == 0
    seen = capsys.readouterr()
    assert tomllib.loads(seen.out)["max-terms"] == 2
    assert seen.err == ""
    assert not (work / "run").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("max-trms = 3", "card.toml: there is no option 'max-trms'; did you mean max-terms?"),
        ("zzzz = 3", "card.toml: there is no option 'zzzz'; `cardboost fit --help` shows all."),
        ("config = 'other.toml'", "there is no option 'config'"),
        ("quiet = true", "there is no option 'quiet'"),
        (
            "max-terms = 0",
            "card.toml: max-terms: expected a whole number of at least 1, or auto, or none, got '0'.",
        ),
        ("max-terms = [1, 2]", "card.toml: max-terms: expected text or a number, got [1, 2]."),
        ("max-terms = true", "card.toml: max-terms: expected text or a number, got True."),
        ("reselect = 1", "card.toml: reselect: expected true or false, got 1."),
        ("max-terms = 1\nmax_terms = 2", "card.toml: max_terms is there twice, with - and with _."),
        ("[monotonic]\na = 'up'", "card.toml: monotonic: expected increasing or decreasing, got 'up'."),
        ("[l1]\na = 1", "card.toml: l1: expected text or a number, got {'a': 1}."),
        ("max-terms = ", "card.toml is not a TOML file: Invalid value (at end of document)."),
        ("a\x1b = 1", "card.toml is not a TOML file"),
        ("'a\\u202e' = 1", "there is no option"),
        ("l1 = nan", "card.toml: l1: expected a number of at least 0, got 'nan'."),
    ],
)
def test_what_is_refused(work, capsys, text, sentence):
    write(text)
    assert main(["fit", *NEEDED, "--config", "card.toml"]) == 2
    seen = capsys.readouterr()
    assert (seen.out, seen.err.count("\n")) == ("", 1)
    assert seen.err.startswith("cardboost fit: ")
    assert sentence in seen.err
    assert not (work / "run").exists()


def test_files_that_cannot_be_read(work, capsys):
    Path("card.toml").write_bytes(b"\xff\xfe")
    assert main(["fit", "--config", "card.toml"]) == 2
    assert "card.toml is not a TOML file" in capsys.readouterr().err
    assert main(["fit", "--config", "none.toml"]) == 2
    assert "cannot read 'none.toml': no such file or directory." in capsys.readouterr().err


def test_what_is_needed_may_be_in_the_file(work, capsys):
    write("target = 'y'")
    assert main(["fit", "--config", "card.toml"]) == 2
    assert "cardboost fit: DATA is needed." in capsys.readouterr().err
    write("data = 'data.csv'")
    assert main(["fit", "--config", "card.toml"]) == 2
    assert "cardboost fit: --target is needed." in capsys.readouterr().err


def test_paths(work):
    write("data = ['-', '/a/b.csv', 'c/*.csv', 'd.csv']\ntarget = 'y'", "deep[1]/card.toml")
    found = FIT.arguments(["--config", "deep[1]/card.toml"])
    assert found.data == ("-", "/a/b.csv", "deep[[]1]/c/*.csv", "deep[1]/d.csv")
    assert found.out == "run"  # of no file: from here


def test_a_name_that_no_file_can_hold(work):
    found = FIT.arguments(["a\udc80.csv", "--target", "y"])
    assert tomllib.loads(config_text(FIT, found))["data"] == ["a\ufffd.csv"]


def test_errors_are_of_the_command(work):
    with pytest.raises(BadInput, match="no such file"):
        FIT.arguments(["--config", "none.toml"])


@pytest.mark.parametrize("target", ["y", "kind", "amount"])
def test_a_printed_configuration_gives_the_same_model(work, capsys, target):
    """Two classes, three classes and numbers, to the bit; the options are not the defaults."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(90, 3)).round(2)
    lines = [
        f"{a},{b},{'uv'[int(c > 0)]},{int(a + b > 0)},{'pqr'[int(a > 0) + int(b > 1)]},{a - 2 * b + c:.3f}"
        for a, b, c in rows
    ]
    Path("three.csv").write_text("\n".join(["a,b,c,y,kind,amount", *lines]) + "\n")
    others = ",".join(sorted({"y", "kind", "amount"} - {target}))
    words = ["fit", "three.csv", "--target", target, "--drop", others, "--holdout", "0.2", "--seed", "3"]
    words += ["--l1", "0.001", "--l2", "0.02", *QUICK]
    words += [] if target == "kind" else ["--monotonic", "a=increasing"]
    assert main([*words, "--out", "one", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main([*words, "--print-config"]) == 0
    write(capsys.readouterr().out, "c.toml")
    assert main(["fit", "--config", "c.toml", "--out", "two", "--quiet"]) == 0
    assert main(["fit", "--config", "one/config.toml", "--out", "three", "--quiet"]) == 0
    for folder in ("two", "three"):
        for name in ("model.json", "card.txt", "card.h"):
            assert (work / folder / name).read_bytes() == (work / "one" / name).read_bytes(), name
