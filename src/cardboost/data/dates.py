"""Dates in columns of text or numbers: which form they have, and the numbers derived from them.

A column has one form, which nearly all of its different cells fit. A date is kept to the hour, as it stands
on the clock of whoever wrote it: offsets from UTC are read and ignored. Years from 1700 to 2299 are read;
others, such as the 9999 that stands for "never", are missing.
"""

from __future__ import annotations

import datetime
import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.categories import shown
from cardboost.data.column_names import names_day
from cardboost.data.frame import Array, Coded, Frame

Dates = NDArray[np.datetime64]

PARTS = ("year", "month", "day", "weekday", "hour", "age")
EXCEL = "Excel days"
UNIX = {"unix seconds": 1.0, "unix milliseconds": 1e3, "unix microseconds": 1e6, "unix nanoseconds": 1e9}

_YEARS = ("1700", "2300")
_CENTURY = 69  # two digits from here on are of the 20th century, as in POSIX
_DAYS_A_YEAR = 365.25
_UNIX_SECONDS = (946_684_800.0, 2_147_483_648.0)  # 2000 to 2038
_EXCEL_DAYS = (10_000.0, 73_051.0)  # 1927 to 2099
_EXCEL_EPOCH = 25_569.0  # the first day of 1970, as Excel counts
_LEAST_UNIX = 20  # different numbers in this range that can be times
_LEAST_MONTHS = 6  # different numbers such as 202401 that can be months: by chance 12 of 100 would
_LEAST_PAIRS = 20  # different pairs such as 06/05 that can be days without a year
_NUMBER_YEARS = (1900, 2101)  # of dates that are written as numbers
_DECIDING = 2000  # different cells that decide on a form
_SCREENING = 3  # of them that tell of most columns that they have none
_FAILING = 0.05  # share of them that may not fit: "unknown", "0000-00-00"; one may in any case

# ------------------------------------------------------------------------------------------------ forms

_YEAR4, _YEAR = r"(?P<y>\d{4})", r"(?P<y>\d{4}|\d{2})"
_MONTH, _DAY = r"(?P<m>\d{1,2})", r"(?P<d>\d{1,2})"
_WEEKDAY = r"(?:[^\W\d_]{2,9}\.?,? )?"
_NAME = r"(?P<m>[^\W\d_]{3,10})\.?"
_NTH = rf"{_DAY}(?:st|nd|rd|th|\.)?"
_NO_YEAR, _NO_DAY, _NO_TIME = r"(?P<y>)", r"(?P<d>)", r"(?P<h>)(?P<p>)"
_LEAP_YEAR = 2000  # of days without a year
_TIME = (
    r"(?:(?:T|,? +)(?P<h>\d{1,2}):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)? ?(?P<p>[ap]\.?m\.?)?"
    r" ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?"
)
# In the order in which they are preferred. All have the groups y, m, d, h and p (am or pm).
_PATTERNS = {
    "year-month-day": rf"{_YEAR4}(?P<s>[-/.]){_MONTH}(?P=s){_DAY}{_TIME}",
    "day-month-year": rf"{_DAY}(?P<s>[-/.]) ?{_MONTH}(?P=s) ?{_YEAR}{_TIME}",
    "month-day-year": rf"{_MONTH}(?P<s>[-/.]) ?{_DAY}(?P=s) ?{_YEAR}{_TIME}",
    "day-name-year": rf"{_WEEKDAY}{_NTH}[-/ ]?(?:de )?{_NAME},?[-/ ]?(?:de )?{_YEAR}{_TIME}",
    "name-day-year": rf"{_WEEKDAY}{_NAME}[- ]{_NTH},?[- ]{_YEAR4}{_TIME}",
    "digits": rf"{_YEAR4}(?P<m>\d\d)(?P<d>\d\d)(?:[T ]?(?P<h>\d\d)[0-5]\d(?:[0-6]\d)?Z?)?(?P<p>)",
    "year-month": rf"{_YEAR4}[-/](?P<m>\d\d){_NO_DAY}{_NO_TIME}",
    "name-year": rf"{_NAME}[-/ ]{_YEAR}{_NO_DAY}{_NO_TIME}",
    "month digits": rf"{_YEAR4}(?P<m>\d\d){_NO_DAY}{_NO_TIME}",
    "year-week": rf"{_YEAR4}[- ]?W(?P<m>\d\d)(?:-?(?P<d>[1-7]))?{_NO_TIME}",
    "week-year": rf"(?:W|KW|CW)[- ]?(?P<m>\d{{1,2}})[-/ ]{_YEAR4}{_NO_DAY}{_NO_TIME}",
    "year-quarter": rf"{_YEAR4}[-/ ]?Q(?P<m>[1-4]){_NO_DAY}{_NO_TIME}",
    "quarter-year": rf"Q(?P<m>[1-4])(?:[-/ ]|(?=\d{{4}}$)){_YEAR}{_NO_DAY}{_NO_TIME}",
    "day-month": rf"{_NO_YEAR}{_DAY}\. ?{_MONTH}\.{_NO_TIME}",
    "day-name": rf"{_NO_YEAR}{_NTH}[-/ ]{_NAME}{_NO_TIME}",
    "name-day": rf"{_NO_YEAR}{_NAME}[-/ ]{_NTH}{_NO_TIME}",
    "day/month": rf"{_NO_YEAR}(?P<d>\d\d)[-/](?P<m>\d\d){_NO_TIME}",
    "month/day": rf"{_NO_YEAR}(?P<m>\d\d)[-/](?P<d>\d\d){_NO_TIME}",
}
FORMS = (*_PATTERNS, *UNIX, EXCEL)
#: forms without a year, from which only month and day can be derived
YEARLESS = ("day-month", "day-name", "name-day", "day/month", "month/day")
_TWINS = {"day-month-year": "month-day-year", "day/month": "month/day"}
_PAIRS = ("day/month", "month/day")
_FIRST = {"day-month-year": "day", "month-day-year": "month", "day/month": "day", "month/day": "month"}

