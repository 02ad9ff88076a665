"""Checks of single arguments: the message names the argument and says what is accepted."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def number(name: str, value: Any, least: float, strict: bool = False) -> float:
    """A finite number of at least ``least``, or above it if ``strict``."""
    wrong = isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value)
    if wrong or value < least or (strict and value <= least):
        raise ValueError(
            f"{name} must be a number {'above' if strict else 'of at least'} {least:g}; got {value!r}."
        )
    return float(value)


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")
    return bool(value)
