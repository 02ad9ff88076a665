"""How many threads the kernels and NumPy's products may use."""

from __future__ import annotations

import numbers
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from cardboost import _kernels


def usable_threads(n_jobs: int | None) -> int:
    """None: all cores within the limits of joblib and threadpoolctl; -1: all cores, -2: all but one."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return max(1, min(cores, _kernels.max_threads()))
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


@cache
def _libraries(with_scipy: bool) -> list[Any]:
    """The BLAS of NumPy, and of SciPy where that is loaded: it may be another one."""
    import numpy  # noqa: F401  what is not loaded is not found
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _BlasLimits:
    """The limits in force. They belong to the process: of several threads' limits the least holds for all."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Nothing in force; for a process that was forked, whose other threads are gone."""
        self._lock = threading.Lock()
        self._active: list[int] = []
        self._before: list[tuple[Any, int]] = []

    def enter(self, most: int) -> None:
        with self._lock:
            if not self._active:
                found = _libraries("scipy.linalg" in sys.modules)
                self._before = [(own, own.num_threads) for own in found]
            self._active.append(most)
            self._apply()

    def leave(self, most: int) -> None:
        with self._lock:
            self._active.remove(most)
            self._apply()

    def _apply(self) -> None:
        for own, before in self._before:
            wanted = min([before, *self._active])
            if own.num_threads != wanted:
                own.set_num_threads(wanted)


_blas_limits = _BlasLimits()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limits.reset)


@contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """At most so many threads in NumPy's products. With one, results do not depend on the machine's cores."""
    _blas_limits.enter(most)
    try:
        yield
    finally:
        _blas_limits.leave(most)
