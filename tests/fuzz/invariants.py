"""The laws of a case: what must hold after every fit, and how a broken one is named.

A law is a function of a `Fitted` case that yields a sentence for everything that is wrong. `check` runs the
call and then every law that applies. The kind of a failure is its law and its sentence without numbers, so
that one fault met by many seeds is one kind.
"""

from __future__ import annotations

import pickle
import re
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import cardboost
from cardboost import solvers
from fuzz.draw import CARDS, MATRIX, UNFIT_NUMBERS, Case

ROUNDING = 1e-9  # relative to the objective of the empty model
OPTIMAL = 1e-4  # of the same: the gap of a scope that is closed
EPSILON = 1e-12  # of a loss whose rows are of size 1
GRACE = 0.5  # seconds that a time limit may be passed by, beside a tenth of it
TRIES = 3  # a slow run counts when all of these were slow


#: what prove() may answer: there is no choice to go on with
NOTHING_TO_PROVE = (
    "made of other learners",
    "kept only in the process",
    "leaves nothing to choose",
    "is solved",
)


@dataclass(frozen=True)
class Failure:
    """A law that a case breaks."""

    seed: int
    target: str
    law: str
    message: str
    tags: tuple[str, ...]  # of the case
    details: str = ""  # where an exception came from

    @property
    def kind(self) -> str:
        words = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", self.message.splitlines()[0] if self.message else "")
        words = re.sub(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|inf\b|nan\b)", "#", words)
        return f"{self.target}: {self.law}: {words[:160]}"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A case and what its call returned: an estimator, the result of a solver, or a front."""

    case: Case
    result: Any
    seconds: float
    card: Any = None  # of a scorecard

    def scores(self, X: Any) -> np.ndarray:
        """What the model says of rows; of a solver or a front, what it found."""
        if self.card is not None:
            return np.asarray(self.card.ensemble.decision_function(X))
        return _scores(self.case, self.result, X)

    def models(self) -> list[Any]:
        """Everything that has a certificate of its own."""
        if self.case.target == "pareto_front":
            return [point.model for point in self.result]
        return [self.result]


Law = Callable[[Fitted], Iterator[str]]


def check(case: Case) -> list[Failure]:
    """Every law that this case breaks."""
    failures: list[Failure] = []

    def failed(law: str, message: str, details: str = "") -> None:
        failure = Failure(case.seed, case.target, law, message, case.tags, details)
        if failure not in failures:
            failures.append(failure)

    before = _contents(case)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            fitted = fit(case)
        except Exception as error:
            _judge(case, error, failed)
        else:
            if case.must_refuse is not None:
                failed("refusal", f"accepted in spite of: {case.must_refuse}")
            _silent_rounding(case, heard, failed)
            for name, law in LAWS.items():
                if case.must_refuse is None and (name not in COSTLY or name in case.laws):
                    _attempt(name, law, fitted, failed)
    if _contents(case) != before:
        failed("inputs", "an input was changed.")
    for note in heard:  # a UserWarning is a sentence for users; anything else leaked
        place = Path(note.filename)
        if not issubclass(note.category, UserWarning) and "metrics" not in place.parts:
            failed("warning", f"{note.category.__name__} in {place.parent.name}/{place.name}: {note.message}")
    return failures


def _judge(case: Case, error: Exception, failed: Callable[..., None]) -> None:
    """Whether a call may end like this: with a sentence of ours about what is wrong with the input."""
    details = "".join(traceback.format_exception(error))
    message = f"{type(error).__name__} {_place(error)}: {error}"
    if not isinstance(error, ValueError | TypeError):
        failed("exception", message, details)
    elif not any(part in _place(error) for part in ("cardboost/", "sklearn/")) or len(str(error)) < 20:
        failed("unclear refusal", message, details)
    elif case.must_refuse is None and not any(re.search(own, str(error)) for own in case.allowed):
        failed("refusal", message, details)


def _attempt(name: str, law: Law, fitted: Fitted, failed: Callable[..., None]) -> None:
    try:
        for sentence in law(fitted):
            failed(name, sentence)
    except Exception as error:
        message = f"{type(error).__name__} {_place(error)}: {error}"
        failed(name, message, "".join(traceback.format_exception(error)))


def _place(error: BaseException) -> str:
    """The function in which an exception was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    path = Path(frame.filename)
    parts = path.parts[-3:] if "cardboost" in path.parts or "sklearn" in path.parts else path.parts[-2:]
    top = next((name for name in ("cardboost", "sklearn") if name in path.parts and name not in parts), None)
    return f"{'' if top is None else top + '/'}{'/'.join(parts)}:{frame.name}"


