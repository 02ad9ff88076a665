"""`cardboost reproduce`: the experiments of the papers, with their figures and check points."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cardboost.cli import totalqboost
from cardboost.cli.checks import PathText
from cardboost.cli.files import CHECK_FAILS, OK, BadInput, make_folder, write_together
from cardboost.cli.options import OUT_FOLDER, option
from cardboost.cli.verb import Group, Verb
from cardboost.data.sentences import reason

if TYPE_CHECKING:
    from cardboost.datasets.box_scores import BoxScores

VARIABLE = "CARDBOOST_DATA"


def run_conjugate_gradient(arguments: SimpleNamespace) -> int:
    from cardboost.reproduce.conjugate_gradient import GAMES, files, run

    data = _games(arguments.data, GAMES)
    folder = make_folder(arguments.out)
    found = run(data)
    contents = files(found)
    written = write_together(folder, contents)
    print(contents["report.txt"].decode())
    print("wrote\n" + "\n".join(f"  {path}" for path in written))
    return OK if found["holds"] else CHECK_FAILS


def run_neural(arguments: SimpleNamespace) -> int:
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


CONJUGATE_GRADIENT = Verb(
    "conjugate-gradient",
    run_conjugate_gradient,
    {"Files": [OUT_FOLDER, option("data", PathText("DIR", "dir"), "folder with the games", shown=VARIABLE)]},
    description="Soft margins on the simplex by nonlinear conjugate gradients: both examples.",
    examples="""\
cardboost reproduce conjugate-gradient --out paper
cardboost reproduce conjugate-gradient --out paper --data my-data
""",
    notes="""Runs both examples of the paper on boosting by nonlinear conjugate gradients,
checks what it claims, and writes figures (SVG), a page (index.html), a text
and a JSON file. Games are read from nba_home_road_2014_2018.csv.gz in the
folder --data, or in the one that CARDBOOST_DATA names; without either they are
made up, and every file says so. The exit code is 1 when a check point fails.""",
)
NEURAL = Verb(
    "neural",
    run_neural,
    {"Files": [OUT_FOLDER]},
    description="Boosted networks on the Iris data: loss and accuracy by the number of nets.",
    examples="cardboost reproduce neural --out paper",
    notes="""Boosted networks on the Iris data that come with scikit-learn: training loss
and accuracy in 10 x 10 folds against the number of nets, beside three models
of scikit-learn. Checks what the paper claims of the squared loss, and writes
figures (SVG), a page (index.html), a text and a JSON file. Takes one to three
minutes, on all cores. The exit code is 1 when a check point fails.""",
)
command = Group(
    "reproduce",
    {
        "Experiments": {
            "conjugate-gradient": "soft margins on the simplex by conjugate gradients",
            "neural": "boosted networks on the Iris data",
            "totalqboost": "boosting with a price on cardinality, on twelve sets",
        }
    },
    description="Run the experiments of a paper and check what it claims.",
    noun="experiment",
    commands=[CONJUGATE_GRADIENT, NEURAL, totalqboost.command],
    endings={"Examples": "cardboost reproduce conjugate-gradient --out paper"},
)
