"""How many threads the kernels and NumPy's products may use."""

from __future__ import annotations

import numbers
import os
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
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """At most so many threads in NumPy's products. With one, results do not depend on the machine's cores."""
    with _controller().limit(limits=most, user_api="blas"):
        yield
