"""Model files: versioned JSON, written atomically, and refused when anything is wrong with them.

    {"format": "cardboost-model", "version": 3,
     "ensemble": {...}, "certificate": {...} or null, "training": {...} or null}

The ensemble is that of a binary classifier or a regressor,

    {"loss", "intercept", "n_features", "feature_names", "classes", "categories", "terms"}

with ``classes`` null for a regressor, with a ``unit`` if the weights are whole multiples of one, with
``missing_in_training``, the features that had missing values in training, if that is known, and with an
``operating_point`` {"score", "rule", "rows", "recall", "precision", "fpr"} if the second class does not begin
above a score of 0 (model/operating_point.py). For more classes it is {"classes", "ensembles"}, and
``certificate`` is a list, both with one entry per class.
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
import gc
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cardboost.model.atomic import finish_switch, write_atomically
from cardboost.model.base import ModelKind
from cardboost.model.ensemble import Ensemble
from cardboost.model.linear import LinearModel
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.nets import NetEnsemble
from cardboost.model.printable import printable_json
from cardboost.model.schema import Fault, parse, read_object, shown_json, under

if TYPE_CHECKING:
    from cardboost.model.scorecard import Scorecard

FORMAT = "cardboost-model"
#: version 1 has no terms with "one_of", 2 no "unit", 3 no linear models, 4 no networks, 5 neither operating
#: points nor the features that had missing values
VERSION = 6
MAX_BYTES = 50_000_000  # a hundred times the largest model with a certificate in the benchmarks
_KEYS = ("format", "version", "ensemble", "certificate", "training")
#: the oldest version that can hold a model, so that older readers take what they can; and the levels of the
#: ensemble and of the certificate that are spread over lines, for a line per term
_LAYOUT = {Ensemble: (3, 2, 2), MulticlassEnsemble: (3, 4, 3), LinearModel: (4, 3, 2), NetEnsemble: (5, 3, 2)}
#: the key of an ensemble that tells its kind
_KINDS = {"scores": LinearModel, "nets": NetEnsemble, "ensembles": MulticlassEnsemble}

Document = TypeVar("Document")
Certificates = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
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
    def kind(self) -> ModelKind:
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
        """The model as a page of text to read and add up; networks have none."""
        from cardboost.model.card import render_card

        if isinstance(self.ensemble, NetEnsemble):
            raise ValueError("a card is for terms that a person can add up; networks have none.")
        return render_card(self.ensemble, title=title, certificate_lines=certificate_lines, width=width)

    def scorecard(self, certificate: Any = None) -> Scorecard:
        """The card in points of a model whose weights have a unit; ``certificate`` is shown on it."""
        from cardboost.model.scorecard import Scorecard

        if not isinstance(self.ensemble, Ensemble):
            raise ValueError("a scorecard is for two classes.")
        return Scorecard.from_notes(self.ensemble, (self.training or {}).get("scorecard"), certificate)


# ------------------------------------------------------------------------------------------------ reading


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : str or path
        What :meth:`save` of an estimator, or ``cardboost fit``, has written.

    Returns
    -------
    Model
        The model, which predicts as the estimator did.

    Raises
    ------
    ValueError
        The file is no model; the message begins with the JSON path of the first fault.
    """
    return read_model(file_content(path, "a model file", MAX_BYTES), os.fspath(path))


def read_model(data: bytes, source: str = "model") -> Model:
    """The model in the bytes of a file; ``source`` names them in messages."""
    return read_document(data, source, MAX_BYTES, _read_model)


def file_content(path: str | os.PathLike[str], what: str, most: int) -> bytes:
    """The bytes of a file, and one more than ``most`` of a larger one."""
    source = os.fspath(path)
    if os.path.isdir(source):
        raise ValueError(f"{source}: expected {what}, found a folder")
    with contextlib.suppress(OSError):  # a folder that cannot be written can be read
        finish_switch(Path(source).parent)
    with open(source, "rb") as file:
        return file.read(most + 1)


def read_document(data: bytes, source: str, most: int, read: Callable[[Any], Document]) -> Document:
    """What ``read`` makes of JSON; faults begin with the source and the path."""
    collecting = gc.isenabled()
    gc.disable()  # millions of lists without a cycle: looking for one would double the time
    try:
        if len(data) > most:
            raise Fault(f"expected at most {most // 1_000_000} MB, found a larger file")
        return read(parse(data))
    except Fault as fault:
        raise ValueError(f"{source}: {'' if fault.steps else 'top level: '}{fault}") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    finally:
        if collecting:
            gc.enable()


def check_head(document: Any, name: str, newest: int) -> int:
    """The version of a document, which is an object of this format and none of a newer version."""
    if not isinstance(document, dict):
        raise Fault(f"expected an object, found {shown_json(document)}")
    if document.get("format") != name:
        raise Fault(f"expected {name!r}, {_found(document, 'format')}", "format")
    version = document.get("version")
    if type(version) is int and version > newest > 1:
        raise Fault(f"expected at most {newest}, found {version}: a newer cardboost wrote it", "version")
    if type(version) is not int or not 1 <= version <= newest:
        accepted = f"an integer from 1 to {newest}" if newest > 1 else "1"
        raise Fault(f"expected {accepted}, {_found(document, 'version')}", "version")
    return version


def _found(document: dict[str, Any], key: str) -> str:
    return f"found {shown_json(document[key])}" if key in document else "it is missing"


