"""`python -m fuzz`: seeds from the clock, or from --seed; exit code 1 when a law is broken."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from fuzz.digests import compare
from fuzz.draw import case
from fuzz.invariants import check
from fuzz.runner import repeat, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="fuzz", description="Random fits of everything public, held to laws."
    )
    parser.add_argument("--seed", type=int, default=None, help="the first seed (default: from the clock)")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to go on (120)")
    parser.add_argument("--cases", type=int, default=None, help="how many seeds at most; 1 shows the case")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument(
        "--digests", type=Path, metavar="FILE", help="record the bits of the fits, or compare them with FILE"
    )
    arguments = parser.parse_args()
    seed = int(time.time()) * 10_000 if arguments.seed is None else arguments.seed
    if arguments.digests is not None:
        changed = compare(arguments.digests, arguments.seed or 1, arguments.cases or 400)
        print("\n".join([*changed, f"{len(changed)} differences"]))
        return 1 if changed else 0
    if arguments.cases == 1:
        return _show(seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the workers too
    print(f"seeds from {seed}; the first again: {repeat(seed)}", flush=True)
    report = run(
        seed, arguments.seconds, arguments.cases, arguments.workers, say=lambda line: print(line, flush=True)
    )
    print("\n".join(report.summary()))
    return 1 if report.first else 0


def _show(seed: int) -> int:
    """One case with everything that is wrong with it."""
    own = case(seed)
    print(own, flush=True)
    started = time.monotonic()
    failures = check(own)
    for failure in failures:
        print(f"\n{failure.law}: {failure.message}\n{failure.details}")
    print(f"{len(failures)} failures in {time.monotonic() - started:.2f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
