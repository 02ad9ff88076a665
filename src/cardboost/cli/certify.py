"""`cardboost certify`: does the certificate in a model file hold for these data?

The checker recomputes every number of the certificate from the data and shares no code with the training.
Here it is also checked that the model in the file is the one that the certificate is about.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cardboost.cli import checks
from cardboost.cli.files import (
    CERTIFICATE_FAILS,
    OK,
    BadInput,
    binary_ensemble,
    counted,
    one_file,
    read_model_file,
    say,
)
from cardboost.cli.options import DATA, DELIMITER, MODEL, flag, option
from cardboost.cli.predict import known_kinds, require_columns
from cardboost.cli.verb import Verb
from cardboost.model.printable import printable_json, printable_lines

if TYPE_CHECKING:
    from cardboost.cli.run import Rows
    from cardboost.cli.values import Kind
    from cardboost.data.frame import Frame
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.files import Model

_MOST_FAULTS = 10


def read_model_and_data(arguments: SimpleNamespace) -> tuple[Model, Ensemble, dict[str, Any], Rows]:
    """The model file, its model and certificate, and the rows that the certificate is about."""
    arguments.data = one_file(arguments.data)
    model = read_model_file(arguments.model)
    ensemble, certificate = binary_ensemble(model, arguments.model), model.certificate
    if not isinstance(certificate, dict):
        raise BadInput(f"{arguments.model} holds no certificate.")
    return model, ensemble, certificate, _read_rows(arguments, model, ensemble)


def run(arguments: SimpleNamespace) -> int:
    from cardboost.certificate import checker

    _, ensemble, certificate, rows = read_model_and_data(arguments)
    faults = list(size_faults(certificate))
    if not faults:
        try:
            faults = checker.check(certificate, rows.table, rows.positive, rows.weight)
        except ValueError as error:
            raise BadInput(f"{arguments.data}: {error}.") from None
    if not checker.structure_faults(certificate):
        faults = [*faults, *model_faults(ensemble, certificate, rows.table)]
    if arguments.json:
        print(printable_json(json.dumps(_verdict(certificate, faults), ensure_ascii=False, indent=2)))
    else:
        print(printable_lines(_report(certificate, faults, arguments, rows)))
    return CERTIFICATE_FAILS if faults else OK


def _read_rows(arguments: SimpleNamespace, model: Model, ensemble: Ensemble) -> Rows:
    """The columns of the model in its order, labels and weights; held-out rows are left out again."""
    from cardboost.cli.run import Rows, kept_rows
    from cardboost.cli.tables import open_table

    recorded, classes = _recorded(model), ensemble.classes
    assert classes is not None
    target = arguments.target if arguments.target is not None else recorded.get("target")
    weight = arguments.weight if arguments.weight is not None else recorded.get("weight")
    if not isinstance(target, str):
        raise BadInput("--target is needed: the model file does not say which column it predicts.")
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    with open_table(arguments.data, arguments.delimiter) as source:
        require_columns(source, names, named=ensemble.feature_names is not None)
        if isinstance(weight, str) and weight.strip() in {name.strip() for name in names}:
            raise BadInput(f"--weight {weight}: this column is a feature of the model.")
        extra = [weight] if isinstance(weight, str) else []
        kinds: dict[str, Kind] = {**_kinds(model, ensemble, names), **dict.fromkeys(extra, "numbers")}
        table, labels = source.read([*names, *extra], target, kinds)
        say(source.remark, "certify")
    assert labels is not None
    for text, place in zip(labels.texts, labels.places, strict=True):
        if not any(_same(text, label) for label in classes):
            first, second = classes
            raise BadInput(
                f"{arguments.data}, {place}: the label {text.strip()!r} in {target!r} is none of the "
                f"model's classes, {first!r} and {second!r}."
            )
    weights = table.take_out(extra[0]) if extra else None
    rows = Rows(table, labels.equal(classes[1]), weights)
    held_out = recorded.get("holdout")
    if isinstance(held_out, dict) and recorded.get("rows") == table.n_rows:
        try:
            rows = rows.take(kept_rows(rows.positive, float(held_out["fraction"]), int(held_out["seed"])))
        except (KeyError, TypeError, ValueError):
            raise BadInput(f"{arguments.model}: training.data.holdout cannot be read.") from None
    return _without_validation(rows, model) if recorded.get("rows") == table.n_rows else rows


def _without_validation(rows: Rows, model: Model) -> Rows:
    """The rows that the fit did not keep aside to see when to stop (--validation-fraction)."""
    import numpy as np

    from cardboost.data.labels import split_rows

    options = (model.training or {}).get("parameters")
    if not isinstance(options, dict) or options.get("validation_fraction") is None:
        return rows
    fraction, seed = options["validation_fraction"], options.get("random_state")
    try:
        codes = rows.positive.astype(np.intp)
        _, aside = split_rows(fraction, codes, len(codes), seed)
    except (TypeError, ValueError) as error:
        raise BadInput(f"training.parameters.validation_fraction: {str(error).rstrip('.')}.") from None
    keep = np.ones(len(codes), dtype=bool)
    keep[aside] = False
    return rows.take(keep)


def _kinds(model: Model, ensemble: Ensemble, names: list[str]) -> dict[str, Kind]:
    """How `cardboost fit` read these columns; for other models what the certificate says, or the cells."""
    noted = _recorded(model).get("categories")
    if isinstance(noted, dict):
        return {name: "categories" if name in noted else "numbers" for name in names}
    kinds: dict[str, Kind] = dict.fromkeys(names, "auto")
    known = model.certificate.get("categories") if isinstance(model.certificate, dict) else None
    for name, own in zip(names, known if isinstance(known, list) else [], strict=False):
        labels = own.get("kept") if isinstance(own, dict) else None
        text = isinstance(labels, list) and any(isinstance(label, str) for label in labels[:1])
        kinds[name] = "text" if text else "numbers"
    return kinds | known_kinds(ensemble, [])


def _recorded(model: Model) -> dict[str, Any]:
    """What `cardboost fit` noted about the data."""
    data = (model.training or {}).get("data")
    return data if isinstance(data, dict) else {}


def _same(text: str, label: Any) -> bool:
    from cardboost.cli.values import same_label

    return same_label(text, label)


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
    if ensemble.intercept != solution["intercept"]:
        faults.append(f"ensemble.intercept: {ensemble.intercept!r}, certified is {solution['intercept']!r}")
    faults += _category_faults(ensemble, certificate, table)
    keys = ("feature", "split", "polarity", "missing_left")
    certified = [
        (
            columns["feature"][j],
            _split(columns["cut"][j], columns["category"][j], _set(certificate, j)),
            columns["polarity"][j],
            columns["missing_left"][j],
            weight,
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


def _verdict(certificate: dict[str, Any], faults: list[str]) -> dict[str, Any]:
    if faults:
        return {"holds": False, "faults": faults}
    from cardboost.certificate.certificate import Certificate

    keys = ("scope", "lower_bound", "gap", "relative_gap", "guarantee")
    return {
        "holds": True,
        "faults": [],
        "objective": certificate["solution"]["objective"],
        "null_objective": certificate["null"]["objective"],
        "status": str(Certificate(certificate).status),
        "bounds": [{key: bound[key] for key in keys} for bound in certificate["bounds"]],
    }


def _report(certificate: dict[str, Any], faults: list[str], arguments: SimpleNamespace, rows: Rows) -> str:
    from cardboost.certificate.certificate import Certificate
    from cardboost.cli.run import certificate_lines

    if not faults:
        size = f"{rows.table.n_rows:,} rows and {counted(len(rows.table.data), 'feature')}"
        return "\n".join(
            [
                "The certificate holds.",
                "",
                *certificate_lines(Certificate(certificate)),
                "",
                _CHECKED.format(size),
            ]
        )
    other = [fault for fault in faults if fault.startswith("data.")]
    if other:  # of other rows nothing needs to hold
        lines = ["The certificate is about other data.", ""]
        lines += [*textwrap.wrap(f"{arguments.data} {_OTHER_DATA}", 78), ""]
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
_OTHER_DATA = (
    "does not hold the rows that the model was trained on. Check the file, the target and the "
    "weights (--weight); a model that was fitted with --holdout needs them in the same order."
)


#: a model file and the data that its certificate is about
MODEL_AND_DATA = [
    MODEL,
    DATA,
    option("target", checks.text("COLUMN"), "the target", shown="as in `cardboost fit`"),
    option("weight", checks.text("COLUMN"), "the row weights", shown="as in `cardboost fit`"),
    DELIMITER,
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