# Names of months without accents: English, German, French, Spanish, Italian, Portuguese. Three letters do.
_MONTH_NAMES = (
    "january januar jaenner janvier enero gennaio janeiro",
    "february februar fevrier febrero febbraio fevereiro",
    "march marz maerz mars marzo marco",
    "april avril abril aprile",
    "may mai mayo maggio maio",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august aout agosto",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dicembre dezembro",
)


@cache
def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[form], re.IGNORECASE)


@cache
def _month(text: str) -> int:
    """The number of a month from its digits or its name; 0 for any other word."""
    if text.isdigit():
        return int(text)
    plain = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
    if len(plain) < 3:
        return 0
    begins = (any(name.startswith(plain) for name in names.split()) for names in _MONTH_NAMES)
    return next((k for k, fits in enumerate(begins, 1) if fits), 0)


def _hour(hour: str, half: str | None) -> int:
    """Of 24; -1 if there is no such hour."""
    number = int(hour)
    if half:
        return number % 12 + 12 * (half[0] in "pP") if 1 <= number <= 12 else -1
    return number if number < 24 else -1


def _year(year: str) -> int:
    if not year:
        return _LEAP_YEAR
    number = int(year)
    return number if len(year) == 4 else number + (1900 if number >= _CENTURY else 2000)


def _fields(form: str, fitting: re.Match[str]) -> tuple[int, int, int, int]:
    """Year, month, day and hour; a month of 0 where there is no such day."""
    year, month, day, hour, half = fitting.group("y", "m", "d", "h", "p")
    if form in ("year-week", "week-year"):  # of ISO 8601; the first day where none is named
        try:
            monday = datetime.date.fromisocalendar(int(year), int(month), int(day or 1))
        except ValueError:
            return 1970, 0, 1, 0
        return monday.year, monday.month, monday.day, 0
    if form in ("year-quarter", "quarter-year"):
        return _year(year), 3 * int(month) - 2, 1, 0
    return _year(year), _month(month), int(day or 1), _hour(hour, half) if hour else 0


def read_dates(cells: Sequence[Any], form: str) -> Dates:
    """The dates of some cells, to the hour; NaT where a cell does not fit.

    Parameters
    ----------
    cells : sequence of str or number
        Text, or numbers in the forms of digits only.
    form : str
        One of ``FORMS``.

    Returns
    -------
    ndarray of datetime64[h]
    """
    if form in UNIX:
        hours = np.array([_number(cell) for cell in cells], dtype=np.float64) / (3600.0 * UNIX[form])
        return _readable(np.floor(hours), np.isfinite(hours))
    if form == EXCEL:
        hours = 24.0 * (np.array([_number(cell) for cell in cells], dtype=np.float64) - _EXCEL_EPOCH)
        return _readable(np.floor(hours + 1e-6), np.isfinite(hours))  # hours are rounded parts of a day
    match, fields = _pattern(form).fullmatch, []
    for cell in cells:
        fitting = match(_text(cell))
        fields.append((1970, 0, 1, 0) if fitting is None else _fields(form, fitting))
    year, month, day, hour = np.array(fields, dtype=np.int64).reshape(-1, 4).T
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (day - 1)
    valid = (month >= 1) & (month <= 12) & (days.astype("datetime64[M]") == months) & (hour >= 0)
    return _readable((days.astype("datetime64[h]") + hour).astype(np.int64), valid)


