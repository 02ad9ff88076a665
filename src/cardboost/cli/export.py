"""`cardboost export`: a model file as C, Python, SQL, JavaScript, Excel, ONNX or JSON."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cardboost.cli.checks import PathText, choice, number, text, whole
from cardboost.cli.files import OK, BadInput, read_model_file, refuse_to_replace
from cardboost.cli.options import MODEL, flag, option
from cardboost.cli.verb import Verb
from cardboost.data.sentences import counted, one_line, reason
from cardboost.model.printable import printable, printable_lines

if TYPE_CHECKING:
    from cardboost.model.files import Model

_FORMATS = ("c", "c-int16", "python", "sql", "javascript", "excel", "onnx", "json")
_C = ("c", "c-int16")
_FUNCTIONS = ("python", "javascript")
_BINARY = ("excel", "onnx")


def run(arguments: SimpleNamespace) -> int:
    model = read_model_file(arguments.model)
    options = _options(arguments)
    screen = arguments.out == "-"
    if screen and arguments.format in _BINARY:
        raise BadInput(f"--format {arguments.format} needs --out: the file is not text.")
    vectors = arguments.test_vectors
    if vectors is not None and os.path.realpath(vectors) == os.path.realpath(arguments.out):
        raise BadInput("--test-vectors and --out name the same file.")
    files = {} if vectors is None else {"test_vectors": vectors}
    if "" in (arguments.out, vectors):
        raise BadInput("--out or --test-vectors is empty: name a file.")
    if screen and (arguments.test_vectors is not None or arguments.measure):
        raise BadInput("--test-vectors and --measure need --out.")
    table = arguments.vectors_from
    read = [arguments.model, *([] if table is None else [table])]
    refuse_to_replace([path for path in (arguments.out, vectors) if path is not None], read)
    if table is not None:
        if vectors is None:
            raise BadInput("--vectors-from adds rows to --test-vectors, which names no file.")
        files["test_rows"] = _table(table, model, arguments.model)
    text = _export(model, arguments, options | files)
    if screen:
        text = text if isinstance(text, str) else ""
        sys.stdout.write(printable_lines(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        return OK
    print(printable(f"wrote {arguments.out}"))
    if arguments.test_vectors is not None:
        print(f"wrote {arguments.test_vectors}")
    if arguments.measure:
        _print_sizes(model, arguments.format, options)
    return OK


def _options(arguments: SimpleNamespace) -> dict[str, Any]:
    """What the format is told; words that do not go with it are refused."""
    for word, given, formats in (
        ("--prefix", arguments.prefix, _C),
        ("--layout", arguments.layout, _C),
        ("--no-missing", arguments.no_missing, _C),
        ("--test-vectors", arguments.test_vectors, _C),
        ("--vectors-from", arguments.vectors_from, _C),
        ("--probability", arguments.probability, _C),
        ("--measure", arguments.measure, _C),
        ("--name", arguments.name, _FUNCTIONS),
        ("--module", arguments.module, ("javascript",)),
        ("--rows", arguments.rows, ("excel",)),
        ("--scale", arguments.scale, ("c-int16",)),
        ("--inexact", arguments.inexact, ("c-int16", "onnx")),
    ):
        if given and arguments.format not in formats:
            raise BadInput(f"{word} goes with --format {' and '.join(formats)} only.")
    options: dict[str, Any] = {}
    for name in ("prefix", "layout", "name", "rows"):
        if getattr(arguments, name) is not None:
            options[name] = getattr(arguments, name)
    for name in ("probability", "module"):
        if getattr(arguments, name):
            options[name] = True
    if arguments.no_missing:
        options["missing"] = False
    if arguments.inexact:
        options["exact"] = False
    if arguments.scale:
        options["scales"] = dict(map(_scale, arguments.scale))
    return options


def _scale(word: str) -> tuple[str, float]:
    name, mark, number = word.rpartition("=")
    try:
        if not mark:
            raise ValueError
        return name, float(number)
    except ValueError:
        raise BadInput(f"--scale {word}: write it as FEATURE=CODES_PER_UNIT, as in temperature=10.") from None


def _table(path: str, model: Model, model_path: str) -> Any:
    """All rows of a table, as the model reads them."""
    from cardboost.cli.model_rows import ModelColumns
    from cardboost.cli.rows import opened
    from cardboost.model.predictions import model_frame

    needed = ModelColumns.of(model, model_path, used=True)
    with opened(SimpleNamespace(data=path, delimiter=None, decimal=None, thousands=None)) as source:
        needed.require(source, model)
        frame = source.read(list(needed.kinds), needed.kinds)
    return model_frame(model.ensemble, needed.features(frame))


def _export(model: Model, arguments: SimpleNamespace, options: dict[str, Any]) -> str | bytes:
    from cardboost.export import export_model

    path = None if arguments.out == "-" else arguments.out
    try:
        return export_model(model, arguments.format, path, **options)
    except FileNotFoundError as error:
        raise BadInput(
            f"cannot write {arguments.out!r}: {one_line(error).replace('The', 'the', 1)}."
        ) from None
    except OSError as error:
        raise BadInput(f"cannot write {arguments.out!r}: {reason(error)}.") from None
    except (ValueError, ImportError) as error:
        raise BadInput(f"{_in_options(one_line(error))}.") from None


def _in_options(message: str) -> str:
    """What an exporter says of its arguments, with the names that they have on the command line."""
    name, mark, rest = message.partition(": ")
    option = {"prefix": "--prefix", "scales": "--scale"}.get(name, name)
    return f"{option}{mark}{rest}"


def _print_sizes(model: Model, name: str, options: dict[str, Any]) -> None:
    from cardboost.export.measure import TARGETS, measure, measure_time
    from cardboost.model.predictions import scorecard_of

    number = "int16" if name == "c-int16" else "float"
    exported = scorecard_of(model) or model.ensemble
    try:
        sizes = measure(exported, number=number, **options)
        times = measure_time(exported, number=number, **options)
    except ValueError as error:
        raise BadInput(str(error)) from None
    for size in sizes:
        print(f"{size.target}: {size.linked} bytes, {size.header} of them in the header")
    for took in times:
        print(
            f"{took.target}: {took.mean:.0f} {took.unit} for a prediction, {took.most} at most "
            f"({counted(len(took.counts), 'row')} of the test vectors)"
        )
    if not sizes:
        tools = " and ".join(f"{target.tools}gcc" for target in TARGETS)
        print(f"no sizes: neither of {tools} is installed")


command = Verb(
    "export",
    run,
    {
        "What is written": [
            MODEL,
            option("format", choice(*_FORMATS), "what to write", required=True),
            option("out", PathText("FILE"), "where to write", "-", shown="-, the screen"),
        ],
        "C": [
            option("prefix", text("NAME"), "how names in C begin", shown="cardboost"),
            option(
                "layout",
                choice("auto", "table", "ifs"),
                "a loop over a table, or one if per cut",
                shown="auto",
            ),
            flag("no-missing", "numbers are never missing, which can save bytes"),
            option("test-vectors", PathText("FILE"), "a second header with a self-test"),
            option(
                "vectors-from", PathText("FILE"), "a table whose rows are tested too", shown="no rows of data"
            ),
            flag("probability", "also a function for probabilities"),
            flag(
                "measure",
                "bytes where a compiler is installed, time where there is an emulator",
            ),
        ],
        "Python, JavaScript, Excel": [
            option("name", text("NAME"), "the name of the function", shown="score"),
            flag("module", "JavaScript: an ES module"),
            option("rows", number(whole), "Excel: rows with formulas", shown="100"),
        ],
        "Whole numbers (c-int16)": [
            option(
                "scale",
                text("FEATURE=N"),
                "whole numbers per unit of a feature; again for others",
                shown="by its cuts",
                many=True,
            ),
            flag("inexact", "accept rounding that is not proven to keep every decision (onnx too)"),
        ],
    },
    description="Write a model file in a form that runs without cardboost.",
    examples="""\
cardboost export run/model.json --format c --out card.h
cardboost export run/model.json --format c-int16 --out card.h \\
    --test-vectors test_vectors.h --scale temperature=10 --measure
cardboost export run/model.json --format sql
cardboost export run/model.json --format javascript --out card.js
cardboost export run/model.json --format excel --out card.xlsx --rows 500
""",
    notes="""c takes floats, c-int16 whole numbers; both decide as the model does. The test
vectors are a second header with a function that returns how many rows got
another answer. docs/export.md says what is guaranteed.""",
)
