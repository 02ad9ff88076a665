"""Tables as the verbs read them: features, and the target as labels of two classes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cardboost.cli.files import BadInput
from cardboost.cli.values import Labels, check_target
from cardboost.data.frame import Coded, Frame
from cardboost.data.reader import Kind, TableError, TableFile, TableFormat
from cardboost.data.reader import open_table as open_file


@contextlib.contextmanager
def open_table(path: str, delimiter: str | None = None) -> Iterator[Source]:
    """The table with its names read. ``delimiter`` of CSV; found out if it is not given."""
    try:
        with open_file(path, TableFormat(delimiter)) as table:
            yield Source(table)
    except TableError as error:
        raise BadInput(str(error)) from None


@dataclass(frozen=True)
class Source:
    """An open table."""

    table: TableFile

    @property
    def path(self) -> str:
        return self.table.path

    @property
    def names(self) -> list[str]:
        return self.table.names

    @property
    def form(self) -> dict[str, str | None]:
        return self.table.form

    @property
    def remark(self) -> str | None:
        """What the user should know about how the file was read."""
        return " ".join(self.table.remarks) or None

    def require(self, name: str) -> None:
        """A sentence that suggests others, if there is no such column."""
        self.table.require(name, unique=False)

    def where(self, name: str) -> int:
        """The position of a column; there must be one of this name, and not more."""
        self.table.require(name)
        return self.names.index(name.strip())

    def read(
        self, names: Sequence[str], label: str | None = None, kinds: Mapping[str, Kind] | None = None
    ) -> tuple[Frame, Labels | None]:
        """These columns, and one column as labels."""
        if label is None:
            return self.table.read(names, kinds), None
        frame = self.table.read([*names, label], {**(kinds or {}), label: "text"})
        target = frame.data[label] if label in names else frame.data.pop(label)
        assert isinstance(target, Coded)
        if target.n_missing:
            place = self.table.place(int(np.argmin(target.codes)))
            raise BadInput(f"{self.path}, {place}: the target {label!r} is missing; every row needs a label.")
        check_target(label, target.labels)
        _, rows = np.unique(target.codes, return_index=True)
        return frame, Labels(target.labels, tuple(rows.tolist()), target.codes)
