"""Dates: their forms, and the features derived from them."""

import datetime

import numpy as np
import pytest
from frames import frame_of
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.dates import (
    FORMS,
    PARTS,
    DateForm,
    DateParts,
    column_dates,
    derive_dates,
    find_form,
    find_number_form,
    read_dates,
)

#: how Python writes them, and the form that is read; the year of two digits is one from 1969 on
WRITTEN = {
    "%Y-%m-%d": "year-month-day",
    "%Y-%m-%d %H:%M": "year-month-day",
    "%Y-%m-%dT%H:%M:%SZ": "year-month-day",
    "%Y-%m-%dT%H:%M:%S.250+02:00": "year-month-day",
    "%Y-%m-%d %H:%M:%S-0530": "year-month-day",
    "%Y/%m/%d": "year-month-day",
    "%Y.%m.%d": "year-month-day",
    "%d.%m.%Y": "day-month-year",
    "%d/%m/%Y %H:%M": "day-month-year",
    "%d-%m-%Y": "day-month-year",
    "%d.%m.%y": "day-month-year",
    "%m/%d/%Y": "month-day-year",
    "%m/%d/%Y %I:%M %p": "month-day-year",
    "%m/%d/%y": "month-day-year",
    "%d-%b-%Y": "day-name-year",
    "%d %B %Y": "day-name-year",
    "%a, %d %b %Y %H:%M:%S GMT": "day-name-year",
    "%b %d, %Y": "name-day-year",
    "%B %d, %Y %I:%M:%S %p": "name-day-year",
    "%Y%m%d": "digits",
    "%Y%m%dT%H%M%S": "digits",
    "%Y%m%d%H%M%S": "digits",
}
TIMES = st.datetimes(datetime.datetime(1969, 1, 1), datetime.datetime(2068, 12, 31))
FEW_TIMES = [datetime.datetime(2021, 1, 31, 13, 45) + datetime.timedelta(days=37 * k) for k in range(30)]


@pytest.mark.parametrize(("written", "form"), WRITTEN.items())
@given(times=st.lists(TIMES, min_size=1, max_size=8))
@settings(max_examples=15)
def test_a_date_comes_back_to_the_same_day_and_hour(written, form, times):
    cells = [time.strftime(written) for time in times]
    unit = "datetime64[h]" if "%H" in written or "%I" in written else "datetime64[D]"
    np.testing.assert_array_equal(read_dates(cells, form).astype(unit), np.array(times, dtype=unit))


@pytest.mark.parametrize(("written", "form"), WRITTEN.items())
def test_the_form_is_found(written, form):
    cells = sorted({time.strftime(written) for time in FEW_TIMES})
    assert find_form(cells) == DateForm(form)
    assert find_form([*cells, "unknown"]) == DateForm(form)
    assert find_form([cells[0], "a", "b", "c"]) is None


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        ("3. März 2024", "2024-03-03"), ("3 août 2024", "2024-08-03"), ("3-dic-2024", "2024-12-03"),
        ("3 de maio de 2024", "2024-05-03"), ("1st June 2024", "2024-06-01"), ("7 juil. 24", "2024-07-07"),
        ("7 juin 2024", "2024-06-07"), ("3 Foo 2024", "NaT"), ("30 Feb 2024", "NaT"), ("3 May 9999", "NaT"),
    ],
)  # fmt: skip
def test_names_of_months(cell, day):
    (date,) = read_dates([cell], "day-name-year").astype("datetime64[D]")
    assert str(date) == day


def test_months_alone():
    assert find_form(["2024-01", "2024-02", "2024-11"]) == DateForm("year-month")
    assert find_form(["Jan 2024", "Feb 2024"]) == DateForm("name-year")
    assert find_form(["2003-04", "2004-05", "2005-06"]) is None, "seasons"


