"""Tables of delimited text, read by pyarrow in blocks.

The first lines tell encoding, delimiter and header. Everything after the header is cut and converted by
pyarrow, block by block in several threads as long as every line feed ends a row, which quotes put in doubt;
Python's ``csv`` is asked again only for the line of a fault. A block that contradicts what the first ones
showed (text among numbers, a first quote, another encoding) is read again in another way.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import itertools
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Any, cast

import numpy as np

from cardboost.data.cells import DASHES, MISSING, Kind, Marks, Points, TableError, ways_of
from cardboost.data.sentences import counted, one_line, short

#: a longer line is no line of a table, but a file of another kind or a quote that nothing closes
LONGEST_LINE = 10_000_000
#: more than any table that is worth to be trained on; a bomb would fill the disk or run for days
MOST_DECOMPRESSED = 64_000_000_000
#: tables rarely shrink more than a hundred times; a file of gzip can by 1,032, one of Zstandard by far more
HIGHEST_RATIO = 500
RATIO_COUNTS_FROM = 1_000_000_000
BLOCK, SAMPLE = 1 << 20, 1 << 18
CODE_DIGITS = 4  # of numbers that are codes where some begin with 0
DELIMITERS = ",;\t|"
_SNIFFED_LINES = 50
_CONTRADICTIONS = 3  # where each costs a new start, all columns are read as text after so many
#: a line behind the last one of every file; none of a file can be equal, as NUL is refused
_END = "\0"
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_FALLBACK = {"utf-8": "cp1252", "cp1252": "latin-1"}
_SHOWN = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32"} | {
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}
_NULLS = sorted(
    {
        space + form
        for word in (*MISSING, *DASHES)
        for form in (word, word.upper(), word.capitalize(), "NaN")
        for space in ("", " ")
    }
)


def refuse_bomb(path: str, size: int, decompressed: int) -> None:
    """Compressed data that are too much for a table."""
    is_dense = decompressed > RATIO_COUNTS_FROM and decompressed > HIGHEST_RATIO * size
    if is_dense or decompressed > MOST_DECOMPRESSED:
        raise TableError(
            f"{path}: {size:,} bytes that decompress to {decompressed:,} or more are no table; decompress "
            "the file first if they are."
        )


class _Again(Exception):
    """The file has to be read again from its beginning, in another way."""


class _Text(io.BufferedIOBase):
    """The text of a file as UTF-8, decompressed, and checked on its way where ``check`` is set."""

    def __init__(self, table: TextTable, check: bool = True) -> None:
        self.table, self.check = table, check
        self.file = open(table.file, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self.source: Any = self.file
        if table.compression is not None:
            import pyarrow as arrow

            self.source = arrow.CompressedInputStream(self.file, table.compression)
        self.decoder = codecs.getincrementaldecoder(table.encoding)("strict" if check else "replace")
        self.n_bytes = self.n_quotes = 0
        self.in_rows = False  # past the header
        self.rest = b""  # of the latest piece: as UTF-8 it may be longer than it was
        self.last, self.held = b"\n", b""  # the byte before; spaces and a quote that more has to be seen of
        self.is_ascii = True  # so far

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.source.close()
        self.file.close()
        super().close()

    def read(self, size: int | None = -1, /) -> bytes:
        size = BLOCK if size is None or size < 0 else size
        text, self.rest = self.rest, b""
        while not text:  # a piece of UTF-16 may be less than a character
            data = self.raw(size)
            text = self._closed_up(self._decoded(data), not data)
            if not data:
                break
        if len(text) > size:
            text, self.rest = text[:size], text[size:]
        if self.check:
            self._check(text)
        self.n_bytes += len(text)
        return text

    read1 = read

    def skip_header(self) -> None:
        """Go to the first row."""
        while (left := self.table.header_bytes - self.n_bytes) > 0 and self.read(left):
            pass
        self.in_rows = True

    def blocks(self, size: int) -> Iterator[bytes]:
        """Whole lines, about so many bytes of them at a time; the last one may lack its end."""
        lines, pieces = b"", [b""]  # the beginning of a line
        while data := self.read(size):
            if end := data.rfind(b"\n") + 1:
                if lines:
                    yield lines
                lines, pieces = b"".join([*pieces, memoryview(data)[:end]]), []
            pieces.append(data[end:])
            if sum(map(len, pieces)) > LONGEST_LINE:
                self.table.plain = False
                raise _Again
        if rest := b"".join([lines, *pieces]):
            yield rest

    def lines(self) -> io.TextIOWrapper:
        """The text in lines, with their ends."""
        return io.TextIOWrapper(cast(IO[bytes], self), encoding="utf-8", newline="")

    def raw(self, size: int) -> bytes:
        """Bytes as they are in the file, decompressed."""
        table = self.table
        if table.compression is None:
            return self.file.read(size) or b""
        try:
            data: bytes = self.source.read(size)
        except (OSError, ValueError):
            raise TableError(
                f"cannot read {table.path!r}: its compressed data are damaged or cut off."
            ) from None
        refuse_bomb(table.path, table.size, self.n_bytes + len(data))
        return data

    def _decoded(self, data: bytes) -> bytes:
        is_utf8 = self.table.encoding == "utf-8"
        if is_utf8 and data.isascii() and data and not self.decoder.getstate()[0]:
            return data
        try:
            text = self.decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            is_ascii = self.is_ascii and error.object[: error.start].isascii()
            self.table.change_encoding(is_ascii, self.n_bytes + error.start)
            raise _Again from None
        self.is_ascii &= text.isascii()
        return data if is_utf8 and self.check else text.encode("utf-8")

    def _closed_up(self, text: bytes, at_end: bool) -> bytes:
        """Without spaces between a delimiter and a quote that opens a cell, as in ``a, "b, c"``.

        A doubled quote is left alone, as it may stand inside of a cell; there a single one ends the cell, and
        spaces at the end of a cell do not count.
        """
        gap = self.table.gap
        if gap is None or not (self.held or text.endswith(b" ") or b'"' in text):
            self.last = text[-1:] or self.last
            return text
        text = self.last + self.held + text
        self.held = b""
        if not at_end and (tail := gap[1].search(text, max(0, len(text) - 1000))) is not None:
            text, self.held = text[: tail.start() + 1], text[tail.start() + 1 :]
        if b' "' in text:
            text = gap[0].sub(rb'\1"', text)
        self.last = text[-1:]
        return text[1:]

    def _check(self, text: bytes) -> None:
        table = self.table
        if b"\0" in text:
            line = table.line_of_byte(self.n_bytes + text.index(b"\0"))
            raise TableError(
                f"{table.path}, line {line}: a NUL byte; this is not a text file, or a damaged one."
            )
        if self.in_rows and b'"' in text:
            self.n_quotes += text.count(b'"')
            if table.plain:
                table.plain = False
                raise _Again


@dataclass
class TextTable:
    """A file of text with its header read.

    Parameters
    ----------
    path : str
        What messages call it.
    file : str
        Where it is; a copy, if it came through a pipe.
    size : int
        Its bytes.
    """

    path: str
    file: str
    size: int
    compression: str | None
    delimiter: str | None
    unit: str = "line"  # what places count
    format: str = "csv"
    marks_fixed: bool = False
    encoding: str = "utf-8"
    plain: bool = True  # every line feed ends a row: there are no quotes below the header
    longest: int = 0  # characters of the longest line so far
    names: list[str] = field(default_factory=list)
    width: int = 0  # cells of a row
    header_lines: int = 0
    header_bytes: int = 0  # of the text as UTF-8
    sheets: list[str] = field(default_factory=list)  # remarks on a spreadsheet that this was
    has_dropped: bool = False  # columns at the end without names and values
    n_rows_guess: int = 0  # from the first block and the size of the file
    as_text: set[int] = field(default_factory=set)  # columns that turned out not to be plain numbers
    guess: dict[int, Any] = field(default_factory=dict)  # types of the first block

    typed = False

    def __post_init__(self) -> None:
        with _Text(self) as stream:
            head = stream.raw(4)
        self.encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
        while True:
            with contextlib.suppress(_Again):
                self._read_header()
                return

    @property
    def gap(self) -> tuple[re.Pattern[bytes], re.Pattern[bytes]] | None:
        """Spaces between a delimiter and a quote, and what may become that; None: not yet known."""
        return None if self.delimiter in (None, " ") else _gap(self.delimiter)

    @property
    def form(self) -> dict[str, str | None]:
        text = self.unit == "line"
        return {
            "format": self.format,
            "compression": self.compression,
            "encoding": _SHOWN[self.encoding] if text else None,
            "delimiter": self.delimiter if text else None,
        }

    @property
    def remarks(self) -> list[str]:
        """What the user should know about how it was read, a sentence each."""
        remarks = list(self.sheets)
        if self.encoding in _FALLBACK.values():
            remarks.append(f"{self.path} is not in UTF-8: it was read as {_SHOWN[self.encoding]}.")
        if self.has_dropped:
            remarks.append(f"{self.path}: columns at the end without a name and without values are left out.")
        return remarks

    # -------------------------------------------------------------------------------------------- the header

    def _read_header(self) -> None:
        with _Text(self) as stream:
            text = stream.lines()
            lines = [line for _ in range(_SNIFFED_LINES) if (line := text.readline(LONGEST_LINE + 1))]
        self.longest = max(map(len, lines), default=0)
        if self.longest > LONGEST_LINE:
            number = 1 + [*map(len, lines)].index(self.longest)
            raise self._too_long(f"line {number}", "it", LONGEST_LINE)
        if not any(line.strip() for line in lines):
            raise TableError(f"{self.path} is empty: a header with column names is needed.")
        sizes = [len(line.encode()) for line in lines]
        hint = re.fullmatch(r'"?sep=(.)"?\s*', lines[0])  # Excel writes and obeys it
        if self.delimiter is None:
            self.delimiter = hint[1] if hint is not None else _sniff(lines)
            if any(' "' in line for line in lines):
                raise _Again
        if hint is not None:
            lines[0] = "\n"
        reader = csv.reader([*lines, _END], delimiter=self.delimiter)
        header, first_line = [""], 1
        try:
            while not any(cell.strip() for cell in header):
                first_line = reader.line_num + 1
                header = next(reader)
        except csv.Error:  # the only one without strict=True
            raise self._too_long(f"line {first_line}", "a cell", csv.field_size_limit()) from None
        if header == [_END]:
            raise TableError(f"{self.path} is empty: a header with column names is needed.")
        self._refuse_open_quote(header, first_line)
        self.header_lines = reader.line_num
        self.header_bytes = sum(sizes[: self.header_lines])
        rows: list[list[str]] = []
        with contextlib.suppress(csv.Error):
            rows.extend(row for row in reader if any(cell.strip() for cell in row))
        if rows and rows[-1][-1].endswith(_END):  # the mark itself, or a row that is cut off
            rows.pop()
        self._drop_unnamed([name.strip() for name in header], rows)

    def _drop_unnamed(self, names: list[str], rows: list[list[str]]) -> None:
        """Columns at the end that have neither a name nor values are left out; later rows are held to it."""
        widths = {len(row) for row in rows}
        self.width = widths.pop() if len(widths) == 1 else len(names)
        if all(names) and self.width == len(names):
            self.names = names
            return
        named = max((k for k, name in enumerate(names, 1) if name), default=0)
        kept = max([named, *(k for row in rows for k, cell in enumerate(row, 1) if cell.strip())])
        if kept > len(names) or self.width < named or not rows:
            self.names, self.width = names, len(names)
            return
        self.names = names[:kept]
        self.has_dropped = kept < max(self.width, len(names))

    def _refuse_open_quote(self, row: Sequence[str], line: int) -> None:
        """A quote that nothing closes makes one cell of the rest of the file, with the mark of its end."""
        if row and row[-1].endswith(_END):
            line += sum(cell.count("\n") for cell in row[:-1])
            raise TableError(f"{self.path}, line {line}: a quote is opened here that nothing closes.")

    def _too_long(self, place: str, what: str, limit: int) -> TableError:
        return TableError(
            f"{self.path}, {place}: {what} has more than {limit:,} characters; perhaps a quote is not closed."
        )

    def change_encoding(self, is_ascii: bool, byte: int) -> None:
        """Text that is not in the encoding so far."""
        other = _FALLBACK.get(self.encoding)
        if other is None:
            shown = _SHOWN[self.encoding]
            raise TableError(f"{self.path} is not a text file in {shown}: save it as CSV UTF-8.")
        if self.encoding == "utf-8" and not is_ascii:
            place = f"{self.path}, line {self.line_of_byte(byte)}"
            raise TableError(f"{place}: not UTF-8, which the file begins with: save it as CSV UTF-8.")
        self.encoding = other

    # -------------------------------------------------------------------------------------------- the rows

    def survey(self, ways: Sequence[Marks]) -> list[Marks]:
        """Which ways to write numbers are possible, by the first block."""
        import pyarrow as arrow

        batch = self.guess_types(ways[0])
        if batch is None or self.marks_fixed:
            return list(ways)
        texts = [column for column in batch.columns[: len(self.names)] if column.type == arrow.string()]
        if all(possible is None or ways[0] in possible for possible in ways_of(texts, ways)):
            types = batch.schema.types
            has_decimals = any(types[k] == arrow.float64() for k in self.guess)
            return [way for way in ways if way.decimal == ways[0].decimal or not has_decimals]
        remaining = list(ways)
        texts = self._first_block(arrow.string(), ways[0]).columns[: len(self.names)]
        for possible in ways_of(texts, ways):
            remaining = [way for way in remaining if possible is None or way in possible]
        return remaining or list(ways)

    def guess_types(self, marks: Marks) -> Any:
        """Which columns hold numbers in the first block, as pyarrow sees them. Returns the block."""
        import pyarrow as arrow

        batch = self._first_block(None, marks)
        truth, whole, number = arrow.bool_(), arrow.int64(), arrow.float64()
        kinds = {truth: truth, whole: number, number: number, arrow.null(): number}
        types = () if batch is None else batch.schema.types
        self.guess = {k: kinds[kind] for k, kind in enumerate(types) if kind in kinds}
        self.as_text.clear()
        if batch is not None and marks.decimal == "." and not self.marks_fixed:
            for k in self._doubtful(batch):
                del self.guess[k]
            few_digits = (k for k, kind in enumerate(types) if kind == whole and _below_thousand(batch[k]))
            self.guess |= dict.fromkeys(few_digits, whole)  # the first point that follows is looked at
        if batch is not None and self.compression is None:
            self.n_rows_guess = int(
                1.05 * batch.num_rows * self.size / min(self.size, self._block_size(SAMPLE))
            )
        return batch

    def _doubtful(self, batch: Any) -> list[int]:
        """Columns of the first block whose points may stand between thousands; their text has to be seen."""
        import pyarrow as arrow

        columns = enumerate(batch.columns[: len(self.names)])
        some = [k for k, column in columns if column.type == arrow.float64() and _thousandths(column)]
        if not some:
            return []
        texts, doubtful = self._first_block(arrow.string(), Marks()), []
        for k in some:
            points = Points()
            points.add(texts.column(k).filter(batch.column(k).is_valid()))
            doubtful += [k] if points.possible else []
        return doubtful

    def zero_padded(self) -> dict[str, str]:
        """Columns of whole numbers of one length, some with zeros before them; by the first block.

        Such as the postcodes 03136 and 79098: codes, not amounts. Each with an example.
        """
        import pyarrow as arrow
        import pyarrow.compute as compute

        numbers = [k for k, kind in self.guess.items() if kind != arrow.bool_() and k < len(self.names)]
        texts = self._first_block(arrow.string(), Marks()) if numbers else None
        if texts is None:
            return {}
        examples = {}
        for k in numbers:
            column = texts.column(k)
            padded = compute.match_substring_regex(column, rf"^\s*0\d{{{CODE_DIGITS - 1}}}")
            if not compute.any(padded).as_py():
                continue
            cells = compute.utf8_trim_whitespace(column).unique()
            missing = compute.is_in(compute.utf8_lower(cells), arrow.array(MISSING))
            cells = cells.filter(compute.invert(missing))
            lengths = compute.unique(compute.utf8_length(cells))
            if len(cells) > 1 and len(lengths) == 1 and compute.all(compute.utf8_is_digit(cells)).as_py():
                examples[self.names[k]] = column.filter(padded)[0].as_py().strip()
        return examples

    def _block_size(self, least: int) -> int:
        return max(least, min(16 * self.longest, LONGEST_LINE))

    def _first_block(self, kind: Any, marks: Marks) -> Any:
        types = {} if kind is None else dict.fromkeys(range(self.width), kind)
        while True:
            blocks = self._attempt(lambda: types, marks, True)
            with contextlib.suppress(_Again), contextlib.closing(blocks):
                return next(blocks, None)

    def batches(self, wanted: Mapping[int, Kind], marks: Marks) -> Iterator[list[Any]]:
        """The columns of these numbers: float64, bool, or dictionaries of text."""
        import pyarrow as arrow

        text = arrow.dictionary(arrow.int32(), arrow.string())
        dropped = range(len(self.names), self.width)
        columns = wanted or {0: "text"}

        def types() -> dict[int, Any]:
            parsed = self.guess.keys() - self.as_text
            return dict.fromkeys(dropped, text) | {
                k: self.guess[k] if kind in ("auto", "numbers") and k in parsed else text
                for k, kind in columns.items()
            }

        n_done = 0
        while True:
            n_skipped = n_done
            with contextlib.suppress(_Again):
                for batch in self._attempt(types, marks):
                    rest = batch.slice(n_skipped)
                    n_skipped = max(0, n_skipped - batch.num_rows)
                    if any("".join(batch.column(f"c{k}").dictionary.to_pylist()).strip() for k in dropped):
                        self._explain()
                    n_done += rest.num_rows
                    if rest.num_rows:
                        yield [rest.column(f"c{k}") for k in columns]
                return

    def _attempt(
        self, types: Callable[[], Mapping[int, Any]], marks: Marks, sample: bool = False
    ) -> Generator[Any]:
        """Record batches of columns c0, c1, ...; _Again where something has to be done in another way.

        ``types`` says those of the columns, at this time. A sample has all columns, and those without a type
        have the one that pyarrow guesses.
        """
        import pyarrow as arrow
        import pyarrow.csv

        def conversion() -> Any:
            column_types = {f"c{k}": kind for k, kind in types().items()}
            return arrow.csv.ConvertOptions(
                column_types=column_types,
                include_columns=[] if sample else list(column_types),
                null_values=_NULLS,
                strings_can_be_null=False,
                decimal_point=marks.decimal,
            )

        size = self._block_size(SAMPLE if sample else BLOCK)
        with _Text(self) as stream:
            stream.skip_header()
            if self.plain:
                yield from self._blocks(stream.blocks(size), conversion, 1 if sample else arrow.cpu_count())
                return
            try:
                options = self._options(size) | {"convert_options": conversion()}
                with arrow.csv.open_csv(stream, **options) as reader:
                    yield from reader
            except arrow.ArrowInvalid as error:
                self._cure(str(error))
            if stream.n_quotes % 2 and not sample:
                self._explain()  # perhaps one of them is open at the end

    def _blocks(
        self, blocks: Iterator[bytes], conversion: Callable[[], Any], n_threads: int
    ) -> Iterator[Any]:
        """The same of blocks of whole lines, in their order; a block is parsed again where types change."""
        import pyarrow as arrow

        for block, parsed in _in_order(lambda block: self._parsed(block, conversion()), blocks, n_threads):
            try:
                batch = parsed.result()
            except arrow.ArrowInvalid:
                batch = self._parsed_again(block, conversion)
            if batch is not None:
                yield batch

    def _parsed_again(self, block: bytes, conversion: Callable[[], Any]) -> Any:
        """A block that cannot be converted to the types of some time ago."""
        import pyarrow as arrow

        while True:
            try:
                return self._parsed(block, conversion())
            except arrow.ArrowInvalid as error:
                with contextlib.suppress(_Again):
                    self._cure(str(error))

    def _options(self, size: int) -> dict[str, Any]:
        import pyarrow.csv

        return {
            "read_options": pyarrow.csv.ReadOptions(
                column_names=[f"c{k}" for k in range(self.width)], block_size=size, use_threads=False
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=not self.plain,
                invalid_row_handler=self._skip_blank,
            ),
        }

    def _parsed(self, block: bytes, convert_options: Any) -> Any:
        """The rows of whole lines as one record batch; None if all of them are blank."""
        import pyarrow as arrow
        import pyarrow.csv

        options = self._options(len(block) + 1)
        try:
            table = arrow.csv.read_csv(arrow.BufferReader(block), convert_options=convert_options, **options)
        except arrow.ArrowInvalid as error:
            if str(error).startswith("Empty CSV file"):
                return None
            raise
        return next(iter(table.to_batches()), None)

    def _cure(self, error: str) -> None:
        """What to do about an error of pyarrow: nothing, _Again, or a sentence."""
        if error.startswith("Empty CSV file"):
            return
        if "straddling object" in error:
            if self.longest < LONGEST_LINE:
                self.longest = LONGEST_LINE
                raise _Again
            self._explain()
            raise self._too_long("a line", "it", LONGEST_LINE)
        match = re.match(r"In CSV column #(\d+): .*conversion error to (int64|double|bool)", error, re.DOTALL)
        if match is not None and int(match[1]) not in self.as_text:
            self._convert_otherwise(int(match[1]), match[2], error)
            raise _Again
        self._explain()
        raise TableError(f"{self.path} cannot be read as CSV: {one_line(error)}.")

    def _convert_otherwise(self, column: int, kind: str, error: str) -> None:
        """After a cell that contradicts the type of its column."""
        import pyarrow as arrow

        if kind == "int64" and not re.search(r"'\s*[+-]?[1-9]\d{0,2}\.\d{3}\s*'", error):
            decimal = re.search(r"'\s*[+-]?\d*\.\d*\s*'", error)  # then no point stands between thousands
            whole = [k for k, own in self.guess.items() if own == arrow.int64()] if decimal else [column]
            self.guess |= dict.fromkeys(whole, arrow.float64())
            return
        self.as_text.add(column)
        if not self.plain and len(self.as_text) > _CONTRADICTIONS:
            self.as_text.update(range(self.width))

    def _skip_blank(self, row: Any) -> str:
        """What to do about a row with another number of cells."""
        blank = re.fullmatch(rf'[\s"{re.escape(self.delimiter or ",")}]*', row.text)
        return "error" if blank is None else "skip"

    # -------------------------------------------------------------------------------------------- faults

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Rows as Python's ``csv`` sees them, with the lines that they begin on; blank ones are left out."""
        limit = csv.field_size_limit(LONGEST_LINE)
        try:
            with _Text(self, check=False) as stream:
                reader = csv.reader(itertools.chain(stream.lines(), [_END]), delimiter=self.delimiter or ",")
                for number in itertools.count(1):
                    line = number if self.unit == "row" else reader.line_num + 1
                    row = next(reader)
                    if row == [_END]:
                        return
                    is_row = len(row) == self.width or "".join(row).strip()
                    if reader.line_num > self.header_lines and row and is_row:
                        yield line, row
        except csv.Error:
            raise self._too_long(f"line {line}", "a cell", LONGEST_LINE) from None
        finally:
            csv.field_size_limit(limit)

    def _explain(self) -> None:
        """Look for the row of a fault; there may be none."""
        for line, row in self._records():
            self._refuse_open_quote(row, line)
            place, expected = f"{self.path}, {self.unit} {line}", counted(len(self.names), "column")
            if len(row) != self.width:
                if self.width > len(self.names):
                    expected += f", and the rows before have {counted(self.width, 'cell')}"
                raise TableError(f"{place}: {counted(len(row), 'cell')}, but the header has {expected}.")
            if extra := [cell.strip() for cell in row[len(self.names) :] if cell.strip()]:
                raise TableError(f"{place}: {short(extra[0])} in a column that has no name in the header.")

    def place(self, row: int) -> str:
        try:
            line, _ = next(itertools.islice(self._records(), row, None))
        except (TableError, StopIteration):
            return f"row {row + 1}"
        return f"{self.unit} {line}"

    def line_of_byte(self, byte: int) -> int:
        """The line of a byte of the text as UTF-8."""
        line = 1
        with _Text(self, check=False) as stream:
            while byte > stream.n_bytes and (data := stream.read(min(byte - stream.n_bytes, BLOCK))):
                line += data.count(b"\n")
        return line


