"""Configurations: the options of a verb as a TOML file, in and out.

A configuration is data. Its keys are the names of options and its values are checked as on the command line,
which goes before the file. Paths in it are relative to its folder.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from cardboost.cli.files import BadInput
from cardboost.data.sentences import reason

CONFIG = "config.toml"
#: options that say how one command talks, and belong to no configuration
TALK = ("config", "print_config", "json", "quiet", "help")
#: options that hold paths
PATHS = ("data", "out")


def option_key(param: click.Parameter) -> str:
    """The key of an option."""
    return str(param.name).replace("_", "-")


def _configurable(command: click.Command) -> dict[str, click.Parameter]:
    return {str(param.name): param for param in command.params if param.name not in TALK}


# ------------------------------------------------------------------------------------------------ reading


def use_config(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """The callback of --config: what the file says stands where the command line says nothing."""
    if path is not None:
        ctx.default_map = read_config(path, ctx)
    return path


def read_config(path: str, ctx: click.Context) -> dict[str, Any]:
    """The words of the options in a file, by the names of the options; all of them are checked."""
    known, found = _configurable(ctx.command), {}
    for key, value in _document(path).items():
        name = key.replace("-", "_")
        if name not in known:
            keys = list(map(option_key, known.values()))
            near = difflib.get_close_matches(key.replace("_", "-").lower(), keys, n=1)
            hint = f"did you mean {near[0]}?" if near else f"`{ctx.command_path} --help` shows all."
            raise BadInput(f"{path}: there is no option {key!r}; {hint}")
        if name in found:
            raise BadInput(f"{path}: {key} is there twice, with - and with _.")
        try:
            words = _words(known[name], value)
            known[name].type_cast_value(ctx, words)
        except click.BadParameter as error:
            raise BadInput(f"{path}: {key}: {error.message}.") from None
        except ValueError as error:
            raise BadInput(f"{path}: {key}: {error}.") from None
        found[name] = _beside(path, words) if name in PATHS else words
    return found


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise BadInput(f"cannot read {path!r}: {reason(error)}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not a TOML file: {str(error).rstrip('.')}.") from None


def _words(param: click.Parameter, value: Any) -> Any:
    """A value of TOML as the words that mean it on the command line."""
    if getattr(param, "is_flag", False):
        if not isinstance(value, bool):
            raise ValueError(f"expected true or false, got {value!r}")
        return value
    if not _takes_many(param):
        return _word(value)
    if isinstance(value, Mapping):
        return [f"{name}={_listed(own)}" for name, own in value.items()]
    if getattr(param.type, "lists", False) and isinstance(value, list):
        return [_listed(own) for own in value]
    return [_word(own) for own in value] if isinstance(value, list) else [_word(value)]


def _listed(value: Any) -> str:
    return ",".join(map(_word, value)) if isinstance(value, list) else _word(value)


def _word(value: Any) -> str:
    if isinstance(value, bool | list | dict):
        raise ValueError(f"expected text or a number, got {value!r}")
    return str(value)


def _beside(path: str, words: Any) -> Any:
    """Paths of the file, seen from the present folder; - is the standard input."""
    folder = os.path.dirname(path)

    def seen(word: str) -> str:
        pattern = glob.escape(folder) if glob.has_magic(word) else folder
        return word if word in ("-", "") else os.path.join(pattern, word)

    return [seen(word) for word in words] if isinstance(words, list) else seen(words)


# ------------------------------------------------------------------------------------------------ writing


def config_text(command: click.Command, arguments: SimpleNamespace, folder: Path | None = None) -> str:
    """All options with a value, defaults included, as TOML.

    ``folder``: where the file will be, among the files of a run; the data are then found from there, and
    where the run was written is left out.
    """
    values = {name: getattr(arguments, name) for name in _configurable(command)}
    if folder is not None:
        values["data"] = tuple(_seen_from(folder, path) for path in values["data"])
        del values["out"]
    lines = [f"# Run it again with: cardboost {command.name} --config FILE"]
    tables = []
    for name, param in _configurable(command).items():
        value = values.get(name)
        if isinstance(value, dict):
            rows = [f"{_key(own)} = {_toml(part)}" for own, part in value.items()]
            tables += ["", f"[{option_key(param)}]", *rows] if rows else []
        elif value != () and (value is not None or _means_none(param)):
            show = None if _takes_many(param) else getattr(param.type, "show", None)
            lines.append(f"{option_key(param)} = {_toml(value if show is None else show(value))}")
    return "\n".join([*lines, *tables, ""])


def _takes_many(param: click.Parameter) -> bool:
    return param.nargs == -1 or bool(getattr(param, "multiple", False))


def _means_none(param: click.Parameter) -> bool:
    """Whether None is a value of an option that is not its default, and has to be written."""
    return "none" in getattr(param.type, "words", ()) and isinstance(param.default, int | float | str)


def _seen_from(folder: Path, path: str) -> str:
    return path if path == "-" or os.path.isabs(path) else os.path.relpath(path, folder)


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _toml(text)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{"".join(map(_toml_character, value))}"'


def _toml_character(character: str) -> str:
    if "\ud800" <= character <= "\udfff":  # of a file name that is no text
        return "\ufffd"
    plain = character.isprintable() and character not in '"\\'
    return character if plain else f"\\U{ord(character):08x}"
