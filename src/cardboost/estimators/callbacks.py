"""Who is told of a fit while it runs: the screen, a callback of the user's, and scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardboost.data.arguments import number
from cardboost.problem.budget import Budget, clock, never
from cardboost.problem.trace import Record

_PROVING_SECONDS = 1.0  # between two lines about an exact search on the screen


def limited_budget(time_limit: Any, stopped: Callable[[], bool] = never) -> Budget:
    """The time that an argument ``time_limit`` allows, checked, from now on."""
    return Budget.of(
        None if time_limit is None else number("time_limit", time_limit, 0.0, strict=True), stopped
    )


class FitCallback:
    """Follows a fit, and may end it. Derive from it and pass an instance to ``fit(X, y, callback=...)``.

    Attributes
    ----------
    budget : Budget or None
        The time for the fit. None: that of the estimator's ``time_limit``, from the start of the fit.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from cardboost import CardBoostClassifier, FitCallback
    >>> class FirstColumns(FitCallback):
    ...     def after_round(self, record):
    ...         return record.n_columns >= 5
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CardBoostClassifier(max_terms=3).fit(X, y, callback=FirstColumns())
    >>> model.trace_.status.message
    'the callback asked to stop'
    """

    budget: Budget | None = None

    def after_round(self, record: Record) -> bool | None:
        """Called after every round of a fit.

        Parameters
        ----------
        record : Record
            The state of the fit after the round: columns, terms, objective, lower bound, edge and seconds.

        Returns
        -------
        bool or None
            True ends the generation of columns: the fit goes on with those that are there, and the best model
            so far is kept. None or False: the fit continues.
        """
        return None

    def proving(self, nodes: int, open_nodes: int, lower_bound: float, objective: float) -> None:
        """Called now and then during exact search. What it returns is ignored; ``stopped`` ends the search.

        Parameters
        ----------
        nodes : int
            Nodes searched so far.
        open_nodes : int
            Nodes that are still open.
        lower_bound : float
            The lower bound over the candidate terms that is proven so far.
        objective : float
            The objective of the best model so far.
        """

    def stopped(self) -> bool:
        """Called often, also during exact search, to ask whether to end the fit as soon as possible.

        Returns
        -------
        bool
            True ends the fit with the best model and the best bound so far.
        """
        return False


class Reporter:
    """Tells everybody of the rounds of one fit.

    Parameters
    ----------
    estimator : estimator
        With ``verbose``.
    X, y
        The data of the fit, for scikit-learn's callbacks.
    callback : FitCallback, callable or None
        What the user passed to ``fit``; a function is told of every record.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, callback: Any = None) -> None:
        if callback is not None and not isinstance(callback, FitCallback):
            if not callable(callback):
                raise TypeError(f"callback must be a FitCallback or a function; got {callback!r}.")
            function, callback = callback, FitCallback()
            callback.after_round = function
        self.estimator, self.X, self.y = estimator, X, y
        self.callback: FitCallback = callback or FitCallback()
        self._context: Any = None

    def budget(self, time_limit: float | None) -> Budget:
        """The time for the fit: that of the callback, or ``time_limit`` seconds from now on."""
        budget = limited_budget(time_limit, self.callback.stopped)
        return budget if self.callback.budget is None else self.callback.budget

    def begin(self) -> None:
        """The input is checked, and the fit begins."""
        estimator = self.estimator
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, X=self.X, y=self.y)

    def after_round(
        self, fitted: Callable[[Any], dict[str, Any]] | None = None, label: str = ""
    ) -> Callable[[Record, Callable[[], Any]], bool]:
        """What training tells after every round; it answers whether to stop.

        ``fitted``: the attributes that make a model of a round a fitted estimator; ``label``: the class.
        """

        def after(record: Record, model: Callable[[], Any]) -> bool:
            if self.estimator.verbose:
                print(_line(record, label))
            stop = bool(self.callback.after_round(record))
            state = None if fitted is None else lambda: fitted(model())
            return self._after_task(state) or stop

        return after

    def _after_task(self, fitted: Callable[[], dict[str, Any]] | None) -> bool:
        """Tell scikit-learn's callbacks of a round."""
        if self._context is None:
            return False
        facts = {"X": self.X, "y": self.y, "reconstruction_attributes": fitted}
        task = self._context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.estimator, **facts)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, **facts))

    def proving(self, label: str = "") -> Callable[[int, int, float, float], None]:
        """What an exact search tells now and then."""
        due = clock() + _PROVING_SECONDS

        def searching(nodes: int, open_nodes: int, bound: float, objective: float) -> None:
            nonlocal due
            if self.estimator.verbose and clock() >= due:
                due = clock() + _PROVING_SECONDS
                gap = 100.0 * max(0.0, objective - bound) / max(abs(objective), 1e-300)
                print(f"[cardboost] {label}proving: {nodes:,} nodes, gap {gap:.1f} %")
            self.callback.proving(nodes, open_nodes, bound, objective)

        return searching

    def end(self) -> None:
        """The estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)


def _line(record: Record, label: str) -> str:
    return (
        f"[cardboost] {label}{record.seconds:7.2f} s  {record.n_columns:4d} columns  "
        f"{record.n_terms:4d} terms  objective {record.objective:.6f}  bound {record.lower_bound:.6f}"
    )
