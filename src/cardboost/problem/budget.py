"""The time that some work may take, and how its stages share it: the only owner of the clock.

A stage has to end when its share of the time is up; what it leaves goes to the stages that follow. All shares
are in :class:`Stage`. Without a limit no search reads the clock, so that equal seeds give equal results.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum


class Stage(Enum):
    """A part of some work that looks at the clock.

    Its ``share`` of the time is when it has to end, counted from the start of the work that it belongs to.
    Stages follow one another, so what one leaves goes to the next. The last 5 or 10 % are for work that does
    not look at the clock: the last refit, the certificate, the model itself (tests/test_time_limits.py).
    """

    share: float

    def __new__(cls, share: float) -> Stage:
        stage = object.__new__(cls)
        stage._value_ = len(cls.__members__)  # stages of equal shares are different stages
        stage.share = share
        return stage

    ALL = 1.0
    # a fit that chooses its regularisation: what the folds leave is for the fit itself
    REGULARISATION = 0.3  # several smaller fits; where that is not enough, a fixed value costs no more time
    # a fit without a selection
    COLUMNS = 0.85  # nearly all: every column lowers the objective, and there is no search to wait for
    WEIGHTS = 0.95  # convex steps over all columns, each of which leaves a valid model
    # a fit with a selection
    HOT_START = 0.25  # the rounds that follow generate columns too, each with a choice
    CANDIDATES = 0.45  # no columns come later, but half of the time must be left to choose among them
    CANDIDATE_WEIGHTS = 0.5  # the weights of all candidates are only a start of the search
    RESELECTION = 0.6  # every round ends with a choice; a last one with larger budgets follows
    FEATURE_SEARCH = 0.65  # then come more columns of the chosen features, and a search among them
    LOCAL_SEARCH = 0.75  # it finds a model; what follows may improve it, and bounds it
    SIZES = 0.9  # as LOCAL_SEARCH, for many sizes and without a proof that would need the time
    SELECTION = 0.9  # all that selectors do after local search; they share it as below
    DICTIONARY = 0.95  # the bound over the dictionary is last: without it that over the pool stays
    # a selection, which has what local search has left
    FIRST_CHOICE = 0.2  # a quick choice, to see whether a few nodes prove it; lost where they do not
    FIRST_NODES = 0.3  # these nodes
    CHOICE = 0.5  # local search or a sampler: as much time as for everything that goes on from it
    TABU = 0.6  # a further search, from the result of the first; only where the selector has it
    RELAXATION = 0.65  # the bound of the root, without which there is no certificate
    SEARCH_BEGINS = 0.75  # later than this, too little of SEARCH is left to begin with nodes
    SEARCH = 0.85  # nodes of exact search
    LEAVES = 0.95  # every leaf is bounded once more for the proof; else the root alone is the proof
    # other work
    TEMPERATURES = 0.5  # cross-validation of a soft margin; the fit on all rows has the other half
    FIT = 0.8  # of a command that chooses whole points afterwards
    FRONT_REGULARISATION = 0.1  # of a front: a few sizes in its folds, before all others
    ALL_ROWS = 0.3  # of a front, which needs all sizes on all rows before it can show any
    FOLDS = 0.75  # of a front: one more fit of all sizes per fold
    PROOFS = 0.95  # of a front: what is left goes to proofs, one size after another


def clock() -> float:
    """Seconds since some moment."""
    return time.perf_counter()


#: asked now and then by work that knows no stages: whether it has to end
Late = Callable[[], bool]


def never() -> bool:
    """No limit on time."""
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
    stopped: Late = never
    started: float = field(default_factory=clock)

    @classmethod
    def of(cls, time_limit: float | None, stopped: Late = never) -> Budget:
        """For a limit in seconds, or without one, from now on."""
        return cls(math.inf if time_limit is None else time_limit, stopped)

    @classmethod
    def before(cls, deadline: float, stopped: Late = never) -> Budget:
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
        return stage.share * self.seconds

    def left_in(self, stage: Stage) -> float:
        """Seconds to the end of a stage, 0 when there are none."""
        return max(0.0, self.share(stage) - self.elapsed) if self.limited else math.inf

    def up(self, stage: Stage = Stage.ALL) -> bool:
        """Whether the time of a stage is up, wishes to stop aside."""
        return self.limited and self.elapsed >= self.share(stage)

    def late(self, stage: Stage = Stage.ALL) -> bool:
        """Whether a stage has to end: its time is up, or the caller wishes to stop."""
        return self.up(stage) or self.stopped()

    def end_of(self, stage: Stage) -> Late:
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
