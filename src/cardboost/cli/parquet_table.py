"""Reading Parquet with pyarrow, column by column: types are those of the file, not inferred from cells."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.files import BadInput
from cardboost.cli.source import Source, dropping
from cardboost.cli.text_file import reading
from cardboost.cli.values import Kind, Labels, check_target, number_of, plain, short, unlabelled
from cardboost.data.frame import Array, Coded, Frame


@contextlib.contextmanager
def open_parquet(path: str) -> Iterator[ParquetTable]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput(
            f"{path} is a Parquet file, which needs one more package: pip install 'cardboost[parquet]'."
        ) from None
    with reading(path):
        try:
            with arrow.parquet.ParquetFile(path) as file:
                names = [name.strip() for name in file.schema_arrow.names]
                yield ParquetTable(path, names, {"format": "parquet"}, file)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError, OSError) as error:
            if isinstance(error, OSError) and error.errno:
                raise
            text = " ".join(str(error).split())
            raise BadInput(f"{path} cannot be read as Parquet: {text.rstrip('.')}.") from None


@dataclass
class ParquetTable(Source):
    """A Parquet file; a missing value is a null or NaN, and nothing else."""

    file: Any = None

    def read(
        self, names: Sequence[str], label: str | None = None, kinds: Mapping[str, Kind] | None = None
    ) -> tuple[Frame, Labels | None]:
        kinds = kinds or {}
        n_rows = int(self.file.metadata.num_rows)
        if n_rows == 0:
            raise BadInput(f"{self.path} has a header but no rows.")
        labels = None if label is None else self._labels(label)
        data: dict[str, Array | Coded] = {}
        for name in names:
            data[name] = self._column(name, kinds.get(name, "auto"))
        return Frame(data, n_rows), labels

    def _values(self, name: str) -> tuple[Array | None, list[Any], NDArray[np.int32]]:
        """Numbers, or texts and codes (-1: missing)."""
        import pyarrow as arrow

        own = self.file.schema_arrow.names[self.where(name)]
        column = self.file.read(columns=[own]).column(0)
        kind, types = column.type, arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
            if not _is_text(kind):
                column = column.cast(kind)
        if types.is_boolean(kind):
            column, kind = column.cast(arrow.uint8()), arrow.uint8()
        if types.is_null(kind):
            return np.full(len(column), np.nan), [], np.empty(0, dtype=np.int32)
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            numbers = column.cast(arrow.float64(), safe=False).to_numpy()
            return np.array(numbers, dtype=np.float64), [], np.empty(0, dtype=np.int32)
        if not _is_text(kind):
            raise BadInput(
                f"{self.path}: column {name!r} holds values of the type {kind}: make numbers or text of "
                f"them, or leave the column out with {dropping(name)}."
            )
        coded = (column if types.is_dictionary(column.type) else column.dictionary_encode()).combine_chunks()
        if isinstance(coded, arrow.ChunkedArray):
            coded = coded.unify_dictionaries().combine_chunks()
        if isinstance(coded, arrow.ChunkedArray):
            coded = coded.chunk(0)
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        return None, coded.dictionary.to_pylist(), codes

    def _column(self, name: str, kind: Kind) -> Array | Coded:
        numbers, texts, codes = self._values(name)
        if numbers is None:
            return self._numbers(name, texts, codes) if kind == "numbers" else _coded(texts, codes)
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            raise BadInput(
                f"{self.path}, row {infinite[0] + 1}: column {name!r} holds {numbers[infinite[0]]:g}; "
                "numbers must be finite, or left empty where they are missing."
            )
        if kind in ("auto", "numbers"):
            return numbers
        known, into = np.unique(numbers, return_inverse=True)
        labels = [plain(value) for value in known.tolist()]
        if kind == "text":
            labels = [None if label is None else str(label) for label in labels]  # type: ignore[misc]
        return _coded(labels, into.astype(np.int32))

    def _numbers(self, name: str, texts: list[str | None], codes: NDArray[np.int32]) -> Array:
        """Text where numbers are needed: taken if all of it reads as numbers."""
        values = [math.nan if text is None else number_of(text) for text in texts]
        for text, value in zip(texts, values, strict=True):
            if value is None or math.isinf(value):
                at = int(np.flatnonzero(codes == texts.index(text))[0]) + 1
                raise BadInput(
                    f"{self.path}, row {at}: column {name!r} holds {short(str(text))}, which is not a number."
                )
        return np.array([*values, math.nan], dtype=np.float64)[codes]

    def _labels(self, name: str) -> Labels:
        import pyarrow as arrow

        numbers, texts, codes = self._values(name)
        if numbers is not None:
            known, into = np.unique(numbers, return_inverse=True)
            logical = arrow.types.is_boolean(self.file.schema_arrow.types[self.where(name)])
            word = bool if logical else plain
            texts = [None if value != value else str(word(value)) for value in known.tolist()]
            codes = into.astype(np.int32)
        lacking = np.array([*(text is None or not text.strip() for text in texts), True])[codes]
        if lacking.any():
            raise unlabelled(f"{self.path}, row {int(np.argmax(lacking)) + 1}", name, "")
        used, first = np.unique(codes, return_index=True)
        check_target(name, [texts[k] for k in used.tolist()])
        into = np.zeros(len(texts), dtype=np.int32)
        into[used] = np.arange(len(used))
        places = tuple(f"row {k + 1}" for k in first.tolist())
        return Labels(tuple(texts[k] for k in used.tolist()), places, into[codes].astype(np.int32))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _coded(labels: Sequence[Any], codes: NDArray[np.int32]) -> Coded:
    """Codes of labels that occur, in ascending order of the labels."""
    used = {labels[k] for k in np.unique(codes[codes >= 0]).tolist()} - {None}
    known = sorted(used)
    place = {label: k for k, label in enumerate(known)}
    into = np.array([*(place.get(label, -1) for label in labels), -1], dtype=np.int32)
    return Coded(tuple(known), into[codes])
