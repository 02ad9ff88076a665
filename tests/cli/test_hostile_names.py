"""Headers and labels that try to reach the terminal, the browser, the compiler or the spreadsheet."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cardboost import CardBoostClassifier, load_model
from cardboost.cli.main import main
from cardboost.model.printable import printable, printable_json, printable_lines
from marks import first

NAMES = [
    "\x1b[31mred\x1b]0;title\x07",
    "<script>alert(1)</script>",
    "a*/ int x; /*??/",
    "=cmd|' /C calc'!A0",
    "rtl\u202eevil\x9b31m",
    "q\"uote's;--",
    "\\end{tabular}$x_1%\x7f",
    "colour\x1b[2J",
]
CATEGORIES = ["<b>x</b>\x1b[1m", "=1+1", "plain\u202e", "*/x", "@y"]
LABELS = ["=HYPERLINK(\x1b[31m)", "no<img src=x onerror=alert(1)>"]
TARGET = "tar\x1bget"
QUICK = ["--target", TARGET, "--threads", "1", "--hot-start", "14"]
MARKUP = ("<script>alert", "<img src=x", "<b>x</b>")


def hostile(rows=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, len(NAMES))).round(3), columns=NAMES)
    code = rng.integers(0, len(CATEGORIES), rows)
    y = X.iloc[:, :-1].sum(axis=1) + 2 * (code % 2) + rng.normal(size=rows) > 1
    X[NAMES[-1]] = np.array(CATEGORIES)[code]
    return X, np.where(y, *LABELS[::-1])


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = hostile()
    X.assign(**{TARGET: y}).to_csv("data.csv", index=False)
    return tmp_path


def assert_harmless(text):
    hidden = {character for character in text if not character.isprintable()} - {"\n"}
    assert not hidden, f"{hidden} in {text[:300]!r}"


def no_markup(text):
    return not any(own in text for own in MARKUP)


@pytest.mark.parametrize("verb", ["fit", "points", "pareto"])
def test_nothing_that_is_shown_is_obeyed(work, capsys, verb):
    words = ["--points", "10", "--max-terms", "6"] if verb == "points" else ["--max-terms", "10"]
    if verb == "pareto":
        words = ["--sizes", "1-3", "--folds", "2"]
    verb = "pareto" if verb == "pareto" else "fit"
    assert main([verb, "data.csv", *QUICK, *words, "--out", "out"]) == 0
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert_harmless(text)
    assert "tar\\x1bget" in (shown.out if verb == "fit" else (work / "out/index.html").read_text())
    for path in (work / "out").iterdir():
        text = path.read_text(encoding="utf-8")
        assert_harmless(text)
        assert path.suffix not in (".html", ".svg") or no_markup(text)
    model = load_model("out/model.json")
    assert list(model.ensemble.feature_names) == NAMES
    assert set(model.ensemble.classes) == set(LABELS)
    assert main(["certify", "out/model.json", "data.csv", "--target", TARGET]) == 0
    assert main(["certify", "out/model.json", "data.csv", "--target", TARGET, "--json"]) == 0
    assert_harmless(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "data.csv", "--target", "no\x1b[31m"],
        ["fit", "data.csv", "--target", TARGET, "--positive", "x\x1b[31m"],
        ["fit", "data.csv", "--target", TARGET, "--drop", TARGET],
        ["fit", "data.csv", "--target", TARGET, "--weight", NAMES[-1]],
        ["fit", "no\x1b[31m.csv", "--target", TARGET],
        ["fit", "data.csv", "--target", TARGET, "--holdout", "\x1b[31m"],
        ["fit", "data.csv", "--target", TARGET, "--\x1b[31m"],
    ],
)
def test_errors_are_harmless_sentences(work, capsys, words):
    assert main(words) == 2
    shown = capsys.readouterr()
    assert_harmless(shown.err)
    assert shown.err.count("\n") == 1


def test_markup_is_shown_as_it_is(work):
    """Tables on a terminal are drawn by a library that has a markup of its own."""
    rng = np.random.default_rng(0)
    names = ["[red]x[/red]", "[link=file:///etc]y", ":smile:", "[/]", "[blink]\x1b[5m"]
    X = pd.DataFrame(rng.normal(size=(60, len(names))).round(2), columns=names)
    X.assign(**{"[bold]t": np.where(X.iloc[:, 0] > 0, "[green]yes", "no")}).to_csv("m.csv", index=False)
    quick = ["m.csv", "--target", "[bold]t", "--hot-start", "5", "--threads", "1"]
    shown = on_a_terminal(
        ["fit", *quick, "--max-terms", "2"], ["pareto", *quick, "--sizes", "1-2", "--folds", "2"]
    )
    for name in [*names[:-1], "[blink]\\x1b[5m", "[green]yes", "[bold]t"]:
        assert name in shown
    assert_harmless(re.sub(r"\x1b\[[\d;]*[mAK]|\r", "", shown))
    assert not re.search(r"\x1b\[(?:\d+;)*5m|\x1b\]", shown)  # what is written over is coloured, never blinks


def on_a_terminal(*commands):
    """What commands write where stdout is a terminal."""
    leader, follower = pty.openpty()
    code = f"from cardboost.cli.main import main\nfor words in {commands!r}: assert main(words) == 0"
    with subprocess.Popen([sys.executable, "-c", code], stdout=follower, stderr=follower) as process:
        os.close(follower)
        parts = []
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(leader)
    assert process.returncode == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_exports_and_predictions(work, capsys):
    assert main(["fit", "data.csv", *QUICK, "--max-terms", "14", "--out", "out", "--quiet"]) == 0
    for kind in ("c", "c-int16", "python", "javascript", "json"):
        capsys.readouterr()
        assert main(["export", "out/model.json", "--format", kind]) == 0
        text = capsys.readouterr().out
        assert_harmless(text)
        if kind.startswith("c"):
            assert text.isascii()
            assert "??/" not in text
            assert " int x;" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        if kind == "json":
            assert json.loads(text)["ensemble"]["feature_names"] == NAMES
    # SQL needs the names of the columns as they are: a terminal gets escapes, a file does not
    assert main(["export", "out/model.json", "--format", "sql"]) == 0
    assert f'"{NAMES[0]}"' in capsys.readouterr().out
    shown = on_a_terminal(
        ["export", "out/model.json", "--format", "sql"],
        ["predict", "out/model.json", "data.csv", "--contributions"],
    )
    assert "CASE" in shown
    assert "probability" in shown
    assert_harmless(shown)


def test_labels_are_no_formulas_for_a_spreadsheet(work, capsys):
    assert main(["fit", "data.csv", *QUICK, "--max-terms", "2", "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", "out/model.json", "data.csv"]) == 0
    shown = capsys.readouterr()
    cells = {row["class"] for row in csv.DictReader(io.StringIO(shown.out))}
    assert cells == {f"'{LABELS[0]}", LABELS[1]}
    assert "--raw" in shown.err
    assert_harmless(shown.err)
    assert main(["predict", "out/model.json", "data.csv", "--raw", "--out", "raw.csv"]) == 0
    assert capsys.readouterr().err == ""
    assert set(pd.read_csv("raw.csv")["class"]) == set(LABELS)
    assert main(["predict", "out/model.json", "data.csv", "--out", "safe.csv"]) == 0
    assert set(pd.read_csv("safe.csv")["class"]) == cells


@pytest.mark.parametrize(
    "labels", first(2, [["-1", "1"], ["'=x", "b"], ["-1e3", "+7"], ["no", "yes - or no"]])
)
def test_other_labels_stay_as_they_are(work, capsys, labels):
    y = np.array(labels)[(hostile()[1] == LABELS[1]).astype(int)]
    hostile()[0].assign(y=y).to_csv("plain.csv", index=False)
    assert main(["fit", "plain.csv", "--target", "y", "--max-terms", "2", "--out", "out", "--quiet"]) == 0
    assert main(["predict", "out/model.json", "plain.csv", "--out", "one.csv"]) == 0
    assert main(["predict", "out/model.json", "plain.csv", "--out", "two.csv", "--raw"]) == 0
    assert (work / "one.csv").read_bytes() == (work / "two.csv").read_bytes()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("label", ["=a", "+a", "-a", "@a", "\ta", "\ra"])
def test_all_beginnings_of_formulas(label):
    from cardboost.cli.predict import _is_formula

    assert _is_formula(label)


def test_cards_of_scorecards():
    X, y = hostile()
    model = CardBoostClassifier(max_terms=8, hot_start=14, n_jobs=1).fit(X, y)
    assert_harmless(model.card())
    card = model.scorecard(10)
    for text in (str(card), card.to_markdown(), card.to_latex(), card.to_html()):
        assert_harmless(text)
    assert no_markup(card.to_html())
    assert not re.search(r"(?<!\\)<", card.to_markdown().split("```")[0])
    assert card.to_latex().count("\\end{tabular}") == 2


def test_texts():
    assert printable("a\x1b\u202e\nb") == "a\\x1b\\u202e\\nb"
    assert printable_lines("a\x1b\nb") == "a\\x1b\nb"
    text = json.dumps(["\x7f\x9b\u202e\U000e0001 é 日本"], ensure_ascii=False)
    assert_harmless(printable_json(text))
    assert json.loads(printable_json(text)) == json.loads(text)
    assert "é 日本" in printable_json(text)
