"""Settings for all tests: Hypothesis draws the same examples in every run and never fails for being slow.

The peers that tests compare with (NumPy, SciPy) use one BLAS thread: on small products several only wait for
each other, and on a busy machine for very long. For the same reason threads of the kernels sleep while they
wait.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the first library with OpenMP is loaded

import numpy  # noqa: F401 - loads the BLAS that is limited below
import pytest
import scipy.linalg  # noqa: F401
import threadpoolctl
from hypothesis import settings

from work_clock import WorkClock

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

_ONE_BLAS_THREAD = threadpoolctl.threadpool_limits(1, user_api="blas")


@pytest.fixture
def work_clock(monkeypatch: pytest.MonkeyPatch) -> WorkClock:
    """The clock of all time limits counts work in this test."""
    return WorkClock().run_in(monkeypatch)
