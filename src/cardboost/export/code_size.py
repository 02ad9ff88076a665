"""The bytes of flash that a model takes: by an estimate, or by the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardboost.export.c_model import c_model


def c_size(ensemble: Any, *, compiled: bool = False, **options: Any) -> int:
    """Bytes of code and tables on a Cortex-M0 with -Os, of the function that decides.

    Parameters
    ----------
    ensemble : Ensemble or MulticlassEnsemble
    compiled : bool, default False
        False: an estimate that is the same everywhere, needs no compiler, and is an upper bound to within
        four bytes. True: the size of the code that ``arm-none-eabi-gcc`` generates, helpers included.
    **options
        Those of :func:`cardboost.export.c_model.c_model`; ``number`` is "int16" by default.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        Where there is no estimate (scores that are doubles), or no compiler.
    """
    if not isinstance(compiled, bool | np.bool_):
        raise ValueError(f"compiled: expected True or False, found {compiled!r}.")
    options = {"number": "int16"} | options
    if compiled:
        from cardboost.export.measure import TARGETS, measure

        if TARGETS[0].compiler is None:
            raise ValueError(f"compiled: {TARGETS[0].tools}gcc is not installed.")
        return measure(ensemble, **options)[0].linked
    model = c_model(ensemble, **options)
    if model.points is None:
        raise ValueError("score: there is no estimate for scores that are doubles; whole points have one.")
    return model.estimate
