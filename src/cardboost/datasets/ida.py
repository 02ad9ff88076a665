"""A folder of the twelve sets: ``ida/NAME.npz`` with ``X`` (numbers) and ``y`` (-1 and 1)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from cardboost.datasets.table import Dataset

FOLDER = "ida"
#: files that have another name than the set
FILES = {"diabetes": "diabetis"}


def path_of(name: str, folder: Path) -> Path:
    return folder / FOLDER / f"{FILES.get(name, name)}.npz"


def read(name: str, folder: Path) -> Dataset:
    """The set in its file. ValueError says in a sentence what is wrong with it."""
    path = path_of(name, folder)
    shown = f"{FOLDER}/{path.name}"
    if not path.is_file():
        raise ValueError(f"{shown} is not in the folder {str(folder)!r}.")
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
