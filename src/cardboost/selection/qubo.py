"""Choosing columns with an annealer: a quadratic model of the problem in bits, for any dimod sampler.

At some weights the loss is replaced by its second-order model, every weight by a fixed-point number of a few
bits, and [w_j > 0] by an indicator (docs/annealers.md, "The model"). What a sampler answers is decoded,
scored with the true loss, refitted and polished; then the model is made anew at the best weights.
Nothing that a sampler says is trusted: energies are recomputed, and an answer that cannot be used is reported
as such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.problem.budget import Late, never
from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import Polisher, polish, refit_on_all_rows
from cardboost.selection.selection_problem import Incumbent, Selection, SelectionProblem, best_of, require

Array = NDArray[np.float64]
Bits = NDArray[np.int8]
Columns = NDArray[np.intp]

_MOST_VARIABLES = 2000  # unless the user says otherwise: every pair of them has its coupling
_FEWEST_BITS = 3  # of a weight before columns are left out instead
_ANSWERS = 40  # different supports of one call that are refitted and improved, at most
_PATIENCE = 3  # rounds in a row that bring nothing better
_ENERGY_TOL = 1e-6  # relative difference of energies that may be rounding
#: of the gains of the two columns around the limit on terms: in company a column gains less than alone
_FIRST_MULTIPLIER = 0.15
#: the tabu search of dwave-samplers with its work counted, not timed: equal seeds give equal answers
_COUNTED = {"timeout": None, "num_restarts": 2, "coefficient_z_first": 100, "lower_bound_z": 20_000}


class Sampler:
    """A sampler, or a function that makes one, with the parameters of its ``sample``. Copies are itself.

    For estimators: ``sklearn.clone`` copies parameters deeply, which a connection to a machine may not
    survive. The names "tabu" and "annealing" stand for the two samplers of dwave-samplers.

    Parameters
    ----------
    source : str, object or callable
        The name of a sampler, an object with dimod's ``sample``, or a function that returns one.
    **parameters
        Passed to its ``sample``.
    """

    def __init__(self, source: Any, **parameters: Any) -> None:
        self.source = source
        self.parameters = dict(parameters)

    def __deepcopy__(self, memo: Any) -> Sampler:
        return self

    def __copy__(self) -> Sampler:
        return self

    def __repr__(self) -> str:
        words = [repr(self.source), *(f"{key}={value!r}" for key, value in self.parameters.items())]
        return f"Sampler({', '.join(words)})"


@dataclass(frozen=True)
class QuboRound:
    """One call of the sampler and the models that came of its answer.

    ``energy``: the lowest energy of its answers, recomputed; ``stated``: what the sampler stated for that
    answer, nan if nothing; ``disagreement``: the largest difference between the two over all answers.
    ``terms`` and ``decoded``: charged columns and true objective of the lowest answer as it came, which may
    be over the limit on terms; ``refitted`` and ``polished``: the best objectives within it, with new weights
    and after local search. On large tables all but ``polished`` are of the rows that the search sees.
    """

    variables: int
    columns: int
    bits: int
    largest_weight: float
    multiplier: float
    answers: int
    energy: float
    stated: float
    disagreement: float
    terms: int
    decoded: float
    refitted: float
    polished: float

    @property
    def agrees(self) -> bool:
        """Whether the energies that the sampler stated are right, up to rounding."""
        return self.disagreement <= _ENERGY_TOL * max(1.0, abs(self.energy))


@dataclass(frozen=True)
class SamplingRecord:
    """What a sampler contributed to a selection, and what the built-in search finds without it.

    ``builtin``: the objective of the built-in search; the result of :func:`anneal` is the better of the two.
    ``fallback``: why the sampler was not used, or not to the end. ``work`` counts refits.
    """

    rounds: tuple[QuboRound, ...]
    builtin: float
    fallback: str | None
    work: int = 0

    @property
    def sampled(self) -> float:
        """The best objective that came from the sampler, after polishing; infinite without any."""
        return min((entry.polished for entry in self.rounds), default=math.inf)


# ---------------------------------------------------------------------------------------------- the model


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """Objective without the price of columns near some weights: value + slope.w + w.bend.w / 2."""

    value: float
    slope: Array
    bend: Array

    @classmethod
    def at(cls, problem: SelectionProblem, weights: Array) -> QuadraticModel:
        """Second-order model of the loss at these weights, with the prices l1 and l2."""
        point = problem.point(weights)
        gradient, gram = -problem.pool.edges(point), problem.pool.gram(point)
        turned = gram @ weights
        value = point.value - float(gradient @ weights) + 0.5 * float(weights @ turned)
        p = problem.prices
        return cls(value, gradient - turned + p.l1, gram + np.diag(p.l2))

    def __call__(self, weights: Array) -> float:
        return self.value + float(self.slope @ weights) + 0.5 * float(weights @ self.bend @ weights)

    def best_alone(self, weights: Array) -> tuple[Array, Array]:
        """For every column the best weight while the others stay as they are, and what it then saves."""
        curve = np.diag(self.bend)
        safe = np.where(curve > 0, curve, 1.0)
        pull = np.where(curve > 0, np.maximum(0.0, curve * weights - self.slope - self.bend @ weights), 0.0)
        return pull / safe, 0.5 * pull**2 / safe


@dataclass(frozen=True, eq=False)
class Qubo:
    """offset + linear.x + x.quadratic.x over binary x, with the weights that x stands for.

    The first variables are the bits of the weights, bit i adding ``steps[i]`` to column ``owners[i]``; then
    come the indicators of the columns that have one, ``priced`` being their indices among the columns.
    ``fixed``: the weights of columns that are left out.
    """

    offset: float
    linear: Array
    quadratic: Array
    owners: Columns
    steps: Array
    fixed: Array
    bits: int
    priced: Columns

    @property
    def variables(self) -> int:
        return len(self.linear)

    @property
    def columns(self) -> Columns:
        """The columns whose weights have bits."""
        return self.owners[:: self.bits]

    @property
    def tops(self) -> Array:
        """The largest weight of each of the columns."""
        return self.steps.reshape(-1, self.bits).sum(axis=1)

    def energies(self, samples: Bits) -> Array:
        """The value of every sample."""
        x = samples.astype(np.float64)
        return self.offset + x @ self.linear + np.einsum("ij,ij->i", x @ self.quadratic, x)

    def weights(self, sample: Bits) -> Array:
        """The weights of all columns that a sample stands for."""
        weights = self.fixed.copy()
        np.add.at(weights, self.owners, self.steps * sample[: len(self.owners)])
        return weights

    def sample(self, weights: Array) -> Bits:
        """The assignment nearest to these weights, with its indicators."""
        units = self.steps[:: self.bits]
        levels = np.minimum(np.rint(weights[self.columns] / units), 2**self.bits - 1).astype(np.int64)
        bits = (levels[:, None] >> np.arange(self.bits)) & 1
        used = levels[self.priced] > 0
        return np.concatenate([bits.reshape(-1), used]).astype(np.int8)

    def to_dimod(self) -> Any:
        """The same as a ``dimod.BinaryQuadraticModel``; variables are numbered."""
        rows, columns = np.nonzero(self.quadratic)
        couplings = rows, columns, self.quadratic[rows, columns]
        model = _dimod().BinaryQuadraticModel
        return model.from_numpy_vectors(self.linear, couplings, self.offset, "BINARY")


def in_bits(
    model: QuadraticModel, price: Array, columns: Columns, bits: int, top: Array, fixed: Array
) -> Qubo:
    """The model on fixed-point weights of some columns, 0 to ``top``, with ``price`` for each one in use.

    A bit that is set without its indicator costs the price as well, and so does each further one: no
    assignment is below the model at its weights, and setting indicators as they should be reaches it.
    """
    scale = 2.0 ** np.arange(bits) / (2.0**bits - 1.0)
    owners, steps = np.repeat(columns, bits), (top[columns][:, None] * scale).reshape(-1)
    priced, n = np.flatnonzero(price[columns] > 0), len(owners)
    total = n + len(priced)
    linear, quadratic = np.zeros(total), np.zeros((total, total))
    linear[:n] = (model.slope + model.bend @ fixed)[owners] * steps
    pairs = model.bend[np.ix_(owners, owners)] * np.outer(steps, steps)
    linear[:n] += 0.5 * np.diag(pairs)
    quadratic[:n, :n] = np.triu(pairs, 1)
    for indicator, index in enumerate(priced, n):
        its_bits, cost = slice(index * bits, (index + 1) * bits), float(price[columns[index]])
        linear[its_bits] += cost
        linear[indicator] = cost
        quadratic[its_bits, indicator] = -cost
    return Qubo(model(fixed), linear, quadratic, owners, steps, fixed, bits, priced)


def _fit_into(order: Columns, price: Array, bits: int, most: int) -> tuple[Columns, int]:
    """The columns and bits for at most so many variables: fewer bits first, then fewer columns.

    ``order``: free columns, then charged ones, the most useful first. Free columns that would take more than
    half of the variables are left as they are.
    """

    def needed(columns: Columns, bits: int) -> int:
        return len(columns) * bits + int(np.count_nonzero(price[columns] > 0))

    while needed(order, bits) > most and bits > _FEWEST_BITS:
        bits -= 1
    priced = order[price[order] > 0]
    if needed(order, bits) > most and len(priced) and 2 * needed(np.setdiff1d(order, priced), bits) > most:
        order = priced
    while needed(order, bits) > most and len(order) > 1:
        order = order[:-1]
    while needed(order, bits) > most and bits > 1:
        bits -= 1
    return np.sort(order), bits


# ---------------------------------------------------------------------------------------------- the rounds


def accepts(problem: SelectionProblem) -> str | None:
    """Why a sampler cannot take a problem, in a sentence; None where it can."""
    if problem.limits is not None:
        return "qubo chooses single columns and does not know limits on features or their costs."
    return None


def anneal(
    problem: SelectionProblem, sampler: Any, start: Array | None = None, *, bits: int = 6,
    max_variables: int | None = None, rounds: int = 10, reads: int = 40, seed: int = 0, late: Late = never,
) -> Selection:  # fmt: skip
    """Choose columns with a sampler, and with the built-in search beside it.

    Parameters
    ----------
    problem : SelectionProblem
        One that :func:`accepts` does not refuse.
    sampler : str, object or callable
        "tabu" or "annealing" (dwave-samplers), an object with dimod's ``sample``, a function without
        arguments that returns one, or a :class:`Sampler`.
    start : array, optional
        Weights at which the first model is made; the best ones over all columns by default.
    bits : int
        Bits per weight.
    max_variables : int, optional
        Bits and columns are cut down until there are at most so many variables, 2 or more (by default 2000).
    rounds : int
        The most calls; three in a row that bring nothing better are the end too.
    reads : int
        Answers per call.
    seed : int
        Passed to samplers that take one.
    late : callable
        Asked between calls and refits whether to stop.

    Returns
    -------
    Selection
        With its incumbent and ``sampling``, the record of the calls.

    Raises
    ------
    ValueError
        Where :func:`accepts` refuses the problem.
    ImportError
        Without dimod, or without dwave-samplers where a sampler is named.
    """
    require(accepts(problem))
    source = _ready(sampler)
    merged = merge_rows(problem)
    smaller = sketch_rows(merged)
    builtin, work = polish(merged, start, late)
    search = _Rounds(smaller, source, bits, max_variables or _MOST_VARIABLES, reads, seed, late)
    fallback = search.run(start, rounds)
    ends = refit_on_all_rows(merged, smaller, search.ends)
    records = [
        replace(entry, polished=end.objective) for entry, end in zip(search.records, ends, strict=True)
    ]
    record = SamplingRecord(tuple(records), builtin.objective, fallback, work + search.polisher.work)
    return Selection(merged, best_of([*ends, builtin]), sampling=record)


class _Rounds:
    """The rounds of one call of :func:`anneal`: the incumbent after each, their records, and what adapts."""

    def __init__(
        self, problem: SelectionProblem, source: Sampler, bits: int, max_variables: int, reads: int,
        seed: int, late: Late,
    ) -> None:  # fmt: skip
        self.problem, self.source, self.bits, self.max_variables = problem, source, bits, max_variables
        self.reads, self.seed, self.late = reads, seed, late
        self.polisher = Polisher(problem, late)
        self.ends: list[Incumbent] = []
        self.records: list[QuboRound] = []
        k = problem.max_terms
        self.limit = k if k is not None and k < len(problem.usable) else None  # on terms, where it can bind
        self.multiplier: float | None = None  # of this limit: what a term costs
        self.wider = np.ones(len(problem.prices))  # how much larger than expected ranges of weights must be

    def run(self, start: Array | None, rounds: int) -> str | None:
        """All rounds; returns why the sampler could not go on, or None."""
        convex = self.polisher.all_columns().weights
        weights = convex if start is None else np.clip(start, 0.0, self.problem.prices.max_weight)
        best: Incumbent | None = None
        stale = 0
        for number in range(rounds):
            if self.late():
                return None if self.records else "There was no time left to ask the sampler."
            qubo = self._qubo(weights)
            if qubo.variables == 0:
                return "There is no column to choose."
            if not (np.isfinite(qubo.linear).all() and np.isfinite(qubo.quadratic).all()):
                return "The model of the loss is not finite at these weights."
            state = np.random.SeedSequence([self.seed, number]).generate_state(1)[0]
            try:
                samples, stated = _ask(self.source, qubo, weights, self.reads, int(state >> 1))
            except _UnusableAnswer as error:
                return str(error)
            end = self._judge(qubo, samples, stated)
            better = best is None or end.objective < best.objective - 1e-9 * abs(best.objective)
            best, stale = (end, 0) if best is None or better else (best, stale + 1)
            if stale == _PATIENCE:
                break
            # where nothing better came, the next model is made between the best weights and the convex ones
            weights = best.weights if stale == 0 else 0.5 * (best.weights + convex)
        return None

    def _qubo(self, weights: Array) -> Qubo:
        """The model at these weights, in bits."""
        p, k = self.problem.prices, self.limit
        model = QuadraticModel.at(self.problem, weights)
        alone, gains = model.best_alone(weights)
        if k is not None and self.multiplier is None:
            ranked = np.sort(np.maximum(0.0, gains - p.l0)[self.problem.usable])[::-1]
            self.multiplier = _FIRST_MULTIPLIER * float(ranked[max(k - 1, 0)] + ranked[k]) or 1e-6
        price = np.where(p.charged, p.l0 + (self.multiplier or 0.0), 0.0)
        open_columns = np.flatnonzero(p.max_weight > 0)
        order = open_columns[np.lexsort((open_columns, -gains[open_columns], p.charged[open_columns]))]
        columns, bits = _fit_into(order, price, self.bits, self.max_variables)
        fixed = np.where(p.charged, 0.0, weights)
        fixed[columns] = 0.0
        return in_bits(model, price, columns, bits, self._tops(weights, alone), fixed)

    def _tops(self, weights: Array, alone: Array) -> Array:
        """The largest weight that the bits of each column can express."""
        p = self.problem.prices
        typical = 0.5 * float(weights[p.charged].max(initial=0.0)) or float(alone.max(initial=0.0)) or 1.0
        expected = np.maximum(2.0 * np.maximum(weights, alone), typical)
        return np.minimum(self.wider * expected, p.max_weight)

    def _judge(self, qubo: Qubo, samples: Bits, stated: Array | None) -> Incumbent:
        """Score, refit and polish the best answers, and take note of them for the next round."""
        charged, polisher = self.problem.prices.charged, self.polisher
        energies = qubo.energies(samples)
        order = np.argsort(energies, kind="stable")
        lowest = qubo.weights(samples[order[0]])
        supports: dict[tuple[int, ...], Array] = {}
        for i in order:
            weights = qubo.weights(samples[i])
            supports.setdefault(tuple(np.flatnonzero((weights > 0) & charged)), weights)
            if len(supports) == _ANSWERS:
                break
        k = polisher.most_terms
        refits = [polisher.thin(polisher.refit(*answer), k) for answer in supports.items()]
        allowed = [end for end in refits if self.problem.allows(end.support)]
        allowed = allowed or [polisher.largest(lowest, k)]
        ranked = sorted({end.key: end for end in allowed}.values(), key=lambda end: end.objective)
        end = best_of(polisher.improve(refit) for refit in ranked)
        difference = np.abs(np.zeros(1) if stated is None else stated - energies)
        disagreement = float(np.max(np.where(np.isnan(difference), math.inf, difference)))
        terms = int(np.count_nonzero((lowest > 0) & charged))
        self.records.append(QuboRound(
            variables=qubo.variables, columns=len(qubo.columns), bits=qubo.bits,
            largest_weight=float(qubo.tops.max()), multiplier=self.multiplier or 0.0, answers=len(samples),
            energy=float(energies[order[0]]), disagreement=disagreement, terms=terms,
            stated=math.nan if stated is None else float(stated[order[0]]),
            decoded=self.problem.objective_of(lowest), refitted=ranked[0].objective, polished=end.objective,
        ))  # fmt: skip
        self.ends.append(end)
        self._adapt(qubo, np.maximum(lowest, end.weights), terms)
        return end

    def _adapt(self, qubo: Qubo, weights: Array, terms: int) -> None:
        """Widen ranges that were too narrow, and price terms so that as many are used as are allowed."""
        columns, k = qubo.columns, self.limit
        reached = weights[columns] >= qubo.tops * (1.0 - 1e-9)
        self.wider[columns[reached & (qubo.tops < self.problem.prices.max_weight[columns])]] *= 2.0
        if k is not None and self.multiplier is not None:
            self.multiplier *= min(max((terms + 0.5) / (k + 0.5), 0.25), 4.0)


# ---------------------------------------------------------------------------------------------- samplers


class _UnusableAnswer(Exception):
    """A sampler gave no answer that can be used; says why in one sentence."""


def _ready(sampler: Any) -> Sampler:
    """A :class:`Sampler` whose source is an object with dimod's ``sample``, from all that stands for one."""
    wrapped = sampler if isinstance(sampler, Sampler) else Sampler(sampler)
    source = wrapped.source
    _dimod()
    if isinstance(source, str):
        source = _named(source)
    if isinstance(source, type) or (callable(source) and not _samples(source)):
        try:
            source = source()
        except Exception as error:
            raise RuntimeError(f"sampler: the function that makes it failed: {_short(error)}") from error
    if not _samples(source):
        raise ValueError(
            "sampler must be 'tabu', 'annealing', an object with dimod's sample or a function that "
            f"returns one; got {type(source).__name__}."
        )
    return Sampler(source, **wrapped.parameters)


