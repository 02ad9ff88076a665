"""Models as C, Python, SQL, JavaScript, Excel, ONNX and JSON: what runs where cardboost does not.

See docs/export.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

__all__ = ["FORMATS", "export_model"]

_Files = list[tuple[Any, str | bytes]]


def export_model(
    ensemble: Any, format: str, path: str | os.PathLike[str] | None = None, **options: Any
) -> str | bytes:
    """Write a model in another language or format.

    Parameters
    ----------
    ensemble : Ensemble, MulticlassEnsemble, NetEnsemble or Scorecard
        Or the model of a file. A scorecard is exported in whole points.
    format : {"c", "c-int16", "python", "sql", "javascript", "excel", "onnx", "json"}
        "c" takes float32 values, "c-int16" whole numbers.
    path : path-like, default None
        The file to write, which is never half written; None writes none.
    **options
        Of the format:

        - "c", "c-int16": those of :func:`cardboost.export.c_model.c_model`, and ``test_vectors``, a path for
          a second header with a self-test, and ``test_rows``, a table whose rows are tested too (none by
          default: no row of a table leaves it unasked)
        - "python": ``name`` of the function, ``by`` "name", "position" or "auto": how it reads a row, and
          ``output``
        - "sql": ``output`` "score", "class" or "probability", ``table`` in front of the columns
        - "javascript": ``name`` of the function, ``module=True`` for an ES module
        - "excel": ``rows``, how many are prepared
        - "onnx": ``exact=False`` accepts decisions that rounding may change (models of stumps)
        - "json": none

    Returns
    -------
    str or bytes
        The exported model; bytes for "excel" and "onnx".

    Raises
    ------
    ValueError
        Where the format or an option is unknown, or the model cannot be exported in this way.
    ImportError
        Where "onnx" or, for "excel", openpyxl is not installed.

    Examples
    --------
    >>> from cardboost.export import export_model
    >>> from cardboost.model import Ensemble, Term
    >>> card = Ensemble("logistic", 0.5, (Term(0, 2.5, 1, False, 1.0),), ("age",), 1, (0, 1))
    >>> print(export_model(card, "sql").strip())
    (CAST(0.5e0 AS DOUBLE PRECISION)
     + CASE WHEN CAST("age" AS DOUBLE PRECISION) <= 2.5e0 THEN 1.0e0 ELSE -1.0e0 END)
    """
    if format not in FORMATS:
        raise ValueError(f"format: expected {', '.join(map(repr, FORMATS))}, found {format!r}.")
    from cardboost.model.atomic import write_atomically
    from cardboost.model.files import Model
    from cardboost.model.predictions import scorecard_of

    model = ensemble
    if isinstance(model, Model):
        model = scorecard_of(model) or model.ensemble
    files = FORMATS[format](model, path, options)

    for target, content in files:
        if target is not None:
            data = content if isinstance(content, bytes) else content.encode("utf-8")
            write_atomically(Path(os.path.realpath(target)), data)
    return files[0][1]


def _call(exporter: Callable[..., Any], ensemble: Any, options: dict[str, Any]) -> Any:
    """Call an exporter; the message for an option that it does not have lists its options."""
    parameters = signature(exporter).parameters.values()
    names = [option.name for option in parameters if option.kind == option.KEYWORD_ONLY]
    for name in options.keys() - names:
        listed = ", ".join(names) or "none"
        raise ValueError(f"{name}: this format has no such option; its options are: {listed}.")
    return exporter(ensemble, **options)


def _c(ensemble: Any, path: Any, options: dict[str, Any], number: str) -> _Files:
    from cardboost.export.c import header
    from cardboost.export.c_model import c_model
    from cardboost.export.c_vectors import encoded, vectors

    if "number" in options:
        raise ValueError("number: the format says it: 'c' takes float, 'c-int16' int16.")
    tests, rows = options.get("test_vectors"), options.get("test_rows")
    options = {name: value for name, value in options.items() if name not in ("test_vectors", "test_rows")}
    model = _call(c_model, ensemble, options | {"number": number})
    if tests is None:
        if rows is not None:
            raise ValueError("test_rows: they are for test vectors, and test_vectors names no file.")
        return [(path, header(model))]
    name = None if path is None else os.path.basename(os.fspath(path))
    more = None if rows is None else encoded(model, getattr(ensemble, "ensemble", ensemble), rows)
    return [(path, header(model)), (tests, vectors(model, name, more))]


def _one_file(ensemble: Any, path: Any, options: dict[str, Any], format: str) -> _Files:
    exporter = getattr(import_module(f"cardboost.export.{format}"), f"export_{format}")
    return [(path, _call(exporter, ensemble, options))]


def _onnx(ensemble: Any, path: Any, options: dict[str, Any]) -> _Files:
    from cardboost.export.onnx import NetEnsemble, export_onnx, export_onnx_nets

    exporter = export_onnx_nets if isinstance(ensemble, NetEnsemble) else export_onnx
    return [(path, _call(exporter, ensemble, options))]


def _json(ensemble: Any, path: Any, options: dict[str, Any]) -> _Files:
    from cardboost.export.plan import Plan
    from cardboost.model.files import NetEnsemble, model_bytes
    from cardboost.model.scorecard import Scorecard

    def plain(ensemble: Any) -> str:
        if isinstance(ensemble, Scorecard):
            return model_bytes(ensemble.ensemble, training={"scorecard": ensemble.notes()}).decode("utf-8")
        if not isinstance(ensemble, NetEnsemble):
            Plan.of(ensemble)
        return model_bytes(ensemble).decode("utf-8")

    return [(path, _call(plain, ensemble, options))]


#: exporters by format: from the model, the path and the options to the files with their paths
FORMATS: dict[str, Callable[[Any, Any, dict[str, Any]], _Files]] = {
    "c": partial(_c, number="float"),
    "c-int16": partial(_c, number="int16"),
    "python": partial(_one_file, format="python"),
    "sql": partial(_one_file, format="sql"),
    "javascript": partial(_one_file, format="javascript"),
    "excel": partial(_one_file, format="excel"),
    "onnx": _onnx,
    "json": _json,
}
