"""The computation of a C header: cuts, points or doubles, and the smaller of two layouts.

Scores are sums of whole points where these are proven to keep every decision: then a model is a list of
cuts, each with the points that values above it add to the total. Otherwise scores are sums of doubles in the
order of the model, equal to its scores to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np

from cardboost.export.c_text import FLT_MAX, Names, check_prefix
from cardboost.export.integer_model import CodeGrid, IntegerModel
from cardboost.export.plan import Plan, Steps
from cardboost.export.points import WIDTHS, ProbabilityTable, WholePoints, find_points

_MAX_CUTS = 65_000  # a header counts them in 16 bits
_RESERVED = ("H", "INPUTS", "CLASSES", "TEST_VECTORS_H", "ENCODE")
_GRID_WORDS = ("SCALE", "OFFSET", "ENCODE")
_CODE_TYPES = ("uint8_t", "uint16_t", "int16_t")
_POINT_TYPES = ("uint8_t", "int8_t", "uint16_t", "int16_t", "int32_t", "int64_t")
#: bytes of code more than for one table, by whether inputs are in order
_SEVERAL_TABLES = {False: 16, True: 3}
_MAX_QUESTIONS = 5  # longer conditions are larger than a sum
_FLOAT_HELPERS = 446  # bytes of the helpers that compare floats on a Cortex-M0
_MIN_LOOP = 4  # entries; the compiler writes shorter loops out
MISSING_CUT = -math.inf  # below the cut are missing values only


@dataclass(frozen=True)
class CutEntry:
    """A cut and the points that values above it add. ``nan_above``: missing values count as above it."""

    input: int
    cut: float
    points: int
    nan_above: bool = False


#: for every score where its sum begins, and the entries that it adds
Programs = tuple[tuple[int, tuple[CutEntry, ...]], ...]


@dataclass(frozen=True)
class Question:
    """A decision of few entries without a sum: above the cut of an entry, or not; then the next question."""

    entry: CutEntry
    above: Question | bool
    below: Question | bool

    def entries(self) -> list[CutEntry]:
        """The entries of this question and of all after it."""
        later = [answer.entries() for answer in (self.above, self.below) if isinstance(answer, Question)]
        return [self.entry, *(entry for entries in later for entry in entries)]

    @property
    def count(self) -> int:
        return len(self.entries())


def questions(start: int, entries: Sequence[CutEntry]) -> Question | bool | None:
    """Whether a sum is negative, by the fewest questions; None if there are too many entries or questions."""
    if len(entries) > _MAX_QUESTIONS:
        return None
    decisions = [_decision(start, order) for order in permutations(entries)]
    best = min(decisions, key=lambda decision: decision.count if isinstance(decision, Question) else 0)
    return None if isinstance(best, Question) and best.count > _MAX_QUESTIONS else best


def _decision(total: int, entries: Sequence[CutEntry]) -> Question | bool:
    if total + sum(max(entry.points, 0) for entry in entries) < 0:
        return True
    if total + sum(min(entry.points, 0) for entry in entries) >= 0:
        return False
    first, rest = entries[0], entries[1:]
    above, below = _decision(total + first.points, rest), _decision(total, rest)
    return above if above == below else Question(first, above, below)


@dataclass(frozen=True, eq=False)
class CModel:
    """The computation of a header, and its layout."""

    plan: Plan
    number: str
    prefix: str
    steps: tuple[Steps, ...]
    points: WholePoints | None  # None: doubles
    layout: str
    grids: tuple[CodeGrid | None, ...]
    probability: ProbabilityTable | None
    missing: bool = True  # whether numbers can be

    @property
    def c_type(self) -> str:
        """The type of an input."""
        return "float" if self.floats else "int16_t"

    @property
    def score_type(self) -> str:
        if self.points is None:
            return "double"
        return "int64_t" if self.points.width == 64 else "int32_t"

    @property
    def floats(self) -> bool:
        """Whether inputs are floats."""
        return self.number == "float"

    @property
    def several(self) -> bool:
        """Whether there is a score for every class."""
        return self.plan.n_scores > 1

    @property
    def negated(self) -> bool:
        """Whether the sum is the threshold less the score.

        To see that it is negative takes the fewest instructions.
        """
        return self.plan.decides and not self.several

    @cached_property
    def _constants(self) -> tuple[list[tuple[str, list[str]]], list[dict[str, str]]]:
        names = Names(self.prefix, _RESERVED)
        positions = [names.new("X", source.name) for source in self.plan.inputs]
        grids = [
            {} if grid is None else {word: names.new(word, source.name) for word in _GRID_WORDS}
            for source, grid in zip(self.plan.inputs, self.grids, strict=True)
        ]
        labels: list[list[str]] = [[] for _ in positions]
        for k, source in enumerate(self.plan.inputs):
            if source.categories is not None:
                shown = map(source.categories.label, range(source.categories.n_codes))
                labels[k] = [names.new(source.name, str(label)) for label in shown]
        return list(zip(positions, labels, strict=True)), grids

    @property
    def identifiers(self) -> list[tuple[str, list[str]]]:
        """For every input the name of its position, and those of its labels."""
        return self._constants[0]

    @property
    def grid_names(self) -> list[dict[str, str]]:
        """For every input the names of its scale, its offset and the macro that encodes; none of labels."""
        return self._constants[1]

    @cached_property
    def programs(self) -> Programs:
        """For every score where its sum begins, and the entries that it adds.

        In a table missing values are the lowest of all, below ``MISSING_CUT``; an if compares floats.
        """
        assert self.points is not None
        sign = -1 if self.negated else 1
        above = self.points.intercepts - self.points.threshold
        inputs = [Steps(steps.cuts, sign * steps.table) for steps in self.points.steps]
        if self.floats and self.layout == "table":
            inputs = [steps.missing_first(MISSING_CUT) for steps in inputs]
        programs = []
        for k, base in enumerate((sign * above).tolist()):
            entries: list[CutEntry] = []
            for index, steps in enumerate(inputs):
                entries += _entries(index, steps.of_score(k), self.floats and self.layout == "ifs")
                base += int(steps.table[0, k])
            programs.append((base, tuple(entries)))
        return tuple(programs)

    @cached_property
    def entries(self) -> list[CutEntry]:
        """The entries of all sums."""
        return [entry for _, part in self.programs for entry in part]

    @cached_property
    def questions(self) -> Question | bool | None:
        """The decision without a sum, if there is one."""
        return questions(*self.programs[0]) if self.negated and self.layout == "ifs" else None

    @cached_property
    def cells(self) -> Cells:
        """The cells for the entries of all sums, with their points as they are to be added."""
        inputs = len(self.plan.inputs)
        sign = -1 if max(entry.points for entry in self.entries) <= 0 else 1
        kind = "int32_t"
        if not self.floats:
            kind = _narrowest([int(entry.cut) for entry in self.entries], _CODE_TYPES)
        points = _narrowest([sign * entry.points for entry in self.entries], _POINT_TYPES)
        in_order = not self.several and [entry.input for entry in self.entries] == list(range(inputs))
        in_order = in_order and inputs >= (4 if kind == "uint8_t" else 5)  # shorter loops are written out
        index = None if in_order else "uint8_t" if inputs <= 256 else "uint16_t"
        together = Cells(kind, points, index, sign, True)
        apart = replace(together, together=False)
        saved = len(self.entries) * (together.bytes - apart.bytes)
        return together if saved <= _SEVERAL_TABLES[in_order] else apart

    @property
    def estimate(self) -> int:
        """Bytes on a Cortex-M0 with GCC 12 and -Os, for the function that decides.

        The layout "auto" goes by it. It is made to be an upper bound, close for tables of four entries and
        more; the compiler often makes less of fewer than can be foreseen. Its numbers are fitted to compiled
        headers (tests/export/test_code_size.py).
        """
        several = self.plan.n_scores - 1
        if not self.entries:
            return 16 + 12 * several
        statements = self._statement_bytes() + 48 * several
        if self.layout == "ifs":
            return statements + (_FLOAT_HELPERS if self.floats else 0)
        cells = self.cells
        in_order = cells.input is None
        if self.floats:
            code = 112 + (0 if cells.together else 12)
        else:
            start = self.programs[0][0]
            load = 0 if 0 <= start <= 255 else 2 if -255 <= start < 0 else 6
            narrow = ("int8_t", "int16_t")  # these have no short instruction
            code = (40 if in_order else 44) + load + 2 * (cells.cut in narrow) + 2 * (cells.points in narrow)
            code = -(-code // 4) * 4 + (0 if cells.together else _SEVERAL_TABLES[in_order])
        code += 20 if cells.points == "int64_t" else 0
        code += 100 + 8 * several if several else 0
        loop = code + cells.bytes * len(self.entries)
        return max(loop, statements) if len(self.entries) < _MIN_LOOP else loop

    def _statement_bytes(self) -> int:
        """The bytes of one statement per entry, or of questions in their place."""
        decision, floats = self.questions, self.floats
        if isinstance(decision, bool):
            return 4
        entries = self.entries if decision is None else set(decision.entries())
        far = 0 if floats else sum(not 0 <= entry.cut <= 255 for entry in entries)
        if decision is not None:
            return 10 + (20 if floats else 6) * len(entries) + (8 if floats else 4) * decision.count + 6 * far
        large = sum(abs(entry.points) > 255 for entry in entries)
        wide = sum(abs(entry.points) > 2**31 for entry in entries)
        inputs = len({entry.input for entry in entries})
        code = int((98 if floats else 33) + (17.5 if floats else 7.5) * len(entries))
        written_out = 16 if self.layout == "table" else 0
        return code + 3 * inputs + 6 * (far + large) + 10 * wide + written_out


def _entries(index: int, steps: Steps, nan: bool) -> list[CutEntry]:
    """The changes of an input at its cuts. With ``nan`` missing values are not in order."""
    *levels, missing = steps.table[:, 0].tolist()
    first_below = levels.index(missing) if nan and missing in levels else 0
    entries = [
        CutEntry(index, cut, levels[k + 1] - levels[k], nan and k < first_below)
        for k, cut in enumerate(steps.cuts)
    ]
    if nan and missing not in levels:
        entries.append(CutEntry(index, FLT_MAX, missing - levels[0], True))
    return entries


def c_model(
    ensemble: Any,
    *,
    number: str = "float",
    prefix: str = "cardboost",
    layout: str = "auto",
    score: str = "auto",
    probability: bool = False,
    scales: Mapping[str | int, Any] | None = None,
    exact: bool = True,
    missing: bool = True,
    point_bits: int | None = None,
) -> CModel:
    """Decide what the header computes.

    Parameters
    ----------
    ensemble : Ensemble, MulticlassEnsemble or Scorecard
        The points of a scorecard are kept: its score in C is the total.
    number : {"float", "int16"}, default "float"
        The type of the inputs. "int16" is an :class:`~cardboost.export.integer_model.IntegerModel`.
    prefix : str, default "cardboost"
        The beginning of all names.
    layout : {"auto", "table", "ifs"}, default "auto"
        "table" is a loop over tables, "ifs" one statement per cut, "auto" the smaller of the two by
        :attr:`CModel.estimate`.
    score : {"auto", "points", "double"}, default "auto"
        "points" is a sum of whole points, "double" the score of the model to the bit (floats only), "auto"
        whole points where they are proven to keep every decision.
    probability : bool, default False
        Add a function for the probability of the second class.
    scales : mapping, default None
        As in :meth:`IntegerModel.from_ensemble` (int16 only).
    exact : bool, default True
        Refuse whole points that are not proven to keep every decision (int16, or ``score="points"``).
    missing : bool, default True
        False: numbers are never missing.
    point_bits : {8, 16, 32, 64}, default None
        The least number of bits of a step in points. None is 8 for decisions and 16 with ``probability``.

    Returns
    -------
    CModel
    """
    for name, value, choices in (
        ("number", number, ("float", "int16")),
        ("layout", layout, ("auto", "table", "ifs")),
        ("score", score, ("auto", "points", "double")),
    ):
        if value not in choices:
            raise ValueError(f"{name}: expected {', '.join(map(repr, choices))}, found {value!r}.")
    for name, flag in (("probability", probability), ("exact", exact), ("missing", missing)):
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{name}: expected True or False, found {flag!r}.")
    if point_bits is not None and point_bits not in WIDTHS:
        raise ValueError(f"point_bits: expected 8, 16, 32 or 64, found {point_bits!r}.")
    check_prefix(prefix)
    least = (16 if probability else 8) if point_bits is None else point_bits
    widths = [width for width in WIDTHS if width >= least]
    points: WholePoints | None
    if number == "int16":
        if score == "double":
            raise ValueError("score: 'double' does not go with number='int16', which has no floating point.")
        integer = IntegerModel.from_ensemble(ensemble, scales, exact, missing, widths)
        plan, steps, points, grids = integer.plan, integer.steps, integer.points, integer.grids
    else:
        if scales is not None:
            raise ValueError("scales: only number='int16' has scales.")
        plan = Plan.of(ensemble)
        on_floats = [source.steps().restricted(float32_at_most, FLT_MAX) for source in plan.inputs]
        steps = tuple(
            step if missing or source.categories is not None else step.never_missing()
            for source, step in zip(plan.inputs, on_floats, strict=True)
        )
        grids = (None,) * len(steps)
        doubles = score == "double" or (score == "auto" and not plan.decides)
        points = None if doubles else find_points(plan, steps, widths, exact=exact and score == "points")
        if points is not None and not points.proven and score == "auto":
            points = None
    if sum(len(step.cuts) + 2 for step in steps) * plan.n_scores > _MAX_CUTS:
        raise ValueError(f"ensemble: C counts its cuts in 16 bits, and there are more than {_MAX_CUTS}.")
    if probability and points is None:
        raise ValueError("probability: needs scores in whole points, and these are doubles.")
    chances = ProbabilityTable.of(plan, points) if probability and points is not None else None
    model = CModel(plan, number, prefix, steps, points, layout, grids, chances, bool(missing))
    if points is None:
        return replace(model, layout="table")
    layouts = [replace(model, layout=choice) for choice in ("ifs", "table")]
    return min(layouts, key=lambda choice: choice.estimate) if layout == "auto" else model


def float32_at_most(cut: float) -> float:
    """The largest float32 that is not above a number; minus infinity if there is none."""
    with np.errstate(over="ignore"):
        near = np.float32(cut)
    if float(near) > cut:
        near = np.nextafter(near, np.float32(-math.inf))
    return float(near)


def float_key(value: float) -> int:
    """A whole number for a float32: in the same order, all of 32 bits, and the lowest for a missing value."""
    if value != value or value == MISSING_CUT:
        return -(2**31)
    bits = int(np.float32(value).view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF) - 1


@dataclass(frozen=True)
class Cells:
    """The types of an entry in a table: the narrowest that hold all entries."""

    cut: str
    points: str
    input: str | None  # None: the k-th entry is on the k-th input
    sign: int  # -1: points are subtracted from the sum
    together: bool  # one table of structures, or one table for each of their members

    @property
    def bytes(self) -> int:
        """The size of one entry."""
        kinds = (kind for kind in (self.cut, self.points, self.input) if kind is not None)
        sizes = [np.dtype(kind.removesuffix("_t")).itemsize for kind in kinds]
        return -(-sum(sizes) // max(sizes)) * max(sizes) if self.together else sum(sizes)


def _narrowest(values: Sequence[int], kinds: Sequence[str]) -> str:
    """The first type that holds all values."""
    limits = {kind: np.iinfo(kind.removesuffix("_t")) for kind in kinds}
    return next(kind for kind in kinds if limits[kind].min <= min(values) <= max(values) <= limits[kind].max)
