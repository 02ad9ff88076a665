"""Axes of charts: scales, ticks that read well, and their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["linear", "log"]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Tick:
    value: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A range of values, as positions from 0 to 1.

    On a log scale zeros have a lane of their own, below all other values: ``zero`` is its share of the axis.
    """

    kind: Kind
    low: float
    high: float
    ticks: tuple[Tick, ...]
    zero: float = 0.0
    minor: tuple[float, ...] = ()  # between the ticks, without a label

    def position(self, value: float) -> float:
        if self.kind == "linear":
            return (value - self.low) / (self.high - self.low)
        if value == 0:
            return self.zero / 2
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.zero + (1 - self.zero) * share


def axis_for(values: Iterable[float], kind: Kind = "linear", *, most: int = 6, counts: bool = False) -> Axis:
    """An axis that holds these values with a little room, and has about ``most`` ticks.

    ``counts``: the values are whole numbers; so are the ticks, and a linear axis begins at 0.
    """
    values = [float(value) for value in values]
    if not values:
        raise ValueError("there is nothing to draw: an axis needs values.")
    if not all(map(math.isfinite, values)):
        raise ValueError("an axis cannot show values that are not finite.")
    if kind == "log":
        return _log(values, most)
    return _linear(min(values), max(values), most, counts)


def _linear(low: float, high: float, most: int, counts: bool) -> Axis:
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # one value: room on both sides
        room = 0.5 * abs(low) or 1.0
    else:
        room = 0.04 * (high - low)
    low, high = min(low - room, 0.0) if counts else low - room, high + room
    step = nice_step((high - low) / most)
    if counts:
        low, step = max(low, 0.0), max(step, 1.0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    largest = max(abs(low), abs(high))
    digits = max(0, math.ceil(math.log10(largest / step)))

    def label(value: float) -> str:
        return plain(value, decimals) if 1e-4 <= largest < 1e7 else power_of_ten(value, digits)

    return Axis("linear", low, high, tuple(Tick(k * step, label(k * step)) for k in range(first, last + 1)))


def nice_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= least * (1 - 1e-9))


def _log(values: list[float], most: int) -> Axis:
    if min(values) < 0:
        raise ValueError("a log scale cannot show values below 0.")
    positive = [value for value in values if value > 0] or [1.0]
    room = max((max(positive) / min(positive)) ** 0.04, 1.05)
    low, high = min(positive) / room, max(positive) * room
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first) / most))
    few = last - first < 2
    powers = range(first - 1, last + 1) if few else (k for k in range(first, last + 1) if k % every == 0)
    marks = _decimals(powers, (1, 2, 5) if few else (1,), low, high)
    marks = marks or [float(f"{math.sqrt(low * high):.2g}")]
    minor = [] if few or every > 1 else _decimals(range(first - 1, last + 1), range(2, 10), low, high)
    label = plain if marks[0] >= 1e-4 and marks[-1] <= 1e4 else power_of_ten
    ticks = [Tick(value, label(value)) for value in marks]
    if min(values) > 0:
        return Axis("log", low, high, tuple(ticks), minor=tuple(minor))
    return Axis("log", low, high, (Tick(0.0, "0"), *ticks), 0.1, tuple(minor))


def _decimals(powers: Iterable[int], digits: Iterable[int], low: float, high: float) -> list[float]:
    """Numbers of one digit times a power of ten, within a range."""
    numbers = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [value for value in numbers if low <= value <= high]


def plain(value: float, decimals: int | None = None) -> str:
    """A number with a true minus sign, without needless zeros where the decimals are not given."""
    text = f"{value:.10f}".rstrip("0").rstrip(".") if decimals is None else f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "−")


def power_of_ten(value: float, decimals: int = 1) -> str:
    """2·10⁻⁷, or 10⁻⁷."""
    if value == 0:
        return "0"
    digits, _, exponent = f"{value:.{decimals}e}".partition("e")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    return power if digits == "1" else f"{digits}·{power}".replace("-", "−")
