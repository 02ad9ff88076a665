"""Options of the command against the estimators, values that are refused, and what the help says."""

import inspect
import os
import re
import shlex
import subprocess
import sys

import pytest

import cardboost
from cardboost.cli import checks, options
from cardboost.cli.main import VERBS, main
from cardboost.cli.main import cardboost as group
from cardboost.cli.parameters import CLASSIFIER, REGRESSOR, documented
from cardboost.cli.verb import label

FIT, PARETO = (group.get_command(None, name) for name in ("fit", "pareto"))
ESTIMATORS = (CLASSIFIER, REGRESSOR)
NEEDED = ["data.csv", "--target", "y"]


def commands():
    """All verbs, with the experiments of `reproduce`."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield [name], command
        for own in getattr(command, "commands", {}):
            yield [name, own], command.commands[own]


COMMANDS = [pytest.param(words, own, id=" ".join(words)) for words, own in commands()]


# ------------------------------------------------------------------------------------------------ estimators


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_docstrings_say_what_the_signatures_say(estimator):
    signature = inspect.signature(getattr(cardboost, estimator)).parameters
    known = documented(estimator)
    assert set(known) == set(signature)
    assert {name: own.default for name, own in known.items()} == {
        name: own.default for name, own in signature.items()
    }
    assert all(own.summary and len(own.summary) <= 80 for own in known.values())


def test_every_parameter_is_an_option_or_there_is_a_reason():
    """A new parameter fails here until somebody has decided."""
    names = {name for estimator in ESTIMATORS for name in documented(estimator)}
    assert set(options.DECLARED) | set(options.NOT_ON_THE_COMMAND_LINE) == names
    assert not set(options.DECLARED) & set(options.NOT_ON_THE_COMMAND_LINE)
    there = {param.name for param in FIT.params}
    assert {options.option_name(name).replace("-", "_") for name in options.DECLARED} <= there


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_without_options_the_estimator_has_its_defaults(estimator):
    found = options.estimator_parameters(FIT.arguments(NEEDED), estimator)
    assert set(found) == set(documented(estimator)) - set(options.NOT_ON_THE_COMMAND_LINE) - {"loss"}
    assert found == {name: documented(estimator)[name].default for name in found}
    getattr(cardboost, estimator)(**found)


def test_options_become_parameters():
    words = [
        *("--max-terms", "none", "--monotonic", "a=b=increasing", "--monotonic", "c=decreasing"),
        *("--feature-cost", "a=0.5", "--class-weight", "yes=2", "--class-weight", "no=0.5", "--time", "3"),
        *("--threads", "2", "--seed", "7", "--no-intercept", "--reselect", "--bits", "auto"),
        *(
            "--cuts",
            "a=1,2.5",
            "--must-include",
            "a",
            "--must-include",
            "b",
            "--exclude",
            "c",
            "--exclude",
            "d",
        ),
        *(
            "--at-most-one-of",
            "a,b",
            "--at-most-one-of",
            "c,d",
            "--missing",
            "a=worst",
            "--missing",
            "b=best",
        ),
        *("--loss", "squared", "--validation-fraction", "0.25", "--max-features", "3", "--tol", "0"),
    ]
    found = options.estimator_parameters(FIT.arguments([*NEEDED, *words]), CLASSIFIER)
    expected = {
        "max_terms": None, "monotonic_cst": {"a=b": 1, "c": -1}, "feature_costs": {"a": 0.5},
        "class_weight": {"yes": 2.0, "no": 0.5}, "time_limit": 3.0, "n_jobs": 2, "random_state": 7,
        "fit_intercept": False, "reselect": True, "bits": "auto", "loss": "squared",
        "validation_fraction": 0.25, "max_features": 3, "tol": 0.0, "cuts": {"a": [1.0, 2.5]},
        "must_include": ["a", "b"], "exclude": ["c", "d"], "at_most_one_of": [["a", "b"], ["c", "d"]],
        "missing": {"a": "worst", "b": "best"},
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert FIT.arguments([*NEEDED, "--class-weight", "balanced"]).class_weight == "balanced"


def test_the_same_option_means_the_same_everywhere():
    """Options of one name have one type in `fit` and `pareto`, except those that are the front's own."""
    fit = {param.name: param for param in FIT.params}
    own = {"seed", "time", "out", "json"}
    for param in PARETO.params:
        if param.name in fit and param.name not in own:
            assert vars(param).get("help") == vars(fit[param.name]).get("help")


