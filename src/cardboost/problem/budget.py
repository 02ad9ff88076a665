"""The time that a piece of work may take, and how its stages share it: the only owner of the clock.

A stage has to end when its share of the time is up; what it leaves goes to the stages that follow. All shares
are in one table. Without a limit nothing reads the clock, so that equal seeds give equal results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto


class Stage(Enum):
    """A part of a work that looks at the clock."""

    ALL = auto()  # to the end
    # a fit without a selection
    COLUMNS = auto()  # generated
    WEIGHTS = auto()  # of all columns, made optimal
    # a fit with one
    HOT_START = auto()  # columns generated before the first of many selections
    CANDIDATES = auto()  # columns generated before the only selection
    CANDIDATE_WEIGHTS = auto()
    RESELECTION = auto()  # columns generated one by one, each with a selection
    FEATURE_SEARCH = auto()  # local search, where more columns of the chosen features follow
    LOCAL_SEARCH = auto()
    SIZES = auto()  # local search for many sizes, where no proof follows
    SELECTION = auto()  # everything that selectors do after local search; they share it as below
    DICTIONARY = auto()  # the bound over the whole dictionary
    # a selection
    FIRST_CHOICE = auto()  # a quick one, to see whether a few nodes prove it
    FIRST_NODES = auto()
    CHOICE = auto()  # local search or a sampler
    TABU = auto()
    RELAXATION = auto()  # the bound of the root
    SEARCH_BEGINS = auto()  # later than this, exact search is not begun
    SEARCH = auto()  # its nodes
    LEAVES = auto()  # its proof
    # others
    TEMPERATURES = auto()  # cross-validation of a soft margin
    FIT = auto()  # of a command that chooses whole points afterwards
    ALL_ROWS = auto()  # of a front: all sizes on all rows
    FOLDS = auto()
    PROOFS = auto()


SHARES = {
    Stage.ALL: 1.0,
    Stage.COLUMNS: 0.85,
    Stage.WEIGHTS: 0.95,
    Stage.HOT_START: 0.25,
    Stage.CANDIDATES: 0.45,
    Stage.CANDIDATE_WEIGHTS: 0.5,
    Stage.RESELECTION: 0.6,
    Stage.FEATURE_SEARCH: 0.65,
    Stage.LOCAL_SEARCH: 0.75,
    Stage.SIZES: 0.9,
    Stage.SELECTION: 0.9,
    Stage.DICTIONARY: 0.95,
    Stage.FIRST_CHOICE: 0.2,
    Stage.FIRST_NODES: 0.3,
    Stage.CHOICE: 0.5,
    Stage.TABU: 0.6,
    Stage.RELAXATION: 0.65,
    Stage.SEARCH_BEGINS: 0.75,
    Stage.SEARCH: 0.85,
    Stage.LEAVES: 0.95,
    Stage.TEMPERATURES: 0.5,
    Stage.FIT: 0.8,
    Stage.ALL_ROWS: 0.3,
    Stage.FOLDS: 0.75,
    Stage.PROOFS: 0.95,
}


def clock() -> float:
    """Seconds since some moment."""
    return time.perf_counter()


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Budget:
    """``seconds`` from ``started``, or until ``stopped`` says so.

    Examples
    --------
    >>> budget = Budget(10.0)
    >>> budget.late(Stage.LOCAL_SEARCH)
    False
    >>> Budget().seconds
    inf
    """

    seconds: float = math.inf
    stopped: Callable[[], bool] = _never
    started: float = field(default_factory=clock)

    @classmethod
    def of(cls, time_limit: float | None, stopped: Callable[[], bool] = _never) -> Budget:
        """For a limit in seconds, or without one, from now on."""
        return cls(math.inf if time_limit is None else time_limit, stopped)

    @classmethod
    def before(cls, deadline: float, stopped: Callable[[], bool] = _never) -> Budget:
        """From now to the :attr:`deadline` of another budget, maybe of another process."""
        return cls(max(0.0, deadline - time.time()), stopped)

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return math.isfinite(self.seconds)

    @property
    def deadline(self) -> float:
        """When time is up, on the clock that all processes share."""
        return time.time() + self.left if self.limited else math.inf

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return clock() - self.started

    @property
    def left(self) -> float:
        """Seconds to the end, 0 when there are none."""
        return max(0.0, self.seconds - self.elapsed) if self.limited else math.inf

    def share(self, stage: Stage) -> float:
        """Seconds from the start at which a stage has to end."""
        return SHARES[stage] * self.seconds

    def left_in(self, stage: Stage) -> float:
        """Seconds to the end of a stage, 0 when there are none."""
        return max(0.0, self.share(stage) - self.elapsed) if self.limited else math.inf

    def up(self, stage: Stage = Stage.ALL) -> bool:
        """Whether the time of a stage is up, wishes to stop aside."""
        return self.limited and self.elapsed >= self.share(stage)

    def late(self, stage: Stage = Stage.ALL) -> bool:
        """Whether a stage has to end: its time is up, or the caller wishes to stop."""
        return self.up(stage) or self.stopped()

    def end_of(self, stage: Stage) -> Callable[[], bool]:
        """:meth:`late` of a stage, for work that knows no stages."""
        return lambda: self.late(stage)

    def within(self, stage: Stage) -> Budget:
        """From now to the end of a stage, as a budget of its own."""
        if not self.limited:
            return replace(self, started=clock())
        now = clock()
        return replace(self, started=now, seconds=max(0.0, self.started + self.share(stage) - now))

    def part(self, k: int, n: int) -> Budget:
        """For the k-th (from 0) of ``n`` equal pieces of work: what is left, shared by those to come."""
        return replace(self, started=clock(), seconds=self.left / (n - k))

    def at_most(self, seconds: float | None) -> Budget:
        """The same with another limit, where that is less."""
        return self if seconds is None else replace(self, seconds=min(self.seconds, seconds))
