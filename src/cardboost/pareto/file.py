"""Fronts as versioned JSON, refused when anything is wrong with them.

    {"format": "cardboost-front", "version": 1, "scoring", "status", "folds",
     "estimator": {"name", "parameters", "categorical"}, "rates": [...] or null,
     "sizes": [{"size", "scores", "recalls", "term_frequency", "feature_frequency",
                "ensemble", "certificate"}, ...]}

``folds`` is how many were asked for; ``scores`` has one entry for each that was done, the same for all sizes,
and so has ``recalls``: the recall at every one of the ``rates`` of false alarms, or null. ``categorical``:
positions of the features that are read as labels. ``feature_frequency`` has pairs of a feature's position and
its share. Ensembles and certificates are those of model files. Parameters that JSON does not know are left
out, and are at their defaults in the models that are read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker import structure_faults
from cardboost.estimators.classifier import CardBoostClassifier
from cardboost.estimators.regressor import CardBoostRegressor
from cardboost.model import checks
from cardboost.model.atomic import write_atomically
from cardboost.model.io import from_dict
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.printable import printable_json
from cardboost.model.strict_json import fields, kind, parse, under
from cardboost.pareto.front import STATUS, ParetoFront, SizePoint
from cardboost.pareto.picking import RATES
from cardboost.pareto.stability import parts_of

if TYPE_CHECKING:
    from cardboost.model.io import AnyModel

FORMAT, VERSION = "cardboost-front", 1
MAX_BYTES = 500_000_000
ESTIMATORS = {own.__name__: own for own in (CardBoostClassifier, CardBoostRegressor)}
_KEYS = ("format", "version", "scoring", "status", "folds", "estimator", "rates", "sizes")
_ESTIMATOR_KEYS = ("name", "parameters", "categorical")
_SIZE_KEYS = ("size", "scores", "recalls", "term_frequency", "feature_frequency", "ensemble", "certificate")


# ------------------------------------------------------------------------------------------------ writing


def front_text(front: ParetoFront) -> str:
    """JSON with a line for every size."""
    first = front[0].model
    if isinstance(first.ensemble_, LearnerEnsemble):
        raise ValueError("a front of learners cannot be written as JSON: only models of stumps can.")
    parameters = {name: own for name, own in first.get_params(deep=False).items() if _is_plain(own)}
    parameters.pop("max_terms")
    head = {
        "format": FORMAT,
        "version": VERSION,
        "scoring": front.scoring,
        "status": front.status,
        "folds": front.n_folds,
        "estimator": {
            "name": type(first).__name__,
            "parameters": parameters,
            "categorical": list(first._categorical),
        },
        "rates": None if front[0].recalls is None else list(RATES),
    }
    lines = [f"  {_compact(key)}: {_compact(value)}," for key, value in head.items()]
    sizes = ",\n".join(f"    {_compact(_size_entry(point))}" for point in front)
    return "\n".join(["{", *lines, '  "sizes": [', sizes, "  ]", "}", ""])


def _size_entry(point: SizePoint) -> dict[str, Any]:
    proof = [own.to_dict() for own in point.certificates]
    several = isinstance(point.model.ensemble_, MulticlassEnsemble)
    return {
        "size": point.size,
        "scores": list(point.scores),
        "recalls": None if point.recalls is None else [list(own) for own in point.recalls],
        "term_frequency": list(point.term_frequency),
        "feature_frequency": [list(pair) for pair in point.feature_frequency],
        "ensemble": point.model.ensemble_.to_dict(),
        "certificate": proof if several else proof[0],
    }


def _is_plain(value: Any) -> bool:
    """Whether JSON gives this value back."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_plain, value.values()))
    finite = type(value) is not float or bool(np.isfinite(value))
    return value is None or (type(value) in (bool, int, float, str) and finite)


def _compact(value: Any) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


def save(path: str | os.PathLike[str], front: ParetoFront) -> None:
    """Write a front. Whatever happens on the way, the path holds the old file or the new one."""
    write_atomically(Path(os.path.realpath(path)), front_bytes(front))


def front_bytes(front: ParetoFront) -> bytes:
    return front_text(front).encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape


# ------------------------------------------------------------------------------------------------ reading


