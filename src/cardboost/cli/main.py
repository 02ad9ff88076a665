"""The `cardboost` command: one parser, one file per verb, one sentence for everything that goes wrong."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from cardboost.cli import certify, demo, export, fit, pareto, predict, prove, reproduce
from cardboost.cli.files import BAD_INPUT, BUG, INTERRUPTED, OK, PIPE_CLOSED, BadInput, reason
from cardboost.model.printable import printable

_EPILOG = """\
examples:
  cardboost demo
  cardboost fit patients.csv --target died --max-terms 8 --out run
  cardboost prove run/model.json patients.csv --time 60
  cardboost pareto patients.csv --target died --out front
  cardboost predict run/model.json new.csv --out scores.csv
  cardboost certify run/model.json patients.csv --target died
  cardboost export run/model.json --format c --out card.h
  cardboost reproduce conjugate-gradient --out paper

`cardboost VERB --help` shows the options of a verb.

exit codes:
    0  all went well
    1  certify, demo: the certificate does not hold; reproduce: a check point
       fails
    2  bad usage or bad input, said in one sentence
   70  a bug in cardboost
  130  interrupted (fit, prove and pareto keep and write what they have so far)
  141  the reader of the output has gone
"""


class _Parser(argparse.ArgumentParser):
    """One sentence instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        message = message[:1].lower() + message[1:]
        sentence = printable(message.rstrip("."))
        print(f"{self.prog}: {sentence}. See `{self.prog} --help`.", file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def build_parser() -> argparse.ArgumentParser:
    from cardboost import __version__

    style: dict[str, Any] = {"formatter_class": _Formatter, "allow_abbrev": False}
    parser = _Parser(
        prog="cardboost",
        description="Small boosted models that can be read, with a proof of how good they are.",
        epilog=_EPILOG,
        **style,
    )
    parser.add_argument("--version", action="version", version=f"cardboost {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, dest="verb")
    for module in (demo, fit, prove, pareto, predict, certify, export, reproduce):
        module.add_parser(verbs, **style)
    return parser


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Options in one column, their meaning in another, within 79 characters."""

    def __init__(self, prog: str, **settings: Any) -> None:
        settings.setdefault("max_help_position", 26)
        settings.setdefault("width", 79)
        super().__init__(prog, **settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    _open_streams()
    parser = build_parser()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:
        parser.print_help()
        return OK
    try:
        parsed = parser.parse_args(given)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else BAD_INPUT
    try:
        code = int(parsed.run(parsed))
        sys.stdout.flush()
        return code
    except BadInput as error:
        sentence = printable(" ".join(str(error).split("\n")))
        print(f"cardboost {parsed.verb}: {sentence}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print(f"cardboost {parsed.verb}: aborted.", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        print(f"cardboost {parsed.verb}: there is not enough memory for these data.", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader of our output has seen enough
        _give_up_output()
        return PIPE_CLOSED
    except OSError as error:  # files have their own message: this is the screen, or what stands for it
        _give_up_output()
        print(f"cardboost {parsed.verb}: cannot write the output: {reason(error)}.", file=sys.stderr)
        return BAD_INPUT
    except Exception:
        traceback.print_exc()
        print("This is a bug in cardboost: please report the lines above.", file=sys.stderr)
        return BUG


def _open_streams() -> None:
    """Output that was closed cannot be written, which is said; text without signs is written with escapes."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _give_up_output() -> None:
    """Nothing more goes to stdout, not even when Python ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