def _readable(hours: NDArray[Any], valid: NDArray[np.bool_]) -> Dates:
    """Hours since 1970 as dates; NaT where they are not valid or not of a year that is read."""
    first, end = (np.datetime64(year, "h").astype(np.int64) for year in _YEARS)
    with np.errstate(invalid="ignore"):
        valid = valid & (hours >= first) & (hours < end)
    dates = np.where(valid, hours, 0).astype(np.int64).astype("datetime64[h]")
    dates[~valid] = np.datetime64("NaT")
    return dates


def _text(cell: Any) -> str:
    """A cell as text, a whole number as its digits."""
    if isinstance(cell, str):
        return cell.strip()
    return str(int(cell)) if float(cell).is_integer() else ""


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


# ------------------------------------------------------------------------------------------------ deciding


@dataclass(frozen=True)
class DateForm:
    """The form of the dates of a column; ``ambiguous``: day and month could be exchanged."""

    name: str
    ambiguous: bool = False

    @property
    def usual_parts(self) -> tuple[str, ...]:
        """The parts to suggest."""
        return ("month", "day") if self.name in YEARLESS else ("year", "month", "weekday", "age")

    def reason(self, example: Any) -> str:
        """What a column of this form does, as the rest of a sentence that begins with its name."""
        if self.name in UNIX:
            day = str(read_dates([example], self.name)[0])[:10]
            return f"looks like times in {self.name.replace('unix', 'Unix')} such as {example} ({day})"
        if self.name == EXCEL:
            day = str(read_dates([example], EXCEL)[0])[:10]
            return f"looks like days as Excel counts them, such as {example} ({day})"
        order = f" ({_FIRST[self.name]} first)" if self.name in _FIRST else ""
        if self.ambiguous:
            order = " (day first is taken: month first would fit as well)"
        return f"holds dates such as {shown(_text(example))}{order}"


def find_form(cells: Sequence[Any], failing: float = _FAILING) -> DateForm | None:
    """The form that most of the different cells of a column have; None if too many have none.

    Parameters
    ----------
    cells : sequence of str or number
        Different values. Of many, some are looked at.
    failing : float
        The share that may not fit.
    """
    cells = _spread(cells, _DECIDING)
    few = _spread(cells, _SCREENING)
    best, most = None, len(cells) - max(1.0, failing * len(cells))
    counts: dict[str, int] = {}
    for form in _PATTERNS:
        if not any(_pattern(form).fullmatch(_text(cell)) for cell in few):
            continue
        dates = read_dates(cells, form)
        counts[form] = int(np.count_nonzero(~np.isnat(dates)))
        if counts[form] >= max(2.0, most) and _believable(dates, form):
            best, most = form, counts[form] + 0.5  # the next one must fit more cells
    if best is None:
        return None
    twin = counts.get(_TWINS[best]) if best in _TWINS else None
    return DateForm(best, twin == counts[best])


def find_number_form(values: Array, n_rows: int | None, *, named: bool = False) -> DateForm | None:
    """The same for numbers: dates such as 20240131, months such as 202401, Unix times, and days of Excel.

    Parameters
    ----------
    values : ndarray
        The different numbers, ascending and without NaN; at least one.
    n_rows : int or None
        How many rows have one: Unix times are believed only where most rows differ. None: they are dates.
    named : bool
        Whether the column is named like a date: days such as 44197, as Excel counts them, are believed only
        then, since amounts are as large.
    """
    apart = int(_FAILING / 2 * len(values))  # 0 and 99991231, which stand for no date
    inner = values[apart : len(values) - apart]
    scale = _scale(inner[0], named)
    if scale is None or _scale(inner[-1], named) != scale:
        return None
    if scale == EXCEL:
        return DateForm(EXCEL)
    if scale not in UNIX:
        return find_form(values.tolist())
    differ = n_rows is None or (len(values) >= _LEAST_UNIX and 2 * len(values) >= n_rows)
    return DateForm(scale) if differ else None