def test_messages_of_estimators_name_options():
    said = "reselect=True does not go with max_features or feature_costs; hot_start=0, loss must be; a loss"
    assert options.in_options(said) == (
        "--reselect does not go with --max-features or --feature-cost; --hot-start 0, --loss must be; a loss"
    )
    assert options.in_options("the column 'max_terms'") == "the column 'max_terms'"


# ------------------------------------------------------------------------------------------------ the data


def test_lists_of_columns():
    given = FIT.arguments([*NEEDED, "--drop", "a, b", "--drop", "c,d", "--drop", ""]).drop
    assert given == ("a, b", "c,d", "")
    assert options.names_in(given, ["a", "b", "c,d", ""]) == ["a", "b", "c,d", ""]


def test_the_data_options():
    words = ["b.csv", "--date", "opened", "--date", "closed=year,month", "--delimiter", "tab", "--id", "k"]
    found = FIT.arguments([*NEEDED, *words])
    assert found.data == ("data.csv", "b.csv")
    assert found.date == {"opened": (), "closed": ("year", "month")}
    assert (found.delimiter, found.id, found.numeric, found.task) == ("\t", ("k",), (), "auto")
    assert (found.holdout, found.holdout_by, found.group, found.weight) == (0.0, None, None, None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--max-terms", "x"],
            "--max-terms: expected a whole number of at least 1, or auto, or none, got 'x'",
        ),
        (["--max-bins", "256"], "--max-bins: expected a whole number from 2 to 255, got '256'"),
        (["--bits", "17"], "--bits: expected a whole number from 1 to 16, or auto, got '17'"),
        (["--l2", "1_0"], "--l2: expected a number of at least 0, or auto, got '1_0'"),
        (["--task", "binray"], "--task: expected auto, binary, multiclass or regression, got 'binray'"),
        (["--cuts", "age"], "--cuts: expected COLUMN=X,X as in age=25,40,60, got 'age'"),
        (["--cuts", "age=1,x"], "--cuts: expected numbers with commas between them"),
        (["--missing", "low"], "--missing: expected learn, worst or best, or COLUMN=WORD"),
        (["--missing", "worst", "--missing", "a=best"], "--missing: expected one word for all columns"),
        (["--monotonic", "age"], "--monotonic: expected COLUMN=WAY as in age=increasing, got 'age'"),
        (["--monotonic", "age=up"], "--monotonic: expected increasing or decreasing, got 'up'"),
        (["--feature-cost", "age=-1"], "--feature-cost: expected a number of at least 0, got '-1'"),
        (["--class-weight", "1"], "--class-weight: expected balanced, or LABEL=X as in yes=2, got '1'"),
        (["--class-weight", "1=2", "--class-weight", "balanced"], "--class-weight: expected balanced or"),
        (["--date", "a=moon"], "--date: expected a column and parts of a date"),
        (["--validation-fraction", "1"], "expected a fraction above 0 and below 1, or none, got '1'"),
        (["--max-trms", "3"], "there is no option --max-trms; did you mean --max-terms? See `cardboost fit"),
        (["--xyz"], "there is no option --xyz. See `cardboost fit --help`."),
        (["--seed"], "option '--seed' requires an argument"),
        (["--reselect=3"], "option '--reselect' does not take a value"),
    ],
)
def test_bad_usage_is_one_sentence(capsys, words, sentence):
    assert main(["fit", *NEEDED, *words]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.startswith("cardboost fit: ")
    assert sentence in seen.err
    assert seen.err.endswith("See `cardboost fit --help`.\n")
    assert seen.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fti"], "cardboost: there is no verb 'fti'; did you mean fit? See `cardboost --help`."),
        (["--verison"], "cardboost: there is no option --verison; did you mean --version? See"),
        (["fit"], "cardboost fit: DATA is needed. See `cardboost fit --help`."),
        (["fit", "a.csv"], "cardboost fit: --target is needed. See `cardboost fit --help`."),
        (["reproduce"], "cardboost reproduce: name one experiment: conjugate-gradient, neural, totalqboost."),
        (["reproduce", "neurl"], "cardboost reproduce: there is no experiment 'neurl'; did you mean neural?"),
        (["reproduce", "neural"], "cardboost reproduce neural: --out is needed."),
        (
            ["export", "m.json", "--format", "cc"],
            "--format: expected c, c-int16, python, sql, javascript, excel, onnx or json",
        ),
        (["completion", "tcsh"], "cardboost completion: SHELL: expected bash, zsh or fish, got 'tcsh'."),
        (
            ["demo", "more"],
            "cardboost demo: got unexpected extra argument (more). See `cardboost demo --help`.",
        ),
    ],
)
def test_verbs_that_are_mistyped(capsys, words, said):
    assert main(words) == 2
    seen = capsys.readouterr()
    assert (seen.out, seen.err.count("\n")) == ("", 1)
    assert seen.err.startswith(said) or said in seen.err


