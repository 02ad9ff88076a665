"""Choosing columns with an annealer: a quadratic model of the problem in bits, for any dimod sampler.

At given weights the loss is replaced by its second-order model, every weight by a fixed-point number of a few
bits, and [w_j > 0] by an indicator (docs/annealers.md, "The model"). What a sampler answers is decoded,
scored with the true loss, refitted and polished; then the model is made anew at the weights found.
Nothing that a sampler says is trusted: energies are recomputed, and an answer that cannot be used is said to
be so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.selection.merge import merge_rows, sketch_rows
from cardboost.selection.polish import Incumbent, Polisher, polish
from cardboost.selection.selection_problem import SelectionProblem, Support

Array = NDArray[np.float64]
Bits = NDArray[np.int8]

_MOST_VARIABLES = 2000  # unless the user says otherwise: every pair of them has its coupling
_FEWEST_BITS = 3  # of a weight before columns are left out instead
_ANSWERS = 40  # different supports of one call that are refitted and improved, at most
_PATIENCE = 3  # rounds in a row that bring nothing better
_ENERGY_TOL = 1e-6
_FIRST_SHARE = (
    0.15  # of the worth of the two columns around the limit: a column alone is worth less in company
)

#: the tabu search of dwave-samplers with its work counted, not timed: equal seeds give equal answers
_COUNTED = {"timeout": None, "num_restarts": 2, "coefficient_z_first": 100, "lower_bound_z": 20_000}


class Sampler:
    """A sampler, or a function that makes one, with the parameters of its ``sample``. Copies are itself.

    For estimators: ``sklearn.clone`` copies parameters deeply, which a connection to a machine may not
    survive. The names "tabu" and "annealing" stand for the two samplers of dwave-samplers.
    """

    def __init__(self, source: Any, **parameters: Any) -> None:
        self.source = source
        self.own = dict(parameters)

    def __deepcopy__(self, memo: Any) -> Sampler:
        return self

    def __copy__(self) -> Sampler:
        return self

    def __repr__(self) -> str:
        words = [repr(self.source), *(f"{key}={value!r}" for key, value in self.own.items())]
        return f"Sampler({', '.join(words)})"


@dataclass(frozen=True)
class QuboRound:
    """One call of the sampler and what became of its answer.

    ``energy``: the lowest energy of its answers, recomputed; ``stated``: what the sampler said of the same
    one, nan if nothing; ``disagreement``: the largest difference between the two over all answers. ``terms``
    and ``decoded``: charged columns and true objective of the lowest answer as it came, which may be over the
    limit on terms; ``refitted`` and ``polished``: the best objectives within it, with new weights and after
    local search. On large tables all but ``polished`` are of the rows that the search sees.
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