def may_be_date(number: float) -> bool:
    """Whether a number is in the range of dates that are written as numbers, or of Unix times."""
    return _scale(number) is not None


def _scale(number: float, days: bool = False) -> str | None:
    """What the size of a number says: the unit of a Unix time, or how many digits follow the year.

    ``days``: it can also be a day as Excel counts them.
    """
    if days and _EXCEL_DAYS[0] <= number < _EXCEL_DAYS[1]:
        return EXCEL
    for digits in (2, 4, 8, 10):  # to the month, the day, the minute, the second
        if _NUMBER_YEARS[0] <= number / 10.0**digits < _NUMBER_YEARS[1]:
            return f"{digits} digits"
    units = (name for name, unit in UNIX.items() if _UNIX_SECONDS[0] <= number / unit < _UNIX_SECONDS[1])
    return next(units, None)


def _spread(cells: Sequence[Any], most: int) -> Sequence[Any]:
    """At most so many of them, evenly spread."""
    if len(cells) <= most:
        return cells
    return [cells[k] for k in np.linspace(0, len(cells) - 1, most).astype(int).tolist()]


def _believable(dates: Dates, form: str) -> bool:
    """Whether what fits a short form are dates: seasons such as 2003-04 are not, nor are a few numbers."""
    if form == "year-month":
        years, months = dates.astype("datetime64[Y]").astype(int) + 1970, _part(dates, "month")
        return not bool(((years + 1) % 100 == months)[~np.isnat(dates)].all())
    return len(dates) >= {"month digits": _LEAST_MONTHS, **dict.fromkeys(_PAIRS, _LEAST_PAIRS)}.get(form, 0)


# ------------------------------------------------------------------------------------------------ features


