"""Values of options: what is accepted, and the sentence for what is not."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any


def add_delimiter(parser: Any) -> None:
    """For every verb that reads a table."""
    parser.add_argument(
        "--delimiter", type=delimiter, metavar="CHAR", help="between cells: , ; | or tab (default: found out)"
    )


def add_columns(parser: Any) -> None:
    """Which columns of a table are what, for verbs that train."""
    many: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "COLUMN"}
    parser.add_argument("--weight", metavar="COLUMN", help="a column with the weight of each row")
    parser.add_argument("--drop", help="columns to leave out", **many)
    parser.add_argument("--categorical", help="columns whose numbers are names of categories", **many)
    parser.add_argument(
        "--positive", metavar="LABEL", help="the class of high scores (default: the last, sorted)"
    )


#: of whole numbers: what counts threads, terms and candidates has 32 bits
LARGEST = 2**31 - 1


def _number(text: str, accept: Callable[[float], bool], wanted: str, kind: type = float) -> Any:
    try:
        value = kind(text)
        if kind is int and value > LARGEST:
            wanted = f"a whole number of at most {LARGEST}"
            raise ValueError
        if "_" not in text and math.isfinite(value) and accept(value):
            return value
    except (ValueError, OverflowError):
        pass
    raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")


def whole(text: str) -> int:
    return int(_number(text, lambda n: n >= 1, "a whole number of at least 1", int))


def whole_or_none(text: str) -> int | None:
    wanted = "a whole number of at least 1, or none"
    return None if text.lower() == "none" else int(_number(text, lambda n: n >= 1, wanted, int))


def bins(text: str) -> int:
    return int(_number(text, lambda n: 2 <= n <= 255, "a whole number from 2 to 255", int))


def count(text: str) -> int:
    return int(_number(text, lambda n: n >= 0, "a whole number of at least 0", int))


def amount(text: str) -> float:
    return float(_number(text, lambda x: x >= 0, "a number of at least 0"))


def positive(text: str) -> float:
    return float(_number(text, lambda x: x > 0, "a number above 0"))


def fraction(text: str) -> float:
    return float(_number(text, lambda x: 0 <= x < 1, "a fraction of at least 0 and below 1"))


def sizes(text: str) -> tuple[int, ...]:
    """``1-20``, ``1,2,5`` or both: ``1-5,8,13``."""
    wanted = "ascending numbers of terms such as 1-20 or 1,2,5,10"
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        ends = [int(_number(end, lambda n: 1 <= n <= 10_000, wanted, int)) for end in (low, high or low)]
        if (dash and not high) or ends[1] < ends[0] or (found and ends[0] <= found[-1]):
            raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")
        found += range(ends[0], ends[1] + 1)
    return tuple(found)


def real(text: str) -> float:
    return float(_number(text, lambda x: True, "a number"))


def point_range(text: str) -> tuple[int, int]:
    """``5`` is -5..5."""
    low, dots, high = text.partition("..")
    wanted = "a whole number from 1 to 10000, or two around 0 such as 0..5"
    if not dots:
        most = int(_number(text, lambda n: 1 <= n <= 10_000, wanted, int))
        return -most, most
    ends = [int(_number(end, lambda n: abs(n) <= 10_000, wanted, int)) for end in (low, high)]
    if not ends[0] <= 0 <= ends[1] or ends[0] == ends[1]:
        raise argparse.ArgumentTypeError(f"expected {wanted}, got {text!r}")
    return ends[0], ends[1]


def delimiter(text: str) -> str:
    named = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}.get(text.lower(), text)
    if len(named) != 1 or named in '\r\n"':
        raise argparse.ArgumentTypeError(f"expected one character or the word tab, got {text!r}")
    return named


def add_data_options(parser: argparse.ArgumentParser, out: str, shown: str) -> None:
    """The table to learn from, where files go, and what is printed."""
    parser.add_argument("data", metavar="DATA", help="training data, one row per example")
    parser.add_argument(
        "--target", required=True, metavar="COLUMN", help="the column to predict (two classes)"
    )
    parser.add_argument("--out", default=out, metavar="DIR", help=f"folder for the files (default: {out})")
    parser.add_argument("--json", action="store_true", help=f"print the {shown} as one JSON document")
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but errors (and the JSON, if asked)"
    )


def add_price_options(group: Any) -> None:
    """Prices and the loss of a model."""
    group.add_argument("--l0", type=amount, default=0.0, metavar="X", help="price of a term (default: 0)")
    group.add_argument(
        "--l1", type=amount, default=1e-4, metavar="X", help="price of weight (default: 0.0001)"
    )
    group.add_argument(
        "--l2", type=amount, default=0.01, metavar="X", help="price of half a squared weight (default: 0.01)"
    )
    group.add_argument(
        "--loss",
        choices=("logistic", "exponential", "squared_hinge", "hinge"),
        default="logistic",
        metavar="NAME",
        help="logistic, exponential, squared_hinge or hinge (default: logistic)",
    )
