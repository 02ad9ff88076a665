"""Model files: versioned JSON, written atomically, and refused when anything is wrong with them.

    {"format": "cardboost-model", "version": 3,
     "ensemble": {...}, "certificate": {...} or null, "training": {...} or null}

The ensemble is that of a binary classifier or a regressor,

    {"loss", "intercept", "n_features", "feature_names", "classes", "categories", "terms"}

with ``classes`` null for a regressor, and with a ``unit`` if the weights are whole multiples of one. For
more classes it is {"classes", "ensembles"}, and ``certificate`` is a list, both with one entry per class.
``categories`` has an entry {"feature", "kept", "rare"} for every feature that has labels in place of
numbers. A term is {"feature", "cut", "polarity", "missing_left", "weight"}, or has in place of "cut" a
"category": a kept label, or {"other": true} for all the rare ones; or "one_of": a list of these, at least
two in ascending order, {"other": true} last.

The ensemble of a linear model is {"loss", "n_features", "feature_names", "classes", "scores"}; a score is
{"intercept", "features", "weights"}, with the features that are used, ascending. There is one score, or one
per class; ``certificate`` is then a list, except for the loss "softmax".

That of a sum of networks is {"loss", "n_features", "feature_names", "classes", "activation", "mean", "scale",
"intercept", "nets"}; a net is {"gamma", "hidden", "bias", "out", "offset"}, lists of numbers (model/nets.py).

Numbers round-trip exactly: floats are written with the shortest decimals that give the same bits back. NaN
and infinity do not occur (a cut at infinity is null). What a certificate claims is left to its checker: here
it is an object or null. Every fault is reported with its JSON path.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import OTHER, Categories, Label, Other
from cardboost.model import checks
from cardboost.model.atomic import finish_switch, write_atomically
from cardboost.model.ensemble import Ensemble, Kind
from cardboost.model.linear import LinearModel, LinearScore
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.nets import Net, NetEnsemble
from cardboost.model.printable import printable_json
from cardboost.model.strict_json import fields, kind, parse, under
from cardboost.model.terms import Term

if TYPE_CHECKING:
    from cardboost.model.scorecard import Scorecard

FORMAT = "cardboost-model"
VERSION = 5  # version 1 has no terms with "one_of", 2 no "unit", 3 no linear models, 4 no networks
_WITHOUT_NETS, _WITHOUT_LINEAR = 4, 3
MAX_BYTES = 50_000_000
_TERM_KEYS = ("feature", "cut", "polarity", "missing_left", "weight")
_CATEGORY_TERM_KEYS = ("feature", "category", "polarity", "missing_left", "weight")
_SET_TERM_KEYS = ("feature", "one_of", "polarity", "missing_left", "weight")
_CATEGORIES_KEYS = ("feature", "kept", "rare")
_ENSEMBLE_KEYS = ("loss", "intercept", "n_features", "feature_names", "classes", "categories", "terms")
_MULTICLASS_KEYS = ("classes", "ensembles")
_LINEAR_KEYS = ("loss", "n_features", "feature_names", "classes", "scores")
_SCORE_KEYS = ("intercept", "features", "weights")
_NETS_KEYS = (
    "loss",
    "n_features",
    "feature_names",
    "classes",
    "activation",
    "mean",
    "scale",
    "intercept",
    "nets",
)
_NET_KEYS = ("gamma", "hidden", "bias", "out", "offset")
_MODEL_KEYS = ("format", "version", "ensemble", "certificate", "training")


AnyModel = Ensemble | MulticlassEnsemble | LinearModel | NetEnsemble


@dataclass(frozen=True)
class Model:
    """What a model file holds: the ensemble, the certificate it came with, and how it was trained.

    For more than two classes the certificate is a list, one entry per class.
    """

    ensemble: AnyModel
    certificate: dict[str, Any] | list[dict[str, Any]] | None = None
    training: dict[str, Any] | None = None

    @property
    def kind(self) -> Kind:
        """What it predicts: one of two classes, one of more classes, or a number."""
        return self.ensemble.kind

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels; None for a regressor."""
        return self.ensemble.classes

    def decision_function(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        """The score of every row; for more than two classes one per class, (rows, classes)."""
        return self.ensemble.decision_function(X, threads)

    def contributions(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        """What each feature adds to the score: (rows, features), or (rows, features, classes)."""
        return self.ensemble.contributions(X, threads)

    def predict_proba(self, X: Any, threads: int = 1) -> NDArray[np.float64]:
        """Probabilities of the classes: (rows, classes). A regressor has none."""
        return self.ensemble.predict_proba(X, threads)

    def predict(self, X: Any, threads: int = 1) -> NDArray[Any]:
        """The label of every row; of a regressor its number."""
        return self.ensemble.predict(X, threads)

    def card(
        self,
        *,
        title: str | None = None,
        certificate_lines: Sequence[str] | Sequence[Sequence[str]] = (),
        width: int = 78,
    ) -> str:
        from cardboost.model.card import render_card

        if isinstance(self.ensemble, NetEnsemble):
            raise ValueError("a card is for terms that a person can add up; networks have none.")
        if isinstance(self.ensemble, LinearModel):
            from cardboost.model.linear_card import render_linear

            lines = [line for line in certificate_lines if isinstance(line, str)]
            return render_linear(self.ensemble, title=title, certificate_lines=lines, width=width)
        return render_card(self.ensemble, title=title, certificate_lines=certificate_lines, width=width)

    def scorecard(self, certificate: Any = None) -> Scorecard:
        """The card in points of a model whose weights have a unit; ``certificate`` is shown on it."""
        from cardboost.model.scorecard import Scorecard

        if not isinstance(self.ensemble, Ensemble):
            raise ValueError("a scorecard is for two classes.")
        return Scorecard.from_notes(self.ensemble, (self.training or {}).get("scorecard"), certificate)


# ------------------------------------------------------------------------------------------------ reading


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file; a ValueError says where the first fault is."""
    source = os.fspath(path)
    if os.path.isdir(source):
        raise ValueError(f"{source}: expected a model file, found a folder")
    with contextlib.suppress(OSError):
        finish_switch(Path(source).parent)
    with open(source, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    return read_model(data, source)


def read_model(data: bytes, source: str = "model") -> Model:
    """The model in the bytes of a file; ``source`` names them in messages."""
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"top level: expected at most {MAX_BYTES // 1_000_000} MB, found a larger file")
        return _model(parse(data))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def from_dict(document: Any) -> AnyModel:
    """The way back from ``to_dict`` of an ensemble; a ValueError starts with the path of the first fault."""
    if isinstance(document, dict) and "scores" in document:
        return _linear(document)
    if isinstance(document, dict) and "nets" in document:
        return _nets(document)
    if not isinstance(document, dict) or "ensembles" not in document:
        return _ensemble(document)
    given = fields(document, _MULTICLASS_KEYS, "")
    ensembles = []
    for k, entry in enumerate(_list(given, "ensembles")):
        with under(f"ensembles[{k}]"):
            ensembles.append(_ensemble(entry))
    return MulticlassEnsemble(given["classes"], tuple(ensembles))


def _linear(document: Any) -> LinearModel:
    given = fields(document, _LINEAR_KEYS, "")
    scores = []
    for k, entry in enumerate(_list(given, "scores")):
        with under(f"scores[{k}]"):
            own = fields(entry, _SCORE_KEYS, "")
            scores.append(
                LinearScore(own["intercept"], tuple(_list(own, "features")), tuple(_list(own, "weights")))
            )
    return LinearModel(**(given | {"scores": tuple(scores)}))


def _nets(document: Any) -> NetEnsemble:
    given = fields(document, _NETS_KEYS, "")
    nets = []
    for k, entry in enumerate(_list(given, "nets")):
        with under(f"nets[{k}]"):
            nets.append(Net(**fields(entry, _NET_KEYS, "")))
    return NetEnsemble(**(given | {"nets": tuple(nets)}))


def _ensemble(document: Any) -> Ensemble:
    given = fields(document, _ENSEMBLE_KEYS, "", ("unit",))
    terms = []
    for k, entry in enumerate(_list(given, "terms")):
        with under(f"terms[{k}]"):
            terms.append(_term(entry))
    categorical = {term.feature for term in terms if term.labels}
    categories: dict[int, Categories] = {}
    for k, entry in enumerate(_list(given, "categories")):
        with under(f"categories[{k}]"):
            feature, own = _categories(entry)
            if feature not in categorical or feature in categories:
                once = (
                    "one entry per feature" if feature in categories else "a feature with categorical terms"
                )
                raise checks.fault("feature", once, feature)
            categories[feature] = own
    return Ensemble(**(given | {"terms": tuple(terms), "categories": categories}))


def _term(entry: Any) -> Term:
    if isinstance(entry, dict) and "category" in entry:
        given = fields(entry, _CATEGORY_TERM_KEYS, "")
        return Term(**(given | {"cut": None, "category": _category(given["category"])}))
    if isinstance(entry, dict) and "one_of" in entry:
        given = fields(entry, _SET_TERM_KEYS, "")
        labels = [_category(own, f"one_of[{k}]") for k, own in enumerate(_list(given, "one_of"))]
        return Term(**(given | {"cut": None, "one_of": tuple(labels)}))
    given = fields(entry, _TERM_KEYS, "")
    if given["cut"] is None:
        given["cut"] = float("inf")
    return Term(**given)


def _category(value: Any, field: str = "category") -> Label | Other:
    if isinstance(value, dict):
        if len(value) == 1 and value.get("other") is True:
            return OTHER
        raise ValueError(f'{field}: expected a label or {{"other": true}}, found another object')
    if value is None or isinstance(value, list):
        raise ValueError(f'{field}: expected a label or {{"other": true}}, found {kind(value)}')
    return value


def _categories(entry: Any) -> tuple[int, Categories]:
    given = fields(entry, _CATEGORIES_KEYS, "")
    feature = checks.integer("feature", given["feature"], "the index of a feature")
    kept, rare = _list(given, "kept"), _list(given, "rare")
    checks.check_labels(kept, rare)
    return feature, Categories(tuple(kept), tuple(rare))


def _list(given: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(given[key], list):
        raise ValueError(f"{key}: expected a list, found {kind(given[key])}")
    return list(given[key])


def _model(document: Any) -> Model:
    if not isinstance(document, dict):
        raise ValueError(f"top level: expected an object, found {kind(document)}")
    if document.get("format") != FORMAT:
        found = f"found {kind(document['format'])}" if "format" in document else "it is missing"
        raise ValueError(f"format: expected {FORMAT!r}, {found}")
    version = document.get("version")
    if type(version) is not int or version < 1:
        found = f"found {kind(version)}" if "version" in document else "it is missing"
        raise ValueError(f"version: expected an integer from 1 to {VERSION}, {found}")
    if version > VERSION:
        raise ValueError(f"version: expected at most {VERSION}, found {version}: a newer cardboost wrote it")
    given = fields(document, _MODEL_KEYS, "")
    own = given["ensemble"]
    if version == 1 and isinstance(own, dict) and "terms" in own:
        own = {"categories": [], **own}  # the first files of version 1 knew numbers only
    with under("ensemble"):
        ensemble = from_dict(own)
    certificate, training = given["certificate"], given["training"]
    several = _several(ensemble)
    if several and isinstance(certificate, list):
        if len(certificate) != several:
            expected = f"one for each of {several} classes"
            raise ValueError(f"certificate: expected {expected}, found {len(certificate)}")
        for k, own in enumerate(certificate):
            if not isinstance(own, dict):
                raise ValueError(f"certificate[{k}]: expected an object, found {kind(own)}")
    elif several and certificate is not None:
        raise ValueError(f"certificate: expected a list, one per class, or null, found {kind(certificate)}")
    elif not isinstance(certificate, dict | None):
        raise ValueError(f"certificate: expected an object or null, found {kind(certificate)}")
    if not isinstance(training, dict | None):
        raise ValueError(f"training: expected an object or null, found {kind(training)}")
    return Model(ensemble, certificate, training)


def _several(ensemble: AnyModel) -> int:
    """How many certificates a model has where it has one per class, else 0."""
    if isinstance(ensemble, LinearModel):
        return len(ensemble.scores) if ensemble.loss == "logistic" and len(ensemble.scores) > 1 else 0
    return len(ensemble.classes) if isinstance(ensemble, MulticlassEnsemble) else 0


# ------------------------------------------------------------------------------------------------ writing


def save(
    path: str | os.PathLike[str],
    ensemble: AnyModel,
    certificate: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write a model file. Whatever happens on the way, the path holds the old file or the new one."""
    data = model_bytes(ensemble, certificate, training)
    write_atomically(Path(os.path.realpath(path)), data)


def model_bytes(
    ensemble: AnyModel,
    certificate: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    training: Mapping[str, Any] | None = None,
) -> bytes:
    """The content of a model file, in a layout for people: one line for every term."""
    proof: Any = certificate
    if certificate is not None:
        proof = dict(certificate) if isinstance(certificate, Mapping) else [dict(own) for own in certificate]
    document = {
        "format": FORMAT,
        "version": _version(ensemble),
        "ensemble": ensemble.to_dict(),
        "certificate": proof,
        "training": None if training is None else dict(training),
    }
    # where there are several ensembles and certificates, those are further inside
    deeper = 2 if isinstance(ensemble, MulticlassEnsemble) else 0
    deeper = 1 if isinstance(ensemble, LinearModel | NetEnsemble) else deeper
    spread = {"ensemble": 2 + deeper, "certificate": 2 + deeper // 2, "training": 2}
    try:
        entries = [f"  {_compact(key)}: {_layout(v, 1, spread.get(key, 0))}" for key, v in document.items()]
    except RecursionError:
        raise ValueError("the model cannot be saved: certificate or training nests too deeply") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model cannot be saved as JSON: {error}") from None
    text = "{\n" + ",\n".join(entries) + "\n}\n"
    data = text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
    read_model(data, "the model cannot be saved")  # what is written can be read
    return data


def _version(ensemble: AnyModel) -> int:
    """The oldest that can hold the model, so that older readers take what they can."""
    if isinstance(ensemble, NetEnsemble):
        return VERSION
    return _WITHOUT_NETS if isinstance(ensemble, LinearModel) else _WITHOUT_LINEAR


def _layout(value: Any, depth: int, spread: int) -> str:
    """JSON with so many outer levels spread over lines."""
    if not isinstance(value, dict | list) or not value or not spread:
        return _compact(value)
    pad = "  " * (depth + 1)
    if isinstance(value, dict):
        entries = [
            f"{pad}{_compact(str(key))}: {_layout(entry, depth + 1, spread - 1)}"
            for key, entry in value.items()
        ]
        return "{\n" + ",\n".join(entries) + "\n" + pad[2:] + "}"
    if not any(isinstance(entry, dict | list) for entry in value):
        return _compact(value)
    lines = [pad + _layout(entry, depth + 1, spread - 1) for entry in value]
    return "[\n" + ",\n".join(lines) + "\n" + pad[2:] + "]"


def _compact(value: Any) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and mappings and sequences of other types, as JSON knows them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} has no place in a model file")
