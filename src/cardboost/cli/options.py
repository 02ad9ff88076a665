"""Options, each declared once: those of the data here, those of the model by the estimators' docstrings."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import click

from cardboost.cli import checks
from cardboost.cli.checks import UNBROKEN, Number, PathText, Value, choice, number, pair, text
from cardboost.cli.config import use_config
from cardboost.cli.files import BadInput
from cardboost.cli.parameters import CLASSIFIER, REGRESSOR, Parameter, documented


class Argument(click.Argument):
    """A word without an option, with a line of help."""

    def __init__(
        self, name: str, metavar: str, help: str, *, many: bool = False, words: Sequence[str] = ()
    ) -> None:
        kind = choice(*words) if words else PathText(metavar)
        kind.name = metavar
        super().__init__([name], type=kind, required=True, nargs=-1 if many else 1)
        self.help = help

    def consume_value(self, ctx: click.Context, opts: Any) -> Any:
        """No words are no value, also for click 8.1: a configuration may have one."""
        return super().consume_value(ctx, {name: words for name, words in opts.items() if words != ()})


def option(
    name: str,
    kind: click.ParamType,
    help: str,
    default: Any = None,
    *,
    shown: str | None = None,
    many: bool = False,
    required: bool = False,
    callback: Callable[..., Any] | None = None,
) -> click.Option:
    """An option with a value. ``shown``: what help says of the default, where it is not the value itself."""
    if isinstance(kind, Value) and kind.words and kind.name == "NAME":
        help = f"{help}: {', '.join(kind.words[:-1])} or {kind.words[-1]}"
    settings = {} if default is None else {"default": default}
    if shown is None and default is not None:
        shown = f"{default:g}" if isinstance(default, float) else str(default)
    return click.Option(
        [f"--{name}"],
        type=kind,
        help=help if shown is None else f"{help} {_unbroken(f'(default: {shown})')}",
        multiple=many,
        required=required,
        callback=callback,
        **settings,
    )


def _unbroken(text: str) -> str:
    """A few words that stay in one line of help."""
    return text.replace(" ", UNBROKEN) if len(text) < 30 else text


def flag(name: str, help: str, default: bool | None = None) -> click.Option:
    """A switch; with a default there is also one that turns it off again, for the sake of configurations."""
    words = f"--{name}" if default is None else f"--{name}/--no-{name}"
    return click.Option([words], is_flag=True, default=bool(default), help=help)


def mapping(name: str, kind: Value, help: str) -> click.Option:
    """``--name KEY=VALUE``, again and again: a dict."""
    return option(name, kind, help, many=True, callback=lambda ctx, param, pairs: dict(pairs or ()))


# ------------------------------------------------------------------------------------------------ the data


def columns(name: str, help: str) -> click.Option:
    """Names of columns; see :func:`names_in`."""
    return option(name, text("COLUMN"), help, many=True)


def names_in(given: Iterable[str], known: Sequence[str]) -> list[str]:
    """The names in the values of an option, each a name or several with commas between them.

    A value that is the name of a column as it stands is this name, commas or not.
    """
    names = []
    for value in given:
        whole = value.strip() in known or "," not in value
        names += [value.strip()] if whole else [part.strip() for part in value.split(",")]
    return names


def pairs_in(
    given: Mapping[str, Any], known: Collection[str], read: Callable[[str], Any], option: str
) -> dict[str, Any]:
    """The pairs in the values of an option, each NAME=VALUE or several with commas between them.

    Parameters
    ----------
    given : mapping
        Values by names as the command line has them: of ``a=1,b=2`` the name is ``a=1,b``.
    known : collection of str
        Names that there are; one of these is this name, commas or not.
    read : callable
        From text to a value.
    option : str
        The option, for messages.
    """
    pairs: dict[str, Any] = {}
    for name, value in given.items():
        parts = [name] if name.strip() in known or "," not in name else name.split(",")
        if not all("=" in part for part in parts[:-1]):
            parts = [name]
        for part in parts[:-1]:
            own, _, word = part.rpartition("=")
            try:
                pairs[own.strip()] = read(word.strip())
            except ValueError as error:
                raise BadInput(f"{option}: {error}.") from None
        pairs[parts[-1].strip()] = value
    return pairs


DATA = Argument("data", "DATA", "files of one table with a header, or globs; - reads stdin", many=True)
MODEL = Argument("model", "MODEL", "a model file, such as run/model.json")
TARGET = option("target", text("COLUMN"), "the column to predict", required=True)
WEIGHT = option("weight", text("COLUMN"), "the weight of each row")
TASKS = ("auto", "binary", "multiclass", "regression")
ROLES = [
    option("task", choice(*TASKS), "what is predicted", "auto"),
    option("positive", text("LABEL"), "the class of high scores", shown="the last, sorted"),
    columns("numeric", "columns of numbers, also what looks like an identifier"),
    columns("categorical", "columns whose numbers are names of categories"),
    columns("id", "columns that identify rows, to leave out"),
    columns("drop", "other columns to leave out: a,b,c or --drop again"),
    mapping(
        "date",
        Value(checks.date_column, "COLUMN=PARTS"),
        f"features of a date: {', '.join(checks.DATE_PARTS)}",
    ),
    WEIGHT,
    option("group", text("COLUMN"), "rows of one group stay together when rows are split"),
]
DELIMITER = option(
    "delimiter", Value(checks.one_character, "CHAR"), "between cells: , ; | or tab", shown="detected"
)
FORMAT = [
    DELIMITER,
    option(
        "decimal", Value(checks.one_character, "CHAR"), "decimal mark of numbers: . or ,", shown="detected"
    ),
    option("thousands", Value(checks.one_character, "CHAR"), "between groups of digits", shown="detected"),
]
HOLDOUT = [
    option(
        "holdout", number(checks.fraction, "FRACTION"), "part of the rows kept for a test", 0.0, shown="0"
    ),
    option("holdout-by", text("COLUMN"), "hold out whole groups, or the latest dates"),
]


def output(folder: str, shown: str) -> list[click.Option]:
    """Where files go, and what is printed."""
    return [
        option("out", PathText("DIR", "dir"), "folder for the files", folder),
        flag("json", f"print the {shown} as one JSON document"),
        flag("quiet", "print nothing but errors (and the JSON, if asked)"),
        click.Option(
            ["--config"],
            type=PathText("FILE"),
            is_eager=True,
            callback=use_config,
            help="options from a TOML file; the command line goes before it",
        ),
        flag("print-config", "print the options as such a file, and do nothing else"),
    ]


OUT_FOLDER = option("out", PathText("DIR", "dir"), "folder for the files", required=True)


# ------------------------------------------------------------------------------------------------ the model


@dataclass(frozen=True)
class Declared:
    """How a parameter of the estimators is an option; what is not said here its docstring says.

    Parameters
    ----------
    heading : str
        The group of options in help.
    name : str, optional
        Of the option, where it is not that of the parameter with dashes.
    check : Number, optional
        What numbers are accepted.
    help : str, optional
        In place of the first sentence of the docstring.
    shown : str, optional
        What help says of a default of None.
    make : callable, optional
        Makes the option from its name and help, where it is none of a single number or word.
    value : callable, optional
        From the value of the option to that of the parameter.
    """

    heading: str
    name: str | None = None
    check: Number | None = None
    help: str | None = None
    shown: str | None = None
    make: Callable[[str, str], click.Option] | None = None
    value: Callable[[Any], Any] = lambda value: value


def _directions(columns: dict[str, str]) -> dict[str, int] | None:
    return {name: 1 if way == "increasing" else -1 for name, way in columns.items()} or None


def _class_weight(ctx: Any, param: Any, values: Sequence[Any]) -> Any:
    """Balanced, factors by label, or None."""
    pairs = [value for value in values or () if value != "balanced"]
    if pairs and len(pairs) < len(values):
        raise click.BadParameter("expected balanced or factors of labels, got both", ctx, param)
    return dict(pairs) if pairs else "balanced" if values else None


def _missing(ctx: Any, param: Any, values: Sequence[Any]) -> Any:
    """One word for all columns, or a word for some."""
    words = [value for value in values or () if isinstance(value, str)]
    if words and len(values) > 1:
        raise click.BadParameter("expected one word for all columns, or COLUMN=WORD, got both", ctx, param)
    return words[0] if words else dict(values or ()) or "learn"


_CUTS = pair(checks.cuts, "COLUMN=X,X", "age=25,40,60")
_GROUP = Value(checks.group, "COLUMN,COLUMN")
_GROUP.lists = True
_MISSING = Value(checks.missing, "WORD", checks.MISSING)
_MONOTONIC = pair(checks.direction, "COLUMN=WAY", "age=increasing")
_COST = pair(checks.amount, "COLUMN=X", "age=0.01")
_WEIGHTS = Value(checks.class_weight, "LABEL=X", ("balanced",))
_MODEL, _SEARCH = "The model", "The search"
DECLARED = {
    "max_terms": Declared(_MODEL, help="at most so many terms (of each class); auto: by cross-validation"),
    "max_features": Declared(_MODEL, shown="no limit"),
    "l0": Declared(_MODEL),
    "l1": Declared(_MODEL),
    "l2": Declared(_MODEL, help="regularisation per half squared weight; auto: by cross-validation"),
    "loss": Declared(_MODEL),
    "max_weight": Declared(_MODEL, check=checks.positive, shown="automatic"),
    "max_bins": Declared(_MODEL, check=checks.bins),
    "monotonic_cst": Declared(
        _MODEL,
        name="monotonic",
        help="the score may only rise with a column (increasing) or fall (decreasing)",
        make=lambda name, help: mapping(name, _MONOTONIC, help),
        value=_directions,
    ),
    "feature_costs": Declared(
        _MODEL,
        name="feature-cost",
        make=lambda name, help: mapping(name, _COST, help),
        value=lambda costs: costs or None,
    ),
    "cuts": Declared(
        _MODEL,
        help="the only cuts of a column",
        make=lambda name, help: mapping(name, _CUTS, help),
        value=lambda cuts: cuts or None,
    ),
    "must_include": Declared(
        _MODEL,
        help="columns that terms must use, each at least once",
        make=columns,
        value=lambda names: list(names) or None,
    ),
    "exclude": Declared(
        _MODEL,
        help="columns that no term may use",
        make=columns,
        value=lambda names: list(names) or None,
    ),
    "at_most_one_of": Declared(
        _MODEL,
        help="columns of which terms use one at most",
        make=lambda name, help: option(name, _GROUP, help, many=True),
        value=lambda groups: [list(group) for group in groups] or None,
    ),
    "missing": Declared(
        _MODEL,
        help="missing values are on the side that suits (learn), the low (worst) or the high one (best)",
        make=lambda name, help: option(name, _MISSING, help, many=True, callback=_missing),
    ),
    "class_weight": Declared(
        _MODEL,
        help="balanced, or the factor of a class in the row weights",
        make=lambda name, help: option(name, _WEIGHTS, help, many=True, callback=_class_weight),
    ),
    "threshold": Declared(
        _MODEL,
        help="of the second class: a probability, recall>=0.95, precision>=0.8, fpr<=0.01, or fp=1,fn=20",
        make=lambda name, help: option(name, Value(checks.threshold, "THRESHOLD"), help),
    ),
    "fit_intercept": Declared(_MODEL, name="intercept", help="a model without an intercept"),
    "selector": Declared(_SEARCH),
    "hot_start": Declared(_SEARCH, check=checks.count),
    "reselect": Declared(_SEARCH, help="select again after every further candidate"),
    "criterion": Declared(_SEARCH),
    "max_iter": Declared(_SEARCH),
    "max_nodes": Declared(_SEARCH),
    "bits": Declared(_SEARCH, check=checks.bits),
    "tol": Declared(_SEARCH),
    "validation_fraction": Declared(
        _SEARCH, check=checks.share, help="share of the rows whose loss ends the search for candidates"
    ),
    "time_limit": Declared(_SEARCH, name="time", check=checks.positive, shown="no limit"),
    "n_jobs": Declared(_SEARCH, name="threads", shown="all cores; the result is the same"),
    "random_state": Declared(_SEARCH, name="seed", check=checks.count, shown="the same every time"),
}
NOT_ON_THE_COMMAND_LINE = {
    "dictionary": "learners other than stumps are Python objects",
    "categorical_features": "the roles of columns decide: --categorical and --numeric",
    "warm_start": "a command has no fit before it",
    "verbose": "progress is shown unless --quiet says otherwise",
}
_METAVARS = {"time_limit": "SECONDS", "validation_fraction": "FRACTION"}


def model_options(leave_out: Iterable[str] = ()) -> dict[str, list[click.Option]]:
    """The parameters of both estimators as options, by heading; ``leave_out``: those that are none here."""
    groups: dict[str, list[click.Option]] = {}
    for name, declared in DECLARED.items():
        if name not in set(leave_out):
            groups.setdefault(declared.heading, []).append(_model_option(name, declared))
    return groups


def _model_option(name: str, declared: Declared) -> click.Option:
    known = [own[name] for own in (documented(CLASSIFIER), documented(REGRESSOR)) if name in own]
    word, help = option_name(name), declared.help or known[0].summary
    if declared.make is not None:
        return declared.make(word, help)
    if isinstance(known[0].default, bool):
        return flag(word, help, known[0].default)
    kind = _value(known, declared.check, _METAVARS.get(name))
    defaults = dict.fromkeys(parameter.default for parameter in known)
    if len(defaults) > 1:  # it depends on the task
        return option(word, kind, help, shown="; for regression ".join(map(str, defaults)))
    default = known[0].default
    return option(word, kind, help, default, shown=declared.shown if default is None else None)


def _value(known: Sequence[Parameter], check: Number | None, metavar: str | None) -> Value:
    """The type of an option by what the docstrings say of the values."""
    words = dict.fromkeys(word for parameter in known for word in parameter.words)
    if "float" in known[0].kind:
        return number(check or checks.amount, metavar, *words)
    if "int" in known[0].kind:
        return number(check or checks.whole, metavar, *words)
    return choice(*words)


def option_name(parameter: str) -> str:
    """The option of a parameter of an estimator."""
    return DECLARED[parameter].name or parameter.replace("_", "-")


def estimator_parameters(
    arguments: SimpleNamespace, estimator: str, leave_out: Iterable[str] = ()
) -> dict[str, Any]:
    """What the options say, for the constructor of an estimator."""
    values = {}
    for name, parameter in documented(estimator).items():
        if name not in DECLARED or name in set(leave_out):
            continue
        value = getattr(arguments, option_name(name).replace("-", "_"))
        if value is None and "none" not in parameter.words:
            continue  # it depends on the task
        values[name] = DECLARED[name].value(value)
    return values


_POINTS = {"max_bytes": "max-bytes", "points_to_double_odds": "double-odds", "base_score": "base-score",
           "base_odds": "base-odds"}  # fmt: skip
_PARAMETER = re.compile(rf"(?<![-'\w])({'|'.join((*DECLARED, *_POINTS))})\b(=True\b|=| must)?")


def in_options(message: str) -> str:
    """What an estimator says of its parameters, with the names that they have on the command line."""

    def renamed(match: re.Match[str]) -> str:
        name, end = match[1], match[2] or ""
        if "_" not in name and not end:
            return match[0]  # a word like any
        word = _POINTS.get(name) or option_name(name)
        return f"--{word}{ {'=True': '', '=': ' '}.get(end, end) }"

    return _PARAMETER.sub(renamed, message)


# ----------------------------------------------------------------------------------------------- whole points

POINTS = [
    option(
        "points",
        Value(checks.point_range, "RANGE", show=lambda ends: f"{ends[0]}..{ends[1]}"),
        "of a term: 10, or 0..5",
        shown="-10..10",
    ),
    option("base-score", number(checks.real), "the total with odds of --base-odds to 1"),
    option("base-odds", number(checks.positive), "odds at --base-score", shown="1"),
    option("double-odds", number(checks.positive), "points that double the odds"),
    option("max-bytes", number(checks.whole), "the best card whose integer C fits on a Cortex-M0"),
]
