"""A table in a file, by what the file is: Parquet, or else CSV."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cardboost.cli.source import Source


@contextlib.contextmanager
def open_table(path: str, delimiter: str | None = None) -> Iterator[Source]:
    """The table with its names read. ``delimiter`` of CSV; found out if it is not given."""
    from cardboost.cli.text_file import PARQUET, first_bytes

    if first_bytes(path) == PARQUET:
        from cardboost.cli.parquet_table import open_parquet

        with open_parquet(path) as parquet:
            yield parquet
    else:
        from cardboost.cli.csv_table import open_csv

        with open_csv(path, delimiter) as source:
            yield source