def _announces(note: warnings.WarningMessage) -> bool:
    """Whether a warning is about numbers that doubles cannot hold, which is what a user should be told."""
    return issubclass(note.category, UserWarning) and re.search(UNFIT_NUMBERS, str(note.message)) is not None


def _silent_rounding(case: Case, heard: list[Any], failed: Callable[..., None]) -> None:
    categories = case.params.get("categorical_features", ())  # names, which keep all their digits
    whole = len(categories) == np.shape(case.X)[1]
    if "beyond 2^53" not in case.tags or whole:
        return
    rounded = any(int(float(value)) != int(value) for value in np.ravel(case.X))
    if rounded and not any(_announces(note) for note in heard):
        failed("refusal", "whole numbers above 2^53 were rounded without a word.")


def _contents(case: Case) -> list[Any]:
    """The bytes of everything that a call is given."""
    parts = [part for part in (case.X, case.y, case.weight) if part is not None]
    return [np.asarray(part).tobytes() if not hasattr(part, "columns") else str(part.shape) for part in parts]


# ------------------------------------------------------------------------------------------------ calls


def fit(case: Case) -> Fitted:
    """Run the call of a case; the seconds are those of the part that has a time limit."""
    if case.target in MATRIX:
        return _timed(case, lambda: getattr(solvers, case.target)(case.X, **_with_weight(case)))
    if case.target == "pareto_front":
        kind = "CardBoostRegressor" if case.numbers else "CardBoostClassifier"
        model = getattr(cardboost, kind)(**case.params)
        call = {"estimator": model, "sample_weight": case.weight, **case.call}
        return _timed(case, lambda: cardboost.pareto_front(case.X, case.y, **call))
    if case.target == "scorecard":
        model = cardboost.CardBoostClassifier(**case.params).fit(case.X, case.y, case.weight)
        made = _timed(case, lambda: model.scorecard(**case.call))
        return replace(made, result=model, card=made.result)
    model = getattr(cardboost, case.target)(**case.params)
    made = _timed(case, lambda: model.fit(case.X, case.y, sample_weight=case.weight))
    if model.get_params().get("warm_start"):
        model.fit(case.X, case.y, sample_weight=case.weight)
    return made


def _with_weight(case: Case) -> dict[str, Any]:
    return case.params if case.weight is None else case.params | {"sample_weight": case.weight}