def from_dict(document: Any) -> AnyModel:
    """The way back from ``to_dict`` of a model; a ValueError starts with the path of the first fault."""
    keys = document if isinstance(document, dict) else ()
    kind: Any = next((kind for key, kind in _KINDS.items() if key in keys), Ensemble)
    return kind.from_dict(document)


def _read_model(document: Any) -> Model:
    version = check_head(document, FORMAT, VERSION)
    entries = read_object(document, dict.fromkeys(_KEYS))
    ensemble = entries["ensemble"]
    if version == 1 and isinstance(ensemble, dict) and "terms" in ensemble:
        ensemble = {"categories": [], **ensemble}  # the first files of version 1 had numbers only
    with under("ensemble"):
        model = from_dict(ensemble)
    certificate, training = entries["certificate"], entries["training"]
    if certificate is not None:
        with under("certificate"):
            _check_certificates(certificate, model)
    if not isinstance(training, dict | None):
        raise Fault(f"expected an object or null, found {shown_json(training)}", "training")
    return Model(model, certificate, training)


def _check_certificates(value: Any, model: AnyModel) -> None:
    """Check that this is an object, or a list of one per class; what they claim is not looked at."""
    several = isinstance(model, MulticlassEnsemble)
    several = several or (
        isinstance(model, LinearModel) and model.loss == "logistic" and len(model.scores) > 1
    )
    if not several:
        if not isinstance(value, dict):
            raise Fault(f"expected an object or null, found {shown_json(value)}")
        return
    if not isinstance(value, list):
        raise Fault(f"expected a list, one per class, or null, found {shown_json(value)}")
    if len(value) != len(model.parts):
        raise Fault(f"expected one for each of {len(model.parts)} classes, found {len(value)}")
    for k, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise Fault(f"expected an object, found {shown_json(entry)}", k)


# ------------------------------------------------------------------------------------------------ writing


def save(
    path: str | os.PathLike[str],
    ensemble: AnyModel,
    certificate: Certificates = None,
    training: Mapping[str, Any] | None = None,
) -> None:
    """Write a model file. Whatever happens on the way, the path holds the old file or the new one."""
    data = model_bytes(ensemble, certificate, training)
    write_atomically(Path(os.path.realpath(path)), data)


def save_fitted(path: str | os.PathLike[str], ensemble: AnyModel, certificate: Any, estimator: Any) -> None:
    """Write the model of a fitted estimator with its certificates, if any, and its parameters."""
    proof = certificate
    if certificate is not None:
        several = isinstance(certificate, list)
        proof = [part.to_dict() for part in certificate] if several else certificate.to_dict()
    save(path, ensemble, proof, training_notes(estimator))


def training_notes(estimator: Any) -> dict[str, Any]:
    """The parameters of a fitted estimator, and its regularisation where a fit decides on it."""
    notes: dict[str, Any] = {"parameters": parameters_to_json(estimator)}
    if hasattr(estimator, "regularisation_"):
        notes["regularisation"] = estimator.regularisation_.to_dict()
    return notes


def parameters_to_json(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator, for people to read: what JSON does not have is text."""
    return {
        name: value if isinstance(value, int | float | str | bool | None) else repr(value)
        for name, value in estimator.get_params(deep=False).items()
    }


def model_bytes(
    ensemble: AnyModel, certificate: Certificates = None, training: Mapping[str, Any] | None = None
) -> bytes:
    """The content of a model file, in a layout for people: one line for every term."""
    content = ensemble.to_dict()  # the models that no file holds say why
    version, deep, deep_certificate = _LAYOUT[type(ensemble)]
    told = (getattr(part, "missing_in_training", None) is not None for part in getattr(ensemble, "parts", ()))
    if "operating_point" in content or any(told):
        version = max(version, 6)
    proof = list(certificate) if isinstance(certificate, Sequence) else certificate
    document = dict(zip(_KEYS, (FORMAT, version, content, proof, training), strict=True))
    try:
        data = document_bytes(document, {"ensemble": deep, "certificate": deep_certificate, "training": 2})
    except RecursionError:
        raise ValueError("the model cannot be saved: certificate or training nests too deeply") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model cannot be saved as JSON: {error}") from None
    read_model(data, "the model cannot be saved")  # what is written can be read
    return data


def document_bytes(document: Mapping[str, Any], spread: Mapping[str, int]) -> bytes:
    """JSON with a line for every entry, of which some are spread over lines down to a level."""
    entries = [f"  {_compact(key)}: {_layout(v, 1, spread.get(key, 0))}" for key, v in document.items()]
    lines = "{\n" + ",\n".join(entries) + "\n}\n"
    return lines.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape


def _layout(value: Any, depth: int, spread: int) -> str:
    """JSON with so many outer levels spread over lines."""
    if not isinstance(value, Mapping | list) or not value or not spread:
        return _compact(value)
    if isinstance(value, Mapping):
        opening, closing = "{", "}"
        entries = [f"{_compact(str(key))}: {_layout(v, depth + 1, spread - 1)}" for key, v in value.items()]
    elif any(isinstance(entry, dict | list) for entry in value):
        opening, closing = "[", "]"
        entries = [_layout(entry, depth + 1, spread - 1) for entry in value]
    else:
        return _compact(value)
    pad = "  " * depth
    return f"{opening}\n  {pad}" + f",\n  {pad}".join(entries) + f"\n{pad}{closing}"


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
