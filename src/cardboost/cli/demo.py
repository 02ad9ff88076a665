"""`cardboost demo`: from data to a verified card in a few seconds."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cardboost.cli.checks import PathText, number, whole
from cardboost.cli.files import CERTIFICATE_FAILS, INTERRUPTED, OK, make_folder, next_lines, replacing
from cardboost.cli.options import option
from cardboost.cli.verb import Verb

if TYPE_CHECKING:
    from cardboost.cli.run import Rows

_TARGET = "malignant"
_TEST_PART = 0.3
_SEED = 0


def run(arguments: SimpleNamespace) -> int:
    from cardboost.cli.progress import Interrupt
    from cardboost.cli.rows import Target, kept_rows
    from cardboost.cli.run import files_lines, fit_rows, score_line

    folder = make_folder(arguments.out)
    rows = _breast_cancer()
    keep = kept_rows(rows, _TEST_PART, _SEED)
    train, test = rows.take(keep), rows.take(~keep)
    target = Target(_TARGET, "binary", (0, 1))
    facts = {
        "file": "train.csv",
        "task": target.task,
        "target": target.name,
        "weight": None,
        "rows": train.table.n_rows,
        "features": len(train.table.data),
        "categories": {},
        "missing": 0,
        "missing_cells": {},
        "classes": target.counts(train.target),
        "holdout": None,
    }
    options = {"max_terms": arguments.max_terms, "hot_start": max(40, arguments.max_terms)}
    print(
        f"Breast cancer: is a tumour malignant (1) or benign (0)?\n"
        f"{len(train.table.data)} measurements of {train.table.n_rows} patients to train on, "
        f"{test.table.n_rows} others for the test.\n"
    )
    with Interrupt().listening() as interrupt:
        outcome = fit_rows(train, target, options, facts, test=test, interrupt=interrupt)
        written = [str(path) for path in outcome.write(folder)]
        model, train_csv, test_csv = written[0], str(folder / "train.csv"), str(folder / "test.csv")
        for name, part in ((train_csv, train), (test_csv, test)):
            _write_csv(Path(name), part)
            written.append(name)
    faults = outcome.certificates[0].faults(train.table, train.target)
    print(outcome.card)
    print("\n".join(score_line(name, scores) for name, scores in outcome.scores.items()))
    print(_checked(faults))
    print("\n".join(files_lines(outcome, written)))
    commands = [
        ("predict", model, test_csv),
        ("evaluate", model, test_csv),
        ("certify", model, train_csv),
        ("fit", train_csv, "--target", _TARGET, "--max-terms", "5"),
    ]
    print("\n".join(next_lines(commands, ())))
    if faults:
        return CERTIFICATE_FAILS
    return INTERRUPTED if interrupt.asked else OK


def _checked(faults: list[str]) -> str:
    if faults:
        return "\n".join(["certificate does NOT hold:", *(f"  {fault}" for fault in faults)])
    return "verified   the independent checker recomputed every number of the certificate"


def _breast_cancer() -> Rows:
    """The data as a frame; scikit-learn's class 0 is the malignant one."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from cardboost.cli.rows import Rows
    from cardboost.data.frame import Frame

    data = load_breast_cancer()
    columns = np.asarray(data.data, dtype=np.float64).T
    names = [str(name) for name in data.feature_names]
    table = Frame(dict(zip(names, np.ascontiguousarray(columns), strict=True)), len(data.target))
    return Rows(table, 1 - np.asarray(data.target))


def _write_csv(path: Path, rows: Rows) -> None:
    """Numbers with the shortest decimals that give the same bits back: the certificate holds for the file."""
    with replacing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*rows.table.data, _TARGET])
        columns = [*(rows.table[name].to_numpy() for name in rows.table.columns), rows.target]
        cells = [values.tolist() for values in columns]
        writer.writerows(zip(*cells, strict=True))


command = Verb(
    "demo",
    run,
    {
        "Options": [
            option("max-terms", number(whole), "at most so many terms", 10),
            option("out", PathText("DIR", "dir"), "folder for the files", "cardboost-demo"),
        ]
    },
    description="Train on the breast-cancer data that come with scikit-learn.",
    examples="""\
cardboost demo
cardboost demo --max-terms 5 --out my-first-card
""",
    notes="""Trains on 70 % of the data (no download), shows the card, tests it on the other
30 %, checks the certificate with the independent checker, and leaves all files
in the folder --out.""",
)