def load(path: str | os.PathLike[str]) -> ParetoFront:
    source = os.fspath(path)
    if os.path.isdir(source):
        raise ValueError(f"{source}: expected a file with a front, found a folder")
    with open(source, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    return read_front(data, source)


def read_front(data: bytes, source: str = "front") -> ParetoFront:
    """The front in the bytes of a file; ``source`` names them in messages."""
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"top level: expected at most {MAX_BYTES // 1_000_000} MB, found a larger file")
        return _front(parse(data))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _front(document: Any) -> ParetoFront:
    if not isinstance(document, dict):
        raise ValueError(f"top level: expected an object, found {kind(document)}")
    for key, wanted in (("format", FORMAT), ("version", VERSION)):
        found = document.get(key)
        if found != wanted or type(found) is not type(wanted):
            said = f"found {kind(found)}" if key in document else "it is missing"
            raise ValueError(f"{key}: expected {wanted!r}, {said}")
    given = fields(document, _KEYS, "")
    if not isinstance(given["scoring"], str):
        raise ValueError(f"scoring: expected text, found {kind(given['scoring'])}")
    if given["status"] not in tuple(STATUS):
        raise ValueError(f"status: expected one of {', '.join(STATUS)}, found {kind(given['status'])}")
    folds = checks.integer("folds", given["folds"], "a number of folds")
    if folds < 1:
        raise checks.fault("folds", "at least one", folds)
    with under("estimator"):
        name, parameters, categorical = _estimator(given["estimator"])
    with_rates = given["rates"] is not None
    if with_rates and given["rates"] != list(RATES):
        raise ValueError(f"rates: expected null or the {len(RATES)} rates of this version")
    points: list[SizePoint] = []
    for k, entry in enumerate(_list("sizes", given["sizes"], 1)):
        with under(f"sizes[{k}]"):
            least = points[-1].size + 1 if points else 1
            points.append(_point(entry, name, parameters, categorical, with_rates, least))
            _check_beside(points, folds)
    return ParetoFront(tuple(points), given["scoring"], folds, given["status"])


def _estimator(document: Any) -> tuple[str, dict[str, Any], tuple[int, ...]]:
    given = fields(document, _ESTIMATOR_KEYS, "")
    if given["name"] not in tuple(ESTIMATORS):
        raise ValueError(f"name: expected {' or '.join(ESTIMATORS)}, found {kind(given['name'])}")
    known = ESTIMATORS[given["name"]]().get_params()
    if not isinstance(given["parameters"], dict):
        raise ValueError(f"parameters: expected an object, found {kind(given['parameters'])}")
    for key in given["parameters"]:
        if key not in known or key == "max_terms":
            raise ValueError(f"parameters[{key[:40]!r}]: unknown key, expected parameters of {given['name']}")
    positions = [
        checks.integer(f"categorical[{k}]", own, "the position of a feature")
        for k, own in enumerate(_list("categorical", given["categorical"], 0))
    ]
    if positions != sorted(set(positions)) or (positions and positions[0] < 0):
        raise ValueError("categorical: expected positions of features, ascending")
    return given["name"], given["parameters"], tuple(positions)


def _point(
    entry: Any,
    name: str,
    parameters: dict[str, Any],
    categorical: tuple[int, ...],
    with_rates: bool,
    least: int,
) -> SizePoint:
    given = fields(entry, _SIZE_KEYS, "")
    size = checks.integer("size", given["size"], "a number of terms")
    if size < least:
        raise checks.fault("size", f"sizes that ascend, at least {least}", size)
    scores = _numbers("scores", given["scores"], 1)
    recalls = None
    if (given["recalls"] is not None) is not with_rates:
        raise ValueError(f"recalls: expected {'lists' if with_rates else 'null'}, as rates says")
    if with_rates:
        every = _list("recalls", given["recalls"], 1)
        recalls = tuple(_shares(f"recalls[{k}]", own) for k, own in enumerate(every))
        if len(recalls) != len(scores) or any(len(own) != len(RATES) for own in recalls):
            raise ValueError(f"recalls: expected {len(RATES)} numbers for each of {len(scores)} folds")
    with under("ensemble"):
        ensemble = from_dict(given["ensemble"])
    _check_kind(ensemble, name, size)
    model = _model(ensemble, given["certificate"], name, parameters | {"max_terms": size}, categorical)
    terms = _shares("term_frequency", given["term_frequency"])
    if len(terms) != ensemble.n_terms:
        raise ValueError(f"term_frequency: expected one for each of {ensemble.n_terms} terms")
    pairs = _list("feature_frequency", given["feature_frequency"], 0)
    for k, pair in enumerate(pairs):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"feature_frequency[{k}]: expected a position and a share")
        checks.integer(f"feature_frequency[{k}][0]", pair[0], "the position of a feature")
        _shares(f"feature_frequency[{k}]", pair[1:])
    if [pair[0] for pair in pairs] != list(ensemble.features_used):
        raise ValueError("feature_frequency: expected the features of the ensemble, ascending")
    shares = tuple((int(j), float(share)) for j, share in pairs)
    return SizePoint(size, scores, recalls, model, terms, shares)