@pytest.mark.parametrize(
    ("cells", "form", "first"),
    [
        (["2021-W18", "2021-W19", "2020-W53"], "year-week", "2021-05-03"),
        (["2021W18", "2021W02"], "year-week", "2021-05-03"),
        (["2021-W18-3", "2021-W19-7"], "year-week", "2021-05-05"),
        (["KW 18/2021", "KW 9/2021"], "week-year", "2021-05-03"),
        (["2021Q2", "2021Q3", "2022Q1"], "year-quarter", "2021-04-01"),
        (["2021-Q2", "2021-Q3"], "year-quarter", "2021-04-01"),
        (["Q2 2021", "Q3 2021"], "quarter-year", "2021-04-01"),
        (["Q2/21", "Q32021"], "quarter-year", "2021-04-01"),
        (["06.05.", "31.12.", "29.02."], "day-month", "2000-05-06"),
        (["6. 5.", "31. 12."], "day-month", "2000-05-06"),
        (["6 May", "31 Dec"], "day-name", "2000-05-06"),
        (["May 6", "Dec 31"], "name-day", "2000-05-06"),
        ([f"{d:02d}/{1 + d % 12:02d}" for d in range(6, 29)], "day/month", "2000-07-06"),
        ([f"{1 + d % 12:02d}-{d:02d}" for d in range(6, 29)], "month/day", "2000-07-06"),
    ],
)
def test_weeks_quarters_and_days_without_a_year(cells, form, first):
    assert find_form(cells).name == form
    assert str(read_dates(cells[:1], form).astype("datetime64[D]")[0]) == first


@given(day=st.dates(datetime.date(1969, 1, 6), datetime.date(2068, 12, 31)))
def test_weeks_are_those_of_the_calendar(day):
    year, week, weekday = day.isocalendar()
    (found,) = read_dates([f"{year}-W{week:02d}-{weekday}"], "year-week").astype("datetime64[D]")
    assert found == np.datetime64(day)


def test_days_as_excel_counts_them():
    days = np.array([44197.0, 44198.0, 44562.75])

    def form_of(values, **options):
        return find_number_form(np.unique(values), 100, **options)

    assert form_of(days) is None, "amounts are as large"
    assert form_of(days, named=True) == DateForm("Excel days")
    assert form_of(days * 10, named=True) is None
    assert form_of(np.arange(31.0), named=True) is None
    hours = read_dates([*days.tolist(), "44197", "", 9e9], "Excel days").astype(str).tolist()
    assert hours == ["2021-01-01T00", "2021-01-02T00", "2022-01-01T18", "2021-01-01T00", "NaT", "NaT"]
    frame = frame_of(opened=days)
    derived = DateParts.from_training(frame, "opened", ("year", "hour")).derive(frame)
    assert derived["opened (year)"].tolist() == [2021, 2021, 2022]
    assert derived["opened (hour)"].tolist() == [0, 0, 18]


def test_days_without_a_year_have_no_year():
    frame = frame_of(day=["06.05.", "24.12.", "29.02."])
    derived = DateParts.from_training(frame, "day", ("month", "day")).derive(frame)
    assert derived["day (month)"].tolist() == [5, 12, 2]
    with pytest.raises(ValueError, match=r"holds days without a year such as '06\.05\.': month and day can"):
        DateParts.from_training(frame, "day", ("month", "age"))
    assert column_dates("day", frame.data["day"]) is None, "there is no latest of them"


@pytest.mark.parametrize(
    "cells",
    [
        ["2019", "2020", "2021"],
        ["2021-W60", "2021-W54"],
        ["2021Q5", "2021Q6"],
        ["Q101", "Q102", "Q215"],
        ["Market 11", "Market 12", "Market 13"],
        ["Decile 1", "Decile 2"],
        ["Maybe 2021", "Marina 2022"],
        ["10-12", "12-14", "14-16"],
        [f"{k}/{k + 1}" for k in range(10, 40)],
        ["13:45", "14:00"],
        ["10.0.0.1", "10.0.0.2"],
        ["1.2.3", "1.10.4"],
        ["(20, 30]", "(30, 40]"],
        ["18-25", "26-35", "36-45"],
        ["31.02.2024", "45.01.2024"],
        ["2024-01-31"],
        [],
    ],
)
def test_what_is_no_date(cells):
    assert find_form(cells) is None


