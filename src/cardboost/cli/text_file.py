"""Files of text as lines: compressed or not, in the encoding that their first bytes name, or UTF-8.

What a file is shows in its first bytes, not in its name. Text that is not UTF-8 is read as Windows-1252, or
as Latin-1 where that has no such character; who reads it says so.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from cardboost.cli.files import BadInput, reason

GZIP, ZSTD, ZIP, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"PAR1"
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: what text may be in that is not in the encoding before
FALLBACK = {"utf-8": "cp1252", "cp1252": "latin-1"}
SHOWN = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16", "utf-32": "UTF-32"} | {
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}


@dataclass(frozen=True)
class TextFile:
    """Lines as they stand in the file, with their ends."""

    lines: Iterator[str]
    encoding: str
    compression: str | None


def first_bytes(path: str) -> bytes:
    """The beginning of a regular file; nothing of a pipe, which can be read only once."""
    with reading(path):
        if os.path.isdir(path):
            raise BadInput(f"{path!r} is a folder: name a file in it.")
        if not is_regular(path):
            return b""
        with open(path, "rb") as file:
            return file.read(4)


def is_regular(path: str) -> bool:
    return stat.S_ISREG(os.stat(path).st_mode)


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Everything that can be wrong with a file before its content counts, as one sentence."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise BadInput(f"cannot read {path!r}: its compressed data are damaged or cut off.") from None
    except OSError as error:
        raise BadInput(f"cannot read {path!r}: {reason(error)}.") from None


@contextlib.contextmanager
def open_bytes(path: str) -> Iterator[tuple[IO[bytes], str | None]]:
    """The bytes of a file, decompressed, and the name of the compression."""
    with reading(path), open(path, "rb") as file:
        head = file.peek(4)[:4]
        if head == ZIP:
            raise BadInput(f"{path} is a zip archive or a spreadsheet: save the table as CSV.")
        if head == PARQUET:
            raise BadInput(f"{path} is a Parquet file, which cannot be read from a pipe.")
        if head[:2] == GZIP:
            with gzip.GzipFile(fileobj=file) as inner:
                yield io.BufferedReader(inner), "gzip"
        elif head == ZSTD:
            zstd = _zstd(path)
            try:
                with zstd.ZstdFile(file) as inner:
                    yield io.BufferedReader(inner), "zstd"
            except zstd.ZstdError:
                raise EOFError from None
        else:
            yield file, None


def _zstd(path: str) -> Any:
    """Python's own reader, or its twin for versions before 3.14."""
    with contextlib.suppress(ImportError):
        from compression import zstd

        return zstd
    with contextlib.suppress(ImportError):
        from backports import zstd

        return zstd
    raise BadInput(
        f"{path} is compressed with Zstandard, which needs one more package: pip install 'cardboost[zstd]'."
    )


@contextlib.contextmanager
def open_text(path: str, encoding: str | None = None) -> Iterator[TextFile]:
    """The lines of a file. ``encoding`` is for text that has no mark and is not UTF-8."""
    with open_bytes(path) as (file, compression):
        head = file.peek(4)[:4]  # type: ignore[attr-defined]
        marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
        found = marked or encoding or "utf-8"
        text = io.TextIOWrapper(file, encoding=found, newline="")
        try:
            yield TextFile(_without_nul(text, path), found, compression)
        except UnicodeDecodeError:
            if found in FALLBACK and is_regular(path):
                raise
            shown = SHOWN[found]
            raise BadInput(f"{path} is not a text file in {shown}: save it as CSV UTF-8.") from None
        finally:
            with contextlib.suppress(ValueError):
                text.detach()


def _without_nul(lines: IO[str], path: str) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise BadInput(f"{path}, line {number}: a NUL byte; this is not a text file, or a damaged one.")
        yield line