def _below_thousand(column: Any) -> bool:
    values = column.drop_null().to_numpy(zero_copy_only=False)
    return bool((np.abs(values) < 1000).all())


def _thousandths(column: Any) -> bool:
    """Whether numbers below a thousand have at most three decimals, and fractions are above 1."""
    values = np.abs(column.drop_null().to_numpy(zero_copy_only=False))
    fractions = values[np.floor(values) < values]
    three = np.abs(1000.0 * fractions - np.rint(1000.0 * fractions)) < 1e-6
    return bool((values < 1000.0).all() and (three & (fractions > 1.0)).all())


def _in_order(
    parse: Callable[[bytes], Any], blocks: Iterator[bytes], n_threads: int
) -> Iterator[tuple[bytes, Future[Any]]]:
    """The blocks with what is made of them in other threads; at most one waits besides those in work."""
    running: deque[tuple[bytes, Future[Any]]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for block in blocks:
            running.append((block, pool.submit(parse, block)))
            if len(running) > n_threads - (n_threads == 1):
                yield running.popleft()
        yield from running


@functools.cache
def _gap(delimiter: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    before = rb"([\r\n]|" + re.escape(delimiter.encode()) + rb")"
    return re.compile(before + rb' +"(?!")'), re.compile(before + rb' +"?\Z')


def _sniff(lines: Sequence[str]) -> str:
    """The delimiter that gives the most columns in the header, above all the same number in every line."""

    def merit(delimiter: str) -> tuple[bool, int, bool]:
        with contextlib.suppress(csv.Error):
            rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
            widths = [len(row) for row in rows if any(map(str.strip, row))]
            complete = widths[:-1] if len(widths) > 2 else widths  # the last record may be cut off
            same = len(set(complete)) == 1
            return same and widths[0] > 1, widths[0], same
        return False, 0, False

    return max(DELIMITERS, key=merit)
