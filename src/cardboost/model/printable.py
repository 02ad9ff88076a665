"""Names and labels that come from anywhere, safe to show.

A header can hold an escape sequence that colours a terminal or sets its title, a line break, or a sign that
turns the text round. Whatever is printed or put on a card or a page goes through here; files of models keep
every name exactly.
"""

from __future__ import annotations

import html
import re

_BEYOND_ASCII = re.compile("[\x7f-\U0010ffff]")


def printable(text: str) -> str:
    """Line breaks and other characters without a shape, as escapes: a name stays on its line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def printable_html(text: str) -> str:
    """Text for a page or a figure: nothing in it is obeyed."""
    return html.escape(printable_lines(text))


def printable_json(text: str) -> str:
    """JSON whose strings have the same content, with escapes for the characters without a shape."""
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    character = match.group()
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))
