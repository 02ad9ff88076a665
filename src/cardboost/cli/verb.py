"""What all verbs of the command share: how they are declared, their help, and sentences for bad usage."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import click

from cardboost.cli.checks import UNBROKEN
from cardboost.cli.config import config_text
from cardboost.cli.files import OK

HELP = {"help_option_names": ["-h", "--help"]}


class Verb(click.Command):
    """A verb: its options by purpose, and what it does with their values.

    Parameters
    ----------
    name : str
        As it is typed.
    run : callable
        Takes an object with one attribute per option (dashes are underscores), and returns the exit code.
    groups : mapping of str to sequence of click.Parameter
        Headings of the help, with arguments and options.
    description : str
        What the verb does, in a sentence.
    examples : str
        Commands, one a line.
    notes : str
        Paragraphs at the end of the help.
    instead : mapping of str to str
        Options of other verbs, and what to use here in their place.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[Any], int],
        groups: Mapping[str, Sequence[click.Parameter]],
        *,
        description: str,
        examples: str,
        notes: str = "",
        instead: Mapping[str, str] | None = None,
    ) -> None:
        params = [param for group in groups.values() for param in group]
        super().__init__(name, params=params, context_settings=HELP, help=description)
        self.run, self.groups, self.examples, self.notes = run, groups, examples, notes
        self.instead = instead or {}

    def arguments(self, words: Sequence[str]) -> SimpleNamespace:
        """The values of all options for the words of a command."""
        with self.make_context(self.name, list(words)) as context:
            return SimpleNamespace(**context.params)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def get_help(self, ctx: click.Context) -> str:
        return super().get_help(ctx).replace(UNBROKEN, " ")

    def invoke(self, ctx: click.Context) -> int:
        arguments = SimpleNamespace(**ctx.params)
        if getattr(arguments, "print_config", False):
            print(config_text(self, arguments), end="")
            return OK
        return self.run(arguments)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        needed = [label(param) for param in self.params if param.required]
        groups = {heading: [_record(param) for param in group] for heading, group in self.groups.items()}
        usage = " ".join([*needed, "[OPTIONS]"])
        _write_help(formatter, ctx.command_path, usage, self.help or "", groups)
        write_lines(formatter, "Examples", self.examples)
        for paragraph in filter(None, self.notes.split("\n\n")):
            formatter.write("\n")
            formatter.write_text(paragraph)


class Group(click.Group):
    """Several verbs under one name. ``noun``: what they are; ``groups``: headings, names and summaries."""

    def __init__(
        self,
        name: str,
        groups: Mapping[str, Mapping[str, str]],
        *,
        description: str,
        noun: str,
        params: Sequence[click.Parameter] = (),
        commands: Iterable[click.Command] = (),
        endings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            name, params=list(params), context_settings=HELP, help=description, no_args_is_help=False
        )
        self.groups, self.noun, self.endings = groups, noun, endings or {}
        for command in commands:
            self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for group in self.groups.values() for name in group]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no {self.noun} {args[0]!r}{hint}", ctx)
        return command.name, command, args[1:]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(f"name one {self.noun}: {', '.join(self.list_commands(ctx))}", ctx)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {heading: list(group.items()) for heading, group in self.groups.items()}
        usage = f"{self.noun.upper()} [OPTIONS]"
        _write_help(formatter, ctx.command_path, usage, self.help or "", groups)
        for heading, lines in self.endings.items():
            write_lines(formatter, heading, lines)


# ------------------------------------------------------------------------------------------------ help


def _write_help(
    formatter: click.HelpFormatter,
    name: str,
    usage: str,
    description: str,
    groups: Mapping[str, Sequence[tuple[str, str]]],
) -> None:
    formatter.write_usage(name, usage)
    formatter.write("\n")
    formatter.write_text(description)
    width = max(len(term) for rows in groups.values() for term, _ in rows if len(term) <= 24)
    for heading, rows in groups.items():
        with formatter.section(_heading(heading)):
            formatter.write_dl([(f"{term:<{width}}", text) for term, text in rows], col_max=width)


def write_lines(formatter: click.HelpFormatter, heading: str, lines: str) -> None:
    """Lines as they are, under a heading."""
    with formatter.section(_heading(heading)):
        formatter.write("".join(f"  {line}\n" for line in lines.strip("\n").split("\n")))


def _heading(text: str) -> str:
    plain = "NO_COLOR" in os.environ or not sys.stdout.isatty()
    return text if plain else click.style(text, bold=True)


def label(param: click.Parameter) -> str:
    """An option with its value, or an argument, as help shows it."""
    if isinstance(param, click.Argument):
        return f"{param.type.name}..." if param.nargs == -1 else param.type.name
    if getattr(param, "is_flag", False):
        return param.secondary_opts[0] if param.default is True else param.opts[0]
    return f"{param.opts[0]} {param.metavar or param.type.name}"


def _record(param: click.Parameter) -> tuple[str, str]:
    return label(param), str(getattr(param, "help", None) or "")


# ------------------------------------------------------------------------------------------------ bad usage


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A hint for a word that was mistyped, or nothing."""
    bare = {name.lstrip("-"): name for name in names}  # all options are alike in their dashes
    near = difflib.get_close_matches(word.lower().lstrip("-"), list(bare), n=1, cutoff=0.6)
    return f"; did you mean {bare[near[0]]}?" if near else ""


def usage_sentence(error: click.UsageError) -> str:
    """What is wrong with the words of a command, and where to read more."""
    name = "cardboost" if error.ctx is None else error.ctx.command_path
    sentence = _fault(error)
    return f"{name}: {sentence}{'' if sentence.endswith('?') else '.'} See `{name} --help`."


def _fault(error: click.UsageError) -> str:
    param = getattr(error, "param", None)
    name = "" if param is None else label(param).partition(" ")[0].rstrip(".")
    if isinstance(error, click.NoSuchOption):
        params = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
        instead = getattr(error.ctx.command, "instead", {}) if error.ctx is not None else {}
        if error.option_name in instead:
            return f"there is no option {error.option_name} here; {instead[error.option_name]}"
        known = [word for own in params for word in (*own.opts, *own.secondary_opts) if word.startswith("--")]
        return f"there is no option {error.option_name}{did_you_mean(error.option_name, known)}"
    if isinstance(error, click.MissingParameter):
        return f"{name} is needed"
    if isinstance(error, click.BadParameter) and name:
        return f"{name}: {error.message}"
    message = error.message.rstrip(".")
    return message[:1].lower() + message[1:]