def test_day_first_unless_only_month_first_fits():
    both = ["01/02/2024", "03/04/2024", "05/06/2024"]
    assert find_form(both) == DateForm("day-month-year", ambiguous=True)
    assert "month first would fit as well" in find_form(both).reason(both[0])
    assert find_form([*both, "13/01/2024"]) == DateForm("day-month-year")
    assert find_form([*both, "01/13/2024"]) == DateForm("month-day-year")
    assert find_form([*both, "01/13/2024"]).reason(both[0]).endswith("(month first)")


def test_two_digits_of_a_year():
    years = read_dates(["01.01.68", "01.01.69", "01.01.99", "01.01.00"], "day-month-year")
    assert years.astype("datetime64[Y]").astype(str).tolist() == ["2068", "1969", "1999", "2000"]


def test_numbers():
    def form_of(values, n_rows=100):
        found = find_number_form(np.unique(np.asarray(values, dtype=float)), n_rows)
        return None if found is None else found.name

    days = [20240100.0 + k for k in range(1, 30)]
    assert form_of(days) == "digits"
    assert (
        form_of([*(20230000 + 100 * m + d for m in range(1, 13) for d in range(1, 20)), 0, 99991231])
        == "digits"
    )
    assert form_of([20240131134500.0, 20240131134501.0]) == "digits"
    assert form_of([202400.0 + k for k in range(1, 13)]) == "month digits"
    assert form_of([202400.0 + k for k in range(1, 40)]) is None
    assert form_of(range(1990, 2020)) is None
    seconds = 1.6e9 + 86_413.0 * np.arange(60)
    for unit, name in ((1.0, "seconds"), (1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")):
        assert form_of(seconds * unit) == f"unix {name}"
        np.testing.assert_array_equal(
            read_dates((seconds * unit).tolist(), f"unix {name}"),
            seconds.astype(np.int64).astype("datetime64[s]").astype("datetime64[h]"),
        )
    assert form_of(seconds, n_rows=1000) is None, "few of many rows differ"
    assert form_of(seconds[:10]) is None


# ------------------------------------------------------------------------------------------------ features


def test_parts():
    frame = frame_of(a=[1, 2, 3, 4], day=["31.01.2024 13:45", "29.02.2020 00:10", None, "soon"], b=["x"] * 4)
    parts = DateParts.from_training(frame, "day", PARTS)
    assert parts == DateParts("day", PARTS, "day-month-year", "2024-01-31")
    derived = derive_dates(frame, [parts])
    assert derived.columns == ["a", *(f"day ({part})" for part in PARTS), "b"]
    rows = np.array([derived.data[name] for name in parts.names]).T
    np.testing.assert_array_equal(rows[0], [2024, 1, 31, 3, 13, 0])
    np.testing.assert_array_equal(rows[1][:5], [2020, 2, 29, 6, 0])
    assert rows[1][5] == pytest.approx(3.92, abs=0.01)
    assert np.isnan(rows[2:]).all()
    assert derived.data["b"] is frame.data["b"]
    assert frame.columns == ["a", "day", "b"]


def test_the_reference_is_that_of_training():
    train = frame_of(day=["2020-01-01", "2024-01-01", "2022-01-01"])
    parts = DateParts.from_training(train, "day", ["age"])
    later = derive_dates(frame_of(day=["2025-01-01", "2023-01-01"]), [parts])
    np.testing.assert_allclose(later.data["day (age)"], [-1.0, 1.0], atol=0.01)
    kept = train.take(np.array([True, False, True]))  # its labels still have the latest day
    assert DateParts.from_training(kept, "day", ["age"]).reference == "2022-01-01"


def test_numbers_as_text_and_text_as_numbers():
    """A file may be read as text once, and as numbers the next time."""
    numbers = frame_of(day=[20240131, 20240229, np.nan])
    parts = DateParts.from_training(numbers, "day", ["month", "day"])
    text = derive_dates(frame_of(day=["20240131", "20240229", None]), [parts])
    for name, values in derive_dates(numbers, [parts]).data.items():
        np.testing.assert_array_equal(values, text.data[name])
    seconds = DateParts.from_training(frame_of(t=[1.6e9, 1.7e9]), "t", ["hour"])
    assert derive_dates(frame_of(t=["1600000000", "x"]), [seconds]).data["t (hour)"][0] == 12
    dotted = DateParts("day", ("year",), "day-month-year")
    assert np.isnan(derive_dates(frame_of(day=[1.5, np.nan]), [dotted]).data["day (year)"]).all()


@given(
    times=st.lists(st.one_of(st.none(), TIMES), min_size=1, max_size=10),
    written=st.sampled_from(sorted(WRITTEN)),
    parts=st.lists(st.sampled_from(PARTS), min_size=1, unique=True),
)
@settings(max_examples=60)
def test_plain_data_derive_the_same(times, written, parts):
    frame = frame_of(day=[None if time is None else time.strftime(written) for time in times] + ["?"])
    entry = DateParts("day", tuple(parts), WRITTEN[written], "2024-01-31" if "age" in parts else None)
    again = DateParts.from_dict(entry.to_dict())
    assert again == entry
    one, two = derive_dates(frame, [entry]), derive_dates(frame, [again])
    for k, name in enumerate(entry.names):
        np.testing.assert_array_equal(one.data[name], two.data[name])
        assert np.isnan(one.data[name]).tolist() == [*(time is None for time in times), True]
        if parts[k] in ("year", "month", "day"):
            expected = [np.nan if time is None else getattr(time, parts[k]) for time in times]
            np.testing.assert_array_equal(one.data[name][:-1], expected)
        elif parts[k] == "weekday":
            expected = [np.nan if time is None else time.isoweekday() for time in times]
            np.testing.assert_array_equal(one.data[name][:-1], expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": ["yaer"]}, r"parts: expected .*, found 'yaer' \(did you mean year\?\)"),
        ({"parts": ["century"]}, "found 'century'$"),
        ({"parts": []}, "one or more of year"),
        ({"parts": 3}, "found 3"),
        ({"parts": [["year"]]}, "found "),
        ({"parts": ["age", "age"]}, "'age' twice"),
        ({"parts": ["year"]}, "reference: expected none"),
        ({"reference": "2024-02-30"}, "reference: expected a day"),
        ({"reference": None}, "reference: expected a day"),
        ({"reference": 5}, "found 5"),
        ({"form": "day"}, "form: expected one of year-month-day"),
        ({"form": []}, "form: expected"),
        ({"column": 1}, "column: expected a name, found 1"),
        ({"code": "1"}, "expected an object with column, parts, form, reference"),
    ],
)
def test_plain_data_are_checked(change, message):
    document = DateParts("day", ("age",), FORMS[0], "2024-01-31").to_dict()
    with pytest.raises(ValueError, match=message):
        DateParts.from_dict(document | change)
    with pytest.raises(ValueError, match="expected an object"):
        DateParts.from_dict([document])


def test_what_cannot_be_derived():
    frame = frame_of(town=["Rome", "Oslo"], n=[1.5, 2], day=["2024-01-01", "2024-01-02"], e=[np.nan] * 2)
    for name, message in (("town", "'town' holds no dates that can be read such as 'Oslo'"),
                          ("n", "such as 1.5"), ("e", "can be read."), ("no", "no column 'no'")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            DateParts.from_training(frame, name, ["year"])
    with pytest.raises(ValueError, match="did you mean weekday"):
        DateParts.from_training(frame, "day", ["weekdy"])
    parts = DateParts.from_training(frame, "day", "year")
    with pytest.raises(ValueError, match="no column 'day'"):
        derive_dates(frame_of(town=["Rome"]), [parts])
    taken = frame_of(**{"day": ["2024-01-01"], "day (year)": [1]})
    with pytest.raises(ValueError, match=r"column 'day \(year\)' already"):
        derive_dates(taken, [parts])
