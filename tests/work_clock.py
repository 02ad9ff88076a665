"""A clock that counts work, so that laws about time limits hold or fail alike on every machine.

Every call of a kernel moves it by a fixed price and a price for each byte of the arguments: about the seconds
that the call and the Python around it take on an idle machine. Every reading moves it a little as well, so
that work without kernels comes to its end too. Nothing else moves it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cardboost import _kernels
from cardboost.problem import budget

READING = 2e-5
CALL = 1e-4
BYTE = 2e-9
#: kernels that go over their arguments many times
BYTES = {"score_supports": 1e-8, "sign_gram": 2e-8, "minimise_quadratic": 5e-9}
STEP = 5e-10  # of a node, for every entry of its columns


def price(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> float:
    """Seconds of a call."""
    if name == "bound_nodes":
        return CALL + STEP * (1 + named["max_steps"]) * named["state"].size * len(named["share"])
    return CALL + BYTES.get(name, BYTE) * size_of([*arguments, *named.values()])


def size_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(size_of, value)) if isinstance(value, list | tuple) else 0


class WorkClock:
    """Stands in for the module ``time`` in ``cardboost.problem.budget``."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def perf_counter(self) -> float:
        self.seconds += READING
        return self.seconds

    time = perf_counter

    def counted(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.seconds += price(name, arguments, named)
            return kernel(*arguments, **named)

        return call

    def run_in(self, monkeypatch: pytest.MonkeyPatch) -> WorkClock:
        """From now on, and to the end of the test, all limits are on this clock."""
        monkeypatch.setattr(budget, "time", self)
        for name, kernel in vars(_kernels).copy().items():
            if callable(kernel) and not name.startswith("_"):
                monkeypatch.setattr(_kernels, name, self.counted(name, kernel))
        return self

    def taken(self, work: Callable[[], Any]) -> float:
        """The seconds of some work."""
        began = self.seconds
        work()
        return self.seconds - began
