"""Parameters of which a few are for the quick tests and all others for the long ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """The first ``count`` values as they are, the others marked as long."""
    return [
        value if k < count else pytest.param(value, marks=pytest.mark.long) for k, value in enumerate(values)
    ]
