"""The front: for every size the scores of the folds and the model of all rows, with its views and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any, overload

import numpy as np

from cardboost.estimators.base import certificates_of
from cardboost.pareto.picking import RATES, RULES, ScoredSizes, pick_size, standard_error

STATUS = {
    "complete": "all folds and all proofs are done",
    "time limit": "time_limit was reached: folds are missing, or searches and proofs ended early",
    "interrupted": "it was interrupted: folds are missing, or searches and proofs ended early",
}


@dataclass(frozen=True, eq=False)
class SizePoint:
    """One size of a front.

    Attributes
    ----------
    size : int
        Terms at most.
    scores : tuple of float
        The score on the held-out rows of every fold.
    recalls : tuple of tuple of float, or None
        For every fold the share of the positive rows that is found at each of the ``RATES`` of false alarms;
        None unless there are two classes.
    model : estimator
        Fitted to all rows.
    term_frequency : tuple of float
        For every term of the model the share of the folds whose model of this size has it too; for more than
        two classes one class after the other.
    feature_frequency : tuple of (int, float)
        The same for features, by their position.
    """

    size: int
    scores: tuple[float, ...]
    recalls: tuple[tuple[float, ...], ...] | None
    model: Any
    term_frequency: tuple[float, ...]
    feature_frequency: tuple[tuple[int, float], ...]

    @property
    def mean(self) -> float:
        """The mean score of the folds."""
        return fmean(self.scores)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean score; None for one fold."""
        return standard_error(self.scores)

    @property
    def certificates(self) -> list[Any]:
        """One certificate, or one per class."""
        return certificates_of(self.model)

    def guarantee(self, scope: str | None = None) -> float | None:
        """The least guarantee of the certificates.

        Parameters
        ----------
        scope : {"pool", "dictionary"}, default None
            Over the candidate terms or over all stumps; None is the widest scope that is proven.

        Returns
        -------
        float or None
            None where there is no such bound.
        """
        guarantees = [
            [bound.guarantee for bound in certificate.bounds if scope in (None, bound.scope)][:1]
            for certificate in self.certificates
        ]
        return min(values[0] for values in guarantees) if all(guarantees) else None

    @property
    def status(self) -> str:
        """The weakest status of the certificates."""
        statuses = {certificate.status for certificate in self.certificates}
        return next(
            status for status in ("feasible", "optimal among candidates", "optimal") if status in statuses
        )

    @property
    def stability(self) -> float | None:
        """The mean frequency of the terms; None for a model without terms."""
        return fmean(self.term_frequency) if self.term_frequency else None