def _check_kind(ensemble: AnyModel, name: str, size: int) -> None:
    wanted = ("regression",) if name == "CardBoostRegressor" else ("binary", "multiclass")
    parts = parts_of(ensemble) if hasattr(ensemble, "n_terms") else ()
    if ensemble.kind not in wanted or not parts:
        raise ValueError(f"ensemble: expected a model of {name}, found one of another kind")
    for own in parts:
        if own.n_terms > size:
            raise ValueError(f"ensemble: expected at most size = {size} terms, found {own.n_terms}")


def _model(
    ensemble: Any, proof: Any, name: str, parameters: dict[str, Any], categorical: tuple[int, ...]
) -> Any:
    """A fitted estimator, as it was but for how it was trained."""
    model = ESTIMATORS[name](**parameters)
    model.ensemble_ = ensemble
    model._categorical = categorical
    if categorical and categorical[-1] >= ensemble.n_features:
        raise ValueError("ensemble: expected the features that estimator.categorical names")
    model._remember_names(ensemble.n_features, ensemble.feature_names)
    model._paths = ()
    several = isinstance(ensemble, MulticlassEnsemble)
    proofs = proof if several else [proof]
    if not isinstance(proofs, list) or len(proofs) != len(parts_of(ensemble)):
        raise ValueError(f"certificate: expected a list, one per class, found {kind(proof)}")
    for k, own in enumerate(proofs):
        place = f"certificate[{k}]" if several else "certificate"
        if not isinstance(own, dict):
            raise ValueError(f"{place}: expected an object, found {kind(own)}")
        for fault in structure_faults(own):
            raise ValueError(f"{place}.{fault}")
    certificates = []
    for own, part in zip(proofs, parts_of(ensemble), strict=True):
        certificates.append(Certificate(own, None if part.classes is None else part.classes[1]))
    model.certificate_ = certificates if several else certificates[0]
    if is_classifier(model):
        model.classes_ = checks.label_array(ensemble.classes)
        model._candidates = None
    return model


def _check_beside(points: list[SizePoint], folds: int) -> None:
    """The last of these sizes goes with those before it."""
    own = points[-1]
    if len(own.scores) > folds or len(own.scores) != len(points[0].scores):
        raise ValueError(f"scores: expected at most {folds} numbers, as many for every size")
    first, mine = points[0].model.ensemble_, own.model.ensemble_
    for what in ("kind", "loss", "n_features", "feature_names", "classes"):
        if getattr(first, what) != getattr(mine, what):
            raise ValueError(f"ensemble.{what}: expected the same as in sizes[0]")


def _list(field: str, value: Any, least: int) -> list[Any]:
    if not isinstance(value, list) or len(value) < least:
        raise ValueError(
            f"{field}: expected a list{' that is not empty' if least else ''}, found {kind(value)}"
        )
    return value


def _numbers(field: str, value: Any, least: int = 0) -> tuple[float, ...]:
    return tuple(
        checks.number(f"{field}[{k}]", own, "a number") for k, own in enumerate(_list(field, value, least))
    )


def _shares(field: str, value: Any) -> tuple[float, ...]:
    found = _numbers(field, value)
    for k, own in enumerate(found):
        if not 0.0 <= own <= 1.0:
            raise checks.fault(f"{field}[{k}]", "a share from 0 to 1", own)
    return found
