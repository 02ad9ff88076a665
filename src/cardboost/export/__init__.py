"""Models as C, Python, SQL, ONNX and JSON: what runs where cardboost does not.

See docs/export.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["FORMATS", "export_model"]


def export_model(
    ensemble: Any, format: str, path: str | os.PathLike[str] | None = None, **options: Any
) -> str | bytes:
    """The model in another form, and if ``path`` is given also in that file, which is never half written.

    ``ensemble``: an ensemble, or what has one: a scorecard, or the model of a file. ``format``: "c",
    "c-int16", "python", "sql", "onnx" (bytes, the others are text) or "json". Options are those of the
    format: see docs/export.md. C has ``test_vectors``, a path for a second header with a self-test.
    """
    if format not in FORMATS:
        raise ValueError(f"format: expected {', '.join(map(repr, FORMATS))}, found {format!r}.")
    files = FORMATS[format](getattr(ensemble, "ensemble", ensemble), path, options)
    from cardboost.model.atomic import write_atomically

    for target, content in files:
        if target is not None:
            data = content if isinstance(content, bytes) else content.encode("utf-8")
            write_atomically(Path(os.path.realpath(target)), data)
    return files[0][1]


_Files = list[tuple[Any, str | bytes]]


def _with_options(function: Callable[..., Any], ensemble: Any, options: dict[str, Any]) -> Any:
    """Call an exporter; an option that it does not have is named."""
    from inspect import signature

    known = [name for name, own in signature(function).parameters.items() if own.kind == own.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            listed = ", ".join(known) if known else "none"
            raise ValueError(f"{name}: this format has no such option; its options are: {listed}.")
    return function(ensemble, **options)


def _c(ensemble: Any, path: Any, options: dict[str, Any], number: str) -> _Files:
    from cardboost.export.c import header
    from cardboost.export.c_model import c_model
    from cardboost.export.c_vectors import vectors

    if "number" in options:
        raise ValueError("number: the format says it: 'c' takes float, 'c-int16' int16.")
    rest = dict(options)
    tests = rest.pop("test_vectors", None)
    model = _with_options(c_model, ensemble, rest | {"number": number})
    files: _Files = [(path, header(model))]
    if tests is not None:
        name = None if path is None else os.path.basename(os.fspath(path))
        files.append((tests, vectors(model, name)))
    return files


def _python(ensemble: Any, path: Any, options: dict[str, Any]) -> _Files:
    from cardboost.export.python import export_python

    return [(path, _with_options(export_python, ensemble, options))]


def _sql(ensemble: Any, path: Any, options: dict[str, Any]) -> _Files:
    from cardboost.export.sql import export_sql

    return [(path, _with_options(export_sql, ensemble, options))]


def _onnx(ensemble: Any, path: Any, options: dict[str, Any]) -> _Files:
    from cardboost.export.onnx import export_onnx
    from cardboost.export.onnx_nets import export_onnx_nets
    from cardboost.model.nets import NetEnsemble

    if isinstance(ensemble, NetEnsemble):
        return [(path, _with_options(export_onnx_nets, ensemble, options))]
    return [(path, _with_options(export_onnx, ensemble, options))]


def _json(ensemble: Any, path: Any, options: dict[str, Any]) -> _Files:
    from cardboost.export.plan import Plan
    from cardboost.model.files import model_bytes
    from cardboost.model.nets import NetEnsemble

    def plain(ensemble: Any) -> str:
        if not isinstance(ensemble, NetEnsemble):
            Plan.of(ensemble)
        return model_bytes(ensemble).decode("utf-8")

    return [(path, _with_options(plain, ensemble, options))]


FORMATS: dict[str, Callable[[Any, Any, dict[str, Any]], _Files]] = {
    "c": lambda ensemble, path, options: _c(ensemble, path, options, "float"),
    "c-int16": lambda ensemble, path, options: _c(ensemble, path, options, "int16"),
    "python": _python,
    "sql": _sql,
    "onnx": _onnx,
    "json": _json,
}
