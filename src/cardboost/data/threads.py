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
    """How many threads to use for a parameter ``n_jobs``.

    None: all cores within the limits of joblib and threadpoolctl; -1: all cores, -2: all but one.
    """
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return max(1, min(cores, _kernels.max_threads()))
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


@cache
def _libraries(with_scipy: bool) -> list[Any]:
    """The BLAS libraries of NumPy, and of SciPy if it is loaded: they may differ."""
    import numpy  # noqa: F401  only libraries that are loaded are listed
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _BlasLimits:
    """The limits in force. They belong to the process: the least limit of all threads holds for each."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all limits, in a forked process, whose other threads are gone."""
        self._lock = threading.Lock()
        self._active: list[int] = []
        self._before: list[tuple[Any, int]] = []

    @contextmanager
    def hold(self, most: int) -> Iterator[None]:
        """Limit the threads of NumPy's products. With one, results do not depend on the number of cores."""
        with self._lock:
            if not self._active:
                libraries = _libraries("scipy.linalg" in sys.modules)
                self._before = [(library, library.num_threads) for library in libraries]
            self._active.append(most)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._active.remove(most)
                self._apply()

    def _apply(self) -> None:
        for library, before in self._before:
            limit = min([before, *self._active])
            if library.num_threads != limit:
                library.set_num_threads(limit)


_blas_limits = _BlasLimits()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limits.reset)

blas_threads = _blas_limits.hold