@dataclass(frozen=True, eq=False)
class QuboResult:
    """The best support found, what the sampler contributed, and what the built-in search finds by itself.

    ``incumbent`` is the better of the two. ``fallback``: why the sampler was not used, or not to the end.
    ``work`` counts refits.
    """

    incumbent: Incumbent
    rounds: tuple[QuboRound, ...]
    builtin: float
    fallback: str | None
    work: int = 0

    @property
    def sampled(self) -> float:
        """The best objective that came from the sampler, after polishing; infinite without any."""
        return min((own.polished for own in self.rounds), default=math.inf)


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """Objective without the price of columns near some weights: value + slope.w + w.bend.w / 2."""

    value: float
    slope: Array
    bend: Array

    @classmethod
    def at(cls, problem: SelectionProblem, weights: Array) -> QuadraticModel:
        """Second-order model of the loss at these weights, with the prices l1 and l2."""
        point = problem.risk.evaluate(problem.pool.margins(weights))
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
    come the indicators of the columns that have one, ``priced`` being their places among the columns.
    ``fixed``: the weights of columns that are left out.
    """

    offset: float
    linear: Array
    quadratic: Array
    owners: Support
    steps: Array
    fixed: Array
    bits: int
    priced: Support

    @property
    def variables(self) -> int:
        return len(self.linear)

    @property
    def columns(self) -> Support:
        return self.owners[:: self.bits]

    @property
    def tops(self) -> Array:
        """The largest weight of each of the columns."""
        return self.steps.reshape(-1, self.bits).sum(axis=1)

    def energies(self, samples: Bits) -> Array:
        x = samples.astype(np.float64)
        return self.offset + x @ self.linear + np.einsum("ij,ij->i", x @ self.quadratic, x)

    def weights(self, sample: Bits) -> Array:
        found = self.fixed.copy()
        np.add.at(found, self.owners, self.steps * sample[: len(self.owners)])
        return found

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
    model: QuadraticModel, price: Array, columns: Support, bits: int, top: Array, fixed: Array
) -> Qubo:
    """The model on fixed-point weights of some columns, 0 to ``top``, with ``price`` for each one in use.

    A bit that is set without its indicator costs the price as well, and so does each further one: no
    assignment is below the model at its weights, and setting indicators as they should be reaches it.
    """
    scale = 2.0 ** np.arange(bits) / (2.0**bits - 1.0)
    owners = np.repeat(columns, bits)
    steps = (top[columns][:, None] * scale).reshape(-1)
    n = len(owners)
    priced = np.flatnonzero(price[columns] > 0)
    total = n + len(priced)
    linear, quadratic = np.zeros(total), np.zeros((total, total))
    bent = model.bend @ fixed
    linear[:n] = (model.slope + bent)[owners] * steps
    pairs = model.bend[np.ix_(owners, owners)] * np.outer(steps, steps)
    linear[:n] += 0.5 * np.diag(pairs)
    quadratic[:n, :n] = np.triu(pairs, 1)
    for place, own in enumerate(priced):
        its, cost = slice(own * bits, (own + 1) * bits), float(price[columns[own]])
        linear[its] += cost
        linear[n + place] = cost
        quadratic[its, n + place] = -cost
    return Qubo(model(fixed), linear, quadratic, owners, steps, fixed, bits, priced)


def accepts(problem: SelectionProblem) -> str | None:
    """Why a problem cannot be taken, in one sentence, or None."""
    if problem.limits is not None:
        return "qubo chooses single columns and does not know limits on features or their costs."
    return None


def anneal(
    problem: SelectionProblem,
    sampler: Any,
    start: Array | None = None,
    *,
    bits: int = 6,
    max_variables: int | None = None,
    rounds: int = 10,
    reads: int = 40,
    seed: int = 0,
    late: Callable[[], bool] = lambda: False,
) -> QuboResult:
    """Choose columns with a sampler, and with the built-in search beside it.

    ``sampler``: "tabu" or "annealing" (dwave-samplers), an object with dimod's ``sample``, a function without
    arguments that returns one, or a :class:`Sampler`. ``start``: weights at which the first model is made, by
    default the best ones over all columns. ``bits`` per weight and the columns are cut down until there are
    at most ``max_variables`` variables (2000 by default). Ends after ``rounds`` calls, or when three in
    a row bring nothing better.
    """
    refused = accepts(problem)
    if refused is not None:
        raise ValueError(refused)
    if bits < 1 or rounds < 1 or reads < 1:
        raise ValueError(f"bits, rounds and reads must be at least 1; got {bits}, {rounds} and {reads}.")
    if max_variables is not None and max_variables < 2:
        raise ValueError(f"max_variables must be at least 2, a bit and an indicator; got {max_variables}.")
    source = _Source.of(sampler)
    merged = merge_rows(problem)
    smaller = sketch_rows(merged)
    builtin, work = polish(merged, start, late)
    search = _Search(smaller, source, bits, max_variables or _MOST_VARIABLES, reads, seed, late)
    ends, records, fallback = search.run(start, rounds)
    if smaller is not merged:
        final = Polisher(merged)
        ends = [final.refit(at.support, at.weights) for at in ends]
        records = [replace(own, polished=at.objective) for own, at in zip(records, ends, strict=True)]
    incumbent = min([*ends, builtin], key=lambda at: at.objective)
    return QuboResult(incumbent, tuple(records), builtin.objective, fallback, work + search.polisher.work)


@dataclass(eq=False)
class _Search:
    """The rounds of one call of :func:`anneal`, and what they change as they go."""

    problem: SelectionProblem
    source: _Source
    bits: int
    max_variables: int
    reads: int
    seed: int
    late: Callable[[], bool]
    multiplier: float | None = None  # what a place costs, where places are counted
    wider: Array = field(init=False)  # how much larger than expected the range of each weight has to be
    polisher: Polisher = field(init=False)
    limit: int | None = field(init=False)  # on terms, where it can bind

    def __post_init__(self) -> None:
        self.polisher = Polisher(self.problem, self.late)
        p, k = self.problem.prices, self.problem.max_terms
        self.wider = np.ones(len(p))
        self.limit = k if k is not None and k < np.count_nonzero(p.charged & (p.max_weight > 0)) else None

    def run(self, start: Array | None, rounds: int) -> tuple[list[Incumbent], list[QuboRound], str | None]:
        """The incumbent after every round, what happened, and why the sampler could not go on."""
        p = self.problem.prices
        wide = self.polisher.all_columns().weights
        weights = wide if start is None else np.clip(start, 0.0, p.max_weight)
        ends: list[Incumbent] = []
        records: list[QuboRound] = []
        best: Incumbent | None = None
        stale = 0
        for number in range(rounds):
            if self.late():
                return ends, records, None if records else "There was no time left to ask the sampler."
            qubo = self._qubo(weights)
            if qubo.variables == 0:
                return ends, records, "There is no column to choose."
            if not (np.isfinite(qubo.linear).all() and np.isfinite(qubo.quadratic).all()):
                return ends, records, "The model of the loss is not finite at these weights."
            state = np.random.SeedSequence([self.seed, number]).generate_state(1)[0]
            try:
                samples, stated = self.source.ask(qubo, weights, self.reads, int(state >> 1))
            except _Unusable as error:
                return ends, records, str(error)
            record, found = self._judge(qubo, samples, stated)
            records.append(record)
            ends.append(found)
            self._adapt(qubo, samples, record, found)
            if best is None or found.objective < best.objective - 1e-9 * abs(best.objective):
                best, stale = found, 0
            else:
                stale += 1
            if stale == _PATIENCE:
                break
            # where nothing better came, the next model is made between the answer and the wide one
            weights = best.weights if stale == 0 else 0.5 * (best.weights + wide)
        return ends, records, None

    def _qubo(self, weights: Array) -> Qubo:
        p, k = self.problem.prices, self.limit
        model = QuadraticModel.at(self.problem, weights)
        alone, gains = model.best_alone(weights)
        open_ = p.max_weight > 0
        if k is not None and self.multiplier is None:
            ranked = np.sort(np.maximum(0.0, gains - p.l0)[p.charged & open_])[::-1]
            self.multiplier = _FIRST_SHARE * float(ranked[max(k - 1, 0)] + ranked[k]) or 1e-6
        price = np.where(p.charged, p.l0 + (self.multiplier or 0.0), 0.0)
        usable = np.flatnonzero(open_)
        order = usable[np.lexsort((usable, -gains[usable], p.charged[usable]))]
        columns, bits = _fit_into(order, price, self.bits, self.max_variables)
        fixed = np.where(p.charged, 0.0, weights)
        fixed[columns] = 0.0
        return in_bits(model, price, columns, bits, self._tops(weights, alone), fixed)

    def _tops(self, weights: Array, alone: Array) -> Array:
        """The largest weight that the bits of each column can say."""
        p = self.problem.prices
        typical = 0.5 * float(weights[p.charged].max(initial=0.0)) or float(alone.max(initial=0.0)) or 1.0
        wanted = np.maximum(2.0 * np.maximum(weights, alone), typical)
        return np.minimum(self.wider * wanted, p.max_weight)

    def _judge(self, qubo: Qubo, samples: Bits, stated: Array | None) -> tuple[QuboRound, Incumbent]:
        """Score, refit and polish the best answers."""
        p, polisher = self.problem.prices, self.polisher
        energies = qubo.energies(samples)
        order = np.argsort(energies, kind="stable")
        first = order[0]
        weights = qubo.weights(samples[first])
        decoded = self._objective(weights)
        supports: dict[tuple[int, ...], Array] = {}
        for i in order:
            own = qubo.weights(samples[i])
            supports.setdefault(tuple(np.flatnonzero((own > 0) & p.charged)), own)
            if len(supports) == _ANSWERS:
                break
        k = polisher.most_terms
        refits = [polisher.thin(polisher.refit(support, own), k) for support, own in supports.items()]
        allowed = [at for at in refits if self.problem.allows(at.support)] or [polisher.largest(weights, k)]
        ranked = sorted({tuple(at.support): at for at in allowed}.values(), key=lambda at: at.objective)
        found = min((polisher.improve(at) for at in ranked), key=lambda at: at.objective)
        difference = 0.0
        if stated is not None:
            apart = np.abs(stated - energies)
            difference = float(np.max(np.where(np.isnan(apart), math.inf, apart)))
        record = QuboRound(
            variables=qubo.variables,
            columns=len(qubo.columns),
            bits=qubo.bits,
            largest_weight=float(qubo.tops.max()),
            multiplier=self.multiplier or 0.0,
            answers=len(samples),
            energy=float(energies[first]),
            stated=math.nan if stated is None else float(stated[first]),
            disagreement=difference,
            terms=int(np.count_nonzero((weights > 0) & p.charged)),
            decoded=decoded,
            refitted=ranked[0].objective,
            polished=found.objective,
        )
        return record, found

    def _objective(self, weights: Array) -> float:
        return self.problem.objective(
            self.problem.risk.evaluate(self.problem.pool.margins(weights)).value, weights
        )

    def _adapt(self, qubo: Qubo, samples: Bits, record: QuboRound, found: Incumbent) -> None:
        """Widen ranges that were too narrow, and price a place so that as many are taken as there are."""
        p, k = self.problem.prices, self.limit
        lowest = qubo.weights(samples[int(np.argmin(qubo.energies(samples)))])
        columns = qubo.columns
        reached = np.maximum(lowest, found.weights)[columns] >= qubo.tops * (1.0 - 1e-9)
        narrow = columns[reached & (qubo.tops < p.max_weight[columns])]
        self.wider[narrow] *= 2.0
        if k is not None and self.multiplier is not None:
            self.multiplier *= min(max((record.terms + 0.5) / (k + 0.5), 0.25), 4.0)


def _fit_into(order: Support, price: Array, bits: int, most: int) -> tuple[Support, int]:
    """The columns and bits for at most so many variables: fewer bits first, then fewer columns.

    ``order``: free columns, then charged ones, the most useful first. Free columns that would take more than
    half of the variables are left as they are.
    """

    def needed(columns: Support, bits: int) -> int:
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


class _Unusable(Exception):
    """A sampler gave no answer that can be used; says why in one sentence."""


@dataclass(frozen=True, eq=False)
class _Source:
    """A sampler made ready, with the parameters that the user wants for it."""

    sampler: Any
    own: Mapping[str, Any]

    @classmethod
    def of(cls, sampler: Any) -> _Source:
        own: Mapping[str, Any] = {}
        if isinstance(sampler, Sampler):
            sampler, own = sampler.source, sampler.own
        _dimod()
        if isinstance(sampler, str):
            sampler = _named(sampler)
        if isinstance(sampler, type) or (callable(sampler) and not _samples(sampler)):
            try:
                sampler = sampler()
            except Exception as error:
                raise RuntimeError(f"sampler: the function that makes it failed: {_said(error)}") from error
        if not _samples(sampler):
            raise ValueError(
                "sampler must be 'tabu', 'annealing', an object with dimod's sample or a function that "
                f"returns one; got {type(sampler).__name__}."
            )
        return cls(sampler, own)

    def ask(self, qubo: Qubo, weights: Array, reads: int, seed: int) -> tuple[Bits, Array | None]:
        """Samples with the variables in our order, and the energies that the sampler states for them.

        ``weights``: those that are there already, for samplers that take a first state.
        """
        try:
            listed = set(self.sampler.parameters)
        except Exception:  # none listed, or not a list
            listed = set()
        given: dict[str, Any] = {"num_reads": reads, "seed": seed}
        if "initial_states_generator" in listed:
            given["initial_states"] = dict(enumerate(qubo.sample(weights).tolist()))
        if set(_COUNTED) <= listed:
            given |= _COUNTED
        given = {key: value for key, value in given.items() if key in listed} | dict(self.own)
        name = type(self.sampler).__name__
        try:
            return self._read(self.sampler.sample(qubo.to_dimod(), **given), qubo.variables)
        except _Unusable as error:
            raise _Unusable(f"The sampler {name} {error}; the built-in search was used.") from error
        except Exception as error:
            raise _Unusable(
                f"The sampler {name} failed: {_said(error)}; the built-in search was used."
            ) from error

    @staticmethod
    def _read(answer: Any, variables: int) -> tuple[Bits, Array | None]:
        dimod = _dimod()
        if answer is None:
            raise _Unusable("returned nothing")
        stated = None
        if isinstance(answer, dimod.SampleSet):
            if answer.vartype is dimod.SPIN:
                answer = answer.change_vartype(dimod.BINARY, inplace=False)
            stated = np.asarray(answer.record.energy, dtype=np.float64)
        samples, labels = dimod.as_samples(answer)
        if len(samples) == 0 or len(labels) == 0:
            raise _Unusable("returned no samples")
        if set(labels) != set(range(variables)) or len(labels) != variables:
            raise _Unusable("returned other variables than those of the model")
        ordered = np.empty(np.shape(samples), dtype=np.asarray(samples).dtype)
        ordered[:, np.array(labels, dtype=np.intp)] = samples
        if not np.isin(ordered, (0, 1)).all():
            raise _Unusable("returned values other than 0 and 1")
        return ordered.astype(np.int8), stated


def is_sampler(thing: Any) -> bool:
    """Whether this is, or may make, a sampler."""
    return isinstance(thing, Sampler) or callable(thing) or _samples(thing)


def _samples(thing: Any) -> bool:
    return callable(getattr(thing, "sample", None))


def _said(error: BaseException) -> str:
    """An error in a part of a sentence."""
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
    known = {"tabu": samplers.TabuSampler, "annealing": samplers.SimulatedAnnealingSampler}
    if name not in known:
        raise ValueError(f"sampler={name!r} is not known; by name there are 'tabu' and 'annealing'.")
    return known[name]()
