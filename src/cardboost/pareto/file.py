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

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardboost.certificate.certificate import Certificate
from cardboost.certificate.checker import structure_faults
from cardboost.estimators.base import categorical_positions, restore_fitted
from cardboost.estimators.card_boost import CardBoostClassifier, CardBoostRegressor
from cardboost.model import schema
from cardboost.model.atomic import write_atomically
from cardboost.model.ensemble import Ensemble
from cardboost.model.files import check_head, document_bytes, file_content, from_dict, read_document
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.schema import Fault, expected
from cardboost.pareto.front import STATUS, ParetoFront, SizePoint
from cardboost.pareto.picking import RATES
from cardboost.pareto.stability import parts_of

if TYPE_CHECKING:
    from cardboost.model.files import AnyModel

FORMAT, VERSION = "cardboost-front", 1
MAX_BYTES = 500_000_000  # ten times that of a model: a front has a model of every size
ESTIMATORS = {kind.__name__: kind for kind in (CardBoostClassifier, CardBoostRegressor)}


# ------------------------------------------------------------------------------------------------ writing


def front_bytes(front: ParetoFront) -> bytes:
    """The content of a file, with a line for every size."""
    first = front[0].model
    if isinstance(first.ensemble_, LearnerEnsemble):
        raise ValueError("a front of learners cannot be written as JSON: only models of stumps can.")
    parameters = {name: value for name, value in first.get_params(deep=False).items() if _is_plain(value)}
    del parameters["max_terms"]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "scoring": front.scoring,
        "status": front.status,
        "folds": front.n_folds,
        "estimator": {
            "name": type(first).__name__,
            "parameters": parameters,
            "categorical": list(categorical_positions(first)),
        },
        "rates": None if front[0].recalls is None else list(RATES),
        "sizes": [_size_entry(point) for point in front],
    }
    return document_bytes(document, {"sizes": 1})


def _size_entry(point: SizePoint) -> dict[str, Any]:
    proof = [certificate.to_dict() for certificate in point.certificates]
    several = isinstance(point.model.ensemble_, MulticlassEnsemble)
    return {
        "size": point.size,
        "scores": point.scores,
        "recalls": point.recalls,
        "term_frequency": point.term_frequency,
        "feature_frequency": point.feature_frequency,
        "ensemble": point.model.ensemble_.to_dict(),
        "certificate": proof if several else proof[0],
    }


