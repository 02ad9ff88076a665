"""The certificate: an objective, a lower bound for every model of the same scope, and the proof.

The content is plain JSON (docs/certificate.md); :meth:`Certificate.verify` hands it to the independent
checker, which recomputes every number from the data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardboost.certificate import checker


@dataclass(frozen=True)
class ScopedBound:
    """A lower bound over the columns of the pool, or over the whole dictionary."""

    scope: str
    lower_bound: float
    gap: float
    relative_gap: float
    guarantee: float
    leaves: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is claimed of a model and can be checked. The headline is the first bound of the file."""

    content: Mapping[str, Any]
    positive: Any = True
    #: makes the matrix that the file is about of rows, labels and weights; None: the file is about the rows
    view: Callable[[Any, Any, Any], tuple[Any, Any, Any]] | None = None

    @property
    def bounds(self) -> tuple[ScopedBound, ...]:
        keys = ("scope", "lower_bound", "gap", "relative_gap", "guarantee")
        return tuple(
            ScopedBound(**{key: bound[key] for key in keys}, leaves=tuple(bound["leaves"]))
            for bound in self.content["bounds"]
        )

    def bound(self, scope: str | None = None) -> ScopedBound:
        """The bound of that scope (default: the headline)."""
        for own in self.bounds:
            if scope is None or own.scope == scope:
                return own
        raise ValueError(f"This certificate has no bound of scope {scope!r}.")

    @property
    def objective(self) -> float:
        return float(self.content["solution"]["objective"])

    @property
    def null_objective(self) -> float:
        """The objective of the empty model (intercept only)."""
        return float(self.content["null"]["objective"])

    @property
    def lower_bound(self) -> float:
        return self.bound().lower_bound

    @property
    def gap(self) -> float:
        return self.bound().gap

    @property
    def relative_gap(self) -> float:
        return self.bound().relative_gap

    @property
    def guarantee(self) -> float:
        """At least this share of the improvement over the empty model that the scope allows."""
        return self.bound().guarantee

    @property
    def continuous_objective(self) -> float | None:
        """Of a card in whole points: the objective of the continuous card that it was made from."""
        points = self.content.get("points")
        return None if points is None else float(points["continuous"]["objective"])

    @property
    def points_cost(self) -> float | None:
        """The share of the continuous card's improvement over the empty model that whole points give up."""
        before = self.continuous_objective
        if before is None:
            return None
        gained = self.null_objective - before
        return (self.objective - before) / gained if gained > 0 else 0.0

    @property
    def status(self) -> str:
        return str(self.content["status"])

    @property
    def scope(self) -> str:
        return self.bound().scope

    @property
    def leaves(self) -> tuple[Mapping[str, Any], ...]:
        return self.bound().leaves

    def to_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(self.content))

    def faults(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        """Every claim that the data contradict, in sentences; empty when all hold.

        ``y``: the labels of the fit, or the targets of a regression.
        """
        label = None
        if self.view is not None:
            X, y, sample_weight = self.view(X, y, sample_weight)
        if self.content["problem"]["loss"] == "squared":
            label = y
        elif y is not None and self.content["kind"] == "stumps":
            label = np.asarray(y) == self.positive
        return checker.check(self.to_dict(), X, label, sample_weight)

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> bool:
        """Recompute every number from the data with the independent checker."""
        return not self.faults(X, y, sample_weight)

    def lines(self) -> list[str]:
        """The certificate in words, for cards and logs."""
        out = [f"objective {self.objective:.6f}, empty model {self.null_objective:.6f}: {self.status}"]
        if self.points_cost is not None:
            out.append(
                f"with weights that are not whole: {self.continuous_objective:.6f}; whole points give up "
                f"{100 * self.points_cost:.2f} % of its improvement"
            )
        out.append("")
        out.append(f"{'scope':<12}{'lower bound':>11}  {'guarantee':>9}   what it covers")
        for own in self.bounds:
            covers = (
                f"the {self._pool_size()} candidate terms" if own.scope == "pool" else self._stumps_in_words()
            )
            share = np.floor(own.guarantee * 1e4 + 1e-6) / 1e2
            out.append(f"{own.scope:<12}{own.lower_bound:>11.6f}  {share:>7.2f} %   {covers}")
        out += ["", "guarantee: at least this share of the improvement over the empty model"]
        size, limit = self._size_in_words()
        out.append(f"that {size} of that scope{limit} could make")
        return out

    def _size_in_words(self) -> tuple[str, str]:
        """What the model is compared with, and what limits its weights."""
        problem = self.content["problem"]
        k, f, radius = problem["max_terms"], problem["max_features"], problem.get("radius")
        size = "any model" if k is None else f"any {k}-term card"
        size = size if f is None else f"{size} on {f} feature{'' if f == 1 else 's'}"
        return size, "" if radius is None else f" with weights that add up to {radius:g}"

    def _pool_size(self) -> int:
        return next(bound["columns"] for bound in self.content["bounds"] if bound["scope"] == "pool")

    def _stumps_in_words(self) -> str:
        cuts, monotonic = (self.content["dictionary"][key] for key in ("cuts", "monotonic"))
        n = sum((2 if not monotonic or not monotonic[f] else 1) * len(own) for f, own in enumerate(cuts))
        for own in self.content["categories"] or []:
            if own is not None:
                labels = len(own["kept"]) + own["rare"]
                # sets of one label, and of all but one, are the stumps on that label
                n += 2 * labels + (2 * (labels - 3) if own.get("order") else 0)
        return f"all {n:,} stumps"

    def __repr__(self) -> str:
        return (
            f"Certificate(objective={self.objective:.6g}, lower_bound={self.lower_bound:.6g}, "
            f"guarantee={self.guarantee:.4f}, scope={self.scope!r}, status={self.status!r})"
        )