@dataclass(frozen=True)
class DateParts:
    """The numbers that are derived from a column of dates, as training decides and a model file keeps them.

    Parameters
    ----------
    column : str
        The name of the column.
    parts : tuple of str
        Of ``PARTS``: year, month (1 to 12), day (1 to 31), weekday (Monday 1 to Sunday 7), hour (0 to 23),
        and age, the years from the date to the reference day.
    form : str
        One of ``FORMS``. A cell of another form is missing.
    reference : str or None
        The latest day of the training rows, as 2024-01-31; None where there is no age.
    """

    column: str
    parts: tuple[str, ...]
    form: str
    reference: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise ValueError(f"column: expected a name, found {shown(self.column)}")
        object.__setattr__(self, "parts", check_parts(self.parts))
        if self.form not in FORMS:
            raise ValueError(f"form: expected one of {', '.join(FORMS)}, found {shown(self.form)}")
        if not _is_day(self.reference) if "age" in self.parts else self.reference is not None:
            expected = "a day such as 2024-01-31" if "age" in self.parts else "none without the part 'age'"
            raise ValueError(f"reference: expected {expected}, found {shown(self.reference)}")

    @classmethod
    def from_training(cls, frame: Frame, column: str, parts: Iterable[str]) -> DateParts:
        """Find out the form and the latest day.

        Raises
        ------
        ValueError
            For an unknown part, and for a column that is missing or holds no dates.
        """
        parts = check_parts(parts)
        values = _column(frame, column)
        cells, rows = _cells(values)
        cells = [cells[k] for k in np.unique(rows[rows >= 0]).tolist()]
        form = None
        if isinstance(values, Coded):
            form = find_form(cells, failing=0.5)
        elif cells:
            form = find_number_form(np.array(cells), None, named=True)
        if form is None:
            example = f" such as {shown(_text(cells[0]) or cells[0])}" if cells else ""
            raise ValueError(f"column {column!r} holds no dates that can be read{example}.")
        if form.name in YEARLESS and not set(parts) <= set(form.usual_parts):
            raise ValueError(
                f"column {column!r} holds days without a year such as {shown(_text(cells[0]))}: "
                f"{' and '.join(form.usual_parts)} can be derived from them."
            )
        latest = str(np.nanmax(read_dates(cells, form.name)))[:10] if "age" in parts else None
        return cls(column, parts, form.name, latest)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the derived columns."""
        return tuple(f"{self.column} ({part})" for part in self.parts)

    def derive(self, frame: Frame) -> dict[str, Array]:
        """The derived columns of a table; NaN where the date is missing or cannot be read."""
        cells, rows = _cells(_column(frame, self.column))
        dates = read_dates(cells, self.form)
        derived = {}
        for name, part in zip(self.names, self.parts, strict=True):
            numbers = np.append(_part(dates, part, self.reference), np.nan)
            numbers[:-1][np.isnat(dates)] = np.nan
            derived[name] = numbers[rows]
        return derived

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"parts": list(self.parts)}

    @classmethod
    def from_dict(cls, document: Any) -> DateParts:
        """Read what :meth:`to_dict` has written; ValueError with one sentence for anything else."""
        fields = ("column", "parts", "form", "reference")
        if not isinstance(document, Mapping) or set(document) != set(fields):
            raise ValueError(f"expected an object with {', '.join(fields)}, found {shown(document)}")
        return cls(**document)


def check_parts(parts: Any) -> tuple[str, ...]:
    """The parts of a date that are asked for; ValueError for an unknown one."""
    parts = (parts,) if isinstance(parts, str) else parts
    if not isinstance(parts, Iterable) or not (parts := tuple(parts)):
        raise ValueError(f"parts: expected one or more of {', '.join(PARTS)}, found {shown(parts)}")
    for k, part in enumerate(parts):
        if part not in PARTS:
            close = difflib.get_close_matches(str(part), PARTS, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise ValueError(f"parts: expected {', '.join(PARTS)}, found {shown(part)}{hint}")
        if part in parts[:k]:
            raise ValueError(f"parts: expected different ones, found {part!r} twice")
    return parts


def column_dates(name: str, values: Array | Coded) -> Dates | None:
    """The dates of a column, NaT where there is none; None where it holds none, or days without a year."""
    cells, rows = _cells(values)
    if not cells:
        return None
    if isinstance(values, Coded):
        form = find_form(cells)
    else:
        form = find_number_form(np.array(cells), None, named=names_day(name))
    if form is None or form.name in YEARLESS:
        return None
    return np.append(read_dates(cells, form.name), np.datetime64("NaT"))[rows]


def derive_dates(frame: Frame, parts: Sequence[DateParts]) -> Frame:
    """Put the derived columns in the places of their dates; other columns stay as they are.

    Raises
    ------
    ValueError
        If a column of dates is missing, or a derived name is taken.
    """
    by_column = {entry.column: entry for entry in parts}
    for name in by_column:
        _column(frame, name)
    data: dict[str, Array | Coded] = {}
    for name, values in frame.data.items():
        columns = by_column[name].derive(frame) if name in by_column else {name: values}
        for taken in set(columns) & (set(data) | (set(frame.data) - {name})):
            raise ValueError(f"the table has a column {taken!r} already: rename it, or derive no such part.")
        data.update(columns)
    return Frame(data, frame.n_rows)


def _column(frame: Frame, name: str) -> Array | Coded:
    if name not in frame.data:
        raise ValueError(f"the table has no column {name!r} to derive parts of dates from.")
    return frame.data[name]


def _cells(values: Array | Coded) -> tuple[list[Any], NDArray[np.int32]]:
    """The different values, and for every row the position of its value (-1: missing)."""
    if isinstance(values, Coded):
        return list(values.labels), values.codes
    rows = np.full(len(values), -1, dtype=np.int32)
    present = ~np.isnan(values)
    distinct, rows[present] = np.unique(values[present], return_inverse=True)
    return distinct.tolist(), rows


def _part(dates: Dates, part: str, reference: str | None = None) -> Array:
    """A number for every date; any number for NaT."""
    days = dates.astype("datetime64[D]")
    if part == "year":
        numbers = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    elif part == "month":
        numbers = dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
    elif part == "day":
        numbers = (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1
    elif part == "weekday":
        numbers = (days.astype(np.int64) + 3) % 7 + 1  # the first day of 1970 was a Thursday
    elif part == "hour":
        numbers = dates.astype(np.int64) % 24
    else:
        return (np.datetime64(reference, "D") - days).astype(np.int64) / _DAYS_A_YEAR
    return numbers.astype(np.float64)


def _is_day(text: Any) -> bool:
    valid = isinstance(text, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
    return valid and not bool(np.isnat(read_dates([text], "year-month-day"))[0])