def _is_plain(value: Any) -> bool:
    """Whether JSON gives this value back: models that are read get it as a parameter."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_plain, value.values()))
    return value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value))


def save(path: str | os.PathLike[str], front: ParetoFront) -> None:
    """Write a front. Whatever happens on the way, the path holds the old file or the new one."""
    write_atomically(Path(os.path.realpath(path)), front_bytes(front))


# ------------------------------------------------------------------------------------------------ reading


def load(path: str | os.PathLike[str]) -> ParetoFront:
    """Read a front; a ValueError says where the first fault is."""
    return read_front(file_content(path, "a file with a front", MAX_BYTES), os.fspath(path))


def read_front(data: bytes, source: str = "front") -> ParetoFront:
    """The front in the bytes of a file; ``source`` names them in messages."""
    return read_document(data, source, MAX_BYTES, _read_front)


def _rates(value: Any) -> Any:
    if value not in (None, list(RATES)):
        raise Fault(f"expected null or the {len(RATES)} rates of this version")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Fault(f"expected an object, found {schema.shown_json(value)}")
    return value


def _ascending(value: Any) -> tuple[int, ...]:
    positions: tuple[int, ...] = schema.list_of(POSITION)(value)
    if list(positions) != sorted(set(positions)) or min(positions, default=0) < 0:
        raise Fault("expected positions of features, ascending")
    return positions


def _frequency(value: Any) -> tuple[int, float]:
    """A pair of a feature and its share."""
    if not isinstance(value, list) or len(value) != 2:
        raise Fault("expected a position and a share")
    return POSITION(value[0]), schema.SHARE(value[1])


def _read_estimator(document: Any) -> dict[str, Any]:
    name = schema.one_of(tuple(ESTIMATORS), " or ".join(ESTIMATORS))
    kinds = {"name": name, "parameters": _object, "categorical": _ascending}
    entries = schema.read_object(document, kinds)
    accepted = ESTIMATORS[entries["name"]]().get_params()
    for key in entries["parameters"]:
        if key not in accepted or key == "max_terms":
            problem = f"unknown key, expected parameters of {entries['name']}"
            raise Fault(problem, "parameters", schema.QuotedKey(key))
    return entries


POSITION = schema.integer("the position of a feature")
SIZE = {
    "size": schema.integer("a number of terms"),
    "scores": schema.list_of(schema.number("a number", lambda score: not math.isnan(score)), least=1),
    "recalls": schema.maybe(schema.list_of(schema.list_of(schema.SHARE), least=1)),
    "term_frequency": schema.list_of(schema.SHARE),
    "feature_frequency": schema.list_of(_frequency),
    "ensemble": from_dict,
    "certificate": None,
}
FRONT = {
    "format": None,
    "version": None,
    "scoring": schema.text,
    "status": schema.one_of(tuple(STATUS), f"one of {', '.join(STATUS)}"),
    "folds": schema.integer("a number of folds", 1, limits="at least one"),
    "estimator": _read_estimator,
    "rates": _rates,
    "sizes": schema.list_of(lambda entry: schema.read_object(entry, SIZE), least=1),
}


def _read_front(document: Any) -> ParetoFront:
    check_head(document, FORMAT, VERSION)
    entries = schema.read_object(document, FRONT)
    points: list[SizePoint] = []
    for k, size in enumerate(entries["sizes"]):
        with schema.under("sizes", k):
            _check_size(size, points[-1].size + 1 if points else 1, entries["rates"] is not None)
            points.append(_point(size, **entries["estimator"]))
            _check_beside(points, entries["folds"])
    return ParetoFront(tuple(points), entries["scoring"], entries["folds"], entries["status"])


def _check_size(entries: dict[str, Any], least: int, with_recalls: bool) -> None:
    """The parts of one size go with each other."""
    size, scores, recalls, ensemble = (entries[key] for key in ("size", "scores", "recalls", "ensemble"))
    if size < least:
        raise expected(f"sizes that ascend, at least {least}", size, "size")
    if (recalls is not None) is not with_recalls:
        raise Fault(f"expected {'lists' if with_recalls else 'null'}, as rates says", "recalls")
    if with_recalls and (len(recalls) != len(scores) or {len(RATES)} != set(map(len, recalls))):
        raise Fault(f"expected {len(RATES)} numbers for each of {len(scores)} folds", "recalls")
    if len(entries["term_frequency"]) != ensemble.n_terms:
        raise Fault(f"expected one for each of {ensemble.n_terms} terms", "term_frequency")
    if [feature for feature, _ in entries["feature_frequency"]] != list(ensemble.features_used):
        raise Fault("expected the features of the ensemble, ascending", "feature_frequency")


def _point(
    entries: dict[str, Any], name: str, parameters: dict[str, Any], categorical: tuple[int, ...]
) -> SizePoint:
    """One size with its fitted estimator, which is as it was but for how it was trained."""
    size, ensemble = entries["size"], entries["ensemble"]
    _check_kind(ensemble, name, size)
    if categorical and categorical[-1] >= ensemble.n_features:
        raise Fault("expected the features that estimator.categorical names", "ensemble")
    model = ESTIMATORS[name](**parameters, max_terms=size)
    restore_fitted(model, ensemble, _certificates(ensemble, entries["certificate"]), categorical)
    model.max_terms_ = size
    if not isinstance(model.l2, str):
        model.l2_ = model.l2
    frequencies = entries["term_frequency"], entries["feature_frequency"]
    return SizePoint(size, entries["scores"], entries["recalls"], model, *frequencies)


def _check_kind(ensemble: AnyModel, name: str, size: int) -> None:
    kinds = ("regression",) if name == "CardBoostRegressor" else ("binary", "multiclass")
    if ensemble.kind not in kinds or not isinstance(ensemble, Ensemble | MulticlassEnsemble):
        raise Fault(f"expected a model of {name}, found one of another kind", "ensemble")
    for part in parts_of(ensemble):
        if part.n_terms > size:
            raise Fault(f"expected at most size = {size} terms, found {part.n_terms}", "ensemble")


def _certificates(ensemble: Any, proof: Any) -> list[Certificate]:
    """The certificates of a model, one or one per class; their form is checked by their own checker."""
    several, parts = isinstance(ensemble, MulticlassEnsemble), parts_of(ensemble)
    proofs = proof if several else [proof]
    if not isinstance(proofs, list) or len(proofs) != len(parts):
        raise Fault(f"expected a list, one per class, found {schema.shown_json(proof)}", "certificate")
    for k, content in enumerate(proofs):
        steps = ("certificate", k) if several else ("certificate",)
        if not isinstance(content, dict):
            raise Fault(f"expected an object, found {schema.shown_json(content)}", *steps)
        for message in structure_faults(content):
            path, problem = message.split(": ", 1)
            inner = [int(index) if index else key for index, key in re.findall(r"\[(\d+)\]|(\w+)", path)]
            raise Fault(problem, *steps, *inner)
    positive = [None if part.classes is None else part.classes[1] for part in parts]
    return [Certificate(content, label) for content, label in zip(proofs, positive, strict=True)]


def _check_beside(points: list[SizePoint], folds: int) -> None:
    """The last of these sizes goes with those before it."""
    first, last = points[0], points[-1]
    if len(last.scores) > folds or len(last.scores) != len(first.scores):
        raise Fault(f"expected at most {folds} numbers, as many for every size", "scores")
    for name in ("kind", "loss", "n_features", "feature_names", "classes"):
        if getattr(first.model.ensemble_, name) != getattr(last.model.ensemble_, name):
            raise Fault("expected the same as in sizes[0]", "ensemble", name)
