"""Parts of the sentences in messages: lists of names, counts, the nearest of some names."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Sequence


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], joiner: str = "and", most: int = 6) -> str:
    """'a', 'b' and 'c', or the first few of many."""
    shown = [repr(name) for name in names[:most]]
    if len(names) > most:
        return ", ".join(shown) + f" {joiner} {len(names) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {joiner} {shown[-1]}"


def closest(name: str, names: Iterable[str]) -> str:
    """A hint for a name that was not found: the nearest ones, or a few of those there are."""
    names = list(names)
    folded = {column.lower(): column for column in reversed(names)}
    near = [folded[match] for match in difflib.get_close_matches(name.lower(), list(folded), n=3, cutoff=0.5)]
    if near:
        return f"did you mean {listed(near, 'or')}?"
    return f"the columns are {listed(names)}." if names else "there are no columns."


def short(text: str) -> str:
    """A cell to quote in a message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def one_line(message: object) -> str:
    """An error of another library, to end a sentence with."""
    return " ".join(str(message).split()).rstrip(".")


def reason(error: OSError) -> str:
    """Why, in the words of the system: "no such file or directory"."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def dropping(*names: str) -> str:
    """The options that leave columns out."""
    return " ".join(f"--drop {shlex.quote(name)}" for name in names)


def as_categories(name: str) -> str:
    """The option that makes categories of all cells."""
    return f"make categories of all with --categorical {shlex.quote(name)}"
