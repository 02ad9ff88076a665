"""The certificate of a model: an objective, a lower bound for every model of the same scope, and the proof.

The content is plain JSON (docs/certificate.md); :meth:`Certificate.verify` hands it to the independent
checker, which recomputes every number from the data.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cardboost.certificate import checker
from cardboost.certificate.statement import (
    are_candidates,
    compared_with,
    counted,
    covers,
    percent,
    pool_size,
    problem_lines,
    short,
    tolerance_line,
)
from cardboost.problem.bound import guarantee, proof_status


class BaseCertificate:
    """A claim about a model that can be checked.

    Certificates have ``objective``, ``null_objective``, ``lower_bound``, ``status`` and ``scope``, and say
    which of their claims the data contradict.
    """

    objective: Any
    null_objective: Any
    lower_bound: Any

    @property
    def gap(self) -> float:
        """How much lower the objective of any other model of the same scope can be."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        return self.gap / self.objective if self.objective > 0.0 else 0.0

    @property
    def guarantee(self) -> float:
        """At least this share of the improvement over the empty model that the scope allows."""
        return guarantee(self.null_objective, self.objective, self.lower_bound)

    @abstractmethod
    def faults(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        """Every claim that the data contradict, in sentences; empty when all hold."""

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
        """Recompute every number from the data with the independent checker.

        Parameters
        ----------
        X, y, sample_weight : the data of the fit.

        Returns
        -------
        bool
            Whether every claim holds; :meth:`faults` says which do not.
        """
        return not self.faults(X, y, sample_weight)


@dataclass(frozen=True)
class ScopedBound:
    """What is proven of one scope.

    Attributes
    ----------
    scope : {"pool", "dictionary"}
        Candidate terms, or all stumps.
    lower_bound, gap, relative_gap, guarantee : float
        As those of :class:`Certificate`, which are for the widest scope.
    leaves : tuple of dict
        The parts of the search space with their bounds, as in the file.
    """

    scope: str
    lower_bound: float
    gap: float
    relative_gap: float
    guarantee: float
    leaves: tuple[Mapping[str, Any], ...] = field(repr=False)

    @property
    def percent(self) -> str:
        """The guarantee as text, rounded down."""
        return percent(self.guarantee)


@dataclass(frozen=True, eq=False)
class Certificate(BaseCertificate):
    """What is claimed of a model and can be checked.

    ``lower_bound``, ``gap``, ``guarantee`` and ``scope`` are those of the widest scope that is proven;
    ``scopes`` has each scope.

    Parameters
    ----------
    content : mapping
        The content of the file.
    positive : object, default=True
        The class that the certificate is about.
    view : callable, optional
        Computes the matrix that the file is about from rows, labels and weights. None: the file is about the
        rows themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost.solvers import select_columns
    >>> A = np.array([[1, 1], [1, -1], [1, 1], [-1, 1]])
    >>> certificate = select_columns(A, max_terms=1, l2=0.5, max_weight=2.0).certificate
    >>> certificate.status, certificate.scope, certificate.verify(A)
    ('optimal', 'pool', True)
    """

    content: Mapping[str, Any]
    positive: Any = True
    view: Callable[[Any, Any, Any], tuple[Any, Any, Any]] | None = None

    @cached_property
    def scopes(self) -> Mapping[str, ScopedBound]:
        """What is proven of each scope, the widest first: "dictionary", all stumps, and "pool"."""
        keys = ("scope", "lower_bound", "gap", "relative_gap", "guarantee")
        bounds = sorted(self.content["bounds"], key=lambda bound: bound["scope"] != "dictionary")
        return {
            bound["scope"]: ScopedBound(**{key: bound[key] for key in keys}, leaves=tuple(bound["leaves"]))
            for bound in bounds
        }

    @property
    def bounds(self) -> tuple[ScopedBound, ...]:
        """The bounds of all scopes, the widest first."""
        return tuple(self.scopes.values())

    def bound(self, scope: str | None = None) -> ScopedBound:
        """The bound of a scope.

        Parameters
        ----------
        scope : {"pool", "dictionary"}, optional
            By default the widest scope.

        Returns
        -------
        ScopedBound

        Raises
        ------
        ValueError
            If nothing is proven of that scope.
        """
        if scope is None:
            return self.bounds[0]
        if scope not in self.scopes:
            raise ValueError(f"This certificate has no bound of scope {scope!r}.")
        return self.scopes[scope]

    @property
    def objective(self) -> float:
        """The objective of the model: mean loss plus regularisation."""
        return float(self.content["solution"]["objective"])

    @property
    def null_objective(self) -> float:
        """The objective of the empty model (intercept only)."""
        return float(self.content["null"]["objective"])

    @property
    def lower_bound(self) -> float:
        """No model of the widest scope has an objective below this."""
        return self.bound().lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        return self.bound().relative_gap

    @property
    def guarantee(self) -> float:
        """At least this share of the improvement over the empty model that the scope allows."""
        return self.bound().guarantee

    @property
    def scope(self) -> str:
        """The widest scope that is proven: "dictionary" or "pool"."""
        return self.bound().scope

    @property
    def leaves(self) -> tuple[Mapping[str, Any], ...]:
        """The leaves of the widest scope."""
        return self.bound().leaves

    @property
    def continuous_objective(self) -> float | None:
        """For a card in whole points, the objective of the continuous card that it was made from."""
        points = self.content.get("points")
        return None if points is None else float(points["continuous"]["objective"])

    @property
    def points_cost(self) -> float | None:
        """The share of the continuous card's improvement over the empty model that the card gives up.

        It is the price of whole points, and of fewer terms where the card has them: by ``max_terms`` or
        ``max_bytes`` of :meth:`~cardboost.CardBoostClassifier.scorecard`.
        """
        continuous = self.continuous_objective
        if continuous is None:
            return None
        improvement = self.null_objective - continuous
        return (self.objective - continuous) / improvement if improvement > 0 else 0.0

    @property
    def status(self) -> str:
        """ "optimal" over the widest scope, "optimal among candidates", or "feasible"."""
        if self.content["version"] >= 6:
            return str(self.content["status"])
        gaps = {scope: bound.gap for scope, bound in self.scopes.items()}
        return proof_status(gaps, are_candidates(self.content), abs(self.null_objective))

    def to_dict(self) -> dict[str, Any]:
        """The content of the file, as a copy."""
        return json.loads(json.dumps(self.content))

    def faults(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        """Recompute every number from the data with the independent checker.

        Parameters
        ----------
        X : array or frame
            The rows of the fit, in any order, or the matrix.
        y : array-like, optional
            The labels or targets of the fit. With several classes, booleans that mark the rows of this one
            are accepted too; class weights then have to be multiplied into ``sample_weight``.
        sample_weight : array-like, optional
            The weights of the fit.

        Returns
        -------
        list of str
            Every claim that the data contradict, in a sentence; empty when all hold.
        """
        label = None
        marked = (
            y is not None and np.asarray(y).dtype == bool and not isinstance(self.positive, bool | np.bool_)
        )
        if self.view is not None and not marked:
            X, y, sample_weight = self.view(X, y, sample_weight)
        if self.content["problem"]["loss"] == "squared":
            label = y
        elif y is not None and self.content["kind"] == "stumps":
            label = np.asanyarray(y) if marked else np.asanyarray(y) == self.positive  # with its mask
        return checker.check(self.to_dict(), X, label, sample_weight)

    def lines(self) -> list[str]:
        """What is proven, in words: the problem, its limits, and the bound of every scope."""
        lines = [*problem_lines(self.content), ""]
        lines.append(
            f"objective {short(self.objective)}, empty model {short(self.null_objective)}: {self.headline}"
        )
        if self.points_cost is not None:
            solutions = (self.content["points"]["continuous"], self.content["solution"])
            counts = [len(solution["weights"]) for solution in solutions]
            fewer = counts[0] - counts[1]
            what = f"whole points and {counted(fewer, 'term')} fewer" if fewer > 0 else "whole points"
            lines.append(
                f"{counted(counts[0], 'term')} with weights that are not whole: "
                f"{self.continuous_objective:.6f}; {what} give up {100 * self.points_cost:.2f} % of the "
                "improvement"
            )
        lines += ["", f"{'scope':<12}{'lower bound':>11}  {'guarantee':>9}   among"]
        lines += [
            f"{bound.scope:<12}{short(bound.lower_bound):>11}  {bound.percent:>9}   "
            f"{covers(self.content, bound.scope)}"
            for bound in self.bounds
        ]
        explanation = (
            "guarantee: at least this share of the improvement over the empty model, on these rows, "
            f"that {compared_with(self.content)} of that scope could make"
        )
        return [*lines, "", explanation, tolerance_line(self.content, self.status)]

    @property
    def headline(self) -> str:
        """The status and the guarantee of the widest scope, in a few words."""
        widest, status = covers(self.content, self.scope), self.status
        if status == "optimal" or (status != "feasible" and self.scope == "pool"):
            return f"optimal among {widest}"
        text = f"at least {self.bound().percent} of the best possible improvement among {widest}"
        if status == "feasible":
            return text
        if not pool_size(self.content):
            return f"no candidate term was generated, {text}"
        return f"optimal among {covers(self.content, 'pool')}, {text}"

    def __repr__(self) -> str:
        statement = "; ".join(" ".join(line.split()) for line in problem_lines(self.content))
        return (
            f"Certificate({self.headline}; objective={self.objective:.6g}, "
            f"lower_bound={self.lower_bound:.6g}, guarantee={self.guarantee:.4f}, scope={self.scope!r}, "
            f"status={self.status!r}; {statement})"
        )
