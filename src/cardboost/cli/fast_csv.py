"""Large CSV files through pyarrow, where it is installed: the same table, several times as fast.

Whatever is unusual about a file, a fault or only a doubt, is left to the reader in `csv_table`, which knows
the line of every cell: here the answer is then None, and nothing is said.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import os
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.text_file import is_regular, open_bytes
from cardboost.cli.values import MISSING, Kind, Labels, classes_of, number_of
from cardboost.data.frame import Array, Coded, Frame

if TYPE_CHECKING:
    from cardboost.cli.csv_table import CsvFile

#: smaller files are read before pyarrow is loaded
_WORTH_BYTES = 8_000_000
_BLOCK_BYTES = 1 << 22
_NULLS = sorted({form for word in MISSING for form in (word, word.upper(), word.capitalize(), "NaN")})


def read(
    source: CsvFile, names: Sequence[str], label: str | None, kinds: Mapping[str, Kind]
) -> tuple[Frame, Labels | None] | None:
    """These columns and labels, or None where the other reader has to have a look."""
    from cardboost.cli.csv_table import Incoming

    if not _worth(source):
        return None
    wanted = {name: source.where(name) for name in (*names, *([] if label is None else [label]))}
    if len(set(wanted.values())) < len(wanted):
        return None
    columns = {name: Incoming(name, kinds.get(name, "auto")) for name in names}
    target = None if label is None else Incoming(label, "text")
    n_rows = 0
    for batch in _batches(source, wanted, kinds, label):
        if batch is None:
            return None
        n_rows += batch.num_rows
        for name, own in (*columns.items(), *([] if target is None else [(label, target)])):
            if not _append(own, batch.column(f"c{wanted[str(name)]}")):
                return None
    if n_rows == 0:
        return None
    data: dict[str, Array | Coded] = {}
    for name, own in columns.items():
        finished = _finish(own)
        if finished is None:
            return None
        data[name] = finished
    if target is None:
        return Frame(data, n_rows), None
    labels = _labels(list(target.texts), np.concatenate(target.codes))
    return None if labels is None else (Frame(data, n_rows), labels)


def _worth(source: CsvFile) -> bool:
    if source.encoding not in ("utf-8", "utf-8-sig") or not is_regular(source.path):
        return False
    ratio = 1 if source.form["compression"] is None else 4
    large = ratio * os.path.getsize(source.path) >= _WORTH_BYTES
    return large and importlib.util.find_spec("pyarrow") is not None


def _batches(source: CsvFile, wanted: Mapping[str, int], kinds: Mapping[str, Kind], label: str | None) -> Any:
    """The rows in blocks; None at a fault."""
    import pyarrow as arrow
    import pyarrow.csv

    sample = [row for row in csv.reader(source.first, delimiter=source.delimiter) if row][1:-1]
    text = arrow.dictionary(arrow.int32(), arrow.string())
    types = {}
    for name, place in wanted.items():
        plain = name != label and kinds.get(name, "auto") in ("auto", "numbers")
        types[f"c{place}"] = arrow.float64() if plain and _are_numbers(sample, place) else text
    options = {
        "read_options": arrow.csv.ReadOptions(
            column_names=[f"c{j}" for j in range(len(source.names))],
            skip_rows=source.reader.line_num,
            block_size=_BLOCK_BYTES,
        ),
        "parse_options": arrow.csv.ParseOptions(delimiter=source.delimiter, newlines_in_values=True),
        "convert_options": arrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=_NULLS, strings_can_be_null=False
        ),
    }
    try:
        with open_bytes(source.path) as (file, _):
            counting = _Counting(file)
            with arrow.csv.open_csv(counting, **options) as reader:
                yield from reader
            if counting.quotes % 2:  # one of them may be open at the end, with rows of the file in its cell
                yield None
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        yield None


class _Counting(io.BufferedIOBase):
    """A file that counts the quotes which are read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.quotes = file, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        data = self.file.read(-1 if size is None else size)
        self.quotes += data.count(b'"')
        return data


def _are_numbers(sample: Sequence[Sequence[str]], place: int) -> bool:
    """Whether the first cells are plain numbers, and not all of them missing."""
    cells = [row[place].strip().lower() for row in sample if place < len(row)]
    known = [cell for cell in cells if cell not in MISSING]
    return bool(known) and all(number_of(cell) is not None and not cell.isalpha() for cell in known)


def _append(own: Any, values: Any) -> bool:
    """One more block of a column; False if there is something in it that ought to be looked at."""
    if hasattr(values, "dictionary"):
        if values.null_count:
            return False
        texts = values.dictionary.to_pylist()
        if any("\0" in text for text in texts):
            return False
        into = np.array([own.texts[text] for text in texts], dtype=np.int32)
        own.codes.append(into[values.indices.to_numpy(zero_copy_only=False)])
        return True
    numbers = values.to_numpy(zero_copy_only=False)
    own.numbers.append(numbers)
    return not np.isinf(numbers).any()


def _finish(own: Any) -> Array | Coded | None:
    if own.codes and own.kind in ("auto", "numbers"):
        values = [number_of(text) for text in own.texts]
        if None not in values:
            numbers = np.array(values, dtype=np.float64)
            return None if np.isinf(numbers).any() else numbers[np.concatenate(own.codes)]
        if own.kind == "numbers" or own.mostly_numbers():
            return None
    finished: Array | Coded = own.finish()
    return finished


def _labels(texts: list[str], codes: NDArray[np.int32]) -> Labels | None:
    used, first = np.unique(codes, return_index=True)
    missing = any(text.strip().lower() in MISSING for text in texts)
    if missing or len(used) != len(texts) or len(classes_of(texts)) > 2:
        return None
    return Labels(tuple(texts), tuple(f"row {k + 1}" for k in first.tolist()), codes)
