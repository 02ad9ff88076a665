"""How does cardboost's reader of tables compare with the libraries it could be built on?

Seconds and peak anonymous memory from a file to columns in memory, a process for every contender: 3.5 million
rows of 12 numbers, and the census (adult.csv.gz, with --data). Then how many of the ugly files in
tests/ugly_files.py each library reads right by itself, how many faulty ones it refuses, and its size on disk.
These files were written along with cardboost's reader: they show what it was made for, no fair sample.

    python benchmarks/readers.py --data DIR        # DIR holds adult.csv.gz; without it that set is left out
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import math
import runpy
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np

from _harness import (
    Goal,
    machine,
    memory_status,
    print_machine,
    print_table,
    report_goals,
    require,
    run_benchmark,
    run_in_own_process,
    timed,
    write_json,
)

OURS, CHOSEN, CODED = "cardboost", "pyarrow", "pyarrow, coded"
LIBRARIES = (CHOSEN, "polars", "duckdb", "pandas")
CONTENDERS = (OURS, CHOSEN, CODED, *LIBRARIES[1:])
PARTS = {
    "polars": ("polars", "polars-runtime-32"),
    OURS: (),
}  # distributions; of the others one of their name
UGLY = Path(__file__).parent.parent / "tests" / "ugly_files.py"
TIME_GOAL = 1.3  # our time / that of the library alone
MEMORY_GOAL = 4.0  # anonymous memory / size of the file


# --- contenders, run in their own process: a file to columns in memory ---


def read_cardboost(path):
    from cardboost.data.reader import open_table

    with open_table(path) as table:
        return table.read(table.names)


def read_pyarrow(path):
    import pyarrow.csv

    return pyarrow.csv.read_csv(path)


def read_pyarrow_coded(path):
    """Text as codes of its distinct values, as cardboost gives it."""
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(auto_dict_encode=True, auto_dict_max_cardinality=10**6)
    return pyarrow.csv.read_csv(path, convert_options=options)


def read_polars(path):
    import polars

    return polars.read_csv(path)


def read_duckdb(path):
    import duckdb

    return duckdb.sql(f"SELECT * FROM read_csv('{path}')").to_arrow_table()


def read_pandas(path, **options):
    import pandas

    return pandas.read_csv(path, compression="gzip" if path.endswith(".gz") else None, **options)


READ = {
    OURS: read_cardboost,
    CHOSEN: read_pyarrow,
    CODED: read_pyarrow_coded,
    "polars": read_polars,
    "duckdb": read_duckdb,
    "pandas": read_pandas,
}


def run_task(task: dict) -> dict:
    if task["what"] == "ugly":
        return {"ugly": {name: verdict(task["contender"], name) for name in ugly_files()}}
    read = READ[task["contender"]]
    with tempfile.TemporaryDirectory() as folder:  # imports and thread pools are no part of reading
        warm = Path(folder) / "warm.csv"
        warm.write_text("a,b\n1,x\n")
        read(str(warm))
    before = memory_status("RssAnon")
    with peak_of_anonymous_memory() as peak:
        seconds, table = timed(lambda: read(task["path"]))
    assert table.shape[1] == task["columns"]
    return {"seconds": seconds, "memory": peak[0] - before}


@contextlib.contextmanager
def peak_of_anonymous_memory():
    """The largest RssAnon of this process, looked at 200 times a second: the system keeps no peak of it."""
    peak, over = [0], threading.Event()

    def watch():
        while not over.wait(0.005):
            peak[0] = max(peak[0], memory_status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        peak[0] = max(peak[0], memory_status("RssAnon"))
        over.set()
        watcher.join()


# --- ugly files ---


def ugly_files() -> dict:
    return runpy.run_path(str(UGLY))["UGLY"]


def verdict(contender: str, name: str) -> str:
    """ "right", "wrong" or "refused"."""
    content, expected = ugly_files()[name]
    content = content.encode() if isinstance(content, str) else content
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ending = {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}.get(content[:2], "")
        path = Path(folder) / f"data.csv{ending}"
        path.write_bytes(content)
        try:
            # pandas finds out the delimiter only when it is asked to
            options = {"sep": None, "engine": "python"} if contender == "pandas" else {}
            found = columns_of(READ[contender](str(path), **options))
        except BaseException:  # polars raises errors that are no Exception
            return "refused"
    return "right" if found == expected else "wrong"


def columns_of(table) -> dict[str, list]:
    """Any table as lists: numbers, text, None; dates as ISO text, truth as 1 and 0."""
    if hasattr(table, "n_missing"):  # ours
        pairs = {name: table[name].tolist() for name in table.columns}
    elif hasattr(table, "to_pydict"):
        pairs = table.to_pydict()
    else:
        pairs = {name: table[name].to_list() for name in table.columns}
    return {str(name).strip(): [plain(cell) for cell in cells] for name, cells in pairs.items()}


def plain(cell):
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell.strip() if isinstance(cell, str) else cell if isinstance(cell, int | float) else str(cell)


# --- the benchmark ---


def make_numbers(path: Path, rows: int) -> None:
    """Twelve columns, half of them whole numbers, about 45 bytes a row."""
    import pyarrow as arrow
    import pyarrow.csv

    rng = np.random.default_rng(0)
    columns = {}
    for j in range(12):
        whole = rng.integers(0, 1000, rows) if j % 3 else rng.integers(0, 10, rows)
        columns[f"x{j}"] = whole if j % 2 else np.round(rng.normal(size=rows), 1)
    arrow.csv.write_csv(arrow.table(columns), path)


def installed_megabytes(contender: str) -> float:
    total = 0
    for name in PARTS.get(contender, (contender,)):
        files = importlib.metadata.distribution(name).files or []
        total += sum(file.locate().stat().st_size for file in files if file.locate().is_file())
    return total / 1e6


def measure(name: str, path: Path, columns: int, size: int, options: argparse.Namespace) -> list[dict]:
    results = []
    for contender in CONTENDERS:
        task = {"what": "read", "contender": contender, "path": str(path), "columns": columns}
        runs = [run_in_own_process(__file__, task, options.threads) for _ in range(options.repeats)]
        best = {key: min(run[key] for run in runs) for key in ("seconds", "memory")}
        results.append({"set": name, "contender": contender, **best, "bytes": size})
    alone = next(result for result in results if result["contender"] == CHOSEN)
    print(f"\n{name}: {size / 1e6:.1f} MB of text\n")
    print_table(
        ["reader", "seconds", f"/ {CHOSEN}", "anonymous MB", "/ file"],
        [
            [
                result["contender"],
                f"{result['seconds']:.3f}",
                f"{result['seconds'] / alone['seconds']:.2f}",
                f"{result['memory'] / 1e6:.0f}",
                f"{result['memory'] / size:.1f}",
            ]
            for result in results
        ],
    )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="DIR", help="a folder with adult.csv.gz")
    parser.add_argument("--rows", type=int, default=3_500_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5, help="the best of so many counts")
    parser.add_argument("--names", action="store_true", help="also the ugly files that each gets wrong")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    options = parser.parse_args()
    require(dict.fromkeys(LIBRARIES, "pip install 'cardboost[bench]'"))
    facts = machine((OURS, *LIBRARIES))
    print_machine(facts)

    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder) / "numbers.csv"
        make_numbers(numbers, options.rows)
        results = measure("numbers", numbers, 12, numbers.stat().st_size, options)
        if options.data is not None:
            import gzip

            census = Path(folder) / "adult.csv"
            census.write_bytes(gzip.decompress((Path(options.data) / "adult.csv.gz").read_bytes()))
            columns = census.read_text().split("\n", 1)[0].count(",") + 1
            results += measure("census", census, columns, census.stat().st_size, options)

    files = ugly_files()
    tables = [name for name, (_, expected) in files.items() if isinstance(expected, dict)]
    faults = [name for name in files if name not in tables]
    rows, verdicts = [], {}
    for contender in (OURS, *LIBRARIES):
        task = {"what": "ugly", "contender": contender}
        found = verdicts[contender] = run_in_own_process(__file__, task, options.threads)["ugly"]
        count = [sum(found[name] == word for name in tables) for word in ("right", "refused", "wrong")]
        refused = sum(found[name] == "refused" for name in faults)
        size = installed_megabytes(contender)
        rows.append(
            [contender, *map(str, count), f"{refused} of {len(faults)}", f"{size:.0f}" if size else ""]
        )
    print(f"\n{len(tables)} ugly tables and {len(faults)} faulty files, each library by itself")
    print("(written along with cardboost's reader: no fair sample of tables)\n")
    print_table(["reader", "right", "refused", "silently wrong", "faults refused", "installed MB"], rows)
    if options.names:
        for contender, found in verdicts.items():
            wrong = [name for name in tables if found[name] != "right"]
            print(f"\n{contender}: {', '.join(wrong) or 'none'}")
            print(
                f"  faults read: {', '.join(name for name in faults if found[name] != 'refused') or 'none'}"
            )

    goals = []
    for result in results:
        alone = next(r for r in results if r["set"] == result["set"] and r["contender"] == CHOSEN)
        if result["contender"] == OURS:
            ratio = result["seconds"] / alone["seconds"]
            goals.append(Goal(f"{result['set']}: time / {CHOSEN} alone", ratio, TIME_GOAL))
            memory = result["memory"] / result["bytes"]
            goals.append(Goal(f"{result['set']}: anonymous memory / file", memory, MEMORY_GOAL))
    report_goals(goals)
    write_json(options.json, {"machine": facts, "reading": results, "ugly": verdicts}, goals)


if __name__ == "__main__":
    run_benchmark(main, run_task)
