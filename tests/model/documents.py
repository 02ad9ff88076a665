"""Documents of model files, changes of them, and what a reader must say of a damaged one."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from cardboost.model.files import from_dict, model_bytes, read_model

CERTIFICATE = {
    "objective": 0.1,
    "leaves": [{"bound": 0.1 + 0.2, "forced_in": []}],
    "scope": "pool",
    "none": None,
}


TRAINING = {"max_terms": 10, "seed": None, "verbose": False}


def refusal(document: Any) -> str:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    with pytest.raises(ValueError) as error:
        read_model(data, "model.json")
    assert type(error.value) is ValueError
    return str(error.value)


def _set(*steps: Any) -> Any:
    """A change of the document: the last step is the value, those before it the way to it."""

    def change(document: Any) -> None:
        *way, key, value = steps
        for step in way:
            document = document[step]
        document[key] = value

    return change


def _drop(*steps: Any) -> Any:
    def change(document: Any) -> None:
        *way, key = steps
        for step in way:
            document = document[step]
        del document[key]

    return change


_PLACE = re.compile(
    r"model: (top level|line \d+ column \d+|byte \d+|[a-z_]+([.\[].*)?|\['.*|\[\".*): \S", re.DOTALL
)


def check_mutant(data: bytes) -> bool:
    """Loads to a sound ensemble (true), or is refused with a place (false)."""
    message = None
    try:
        model = read_model(data)
    except ValueError as error:
        message = str(error) if type(error) is ValueError else repr(error)
    if message is not None:
        assert _PLACE.match(message), message
        assert len(message) < 600
        return False
    ensemble = model.ensemble
    assert from_dict(ensemble.to_dict()) == ensemble
    if ensemble.n_features < 100:
        X = np.random.default_rng(0).normal(size=(5, ensemble.n_features))
        X[0] = np.nan
        assert np.isfinite(ensemble.decision_function(X)).all()
        assert ensemble.predict(X).shape == (5,)
    model.card()
    assert read_model(model_bytes(ensemble, model.certificate, model.training)) == model
    return True


def _places(value: Any) -> list[tuple[Any, Any]]:
    entries = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [(value, key) for key, _ in entries] + [place for _, entry in entries for place in _places(entry)]