def _timed(case: Case, call: Callable[[], Any]) -> Fitted:
    """The result of a call and its seconds: of the wall clock or the processor, whichever are fewer, so that
    other programs do not count."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return Fitted(case, result, min(time.perf_counter() - wall, time.process_time() - processor))


def _scores(case: Case, result: Any, X: Any) -> np.ndarray:
    if case.target in MATRIX:
        return np.asarray(result.x)
    if case.target == "pareto_front":
        return np.concatenate([np.ravel(_model_scores(point.model, X)) for point in result])
    return _model_scores(result, X)


def _model_scores(model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X))


# ------------------------------------------------------------------------------------------------ cheap laws


def finite(fitted: Fitted) -> Iterator[str]:
    case = fitted.case
    if not np.isfinite(fitted.scores(case.X)).all():
        yield "a score is not finite."
    if case.target in MATRIX:
        result = fitted.result
        objective = result.objective if case.target == "select_columns" else result.fun
        values = {"objective": objective, "lower bound": result.lower_bound, "gap": result.gap}
    else:
        values = {}
    for name, value in values.items():
        if not np.isfinite(value):
            yield f"the {name} is {value}."


def probabilities(fitted: Fitted) -> Iterator[str]:
    """In [0, 1], summing to 1, and agreeing with the labels; none where there is no `predict_proba`."""
    if fitted.case.target in MATRIX or not hasattr(fitted.models()[0], "predict_proba"):
        return
    for model in fitted.models():
        shares = np.asarray(model.predict_proba(fitted.case.X))
        if not np.isfinite(shares).all() or (shares < 0).any() or (shares > 1).any():
            yield "a probability is outside [0, 1]."
        elif np.abs(shares.sum(axis=1) - 1.0).max() > 1e-9:
            yield "the probabilities of a row do not sum to 1."


def files(fitted: Fitted) -> Iterator[str]:
    """`save` and `load_model` give a model that says the same."""
    case = fitted.case
    if case.target in MATRIX or "dictionary" in case.params:
        return
    for model in fitted.models():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            model.save(path)
            loaded = cardboost.load_model(path)
        ours, theirs = _model_scores(model, case.X), np.asarray(loaded.decision_function(case.X))
        if (
            ours.size != theirs.size
            or not (np.abs(ours - theirs.reshape(ours.shape)) <= _rounding(model, case.X)).all()
        ):
            yield "the loaded model has other scores."


def _rounding(model: Any, X: Any) -> float:
    """What two sums of the same terms may differ by: nothing for stumps, which have one order."""
    if hasattr(model, "coef_"):
        terms = np.abs(np.asarray(X, dtype=float)) @ np.abs(np.atleast_2d(model.coef_)).T
        return 1e-12 * float(terms.max() + np.abs(model.intercept_).max())
    return (
        0.0 if "Neural" not in type(model).__name__ else 1e-9 * float(np.abs(_model_scores(model, X)).max())
    )


def certificates(fitted: Fitted) -> Iterator[str]:
    """Every certificate verifies, and its numbers are in order."""
    for certificate, X, y, weight in _certificates(fitted):
        if not certificate.verify(X, y, weight):
            yield f"verify is False: {_fault(certificate.faults(X, y, weight)[0])}"
        yield from _headline(certificate)
        null = certificate.null_objective
        near = ROUNDING * max(abs(null), abs(certificate.objective)) + (
            EPSILON if fitted.case.target in CARDS else 0.0
        )
        if not np.isfinite(certificate.lower_bound):
            yield f"the lower bound is {certificate.lower_bound}."
        if not certificate.lower_bound <= certificate.objective + near:
            yield "the lower bound is above the objective."
        if not certificate.objective <= null + near and not _held_to_more(fitted):
            yield "the objective is above that of the empty model."
    if fitted.case.target == "select_columns":
        result = fitted.result
        if result.status.startswith("optimal") and not result.certificate.status.startswith("optimal"):
            yield f"the status is {result.status!r}, of the certificate {result.certificate.status!r}."


def _fault(sentence: str) -> str:
    """A sentence of the checker without its digests, so that one fault is one kind."""
    return re.sub(r"\b[0-9a-f]{32}\b", "0", sentence)


def _headline(certificate: Any) -> Iterator[str]:
    """The headline is that of the widest scope, and the status is what the gaps of the scopes allow."""
    scopes = getattr(certificate, "scopes", None)
    if not scopes:
        return
    wide = scopes.get("dictionary", scopes.get("pool"))
    if certificate.scope != wide.scope:
        yield f"the scope is {certificate.scope!r}, the widest is {wide.scope!r}."
    for name in ("guarantee", "lower_bound", "gap"):
        if getattr(certificate, name) != getattr(wide, name):
            yield f"the {name} is not that of the widest scope."
    content = certificate.to_dict()
    null, radius = abs(certificate.null_objective), content["problem"].get("radius")
    if radius is not None and content["kind"] == "matrix":
        return  # the size of its numbers is in the matrix
    size = max(null, min(1.0, radius or 0.0), 1e-290)
    closed = {name for name, scope in scopes.items() if scope.gap <= OPTIMAL * size}
    optimal = "dictionary" in closed or ("pool" in closed and not content["candidates"])
    status = "optimal" if optimal else "optimal among candidates" if closed else "feasible"
    if certificate.status != status:
        yield f"the status is {certificate.status!r}, the gaps say {status!r}."
    pool = scopes.get("pool", wide)
    if wide.lower_bound > min(pool.lower_bound, certificate.objective) + ROUNDING * size:
        yield "the bound of the widest scope is above that of the pool."
    lines = certificate.lines()
    if not any(certificate.headline in line for line in lines) or len(lines) < 5:
        yield "the statement does not say the headline."


def _held_to_more(fitted: Fitted) -> bool:
    """Whether the empty model is out of reach: weights have a given sum, points a given value, or features
    have to be used."""
    scale = {"base_score", "base_odds", "points_to_double_odds"}
    if fitted.case.params.get("must_include"):
        return True
    return fitted.case.target == "SoftMarginClassifier" or bool(scale & set(fitted.case.call))


def _certificates(fitted: Fitted) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Each with the data that it is about."""
    case = fitted.case
    if case.target == "select_columns":
        yield fitted.result.certificate, case.X, None, case.weight
    if case.target in MATRIX:
        return
    trained = _trained_rows(case)
    for model in fitted.models():
        several = getattr(model, "certificate_", None)
        if several is None:
            continue
        if not isinstance(several, list):
            yield several, trained.X, trained.y, trained.weight
        elif "Linear" in type(several[0]).__name__ or (
            "max_features" in case.params and "Sparse" in case.target
        ):
            for own in several:
                yield own, trained.X, trained.y, trained.weight
        else:  # one class against the rest; class weights are part of the row weights
            weight = _class_weighted(trained, model.classes_)
            for label, own in zip(model.classes_, several, strict=True):
                yield own, trained.X, np.asarray(trained.y) == label, weight
    if fitted.card is not None:
        yield fitted.card.certificate, trained.X, trained.y, trained.weight


