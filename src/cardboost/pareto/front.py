"""The front: for every size the scores of the folds and the model of all rows, and what is made of them."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from cardboost.data.arguments import whole
from cardboost.pareto.picking import (
    RATES,
    RULES,
    ScoredSizes,
    mean,
    rate_at_most,
    standard_error,
)

STATUS = {
    "complete": "all folds and all proofs are done",
    "time limit": "time_limit was reached: folds are missing, or searches and proofs ended early",
    "interrupted": "it was interrupted: folds are missing, or searches and proofs ended early",
}


@dataclass(frozen=True, eq=False)
class SizePoint:
    """One size.

    ``scores``: on the held-out rows of every fold. ``recalls``: for every fold the share of the positive rows
    that is found at each of the ``RATES`` of false alarms; None unless there are two classes.
    ``term_frequency``: for every term of the model the share of the folds whose model of this size has it
    too; for more than two classes one after the other. ``feature_frequency``: the same for features, by
    their position.
    """

    size: int
    scores: tuple[float, ...]
    recalls: tuple[tuple[float, ...], ...] | None
    model: Any
    term_frequency: tuple[float, ...]
    feature_frequency: tuple[tuple[int, float], ...]

    @property
    def mean(self) -> float:
        return mean(self.scores)

    @property
    def standard_error(self) -> float | None:
        """Of the mean score; None for one fold."""
        return standard_error(self.scores)

    @property
    def certificates(self) -> list[Any]:
        """One, or one per class."""
        own = self.model.certificate_
        return own if isinstance(own, list) else [own]

    def guarantee(self, scope: str | None = None) -> float | None:
        """The least of the certificates', over the candidate terms ("pool") or all stumps ("dictionary").

        Default: that of the widest scope that is proven. None where there is no such bound.
        """
        found = [
            [bound.guarantee for bound in own.bounds if scope in (None, bound.scope)][:1]
            for own in self.certificates
        ]
        return min(own[0] for own in found) if all(found) else None

    @property
    def status(self) -> str:
        """The weakest of the certificates'."""
        statuses = {certificate.status for certificate in self.certificates}
        return next(
            status for status in ("feasible", "optimal among candidates", "optimal") if status in statuses
        )

    @property
    def stability(self) -> float | None:
        """The mean frequency of the terms; None for a model without terms."""
        return mean(self.term_frequency) if self.term_frequency else None


