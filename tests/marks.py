"""Parameters of which a few are for the quick tests and all others for the long ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """The first ``count`` values as they are, the others marked as long; a tuple is several parameters."""
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [
        pytest.param(*value, marks=() if k < count else pytest.mark.long) for k, value in enumerate(several)
    ]
