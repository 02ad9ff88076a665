"""`cardboost prove`: go on with the proof of a model, on the data that it was trained on."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cardboost.cli.certify import MODEL_AND_DATA, OTHER_DATA, read_model_and_data, size_faults
from cardboost.cli.checks import PathText, number, positive, whole
from cardboost.cli.files import INTERRUPTED, OK, BadInput, refuse_to_replace, write_together
from cardboost.cli.options import flag, option
from cardboost.cli.verb import Verb
from cardboost.data.sentences import one_line
from cardboost.model.printable import printable, printable_lines

if TYPE_CHECKING:
    from cardboost.certificate.certificate import Certificate
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.files import Model


def run(arguments: SimpleNamespace) -> int:
    from cardboost.certificate.certificate import Certificate
    from cardboost.cli.progress import Interrupt, Progress
    from cardboost.cli.run import certificate_lines
    from cardboost.estimators.selecting import prove_model
    from cardboost.problem.budget import Budget

    refuse_to_replace([arguments.out or arguments.model], arguments.data)
    interrupt = Interrupt()
    budget = Budget.of(arguments.time, lambda: interrupt.asked)
    model, parts, rows = read_model_and_data(arguments, "prove")
    if any(part.certificate.get("points") is not None for part in parts):
        raise BadInput(
            f"{arguments.model} has whole points, and prove goes on with the choice of weights: fit without "
            "whole points to prove that model."
        )
    for part in parts:
        for fault in size_faults(part.certificate):
            raise BadInput(f"{arguments.model}: {part.path}.{fault}.")
    left = budget.left if budget.limited else None
    progress = Progress(0, arguments.quiet, seconds=left, interrupt=interrupt)
    proven = []
    try:
        with interrupt.listening(), warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            for k, part in enumerate(parts):
                null = (part.certificate.get("null") or {}).get("objective")
                progress.begin("proving")
                proven.append(
                    prove_model(
                        part.ensemble,
                        part.certificate,
                        (rows.table, part.label, rows.weight),
                        budget=budget.part(k, len(parts)),
                        max_nodes=arguments.max_nodes,
                        proving=partial(_show, progress, null),
                    )
                )
    except ValueError as error:
        data, said = " ".join(arguments.data), one_line(error)
        other = "for these rows: data." in said  # which is what the checker compares first
        raise BadInput(f"{data} {OTHER_DATA}" if other else f"{data}: {said}.") from None
    finally:
        progress.close()
    ensembles, certificates = zip(*proven, strict=True)
    written = _write(arguments, model, ensembles, certificates)
    report = []
    for k, (part, certificate) in enumerate(zip(parts, certificates, strict=True)):
        report += [f"class {(model.classes or ())[k]}"] if len(parts) > 1 else []
        report += _report(Certificate(part.certificate), certificate)
        report += ["", *certificate_lines(certificate), ""]
    for remark in remarks:
        report += textwrap.wrap(f"note: {remark.message}", 78, subsequent_indent="  ")
    print(printable_lines("\n".join(report)))
    print("\n".join(printable(f"wrote {path}") for path in written))
    return INTERRUPTED if interrupt.asked else OK


def _show(progress: Any, null: float | None, nodes: int, _: int, bound: float, objective: float) -> None:
    progress.prove(nodes, bound, objective, null)


def _report(before: Certificate, after: Certificate) -> list[str]:
    """What the search has come to."""
    lines = ["no better model among the candidate terms was found"]
    if after.status != "feasible":
        lines = ["the model is proven to be the best among its candidate terms"]
    if after.objective < before.objective:
        lines = [f"a better model: objective {after.objective:.6g}, before {before.objective:.6g}"]
    for scope, bound in after.scopes.items():
        lines.append(f"{scope:<12}guarantee {bound.percent}, before {before.scopes[scope].percent}")
    return lines


def _write(
    arguments: SimpleNamespace,
    model: Model,
    ensembles: Sequence[Ensemble],
    certificates: Sequence[Certificate],
) -> list[Path]:
    """The model, and in its own place the card and the headers beside it."""
    from cardboost.cli.run import (
        CARD,
        HEADER,
        VECTORS,
        Headers,
        card_title,
        certificate_content,
        model_card,
        with_left_out,
    )  # fmt: skip
    from cardboost.model.files import model_bytes
    from cardboost.model.multiclass import MulticlassEnsemble

    ensemble: Ensemble | MulticlassEnsemble = ensembles[0]
    if isinstance(model.ensemble, MulticlassEnsemble):
        ensemble = replace(model.ensemble, ensembles=tuple(ensembles))
    target = Path(arguments.out or arguments.model)
    contents: dict[str, bytes | None] = {
        target.name: model_bytes(ensemble, certificate_content(certificates), model.training)
    }
    if arguments.out is None:
        if (target.parent / CARD).exists():
            data = (model.training or {}).get("data")
            card = model_card(ensemble, certificates, card_title(data, ensemble))
            contents[CARD] = with_left_out(card, data).encode()
        if (target.parent / HEADER).exists() and (target.parent / VECTORS).exists():
            contents |= Headers.of(ensemble).files
    return write_together(target.parent, contents)


command = Verb(
    "prove",
    run,
    {
        "What is proven": MODEL_AND_DATA,
        "The search": [
            option("time", number(positive, "SECONDS"), "seconds at most", shown="no limit"),
            option("max-nodes", number(whole), "at most so many nodes of the search", 20_000),
        ],
        "What is written": [
            option("out", PathText("FILE"), "where to write the model", shown="in its place"),
            flag("quiet", "no progress"),
        ],
    },
    description="Search on for a better choice among the candidate terms of a model, or for the proof that "
    "there is none.",
    examples="""\
cardboost prove run/model.json patients.csv --time 60
cardboost prove run/model.json patients.csv --max-nodes 50000 \\
    --out proved.json
""",
    notes="""The search goes on where it ended, among the candidate terms of the fit. The
model and its proof never get worse; the guarantee over all stumps changes only
with the model. Card and C headers beside the model are written again if they
are there. Ctrl-C keeps what is proven so far.""",
)