@dataclass(frozen=True, eq=False)
class ParetoFront(Sequence[SizePoint]):
    """Cross-validated score against number of terms, smallest size first.

    ``n_folds``: how many were asked for; after an interruption fewer may be done. ``status``: "complete",
    "time limit" or "interrupted".
    """

    points: tuple[SizePoint, ...]
    scoring: str
    n_folds: int
    status: str = "complete"

    @overload
    def __getitem__(self, k: int) -> SizePoint: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[SizePoint]: ...
    def __getitem__(self, k: int | slice) -> SizePoint | Sequence[SizePoint]:
        return self.points[k]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[SizePoint]:
        return iter(self.points)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(point.size for point in self.points)

    @property
    def n_folds_done(self) -> int:
        return len(self.points[0].scores)

    @property
    def message(self) -> str:
        return STATUS[self.status]

    # ------------------------------------------------------------------------------------ picking

    def pick(
        self,
        rule: str | None = None,
        *,
        max_terms: int | None = None,
        min_score: float | None = None,
        recall_at_fpr: float | None = None,
    ) -> Any:
        """The fitted model of one size.

        Parameters
        ----------
        rule : {"1se", "knee", "best"}
            "best": the highest mean score. "1se": the smallest size within one standard error of it.
            "knee": where the curve bends most. The default is "1se", and "best" where only ``max_terms`` is
            given.
        max_terms : int
            Only sizes up to this one.
        min_score : float
            In place of a rule: the smallest size with at least this mean score.
        recall_at_fpr : float
            In place of the score: the share of the positive rows (``classes_[1]``) that is found while at
            most this share of the others is a false alarm. For two classes.
        """
        return self.picked(rule, max_terms=max_terms, min_score=min_score, recall_at_fpr=recall_at_fpr).model

    def picked(
        self,
        rule: str | None = None,
        *,
        max_terms: int | None = None,
        min_score: float | None = None,
        recall_at_fpr: float | None = None,
    ) -> SizePoint:
        """As :meth:`pick`, with scores and stability."""
        if rule is not None and rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}; got {rule!r}.")
        if rule is not None and min_score is not None:
            raise ValueError(f"min_score takes the place of a rule; got both, rule={rule!r}.")
        known = self._scored if recall_at_fpr is None else self._recalls_at(recall_at_fpr)
        if max_terms is not None:
            known = known.at_most(whole("max_terms", max_terms, 1))
            if not known.sizes:
                raise ValueError(
                    f"max_terms={max_terms}: the smallest size of this front is {self.sizes[0]}."
                )
        if min_score is None:
            rule = rule or ("best" if max_terms is not None and recall_at_fpr is None else "1se")
            return self.points[known.pick(rule)]
        if isinstance(min_score, bool) or not isinstance(min_score, numbers.Real) or min_score != min_score:
            raise ValueError(f"min_score must be a number; got {min_score!r}.")
        found = known.reaching(float(min_score))
        if found is None:
            best = known.best()
            raise ValueError(
                f"min_score={min_score!r}: no size reaches it; the best mean is {known.means[best]:.6g}, "
                f"with {known.sizes[best]} terms."
            )
        return self.points[found]

    @cached_property
    def _scored(self) -> ScoredSizes:
        return ScoredSizes(self.sizes, np.array([point.scores for point in self.points]))

    def _recalls_at(self, rate: Any) -> ScoredSizes:
        real = isinstance(rate, numbers.Real) and not isinstance(rate, bool)
        if not real or not 0.0 <= rate <= 1.0:
            raise ValueError(f"recall_at_fpr must be a number from 0 to 1; got {rate!r}.")
        at = rate_at_most(float(rate))
        every = [point.recalls for point in self.points]
        known = [[fold[at] for fold in own] for own in every if own is not None]
        if len(known) < len(every):
            raise ValueError("recall_at_fpr is for two classes, and needs both in the held-out rows.")
        return ScoredSizes(self.sizes, np.array(known))

    def marks(self) -> dict[int, str]:
        """What the rules pick, in words: size by size."""
        out: dict[int, list[str]] = {}
        for rule in RULES:
            out.setdefault(self.sizes[self._scored.pick(rule)], []).append(rule)
        return {size: ", ".join(rules) for size, rules in out.items()}

    # ------------------------------------------------------------------------------------ showing

    def table(self) -> list[dict[str, Any]]:
        """One row per size as plain data, which data frames of any library take.

        ``terms``: allowed; ``used``: by the model of all rows (of all classes together); ``features``: so
        many distinct ones; ``mean``, ``standard_error``: of the score on held-out rows; ``objective``,
        ``lower_bound``, ``guarantee``, ``status``: of the certificate, over the widest scope that is proven;
        where there are several the sum of the first two and the least of the others;
        ``guarantee_candidates``: over the candidate terms; ``stability``: mean share of the folds that have a
        term; ``picked``: the rules that pick this size. What is not known is None.
        """
        marks = self.marks()
        return [
            {
                "terms": point.size,
                "used": point.model.ensemble_.n_terms,
                "features": len(point.feature_frequency),
                "mean": point.mean,
                "standard_error": point.standard_error,
                "objective": sum(own.objective for own in point.certificates),
                "lower_bound": sum(own.lower_bound for own in point.certificates),
                "guarantee": point.guarantee(),
                "guarantee_candidates": point.guarantee("pool"),
                "status": point.status,
                "stability": point.stability,
                "picked": marks.get(point.size, ""),
            }
            for point in self.points
        ]

    def stability(self, size: int | None = None) -> list[dict[str, Any]]:
        """The terms of the model of one size (default: that of "1se"), with the share of the folds that have
        each, most frequent first."""
        from cardboost.pareto.stability import term_rows

        return term_rows(self.picked() if size is None else self.at(size))

    def at(self, size: int) -> SizePoint:
        """The point of a size; it must be one of :attr:`sizes`."""
        for point in self.points:
            if point.size == size:
                return point
        raise ValueError(f"size must be one of {list(self.sizes)}; got {size!r}.")

    def plot(self, ax: Any = None) -> Any:
        """The scores with their standard errors against the sizes, by matplotlib; returns the axes."""
        from cardboost.pareto.plotting import plot

        return plot(self, ax)

    def __str__(self) -> str:
        from cardboost.pareto.pages import text_table

        return text_table(self)

    def __repr__(self) -> str:
        sizes = f"{self.sizes[0]} to {self.sizes[-1]}" if len(self) > 1 else str(self.sizes[0])
        return (
            f"ParetoFront({len(self)} sizes, {sizes} terms; {self.scoring}, {self.n_folds_done} of "
            f"{self.n_folds} folds; {self.status})"
        )

    def _repr_html_(self) -> str:
        from cardboost.pareto.pages import fragment

        return fragment(self)

    # ------------------------------------------------------------------------------------ files

    def to_json(self) -> str:
        """Everything but how the models were trained; :meth:`from_json` reads it back."""
        from cardboost.pareto.file import front_bytes

        return front_bytes(self).decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` into a file, which is never half written."""
        from cardboost.pareto.file import save

        save(path, self)

    @classmethod
    def from_json(cls, text: str | bytes) -> ParetoFront:
        """The front of a text; a ValueError says where its first fault is."""
        from cardboost.pareto.file import read_front

        return read_front(text.encode() if isinstance(text, str) else text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ParetoFront:
        """The front of a file; a ValueError says where its first fault is. Nothing is unpickled."""
        from cardboost.pareto.file import load

        return load(path)


__all__ = ["RATES", "ParetoFront", "SizePoint"]
