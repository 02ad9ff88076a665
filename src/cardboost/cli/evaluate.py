"""`cardboost evaluate`: how good a model is on labelled rows."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from cardboost.cli.certify import MODEL_AND_DATA
from cardboost.cli.checks import count, number, text
from cardboost.cli.files import OK, BadInput, read_model_file, say
from cardboost.cli.options import flag, option
from cardboost.cli.verb import Verb
from cardboost.model.printable import printable_json, printable_lines


def run(arguments: SimpleNamespace) -> int:
    from cardboost.cli.model_rows import model_rows, training_remark
    from cardboost.cli.run import model_facts
    from cardboost.cli.unfamiliar import Unfamiliar
    from cardboost.report.facts import Grouping

    model = read_model_file(arguments.model)
    by = None if arguments.by is None else arguments.by.strip()
    rows, frame = model_rows(arguments, model, "evaluate", used=True, more=[] if by is None else [by])
    unfamiliar = Unfamiliar(model)
    unfamiliar.look(rows.table)
    groups = None if by is None else Grouping.of(by, frame.data[by])
    try:
        facts = model_facts(model, rows, by=groups, n_bootstrap=arguments.resamples, seed=arguments.seed)
    except ValueError as error:
        raise BadInput(str(error)) from None
    if arguments.json:
        print(printable_json(json.dumps(_document(arguments, facts.to_dict()), ensure_ascii=False, indent=2)))
    else:
        print(printable_lines("\n".join(facts.lines())))
    trained = training_remark(arguments, model, rows.table.n_rows)
    for remark in (*unfamiliar.remarks(), *([] if trained is None else [trained])):
        say(remark, "evaluate")
    return OK


def _document(arguments: SimpleNamespace, facts: dict[str, Any]) -> dict[str, Any]:
    from cardboost import __version__

    return {"cardboost": __version__, "model": arguments.model, "data": list(arguments.data), **facts}


command = Verb(
    "evaluate",
    run,
    {
        "The model and the rows": [
            *MODEL_AND_DATA,
            option("by", text("COLUMN"), "also for every group of rows"),
        ],
        "Intervals": [
            option("resamples", number(count), "of the rows, for intervals; 0 for none", 200),
            option("seed", number(count), "of the resamples", 0),
        ],
        "What is printed": [flag("json", "print all numbers as one JSON document")],
    },
    description="Score a model on labelled rows, with 95 % intervals.",
    examples="""\
cardboost evaluate run/model.json test.csv
cardboost evaluate run/model.json test.csv --by region
cardboost evaluate run/model.json test.csv --json
""",
    notes="""Two classes: AUC, Gini, KS, log loss, Brier score, confusion and rates at the
threshold, calibration. More classes: accuracy, log loss, AUC, confusion.
Regression: RMSE, MAE, R2, bias, calibration. Intervals are percentiles of
resamples of the rows. Groups of fewer than five rows are not shown.""",
)
