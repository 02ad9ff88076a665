"""`cardboost certify`: does the certificate in a model file hold for these data?

The checker recomputes every number of the certificate from the data and shares no code with the training.
Here it is also checked that the model in the file is the one that the certificate is about.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cardboost.cli import checks
from cardboost.cli.files import CERTIFICATE_FAILS, OK, BadInput, card_of, read_model_file
from cardboost.cli.options import DATA, FORMAT, MODEL, flag, option
from cardboost.cli.verb import Verb
from cardboost.data.sentences import counted
from cardboost.model.printable import printable_json, printable_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cardboost.cli.rows import Rows
    from cardboost.data.frame import Frame
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.files import Model

_MOST_FAULTS = 10


@dataclass(frozen=True, eq=False)
class CertifiedPart:
    """A model of one certificate: the whole, or of several classes one against the rest.

    ``label``: True for the rows of the positive class, or targets; ``path``: in the model file.
    """

    ensemble: Ensemble
    certificate: dict[str, Any]
    label: NDArray[Any]
    path: str


def read_model_and_data(arguments: SimpleNamespace, verb: str) -> tuple[Model, list[CertifiedPart], Rows]:
    """The model file, its parts with their certificates, and the rows that these are about.

    Remarks on how the table was read are said in the name of ``verb``.
    """
    from cardboost.cli.model_rows import trained_rows

    model = read_model_file(arguments.model)
    ensemble = card_of(model, arguments.model)
    contents = model.certificate if isinstance(model.certificate, list) else [model.certificate]
    if not all(isinstance(content, dict) for content in contents) or len(contents) != len(ensemble.parts):
        raise BadInput(f"{arguments.model} holds no certificate.")
    rows = trained_rows(arguments, model, verb)
    parts = []
    for k, (part, content) in enumerate(zip(ensemble.parts, contents, strict=True)):
        several = len(contents) > 1
        label = rows.target if model.classes is None else rows.target == (k if several else 1)
        parts.append(
            CertifiedPart(part, content or {}, label, f"certificate[{k}]" if several else "certificate")
        )
    return model, parts, rows


def run(arguments: SimpleNamespace) -> int:
    model, parts, rows = read_model_and_data(arguments, "certify")
    by_part = [_faults(part, rows) for part in parts]
    if arguments.json:
        verdict = _verdict(model, parts, _sentences(model, by_part))
        print(printable_json(json.dumps(verdict, ensure_ascii=False, indent=2)))
    else:
        print(printable_lines(_report(model, parts, by_part, arguments, rows)))
    return CERTIFICATE_FAILS if any(by_part) else OK


def _sentences(model: Model, by_part: Sequence[Sequence[str]]) -> list[str]:
    """The faults of all parts, each with its class where there are several."""
    return [f"{_of_class(model, k)}{fault}" for k, faults in enumerate(by_part) for fault in faults]


def _of_class(model: Model, k: int) -> str:
    """Which of several certificates a fault is about."""
    classes = model.classes or ()
    return f"class {classes[k]!s}: " if len(classes) > 2 else ""


def _faults(part: CertifiedPart, rows: Rows) -> list[str]:
    from cardboost.certificate import checker

    faults = list(size_faults(part.certificate))
    if not faults:
        try:
            faults = checker.check(part.certificate, rows.table, part.label, rows.weight)
        except ValueError as error:
            raise BadInput(f"the data cannot be checked: {error}.") from None
    if not checker.structure_faults(part.certificate):
        faults = [*faults, *model_faults(part.ensemble, part.certificate, rows.table)]
    return faults


def size_faults(value: Any, path: str = "") -> Iterator[str]:
    """Integers that are too long to compute with. Labels are only compared, and may be longer."""
    if isinstance(value, dict):
        for key in value.keys() - {"kept", "category"}:
            yield from size_faults(value[key], f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for k, own in enumerate(value):
            yield from size_faults(own, f"{path}[{k}]")
    elif isinstance(value, int) and abs(value) >= 2**63:
        yield f"{path}: expected a number of at most 64 bits, found {value}"


def model_faults(ensemble: Ensemble, certificate: dict[str, Any], table: Frame) -> list[str]:
    """Where the model in the file is not the solution that the certificate is about, on these rows."""
    columns, solution = certificate["columns"], certificate["solution"]
    faults = []
    if certificate["kind"] != "stumps":
        return [f"kind: the model is made of stumps, but the certificate is for {certificate['kind']!r}"]
    certified = certificate["problem"]["loss"]
    # a soft margin is the logarithm of the mean exponential loss: its scores mean the same
    if ensemble.loss != ("exponential" if certified == "soft margin" else certified):
        faults.append(f"ensemble.loss: {ensemble.loss!r}, certified is {certified!r}")
    target = certificate["problem"].get("target")  # of regression; the solution is in its units
    mean, scale = (0.0, 1.0) if target is None else (target["mean"], target["scale"])
    intercept = solution["intercept"] if target is None else solution["intercept"] * scale + mean
    if ensemble.intercept != intercept:
        faults.append(f"ensemble.intercept: {ensemble.intercept!r}, certified is {intercept!r}")
    faults += _category_faults(ensemble, certificate, table)
    keys = ("feature", "split", "polarity", "missing_left")
    certified = [
        (
            columns["feature"][j],
            _split(columns["cut"][j], columns["category"][j], _set(certificate, j)),
            columns["polarity"][j],
            columns["missing_left"][j],
            weight * scale,
        )
        for j, weight in solution["weights"]
    ]
    own = []
    for term in ensemble.terms:
        said = term.to_dict()
        split = _split(term.cut, said.get("category"), said.get("one_of"))
        own.append((term.feature, split, term.polarity, term.missing_left, term.weight))
    if len(own) != len(certified):
        faults.append(f"ensemble.terms: {len(own)} terms, certified are {len(certified)}")
        return faults
    left = Counter(certified)
    for k, one in enumerate(own):
        left[one] -= 1
        if left[one] < 0:
            text = ", ".join(f"{key} {value}" for key, value in zip((*keys, "weight"), one, strict=True))
            faults.append(f"ensemble.terms[{k}]: not among the certified terms ({text})")
    return faults


def _category_faults(ensemble: Ensemble, certificate: dict[str, Any], table: Frame) -> Iterator[str]:
    """Where the model takes a label of these rows for another category than the certificate does."""
    from cardboost.data.frame import Coded

    for feature, known in ensemble.categories.items():
        labels = (certificate["categories"] or {feature: None})[feature]
        values = table.data[table.columns[feature]]
        path = f"ensemble.categories[{feature}]"
        if labels is None or list(known.kept) != labels["kept"]:
            yield f"{path}: not the labels that are certified"
        elif isinstance(values, Coded):
            present = {values.labels[code] for code in set(values.codes.tolist()) if code >= 0}
            others = present - set(known.kept)
            if others != (set(known.rare) & others if labels["rare"] else others - set(known.rare)):
                yield f"{path}: the rare labels are not those that are certified"


def _set(certificate: dict[str, Any], j: int) -> list[Any] | None:
    """The labels of a column on a set, as a model file has them."""
    sets = certificate["columns"].get("first")  # version 1 has none
    first = None if sets is None else sets[j]
    if first is None:
        return None
    own = certificate["categories"][certificate["columns"]["feature"][j]]
    labels = [*own["kept"], {"other": True}]
    return [labels[k] for k in sorted(own["order"][:first])]


def _split(cut: float | None, category: Any, labels: list[Any] | None) -> str:
    """What a term asks of its feature, in words."""
    if labels is not None:
        return f"is one of {', '.join('other' if isinstance(own, dict) else repr(own) for own in labels)}"
    if category is None:
        return f"<= {math.inf if cut is None else cut!r}"
    return "is other" if isinstance(category, dict) else f"is {category!r}"


def _verdict(model: Model, parts: Sequence[CertifiedPart], faults: list[str]) -> dict[str, Any]:
    if faults:
        return {"holds": False, "faults": faults}
    proofs = [_proven(part.certificate) for part in parts]
    if len(proofs) == 1:
        return {"holds": True, "faults": [], **proofs[0]}
    labels = map(str, model.classes or ())
    return {"holds": True, "faults": [], "certificates": dict(zip(labels, proofs, strict=True))}


def _proven(certificate: dict[str, Any]) -> dict[str, Any]:
    from cardboost.certificate.certificate import Certificate

    keys = ("scope", "lower_bound", "gap", "relative_gap", "guarantee")
    return {
        "objective": certificate["solution"]["objective"],
        "null_objective": certificate["null"]["objective"],
        "status": str(Certificate(certificate).status),
        "bounds": [{key: bound[key] for key in keys} for bound in certificate["bounds"]],
    }


def _report(
    model: Model,
    parts: Sequence[CertifiedPart],
    by_part: Sequence[Sequence[str]],
    arguments: SimpleNamespace,
    rows: Rows,
) -> str:
    from cardboost.certificate.certificate import Certificate
    from cardboost.cli.run import certificate_lines

    faults = _sentences(model, by_part)
    if not faults:
        lines = ["The certificate holds." if len(parts) == 1 else f"All {len(parts)} certificates hold.", ""]
        for k, part in enumerate(parts):
            head = [] if len(parts) == 1 else [_of_class(model, k).rstrip()]
            lines += [*head, *certificate_lines(Certificate(part.certificate)), ""]
        size = f"{rows.table.n_rows:,} rows and {counted(len(rows.table.data), 'feature')}"
        return "\n".join([*lines, _CHECKED.format(size)])
    about_data = [[fault for fault in part if fault.startswith("data.")] for part in by_part]
    other = _sentences(model, about_data)
    if other:  # of other rows nothing needs to hold
        lines = ["The certificate is about other data.", ""]
        lines += [*textwrap.wrap(f"{' '.join(arguments.data)} {OTHER_DATA}", 78), ""]
    else:
        many = f"{len(faults)} claim{' is' if len(faults) == 1 else 's are'} false"
        lines = [f"The certificate does NOT hold: {many}.", ""]
    shown = other or faults
    for fault in shown[:_MOST_FAULTS]:
        lines += textwrap.wrap(
            fault, 78, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
    if len(shown) > _MOST_FAULTS:
        lines.append(f"  ... and {len(shown) - _MOST_FAULTS} more (--json lists all)")
    return "\n".join(lines)


_CHECKED = "Every number was recomputed from {}."
OTHER_DATA = (
    "does not hold the rows that the model was trained on. Check the file, the target and the "
    "weights (--weight); a model that was fitted with --holdout needs them in the same order."
)


#: a model file and the data that its certificate is about
MODEL_AND_DATA = [
    MODEL,
    DATA,
    option("target", checks.text("COLUMN"), "the target", shown="as in `cardboost fit`"),
    option("weight", checks.text("COLUMN"), "the row weights", shown="as in `cardboost fit`"),
    *FORMAT,
]
command = Verb(
    "certify",
    run,
    {
        "What is checked": MODEL_AND_DATA,
        "What is printed": [flag("json", "print the verdict as JSON")],
    },
    description="Recompute every number of a model's certificate from the training data, with a checker "
    "that shares no code with the training.",
    examples="""\
cardboost certify run/model.json patients.csv
cardboost certify run/model.json patients.csv --target died --json
""",
    notes="""Exit code 0: every claim holds. Exit code 1: some claim does not; each one is
listed. The data must be those of the fit, in any order of the rows (in the same
order if the fit held some out).""",
)
