"""The one loop of all boosting algorithms.

    row weights  ->  best columns  ->  stop?  ->  append  ->  new weights  ->  record

What is boosted is a *dictionary*: stumps, learners that are fitted to the row weights, learners that were
fitted before, networks. What differs between the algorithms is the *weighting*, the rule for the weights
after new columns:

    Stagewise           only the new column gets a weight (AdaBoost, forward stagewise)
    TotallyCorrective   all weights, by a convex master (L1CG, UCG)
    OnSimplex           all weights, with a given sum (soft margin)
    Reselecting         few columns, chosen again in every round (TotalQBoost)
    Gammas              the last network's weight, or those of all of them

The only thing that travels back to the dictionary is the vector of row weights, the dual variables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cardboost.problem.trace import Record, Status, Trace

#: columns without a lower held-out loss after which a run ends: at least so many ...
PATIENCE = 10
#: ... and at least this share of the columns at the lowest loss: long runs improve in longer intervals
PATIENCE_SHARE = 0.25


class Weighting(ABC):
    """The weights of a pool, and the rule by which they change when columns are added."""

    def batch(self, n_added: int) -> int:
        """How many columns to add in one round, after ``n_added`` columns of this run."""
        return 1

    @abstractmethod
    def search(self, dictionary: Any, n_columns: int) -> Any:
        """Look for the best columns at the present row weights.

        Parameters
        ----------
        dictionary : Dictionary
            What is boosted.
        n_columns : int
            How many columns are wanted; 0 at the limit, where only the bound is of interest.

        Returns
        -------
        proposals
            The columns, or a `Status` where there are none and the run has to end.
        """

    def look(self) -> Record | None:
        """The record of the present model, where the search has shown something about it, such as a bound."""
        return None

    @abstractmethod
    def update(self, proposals: Any) -> Record | None:
        """Append the columns to the pool and change the weights.

        Returns the record of the round, where it says something about the new columns.
        """

    def tighten(self) -> bool:
        """Improve the weights where a search has found no column, after which another one may.

        Returns whether anything was done.
        """
        return False

    def reason(self) -> Status | None:
        """Why there can be no further round, if so."""
        return None


@dataclass(frozen=True)
class StopRule:
    """When to stop.

    Parameters
    ----------
    max_columns : int
        Columns that are added at most.
    tol : float, default=0.0
        Relative gap between objective and lower bound at which the model is optimal; 0 for none.
    late : callable, default: never
        Whether time is up.
    at_limit : Status
        What to say at ``max_columns``.
    """

    max_columns: int
    tol: float = 0.0
    late: Callable[[], bool] = lambda: False
    at_limit: Status = Status.COLUMN_LIMIT

    def optimal(self, objective: float, lower_bound: float) -> bool:
        """Whether the gap is within the tolerance."""
        return self.tol > 0 and objective - lower_bound <= self.tol * max(abs(objective), 1e-300)

    def reason(self, record: Record | None, n_columns: int) -> Status | None:
        """Why to stop after this record, where ``n_columns`` more may be added in the next round."""
        if record is not None and self.optimal(record.objective, record.lower_bound):
            return Status.OPTIMAL
        if n_columns <= 0:
            return self.at_limit
        return Status.TIME_LIMIT if self.late() else None


class EarlyStopping:
    """Remembers the round with the lowest held-out loss, and says when to give up on a lower one.

    Parameters
    ----------
    patience : int
        Columns without a lower loss after which the run ends.
    patience_share : float
        The same relative to the number of columns at the lowest loss; the larger of both counts.
    """

    def __init__(self, patience: int = PATIENCE, patience_share: float = PATIENCE_SHARE) -> None:
        self.patience, self.patience_share = patience, patience_share
        self.losses: list[float] = []
        self.best_round = 0
        self.n_columns_at_best = 0

    def see(self, loss: float, n_columns: int) -> bool:
        """Note the held-out loss of a model; true when the lowest one lies far enough back."""
        self.losses.append(loss)
        if len(self.losses) == 1 or loss < self.losses[self.best_round]:
            self.best_round, self.n_columns_at_best = len(self.losses) - 1, n_columns
        waited = n_columns - self.n_columns_at_best
        return waited >= max(self.patience, self.patience_share * self.n_columns_at_best)

    def status(self, loss: float | None, n_columns: int) -> Status | None:
        """:meth:`see` as a reason to stop."""
        return Status.VALIDATION if loss is not None and self.see(loss, n_columns) else None


#: sees every record; ends the run by returning a status, or true for `Status.STOPPED`
Observer = Callable[[Record], object]


def boost(dictionary: Any, weighting: Weighting, stop: StopRule, observers: Iterable[Observer] = ()) -> Trace:
    """Add columns of a dictionary to the pool of a weighting, until there is a reason to stop.

    Parameters
    ----------
    dictionary : Dictionary
        What is boosted.
    weighting : Weighting
        The rule for the weights; the model is its state afterwards.
    stop : StopRule
        Limits of the run.
    observers : iterable of callables
        Told of every record, in this order; each may end the run.

    Returns
    -------
    Trace
        One record per round, and why there was no further one.
    """
    observers = tuple(observers)
    records: list[Record] = []
    n_added = 0

    def note(record: Record | None) -> Status | None:
        """Keep a record and tell the observers; the reason of the first that wants to stop."""
        if record is None:
            return None
        records.append(record)
        answers = [observer(record) for observer in observers]
        reasons = (answer if isinstance(answer, Status) else Status.STOPPED for answer in answers if answer)
        return next(reasons, None)

    status: Status | None = None
    while status is None:
        n_columns = min(weighting.batch(n_added), stop.max_columns - n_added)
        proposals = weighting.search(dictionary, n_columns)
        record = weighting.look()
        status = note(record) or stop.reason(record, n_columns)
        if status is None and isinstance(proposals, Status):
            if weighting.tighten():
                records.pop()  # that of the better weights takes its place
            else:
                status = proposals
        elif status is None:
            n_added += len(proposals)
            asked_to_stop = note(weighting.update(proposals))
            status = weighting.reason() or asked_to_stop
    return Trace(tuple(records), status)
