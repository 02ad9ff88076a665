"""Tables with types of their own: Parquet and Arrow IPC (Feather). Spreadsheets are made text of.

Text of a typed file stays text, and only a null or NaN is missing.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from cardboost.data.cells import Kind, Marks, TableError, number_labels
from cardboost.data.sentences import dropping, listed, one_line
from cardboost.data.text_table import refuse_bomb


@contextlib.contextmanager
def faults(path: str, what: str) -> Iterator[None]:
    """Errors of pyarrow as one sentence."""
    import pyarrow as arrow

    try:
        yield
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TableError(
            f"{path} cannot be read as {what}: {' '.join(str(error).split()).rstrip('.')}."
        ) from None


@dataclass
class TypedTable:
    """A file of Parquet or Arrow IPC."""

    path: str
    file: str
    format: str  # "parquet", "arrow" or "arrow stream"
    names: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    typed = True
    marks_fixed = True
    n_rows_guess = 0

    def __post_init__(self) -> None:
        with self._opened() as (schema, _):
            self.fields = schema.names
            self.names = [name.strip() for name in self.fields]

    @property
    def form(self) -> dict[str, str | None]:
        return {"format": self.format}

    @property
    def what(self) -> str:
        return "Parquet" if self.format == "parquet" else "Arrow"

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        """The schema, and a function that gives the batches with some columns."""
        import pyarrow as arrow
        import pyarrow.ipc
        import pyarrow.parquet

        with faults(self.path, self.what), arrow.memory_map(self.file) as source:
            if self.format == "parquet":
                with arrow.parquet.ParquetFile(source) as file:
                    yield file.schema_arrow, lambda names: file.iter_batches(columns=names)
            elif self.format == "arrow":
                with arrow.ipc.open_file(source) as file:
                    yield file.schema, lambda names: map(file.get_batch, range(file.num_record_batches))
            else:
                with arrow.ipc.open_stream(source) as stream:
                    yield stream.schema, lambda names: stream

    def survey(self, ways: list[Marks]) -> list[Marks]:
        return list(ways)

    def zero_padded(self) -> dict[str, str]:
        """None: numbers have a type, and text is text."""
        return {}

    def guess_types(self, marks: Marks) -> None:
        """The file knows them."""

    def batches(self, wanted: Mapping[int, Kind], marks: Marks) -> Iterator[list[Any]]:
        """The columns of these numbers: float64, bool, or dictionaries of text."""
        kinds = {self.fields[k]: kind for k, kind in wanted.items()}
        with self._opened() as (schema, batches):
            self._refuse_types([schema.field(k) for k in wanted])
            for batch in batches(list(kinds) or self.fields[:1]):
                columns = [self._converted(batch.column(name), kind) for name, kind in kinds.items()]
                if batch.num_rows:
                    yield columns or [batch.column(0)]

    def _refuse_types(self, columns: Sequence[Any]) -> None:
        """Columns whose values are neither numbers nor text nor dates, all of them in one sentence."""
        strange = {column.name.strip(): str(column.type) for column in columns if not _is_known(column.type)}
        if not strange:
            return
        columns, hold = ("column", "holds") if len(strange) == 1 else ("columns", "hold")
        types = " or ".join(dict.fromkeys(strange.values()))
        raise TableError(
            f"{self.path}: {columns} {listed(list(strange), most=20)} {hold} values of the type {types}: "
            f"make numbers or text of them, or leave the {columns} out with {dropping(*strange)}."
        )

    def _converted(self, column: Any, kind: Kind) -> Any:
        import pyarrow as arrow
        import pyarrow.compute as compute

        types, own = arrow.types, column.type
        if types.is_dictionary(own):
            if _is_text(own.value_type):
                return column.cast(arrow.dictionary(arrow.int32(), arrow.string()))
            column = column.dictionary_decode()
            own = column.type
        if types.is_date(own) or types.is_timestamp(own):
            column = _iso(column)
        elif types.is_boolean(own) and kind == "text":
            column = compute.if_else(column, "True", "False")
        elif types.is_null(own) or types.is_boolean(own) or _is_number(own):
            column = column if types.is_boolean(own) else column.cast("float64", safe=False)
            if kind != "text":
                return column
            labels = number_labels(column.to_numpy(zero_copy_only=False))
            texts = arrow.array([str(label) for label in labels.labels], "string")
            codes = arrow.array(labels.codes, mask=labels.codes < 0)
            return arrow.DictionaryArray.from_arrays(codes, texts)
        return column.cast("string").dictionary_encode()

    def place(self, row: int) -> str:
        return f"row {row + 1}"


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _is_known(kind: Any) -> bool:
    """Whether numbers, text or dates can be made of values of this type."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_plain = _is_text(kind) or _is_number(kind) or types.is_boolean(kind) or types.is_null(kind)
    return bool(is_plain or types.is_date(kind) or types.is_timestamp(kind))


def _iso(column: Any) -> Any:
    """Dates and times as text: 2024-05-31, or 2024-05-31 12:30:00."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    if arrow.types.is_date(column.type):
        return column.cast("date32").cast("string")
    return compute.replace_substring_regex(column.cast("string"), r"\.0+(Z?)$", r"\1")


# ------------------------------------------------------------------------------------------ spreadsheets


def spreadsheet_to_text(path: str, file: str, target: IO[str]) -> list[str]:
    """Write the first sheet of an .xlsx file as CSV. Returns remarks."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:
        raise TableError(f"{path} is a damaged zip archive or spreadsheet.") from None
    if not any(member.filename == "xl/workbook.xml" for member in members):
        raise TableError(f"{path} is a zip archive, but not of Excel (.xlsx): unpack it, or save it as CSV.")
    refuse_bomb(path, sum(member.compress_size for member in members), sum(m.file_size for m in members))
    try:
        import openpyxl
    except ImportError:
        raise TableError(
            f"{path} is an Excel file, which needs one more package: pip install 'cardboost[excel]'."
        ) from None
    with open(file, "rb") as opened:
        try:
            book = openpyxl.load_workbook(opened, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()
            _write_rows(sheet.iter_rows(values_only=True), target)
        except Exception as error:  # whatever a damaged file makes of the parsers beneath
            raise TableError(f"{path} cannot be read as Excel: {one_line(error)}.") from None
    if len(book.sheetnames) == 1:
        return []
    return [f"{path} has {len(book.sheetnames)} sheets: the first, {sheet.title!r}, was read."]


def _write_rows(rows: Iterable[tuple[Any, ...]], target: IO[str]) -> None:
    """Rows as wide as the header, longer only where they hold more; an empty row is a blank line."""
    writer, width = csv.writer(target), 0
    for row in rows:
        cells = [_cell(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        width = width or len(cells)
        writer.writerow(cells + [""] * (width - len(cells)) if cells else [])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return "" if value is None else str(value).strip()