def _trained_rows(case: Case) -> Case:
    """Without the rows that `validation_fraction` holds out."""
    fraction = case.params.get("validation_fraction")
    if fraction is None:
        return case
    rows = np.arange(case.n_rows)
    if case.weight is not None:
        rows = rows[np.asarray(case.weight) > 0]
    labels = None if case.numbers else np.unique(np.asarray(case.y)[rows], return_inverse=True)[1]
    state = np.random.RandomState(int(case.params["random_state"]))
    kept, _ = train_test_split(
        np.arange(len(rows)), test_size=float(fraction), stratify=labels, random_state=state
    )
    return case.take(rows[np.sort(kept)])


def _class_weighted(case: Case, classes: Any) -> Any:
    factors = case.params.get("class_weight")
    if factors is None:
        return case.weight
    own = np.array([factors.get(label, 1.0) for label in np.asarray(case.y).tolist()])
    return own * (1.0 if case.weight is None else np.asarray(case.weight, dtype=float))


def _demands(model: Any, params: dict[str, Any]) -> Iterator[str]:
    """What an analyst asked of features (by position) holds; other learners than stumps take no demands."""
    used = set(getattr(model, "features_used", ()))
    if used.intersection(params.get("exclude") or ()):
        yield f"features {sorted(used)}, exclude={params['exclude']}."
    if not used.issuperset(params.get("must_include") or ()):
        yield f"features {sorted(used)}, must_include={params['must_include']}."
    for group in params.get("at_most_one_of") or ():
        if len(used.intersection(group)) > 1:
            yield f"features {sorted(used)}, at_most_one_of={params['at_most_one_of']}."
    sides, cuts = params.get("missing", "learn"), params.get("cuts") or {}
    for term in getattr(model, "terms", ()):
        side = sides.get(term.feature, "learn") if isinstance(sides, dict) else sides
        if side != "learn" and (term.missing_left == (term.polarity > 0)) != (side == "best"):
            yield f"a term of feature {term.feature} with missing values elsewhere than missing={sides!r}."
        if term.feature in cuts and np.isfinite(term.cut) and term.cut not in cuts[term.feature]:
            yield f"a cut at {term.cut}, cuts={cuts}."