# ------------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize(("words", "command"), COMMANDS)
def test_help_fits_the_screen_and_has_an_example(capsys, words, command, option):
    assert main([*words, option]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) < 80
    assert "\xa0" not in out
    assert f"Examples:\n  cardboost {' '.join(words)} " in out or words == ["demo"]
    for param in command.params:
        assert f"\n  {label(param)}" in out
        assert getattr(param, "help", "")


@pytest.mark.parametrize(("words", "command"), COMMANDS)
def test_help_says_defaults(words, command):
    for param in command.params:
        if isinstance(param.default, int | float | str) and not isinstance(param.default, bool):
            shown = re.search(r"\(default:\xa0([^)\xa0,]+)", param.help)[1]
            assert param.type.convert(shown, param, None) == param.type.convert(param.default, param, None)


@pytest.mark.parametrize(("words", "command"), COMMANDS)
def test_the_examples_of_help_are_commands(words, command):
    lines = getattr(command, "examples", "").replace("\\\n", " ").splitlines()
    for line in lines:
        first, *rest = shlex.split(line.partition(" > ")[0])
        if first == "cardboost" and "--config" not in rest:
            assert rest[: len(words)] == words
            command.arguments(rest[len(words) :])


def test_help_of_the_command(capsys):
    for words in ([], ["--help"]):
        assert main(words) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) < 80
        for part in (*VERBS, *(name for verbs in VERBS.values() for name in verbs), "Exit codes:"):
            assert part in out
    assert [int(code) for code in re.findall(r"^ +(\d+)  \w", out, re.MULTILINE)] == [0, 1, 2, 70, 130, 141]


def test_the_version_has_facts_for_a_report(capsys):
    assert main(["--version"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == f"cardboost {cardboost.__version__}"
    assert re.fullmatch(r"\w+ 3\.\d+\.\S+, NumPy \S+, SciPy \S+, scikit-learn \S+", second)
    assert re.search(r"kernels with \d+ threads?$", third)


CODE = """
import sys
from cardboost.cli.main import main
code = main(sys.argv[1:])
print(sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["pareto", "a.csv", "--help"]])
def test_help_loads_nothing_heavy(words):
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "scipy", "rich", "pyarrow", "pandas"}
    assert not heavy & set(re.findall(r"\w+", done.stderr))


# ------------------------------------------------------------------------------------------------ completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(capsys, monkeypatch, shell):
    if shell == "bash":
        from click.shell_completion import BashComplete

        monkeypatch.setattr(BashComplete, "_check_version", staticmethod(lambda: None))
    assert main(["completion", shell]) == 0
    assert f"_CARDBOOST_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cardboost pr", {"prove", "predict"}),
        ("cardboost fit --max-t", {"--max-terms"}),
        ("cardboost fit --selector ", {"auto", "exact", "tabu", "polish", "qubo"}),
        ("cardboost reproduce ne", {"neural"}),
        ("cardboost completion f", {"fish"}),
    ],
)
def test_words_are_completed(capsys, monkeypatch, line, words):
    monkeypatch.setenv("_CARDBOOST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert main([]) == 0
    assert {own.partition(",")[2] for own in capsys.readouterr().out.split()} == words


def test_files_are_completed_by_the_shell(capsys, monkeypatch):
    monkeypatch.setenv("_CARDBOOST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "cardboost fit da")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert main([]) == 0
    assert capsys.readouterr().out == f"file,da{os.linesep}"


def test_texts_of_sizes_and_points():
    assert checks.sizes("1-3,5, 8-9") == (1, 2, 3, 5, 8, 9)
    assert checks.point_range("5") == (-5, 5)
    assert checks.point_range("-2..7") == (-2, 7)
    for text in ("3,2", "0-3", "2-", "-3", "", "1-2-3"):
        with pytest.raises(ValueError, match="ascending numbers"):
            checks.sizes(text)
