"""The bits of many random fits: recorded before the code is rearranged, compared afterwards.

Cases with a time limit are left out. Refusals count too: they must come with the same sentence.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.draw import Case, case
from fuzz.invariants import Fitted, fit

Digests = dict[str, dict[str, Any]]


def record(first: int, count: int) -> Digests:
    """Digests of the first ``count`` cases from seed ``first`` on that read no clock."""
    digests: Digests = {}
    seed = first
    while len(digests) < count:
        drawn = case(seed)
        if drawn.time_limit is None:
            digests[str(seed)] = {"target": drawn.target} | _of_case(drawn)
        seed += 1
    return digests


def _of_case(drawn: Case) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = fit(drawn)
        except (ValueError, TypeError) as error:
            return {"refused": str(error)}
        return {"scores": _bits(fitted.scores(drawn.X)), "proofs": list(_proofs(fitted))}


def _bits(scores: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(scores, dtype=np.float64).tobytes()).hexdigest()[:16]


def _proofs(fitted: Fitted) -> Any:
    """Objective and lower bound of every certificate, to the bit."""
    for model in fitted.models():
        given = getattr(model, "certificate_", getattr(model, "certificate", None))
        for one in given if isinstance(given, list) else [given]:
            if one is not None:
                yield [float(getattr(one, name, np.nan)).hex() for name in ("objective", "lower_bound")]


def compare(path: Path, first: int, count: int) -> list[str]:
    """Every case that is not as recorded in ``path``; without such a file it is written."""
    found = record(first, count)
    if not path.exists():
        path.write_text(json.dumps(found, indent=0))
        return []
    recorded = json.loads(path.read_text())
    return [
        f"seed {seed}, {now['target']}: {key} was {recorded[seed].get(key)}, is {now.get(key)}"
        for seed, now in found.items()
        for key in sorted({*now, *recorded[seed]})
        if now.get(key) != recorded[seed].get(key)
    ]
