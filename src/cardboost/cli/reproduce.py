"""`cardboost reproduce`: the experiments of the papers, with their figures and check points."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardboost.cli import totalqboost
from cardboost.cli.files import CHECK_FAILS, OK, BadInput, make_folder, reason, write_together

if TYPE_CHECKING:
    from cardboost.datasets.box_scores import BoxScores

EXAMPLE = """\
examples:
  cardboost reproduce conjugate-gradient --out paper
  cardboost reproduce conjugate-gradient --out paper --data my-data

Runs both examples of the paper on boosting by nonlinear conjugate gradients,
checks what it claims, and writes figures (SVG), a page (index.html), a text
and a JSON file. Games are read from nba_home_road_2014_2018.csv.gz in the
folder --data, or in the one that CARDBOOST_DATA names; without either they are
made up, and every file says so. The exit code is 1 when a check point fails.
"""
NEURAL_EXAMPLE = """\
example:
  cardboost reproduce neural --out paper

Boosted networks on the Iris data that come with scikit-learn: training loss
and accuracy in 10 x 10 folds against the number of nets, beside three models
of scikit-learn. Checks what the paper claims of the squared loss, and writes
figures (SVG), a page (index.html), a text and a JSON file. Takes one to three
minutes, on all cores. The exit code is 1 when a check point fails.
"""
VARIABLE = "CARDBOOST_DATA"


def add_parser(verbs: Any, **style: Any) -> None:
    parser = verbs.add_parser(
        "reproduce",
        help="run the experiments of a paper and check what it claims",
        description="Run the experiments of a paper and check what it claims.",
        **style,
    )
    experiments = parser.add_subparsers(
        title="experiments", metavar="EXPERIMENT", required=True, dest="experiment"
    )
    own = experiments.add_parser(
        "conjugate-gradient",
        help="soft margins on the simplex by conjugate gradients",
        description="Soft margins on the simplex by nonlinear conjugate gradients: both examples.",
        epilog=EXAMPLE,
        **style,
    )
    own.set_defaults(run=run_conjugate_gradient)
    own.add_argument("--out", required=True, metavar="DIR", help="folder for the files")
    own.add_argument("--data", metavar="DIR", help=f"folder with the games (default: {VARIABLE})")
    neural = experiments.add_parser(
        "neural",
        help="boosted networks on the Iris data",
        description="Boosted networks on the Iris data: loss and accuracy by the number of nets.",
        epilog=NEURAL_EXAMPLE,
        **style,
    )
    neural.set_defaults(run=run_neural)
    neural.add_argument("--out", required=True, metavar="DIR", help="folder for the files")
    totalqboost.add_parser(experiments, **style)


def run_conjugate_gradient(arguments: argparse.Namespace) -> int:
    from cardboost.reproduce.conjugate_gradient import GAMES, files, run

    data = _games(arguments.data, GAMES)
    folder = make_folder(arguments.out)
    found = run(data)
    contents = files(found)
    written = write_together(folder, contents)
    print(contents["report.txt"].decode())
    print("wrote\n" + "\n".join(f"  {path}" for path in written))
    return OK if found["holds"] else CHECK_FAILS


def run_neural(arguments: argparse.Namespace) -> int:
    from cardboost.reproduce import neural

    folder = make_folder(arguments.out)
    found = neural.run(neural.FULL, say=_say)
    contents = neural.files(found)
    written = write_together(folder, contents)
    print(contents["report.txt"].decode())
    print("wrote\n" + "\n".join(f"  {path}" for path in written))
    return OK if found["holds"] else CHECK_FAILS


def _say(words: str) -> None:
    print(f"cardboost reproduce: {words}", file=sys.stderr, flush=True)


def _games(folder: str | None, games: int) -> BoxScores:
    """Those of the file, where a folder is named; else made-up ones."""
    from cardboost.datasets.box_scores import FILE, made_up_box_scores, read_box_scores

    named = f"the folder {folder!r} of --data"
    if folder is None:
        folder = os.environ.get(VARIABLE) or None
        named = f"the folder {folder!r} of {VARIABLE}"
    if folder is None:
        return made_up_box_scores(games)
    if not Path(folder).is_dir():
        raise BadInput(f"{named} is not there.")
    try:
        return read_box_scores(Path(folder), games)
    except ValueError as error:
        raise BadInput(f"in {named}: {error}") from None
    except OSError as error:
        raise BadInput(f"cannot read {FILE} in {named}: {reason(error)}.") from None
