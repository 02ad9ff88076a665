"""`cardboost prove`: go on with the proof of a model, on the data that it was trained on."""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cardboost.cli.certify import MODEL_AND_DATA, read_model_and_data, size_faults
from cardboost.cli.checks import PathText, number, positive, whole
from cardboost.cli.files import INTERRUPTED, OK, BadInput, write_together
from cardboost.cli.options import flag, option
from cardboost.cli.verb import Verb
from cardboost.model.printable import printable

if TYPE_CHECKING:
    from cardboost.certificate.certificate import Certificate
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.files import Model


def run(arguments: SimpleNamespace) -> int:
    from cardboost.certificate.certificate import Certificate
    from cardboost.cli.progress import Interrupt, Progress
    from cardboost.cli.run import certificate_lines
    from cardboost.estimators.selecting import prove_model
    from cardboost.problem.budget import clock

    started = clock()
    model, ensemble, content, rows = read_model_and_data(arguments)
    for fault in size_faults(content):
        raise BadInput(f"{arguments.model}: certificate.{fault}.")
    null, interrupt = (content.get("null") or {}).get("objective"), Interrupt()
    left = None if arguments.time is None else arguments.time - (clock() - started)
    progress = Progress(0, arguments.quiet, seconds=left, interrupt=interrupt)
    try:
        with interrupt.listening(), warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            progress.begin("proving")
            ensemble, certificate = prove_model(
                ensemble,
                content,
                (rows.table, rows.positive, rows.weight),
                time_limit=arguments.time,
                max_nodes=arguments.max_nodes,
                started=started,
                stopped=lambda: interrupt.asked,
                proving=lambda nodes, _, bound, objective: progress.prove(nodes, bound, objective, null),
            )
    except ValueError as error:
        raise BadInput(f"{arguments.data}: {str(error).rstrip('.')}.") from None
    finally:
        progress.close()
    written = _write(arguments, model, ensemble, certificate)
    report = _report(Certificate(content), certificate)
    for remark in remarks:
        report += textwrap.wrap(f"note: {remark.message}", 78, subsequent_indent="  ")
    print("\n".join([*report, "", *certificate_lines(certificate), ""]))
    print("\n".join(printable(f"wrote {path}") for path in written))
    return INTERRUPTED if interrupt.asked else OK


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
    arguments: SimpleNamespace, model: Model, ensemble: Ensemble, certificate: Certificate
) -> list[Path]:
    """The model, and in its own place the card and the headers beside it."""
    from cardboost.cli.run import CARD, HEADER, VECTORS, Headers, card_title
    from cardboost.model.card import render_card
    from cardboost.model.files import model_bytes

    target = Path(arguments.out or arguments.model)
    contents: dict[str, bytes | None] = {
        target.name: model_bytes(ensemble, certificate.to_dict(), model.training)
    }
    if arguments.out is None:
        if (target.parent / CARD).exists():
            title = card_title((model.training or {}).get("data"), ensemble)
            card = render_card(ensemble, title=title, certificate_lines=certificate.lines())
            contents[CARD] = card.encode()
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
