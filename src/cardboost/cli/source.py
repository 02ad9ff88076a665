"""A table in a file, whatever its format: names first, then the columns that are asked for."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cardboost.cli.files import BadInput, closest
from cardboost.cli.values import Kind, Labels
from cardboost.data.frame import Frame


@dataclass
class Source(ABC):
    """An open file after its header. ``form``: format, compression, encoding and delimiter, for the log."""

    path: str
    names: list[str]
    form: dict[str, str | None] = field(default_factory=dict)

    def require(self, name: str) -> None:
        """A sentence that suggests others, if there is no such column."""
        if name.strip() not in self.names:
            known = [own for own in self.names if own]
            raise BadInput(f"{self.path} has no column {name!r}: {closest(name, known)}")

    def where(self, name: str) -> int:
        """The position of a column; there must be one of this name, and not more."""
        self.require(name)
        if self.names.count(name.strip()) > 1:
            raise BadInput(f"{self.path} has more than one column named {name.strip()!r}: names must differ.")
        return self.names.index(name.strip())

    @abstractmethod
    def read(
        self, names: Sequence[str], label: str | None = None, kinds: Mapping[str, Kind] | None = None
    ) -> tuple[Frame, Labels | None]:
        """These columns, under the names asked for, and one column as labels. Kinds default to auto."""

    @property
    def remark(self) -> str | None:
        """What the user should know about how the file was read."""
        encoding = self.form.get("encoding")
        if encoding in ("Windows-1252", "Latin-1"):
            return f"{self.path} is not in UTF-8: it was read as {encoding}."
        return None


def dropping(name: str) -> str:
    """The option that leaves a column out."""
    return f"--drop {shlex.quote(name)}"
