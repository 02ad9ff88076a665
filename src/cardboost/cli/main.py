"""The `cardboost` command: one group, one file per verb, one sentence for everything that goes wrong."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from cardboost.cli.files import BAD_INPUT, BUG, INTERRUPTED, OK, PIPE_CLOSED, BadInput, to_stderr
from cardboost.cli.verb import Group, usage_sentence
from cardboost.data.sentences import reason

#: what help says of the verbs, by purpose; a verb is the module of its name, loaded when it is asked for
VERBS = {
    "First steps": {"demo": "train on data that come with scikit-learn: a first look"},
    "Train": {
        "fit": "train a small certified model on a table",
        "pareto": "score against number of terms, by cross-validation",
        "prove": "go on with the proof of a model",
    },
    "Use": {
        "predict": "score the rows of a table",
        "evaluate": "say how good a model is on labelled rows",
        "export": "write a model as C, Python, SQL, ONNX or JSON",
    },
    "Check": {
        "certify": "check a model's certificate against the data",
        "reproduce": "run the experiments of a paper and check what it claims",
    },
    "Set up": {"completion": "print what makes a shell complete the words of commands"},
}
_EXAMPLES = """\
cardboost demo
cardboost fit patients.csv --target died --max-terms 8 --out run
cardboost predict run/model.json new.csv --out scores.csv
cardboost certify run/model.json patients.csv
"""
_EXIT_CODES = """\
  0  all went well
  1  certify, demo: the certificate does not hold; reproduce: a check point
     fails
  2  bad usage or bad input, said in one sentence
 70  a bug in cardboost
130  interrupted (fit, prove and pareto keep and write what they have so far)
141  the reader of the output has gone
"""
#: set by the script that a shell reads when it completes a word
COMPLETE = "_CARDBOOST_COMPLETE"


class Verbs(Group):
    """Loads a verb when it is asked for: help and completion are quick."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"cardboost.cli.{name}").command
        return command


def _print_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from cardboost.cli.version import version_lines

        print("\n".join(version_lines()))
        ctx.exit()


VERSION = click.Option(
    ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_version
)
cardboost = Verbs(
    "cardboost",
    VERBS,
    description="Small boosted models that can be read, with a proof of how good they are.",
    noun="verb",
    params=[VERSION],
    endings={
        "Examples": _EXAMPLES,
        "Exit codes": _EXIT_CODES,
        "More": "cardboost VERB --help   the options of a verb\n"
        "cardboost --version     versions of cardboost and of what it runs on",
    },
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    _open_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    known = words and words[0] in cardboost.list_commands(click.Context(cardboost))
    name = f"cardboost {words[0]}" if known else "cardboost"
    try:
        if COMPLETE in os.environ:
            from click.shell_completion import shell_complete

            return shell_complete(cardboost, {}, "cardboost", COMPLETE, os.environ[COMPLETE])
        code = _run(words or ["--help"])
        sys.stdout.flush()
        return code
    except click.UsageError as error:
        to_stderr(usage_sentence(error))
        return BAD_INPUT
    except BadInput as error:
        to_stderr(f"{name}: {' '.join(str(error).split(chr(10)))}")
        return BAD_INPUT
    except KeyboardInterrupt:
        to_stderr(f"{name}: aborted.")
        return INTERRUPTED
    except MemoryError:
        to_stderr(f"{name}: there is not enough memory for these data.")
        return BAD_INPUT
    except BrokenPipeError:  # the reader of our output has seen enough
        _give_up_output()
        return PIPE_CLOSED
    except OSError as error:  # files have their own message: this is the screen, or what stands for it
        _give_up_output()
        to_stderr(f"{name}: cannot write the output: {reason(error)}.")
        return BAD_INPUT
    except Exception:
        traceback.print_exc()
        print("This is a bug in cardboost: please report the lines above.", file=sys.stderr)
        return BUG


def _run(words: list[str]) -> int:
    try:
        with cardboost.make_context("cardboost", words) as context:
            return int(cardboost.invoke(context))
    except click.exceptions.Exit as end:  # of --help and --version
        return end.exit_code or OK


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