@dataclass(frozen=True, eq=False)
class ParetoFront(Sequence[SizePoint]):
    """Cross-validated score against number of terms, a sequence of :class:`SizePoint`, smallest size first.

    Attributes
    ----------
    points : tuple of SizePoint
    scoring : str
        The name of the score; higher is better.
    n_folds : int
        Folds requested; after an interruption or a time limit fewer may be done.
    status : {"complete", "time limit", "interrupted"}
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

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of terms, ascending."""
        return tuple(point.size for point in self.points)

    @property
    def n_folds_done(self) -> int:
        """Folds whose scores the front has."""
        return len(self.points[0].scores)

    @property
    def message(self) -> str:
        """The status in words."""
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
        rule : {"1se", "knee", "best"}, default None
            "best": the highest mean score. "1se": the smallest size within one standard error of it.
            "knee": where the curve bends most. None is "1se", and "best" where only ``max_terms`` is given.
        max_terms : int, default None
            Only sizes up to this one.
        min_score : float, default None
            In place of a rule: the smallest size with at least this mean score.
        recall_at_fpr : float, default None
            In place of the score: the share of the positive rows (``classes_[1]``) that is found while at
            most this share of the others is a false alarm. For two classes.

        Returns
        -------
        estimator
            Fitted to all rows, with its certificate.

        Raises
        ------
        ValueError
            Where an argument is wrong, or no size satisfies them.
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
        """The point of one size: the model of :meth:`pick` with its scores and its stability.

        Parameters
        ----------
        rule, max_terms, min_score, recall_at_fpr
            As in :meth:`pick`.

        Returns
        -------
        SizePoint
        """
        if recall_at_fpr is None:
            return self.points[pick_size(self._scored, rule, max_terms, min_score)]
        recalls = [point.recalls for point in self.points]
        scored = ScoredSizes.of_recalls(self.sizes, recalls, recall_at_fpr)
        return self.points[pick_size(scored, rule, max_terms, min_score, limited_rule="1se")]

    @cached_property
    def _scored(self) -> ScoredSizes:
        return ScoredSizes(self.sizes, np.array([point.scores for point in self.points]))

    def marks(self) -> dict[int, str]:
        """The sizes that the rules pick, each with the names of its rules.

        Returns
        -------
        dict of int to str
        """
        rules: dict[int, list[str]] = {}
        for rule in RULES:
            rules.setdefault(self.sizes[self._scored.pick(rule)], []).append(rule)
        return {size: ", ".join(names) for size, names in rules.items()}

    def at(self, size: int) -> SizePoint:
        """The point of a size.

        Parameters
        ----------
        size : int
            One of :attr:`sizes`.

        Returns
        -------
        SizePoint
        """
        for point in self.points:
            if point.size == size:
                return point
        raise ValueError(f"size must be one of {list(self.sizes)}; got {size!r}.")

    # ------------------------------------------------------------------------------------ showing

    def table(self) -> list[dict[str, Any]]:
        """One row per size as plain data, which data frames of any library take.

        Returns
        -------
        list of dict
            ``terms``: allowed; ``used``: by the model of all rows (of all classes together); ``features``:
            how many distinct ones; ``mean``, ``standard_error``: of the score on held-out rows;
            ``objective``, ``lower_bound``, ``guarantee``, ``status``: of the certificate, over the widest
            scope that is proven; where there are several the sum of the first two and the least of the
            others; ``guarantee_candidates``: over the candidate terms; ``stability``: mean share of the folds
            that have a term; ``picked``: the rules that pick this size. Undefined cells are None.
        """
        marks = self.marks()
        return [
            {
                "terms": point.size,
                "used": point.model.ensemble_.n_terms,
                "features": len(point.feature_frequency),
                "mean": point.mean,
                "standard_error": point.standard_error,
                "objective": sum(certificate.objective for certificate in point.certificates),
                "lower_bound": sum(certificate.lower_bound for certificate in point.certificates),
                "guarantee": point.guarantee(),
                "guarantee_candidates": point.guarantee("pool"),
                "status": point.status,
                "stability": point.stability,
                "picked": marks.get(point.size, ""),
            }
            for point in self.points
        ]

    def stability(self, size: int | None = None) -> list[dict[str, Any]]:
        """The terms of the model of one size, with the share of the folds that have each.

        Parameters
        ----------
        size : int, default None
            One of :attr:`sizes`; None is that of the rule "1se".

        Returns
        -------
        list of dict
            ``term``, ``feature``, ``weight`` and ``frequency``, for more than two classes also ``class``;
            the most frequent terms first.
        """
        from cardboost.pareto.stability import term_rows

        return term_rows(self.picked() if size is None else self.at(size))

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores with their standard errors against the sizes, by matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default None
            None draws on axes of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from cardboost.pareto.pages import plot

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
        """Everything but how the models were trained, as text.

        Returns
        -------
        str
            What :meth:`from_json` reads.
        """
        from cardboost.pareto.file import front_bytes

        return front_bytes(self).decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` into a file, which is never half written.

        Parameters
        ----------
        path : path-like
        """
        from cardboost.pareto.file import save

        save(path, self)

    @classmethod
    def from_json(cls, text: str | bytes) -> ParetoFront:
        """Read the text of :meth:`to_json`.

        Parameters
        ----------
        text : str or bytes

        Returns
        -------
        ParetoFront

        Raises
        ------
        ValueError
            Names the first fault of the text and where it is.
        """
        from cardboost.pareto.file import read_front

        return read_front(text.encode() if isinstance(text, str) else text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ParetoFront:
        """Read a file of :meth:`save`. Nothing is unpickled.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        ParetoFront

        Raises
        ------
        ValueError
            Names the first fault of the file and where it is.
        """
        from cardboost.pareto.file import load

        return load(path)


__all__ = ["RATES", "ParetoFront", "SizePoint"]
