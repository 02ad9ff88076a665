"""What happened in a run, round by round, and why it ended: one record, one trace, one list of reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import overload


class Status(StrEnum):
    """Why a run ended. A status is its name as a string, and carries the sentence that explains it.

    Examples
    --------
    >>> Status.TIME_LIMIT == "time limit"
    True
    >>> Status.TIME_LIMIT.message
    'time_limit was reached'
    """

    message: str

    def __new__(cls, name: str, message: str) -> Status:
        status = str.__new__(cls, name)
        status._value_ = name
        status.message = message
        return status

    OPTIMAL = "optimal", "the duality gap is within tol"
    COLUMN_LIMIT = "column limit", "the limit on columns was reached"
    ITERATION_LIMIT = "iteration limit", "max_iter was reached"
    TIME_LIMIT = "time limit", "time_limit was reached"
    STOPPED = "stopped", "the callback asked to stop"
    VALIDATION = "validation", "the loss on held-out rows no longer falls"
    EXHAUSTED = "exhausted", "the search found no further column with an edge above its price"
    STAGNANT = "stagnant", "many rounds in a row changed nothing"
    STUCK = "stuck", "no single learner lowers the loss any further"
    NO_EDGE = "no edge", "no learner is better than chance at the row weights"
    NO_LOSS = "no loss", "no row has any loss left"
    PERFECT = "perfect", "one learner makes no mistake: it is the model"
    TOLERANCE = "tolerance", "no learner has an edge above tol"
    PRECISION = "precision", "no step lowers the objective any more; the gap is that of double precision"
    SEPARABLE = "separable", "a plane separates the classes: without l1 or l2 there is no finite optimum"
    CRITERION = "criterion", "the paper's criterion (-g)^f.d is within tol"


@dataclass(frozen=True)
class Record:
    """The state of a run after one round.

    Attributes
    ----------
    n_columns : int
        Columns generated so far.
    n_terms : int
        Columns in use.
    objective : float
        Loss and regularisation of the model.
    lower_bound : float
        What no model over the dictionary is below.
    edge : float
        The largest edge of a column that is not in the pool; of the column that was added, where only that
        one gets a weight.
    seconds : float
        Since the start.
    weight, error : float or None
        Where one column is added a round: its weight, and the share of the row weights that it gets wrong.
    held_out : float or None
        Loss on held-out rows.
    exact_gap : float or None
        The gap, where it is known to more digits than the bound.
    criterion : float or None
        The paper's (-g)^f.d, for conjugate gradients on the simplex.
    restarts : int
        Learners that were fitted in vain.
    """

    n_columns: int
    n_terms: int
    objective: float
    lower_bound: float
    edge: float
    seconds: float
    weight: float | None = None
    error: float | None = None
    held_out: float | None = None
    exact_gap: float | None = None
    criterion: float | None = None
    restarts: int = 0

    @property
    def gap(self) -> float:
        """How far the objective can be from the optimum."""
        return self.objective - self.lower_bound if self.exact_gap is None else self.exact_gap


@dataclass(frozen=True)
class Trace(Sequence[Record]):
    """One record per round, and why there was no further one. A sequence of records.

    Attributes
    ----------
    records : tuple of Record
        The state of the run after every round.
    status : Status
        Why the run ended.

    Examples
    --------
    >>> record = Record(n_columns=1, n_terms=1, objective=0.5, lower_bound=0.4, edge=0.1, seconds=0.01)
    >>> trace = Trace((record,), Status.TIME_LIMIT)
    >>> len(trace), trace[-1].n_terms, trace.message
    (1, 1, 'time_limit was reached')
    """

    records: tuple[Record, ...]
    status: Status

    @property
    def message(self) -> str:
        """The sentence of the status."""
        return self.status.message

    @overload
    def __getitem__(self, k: int) -> Record: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Record]: ...
    def __getitem__(self, k: int | slice) -> Record | Sequence[Record]:
        return self.records[k]

    def __len__(self) -> int:
        return len(self.records)