def limits(fitted: Fitted) -> Iterator[str]:
    """At most so many terms, features, points and bytes as were asked for."""
    case, params = fitted.case, fitted.case.params
    most = params.get("max_terms")
    if most == "auto":
        most = fitted.result.max_terms_
    if case.target == "select_columns" and most is not None and len(fitted.result.support) > most:
        yield f"{len(fitted.result.support)} columns, max_terms={most}."
    if case.target in CARDS and case.target != "pareto_front":
        ensemble = fitted.result.ensemble_
        for own in getattr(ensemble, "ensembles", [ensemble]):
            if most is not None and own.n_terms > most:
                yield f"{own.n_terms} terms, max_terms={most}."
            if params.get("max_features") is not None and len(own.features_used) > params["max_features"]:
                yield f"{len(own.features_used)} features, max_features={params['max_features']}."
            yield from _demands(own, params)
    if case.target == "pareto_front":
        for point in fitted.result:
            ensemble = point.model.ensemble_
            if any(own.n_terms > point.size for own in getattr(ensemble, "ensembles", [ensemble])):
                yield f"a model of more than {point.size} terms."
    if fitted.card is not None:
        from cardboost.export.code_size import c_size

        if fitted.card.n_terms > (case.call.get("max_terms") or most):
            yield f"scorecard(max_terms={case.call.get('max_terms')}) has {fitted.card.n_terms} terms."
        if c_size(fitted.card.ensemble) > case.call.get("max_bytes", np.inf):
            yield f"scorecard(max_bytes={case.call['max_bytes']}) takes {c_size(fitted.card.ensemble)} bytes."


def objectives(fitted: Fitted) -> Iterator[str]:
    """What a solver states is what NumPy finds; no feasible point tried is below the bound."""
    case, result = fitted.case, fitted.result
    if case.target not in ("minimize_l1", "minimize_on_simplex"):
        return
    A = np.asarray(case.X, dtype=float)
    weight = np.ones(len(A)) if case.weight is None else np.asarray(case.weight, dtype=float)
    if case.target == "minimize_l1":
        feasible = [result.x, np.zeros(A.shape[1])]
        value = lambda x: _price(case, A @ x, weight, x)  # noqa: E731
        near = ROUNDING * max(1.0, abs(result.fun))
    else:
        radius = float(case.params["radius"])
        feasible = [result.x, *(radius * np.eye(A.shape[1]))]
        value = lambda x: _log_sum(weight, A @ x)  # noqa: E731
        near = ROUNDING * max(1.0, abs(result.fun), np.abs(A @ result.x).max())
        if (result.x < 0).any() or abs(result.x.sum() - radius) > 1e-9 * radius:
            yield "x is not on the simplex."
    if not abs(value(result.x) - result.fun) <= near:
        yield f"the objective is {value(result.x)}, not {result.fun}."
    if not all(result.lower_bound <= value(x) + near for x in feasible):
        yield "a feasible point is below the lower bound."


def _price(case: Case, F: np.ndarray, weight: np.ndarray, x: np.ndarray) -> float:
    from cardboost.problem.losses import get_loss

    share = weight / weight.max()
    price = float(case.params["l1"]) * x.sum() + float(case.params["l2"]) / 2 * np.square(x).sum()
    return float((share / share.sum()) @ get_loss(case.params["loss"]).rows(F) + price)


def _log_sum(weight: np.ndarray, F: np.ndarray) -> float:
    parts = np.log(np.where(weight > 0, weight, 1.0))[weight > 0] - F[weight > 0]
    return float(parts.max() + np.log(np.exp(parts - parts.max()).sum()))


def seconds(fitted: Fitted) -> Iterator[str]:
    """A time limit holds to within a tenth and half a second."""
    limit = fitted.case.time_limit
    if limit is None:
        return
    taken = fitted.seconds
    for _ in range(TRIES - 1):
        if taken <= 1.1 * limit + GRACE:
            return
        taken = min(taken, fit(fitted.case).seconds)
    if taken > 1.1 * limit + GRACE:
        yield f"time_limit={limit} took {taken:.2f} seconds."