def _ask(sampler: Sampler, qubo: Qubo, weights: Array, reads: int, seed: int) -> tuple[Bits, Array | None]:
    """Samples with the variables in our order, and the energies that the sampler states for them.

    ``weights``: the present ones, for samplers that take a first state.
    """
    try:
        listed = set(sampler.source.parameters)
    except Exception:  # none listed, or not a list
        listed = set()
    options: dict[str, Any] = {"num_reads": reads, "seed": seed}
    if "initial_states_generator" in listed:
        options["initial_states"] = dict(enumerate(qubo.sample(weights).tolist()))
    if set(_COUNTED) <= listed:
        options |= _COUNTED
    options = {key: value for key, value in options.items() if key in listed} | sampler.parameters
    try:
        return _read(sampler.source.sample(qubo.to_dimod(), **options), qubo.variables)
    except Exception as error:
        reason = str(error) if isinstance(error, _UnusableAnswer) else f"failed: {_short(error)}"
        name = type(sampler.source).__name__
        raise _UnusableAnswer(f"The sampler {name} {reason}; the built-in search was used.") from error


def _read(answer: Any, variables: int) -> tuple[Bits, Array | None]:
    """The samples of an answer, checked, and the energies stated in it."""
    dimod = _dimod()
    if answer is None:
        raise _UnusableAnswer("returned nothing")
    stated = None
    if isinstance(answer, dimod.SampleSet):
        if answer.vartype is dimod.SPIN:
            answer = answer.change_vartype(dimod.BINARY, inplace=False)
        stated = np.asarray(answer.record.energy, dtype=np.float64)
    samples, labels = dimod.as_samples(answer)
    if len(samples) == 0 or len(labels) == 0:
        raise _UnusableAnswer("returned no samples")
    if set(labels) != set(range(variables)) or len(labels) != variables:
        raise _UnusableAnswer("returned other variables than those of the model")
    ordered = np.empty(np.shape(samples), dtype=np.asarray(samples).dtype)
    ordered[:, np.array(labels, dtype=np.intp)] = samples
    if not np.isin(ordered, (0, 1)).all():
        raise _UnusableAnswer("returned values other than 0 and 1")
    return ordered.astype(np.int8), stated


def is_sampler(thing: Any) -> bool:
    """Whether this is, or may make, a sampler."""
    return isinstance(thing, Sampler) or callable(thing) or _samples(thing)


def _samples(thing: Any) -> bool:
    return callable(getattr(thing, "sample", None))


def _short(error: BaseException) -> str:
    """An error as a part of a sentence."""
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _dimod() -> Any:
    try:
        import dimod
    except ImportError as error:
        raise ImportError("The selector qubo needs dimod: pip install 'cardboost[quantum]'.") from error
    return dimod


def _named(name: str) -> Any:
    try:
        from dwave import samplers
    except ImportError as error:
        raise ImportError(
            f"The sampler {name!r} needs dwave-samplers: pip install 'cardboost[quantum]'."
        ) from error
    by_name = {"tabu": samplers.TabuSampler, "annealing": samplers.SimulatedAnnealingSampler}
    if name not in by_name:
        raise ValueError(f"sampler={name!r} is not known; by name there are 'tabu' and 'annealing'.")
    return by_name[name]()