def proofs(fitted: Fitted) -> Iterator[str]:
    """`prove` goes on from a fit: the model is no worse, and its certificate verifies."""
    case, model = fitted.case, fitted.result
    if not hasattr(model, "prove") or fitted.card is not None or case.seed % 3:
        return
    several = lambda own: own if isinstance(own, list) else [own]  # noqa: E731
    before = several(model.certificate_)
    unpickled = case.seed % 2 == 0
    data = (case.X, case.y, case.weight) if unpickled or case.seed % 9 == 0 else ()
    if unpickled:
        model = pickle.loads(pickle.dumps(model))
    started = time.process_time()
    try:
        model.prove(*data, time_limit=0.2, max_nodes=20)
    except ValueError as error:
        if not any(re.search(own, str(error)) for own in NOTHING_TO_PROVE):
            raise
        return
    if time.process_time() - started > 10.0:
        yield "prove(time_limit=0.2) took more than 10 seconds of the processor."
    for old, new in zip(before, several(model.certificate_), strict=True):
        near = ROUNDING * max(abs(old.null_objective), 1e-12)
        if new.objective > old.objective + near:
            yield "prove() made the objective worse."
        for name, scope in getattr(old, "scopes", {}).items():
            if new.scopes[name].lower_bound < min(scope.lower_bound, new.objective) - near:
                yield f"prove() made the bound of the {name} worse."
    proved = replace(fitted, result=model)
    for law in (finite, certificates, limits, files):
        yield from law(proved)


# ------------------------------------------------------------------------------------- second fits


def _same(fitted: Fitted, other: Case, what: str) -> Iterator[str]:
    ours, theirs = fitted.scores(fitted.case.X), fit(other).scores(fitted.case.X)
    if ours.tobytes() != theirs.tobytes():
        far = (
            np.abs(ours - theirs).max() / max(1e-300, np.abs(ours).max())
            if ours.shape == theirs.shape
            else np.inf
        )
        size = "the last bits" if far < 1e-9 else "more than the last bits"
        yield f"{what} changes the model, by {size}."


def _steady(case: Case, rows_matter: bool) -> bool:
    """Whether equal bits are promised: not by a clock, nor where rows are held out by their place."""
    held = ("validation_fraction", "dictionary") if rows_matter else ()
    folds = rows_matter and (case.params.get("temperature") == "cv" or case.target == "pareto_front")
    return case.time_limit is None and not folds and all(case.params.get(name) is None for name in held)


def order(fitted: Fitted) -> Iterator[str]:
    case = fitted.case
    linear = "Sparse" in case.target and case.params.get("class_weight") is not None
    if _steady(case, rows_matter=True) and not linear:
        rows = np.random.default_rng(case.seed).permutation(case.n_rows)
        yield from _same(fitted, case.take(rows), "another order of the rows")


def threads(fitted: Fitted) -> Iterator[str]:
    """Linear models are made of BLAS's products: there no bits are promised."""
    case = fitted.case
    if _steady(case, rows_matter=False) and "Sparse" not in case.target:
        n_jobs = 1 if case.params["n_jobs"] != 1 else 2
        yield from _same(fitted, replace(case, params=case.params | {"n_jobs": n_jobs}), "another n_jobs")


def twice(fitted: Fitted) -> Iterator[str]:
    case = fitted.case
    linear = "Sparse" in case.target and case.params.get("class_weight") is not None
    if _steady(case, rows_matter=True) and not linear:
        rows = np.repeat(np.arange(case.n_rows), np.asarray(case.weight).astype(int))
        yield from _same(fitted, replace(case.take(rows), weight=None), "a row as often as it weighs")


def types(fitted: Fitted) -> Iterator[str]:
    """Parameters of NumPy's types mean what Python's do."""
    case = fitted.case
    if _steady(case, rows_matter=False):
        plain = {
            name: own.item() if isinstance(own, np.generic) else own for name, own in case.params.items()
        }
        yield from _same(fitted, replace(case, params=plain), "a parameter of a NumPy type")


def mask(fitted: Fitted) -> Iterator[str]:
    """What a masked array hides is missing."""
    case = fitted.case
    try:
        other = fit(replace(case, X=case.filled))
    except ValueError:
        yield "the mask of X is ignored: the same with NaN is refused."
        return
    if not np.array_equal(fitted.scores(case.filled), other.scores(case.filled)) and case.time_limit is None:
        yield "the mask of X is ignored: the same with NaN is another model."


LAWS: dict[str, Law] = {
    "finite": finite, "probabilities": probabilities, "certificate": certificates, "limits": limits,
    "objective": objectives, "file": files, "seconds": seconds, "order of rows": order, "threads": threads,
    "weight 2 is the row twice": twice, "types": types, "mask": mask, "prove": proofs,
}  # fmt: skip
COSTLY = ("order of rows", "threads", "weight 2 is the row twice", "types", "mask")
