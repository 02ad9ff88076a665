"""What each column is taken for, and what is said about it."""

import hashlib
import json
import shlex
import uuid
from collections import Counter

import numpy as np
import pytest
from frames import frame_of
from hypothesis import given, settings
from hypothesis import strategies as st

from cardboost.data.frame import Coded, Frame
from cardboost.data.roles import (
    Role,
    assign_roles,
    leak_warnings,
    left_out_lines,
    role_lines,
    size_warnings,
)
from cardboost.model.printable import printable

RNG = np.random.default_rng(0)
N = 300


def role_of(cells, **given):
    (found,) = assign_roles(frame_of(column=cells), given)
    return found


def draw(low, high, n=N, rng=RNG):
    return rng.integers(low, high, n)


WORDS = np.array(["late", "again", "paid", "called", "the", "client", "twice", "and", "we", "agreed"])
IDENTIFIERS = {
    "in order": np.arange(1, N + 1),
    "falling, with an offset": np.arange(N, 0, -1) + 70_000,
    "shuffled": RNG.permutation(N),
    "in order, with gaps": np.flatnonzero(np.arange(2 * N) % 3 != 1)[:N],
    "shuffled, with gaps": RNG.permutation(2 * N)[:N],
    "multiples of ten": 10 * RNG.permutation(N),
    "negative": -RNG.permutation(N),
    "patients with several visits": np.sort(np.concatenate([np.arange(200), RNG.permutation(200)[:100]])),
    "account numbers": draw(10**7, 10**8),
    "phone numbers": draw(10**9, 10**10),
    "64-bit keys": draw(2**60, 2**62),
    "UUIDs": [str(uuid.UUID(bytes=RNG.bytes(16))) for _ in range(N)],
    "MD5": [hashlib.md5(str(k).encode()).hexdigest() for k in range(N)],
    "SHA-1": [hashlib.sha1(str(k).encode()).hexdigest().upper() for k in range(N)],
    "prefixed codes": [f"CUST-{k:06d}" for k in range(N)],
    "prefixed codes that repeat": [f"P{k:04d}" for k in draw(0, 200)],
    "short codes without gaps": [f"P{k % 160}" for k in range(N)],
    "codes with a year": [f"INV-2024-{k:05d}" for k in range(N)],
    "long numbers as text": [f"{k:013d}" for k in draw(0, 10**12)],
    "names": [f"{first} {last}" for first, last in zip(draw(0, 50), draw(0, 10**5), strict=True)],
    "e-mail": [f"x{k}@example.com" for k in draw(0, 10**6)],
    "phone numbers as text": [f"+49 171 {k}" for k in draw(10**6, 10**7)],
    "free text": [" ".join(RNG.choice(WORDS, 9)) for _ in range(N)],
}
FEATURES = {
    "decimals": RNG.normal(size=N),
    "sorted decimals": np.sort(RNG.normal(size=N)),
    "ages": draw(18, 90),
    "years": draw(1950, 2024),
    "incomes": RNG.choice(np.arange(12_000, 200_000), N, replace=False),
    "prices": np.round(RNG.lognormal(12, 1, N)),
    "amounts in yen": np.round(RNG.lognormal(17, 0.3, N), -3),
    "revenues": np.round(RNG.lognormal(17, 4, N)),
    "zip codes": draw(501, 99_951),
    "counts": RNG.poisson(400, N),
    "codes": draw(0, 5),
    "physics": 10.0 ** RNG.uniform(20, 30, N),
    "towns": RNG.choice([f"{a}{b}" for a in "abcdefgh" for b in "ijklmnop"], N).tolist(),
    "yes or no": RNG.choice(["yes", "no"], N).tolist(),
    "numbered products": [f"SKU-{k}" for k in draw(100, 140)],
    "intervals": RNG.choice(["(20, 30]", "(30, 40]"], N).tolist(),
    "a cross or nothing": [("x", None)[k] for k in draw(0, 2)],
    "one number or nothing": np.where(draw(0, 2) > 0, 1.0, np.nan),
}


def repeated(keys, most=3, n=N, rng=RNG):
    """Rows of keys that occur up to so many times."""
    return rng.permutation(np.repeat(keys, most))[:n]


SIX_DIGITS = RNG.choice(np.arange(100_000, 1_000_000), N, replace=False)
TEXT_KEYS = ["".join(RNG.choice(list("ABCDEFGHJK23456789"), 6)) for _ in range(N)]
#: name and values; whether it is an identifier (or a date) or a feature is for the name to say
NAMED_IDENTIFIERS = {
    "custno": SIX_DIGITS,
    "ID": SIX_DIGITS,
    "Id": repeated(SIX_DIGITS[:120]),
    "id": repeated(np.arange(1, 110)),
    "customer_id": repeated(SIX_DIGITS[:120]),
    "customerID": repeated(SIX_DIGITS[:140]),
    "CUSTOMER-NO.": repeated(SIX_DIGITS[:120]),
    "Kunden-Nr": repeated(SIX_DIGITS[:110]),
    "Kundennummer": SIX_DIGITS,
    "account number": repeated(SIX_DIGITS[:150]),
    "acct_no": SIX_DIGITS,
    "policy_number": SIX_DIGITS // 10,
    "order #": repeated(SIX_DIGITS[:100]),
    "patient": repeated(SIX_DIGITS[:120]),
    "member": SIX_DIGITS,
    "userid": repeated(SIX_DIGITS[:120]),
    "row_key": SIX_DIGITS,
    "id_cliente": repeated(SIX_DIGITS[:120]),
    "patient_uuid": repeated(np.array(TEXT_KEYS[:120])).tolist(),
    "client_id": repeated(np.array(TEXT_KEYS[:120])).tolist(),
    "device_code": repeated(np.array(TEXT_KEYS[:120])).tolist(),
    "user_id": np.repeat(SIX_DIGITS, 10),
    "Nr.": SIX_DIGITS,
}
NAMED_FEATURES = {
    "age": draw(18, 90),
    "year_of_birth": draw(1930, 2005),
    "zip_code": repeated(draw(501, 99_951)[:40], 20),
    "postal code": draw(501, 99_951),
    "amount": draw(100_000, 1_000_000),
    "loan": draw(10_000, 99_999),
    "claim": draw(10_000, 99_999),
    "fnlwgt": draw(12_285, 1_484_705),
    "education_num": draw(1, 17),
    "educational-num": draw(1, 17),
    "no_of_visits": draw(0, 200),
    "num_doors": draw(2, 6),
    "number of orders": draw(0, 400),
    "nr_employed": draw(4900, 5300),
    "num_phone": draw(0, 400),
    "number": draw(0, 400),
    "order_num": draw(0, 40, 60),
    "humid": draw(0, 2000),
    "paid": draw(10_000, 99_999),
    "bid": draw(10_000, 99_999),
    "covid": draw(0, 2),
    "acid": draw(10_000, 99_999),
    "monkey": draw(100, 999),
    "candidate": draw(40_000, 47_000),
    "sales_to_date": draw(40_000, 47_000),
    "salary": draw(40_000, 47_000),
    "store_id": draw(1, 46),
    "region_code": draw(1, 12),
    "customer": draw(0, 60),
    "account": np.round(draw(10_000, 99_999), -2),
    "members": draw(10_000, 99_999),
    "sensor": draw(0, 4096),
    "sensor_value": draw(0, 65_536),
    "population": draw(100_000, 999_999),
    "temperature id offset": draw(-50, 50),
    "customer_id_score": draw(300, 850),
    "id": RNG.normal(size=N),
    "product_id": RNG.choice(["red", "green", "blue"], N).tolist(),
}
NAMED_DATES = {
    "date": draw(44_197, 44_900),
    "order_date": draw(36_526, 45_000),
    "Datum": draw(44_197, 44_900),
    "birthdate": draw(12_000, 38_000),
    "sold_on": draw(44_197, 44_900),
    "opened_at": 44_197 + RNG.integers(0, 17_000, N) / 24,
    "week": [f"2021-W{k:02d}" for k in draw(1, 53)],
    "quarter": [f"{y}Q{q}" for y, q in zip(draw(2015, 2024), draw(1, 5), strict=True)],
    "tag": [f"{d:02d}.{m:02d}." for d, m in zip(draw(1, 29), draw(1, 13), strict=True)],
}


@pytest.mark.parametrize("name", NAMED_IDENTIFIERS)
def test_names_of_identifiers_count(name):
    cells = NAMED_IDENTIFIERS[name]
    (found,) = assign_roles(frame_of(**{name: cells}), {})
    assert found.role is Role.IDENTIFIER, found
    (line,) = left_out_lines([found], printable)
    kind = "categorical" if isinstance(cells[0], str) else "numeric"
    assert line.endswith(f"; --{kind} {shlex.quote(name)} keeps it.")
    (plain,) = assign_roles(frame_of(x=cells), {})
    assert plain.is_feature or "the name" not in found.reason, "by its values alone it is a feature"


@pytest.mark.parametrize("name", NAMED_FEATURES)
def test_names_alone_make_no_identifier(name):
    (found,) = assign_roles(frame_of(**{name: NAMED_FEATURES[name]}), {})
    assert found.is_feature, found


@pytest.mark.parametrize("name", NAMED_DATES)
def test_names_of_dates_count(name):
    (found,) = assign_roles(frame_of(**{name: NAMED_DATES[name]}), {})
    assert found.role is Role.DATE, found
    parts = "month,day" if name == "tag" else "year,month,weekday,age"
    (line,) = left_out_lines([found], printable)
    assert line.endswith(f"; --date {name}={parts} derives features.")


def test_the_reason_says_that_the_name_counts():
    (found,) = assign_roles(frame_of(custno=SIX_DIGITS), {})
    assert left_out_lines([found], printable) == [
        "left out: 'custno' has the name of an identifier and 300 different whole numbers in 300 rows; "
        "--numeric custno keeps it."
    ]


def test_large_tables_of_named_columns():
    rng = np.random.default_rng(1)
    n = 30_000
    many = rng.integers(10**5, 10**5 + 5000, n)
    days, stores = rng.integers(40_000, 45_000, n), rng.integers(0, 200, n)
    frame = frame_of(user_id=many, opened_date=days, store_id=stores, amount=many)
    assert [str(own.role) for own in assign_roles(frame, {})] == ["identifier", "date", "numeric", "numeric"]


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifiers(name):
    found = role_of(IDENTIFIERS[name])
    assert found.role is Role.IDENTIFIER, found
    assert not found.is_feature
    assert found.is_left_out


@pytest.mark.parametrize("name", FEATURES)
def test_features(name):
    cells = list(FEATURES[name])
    text = any(isinstance(cell, str) for cell in cells)
    found = role_of(cells)
    assert found.role is (Role.CATEGORICAL if text else Role.NUMERIC), found
    assert found.is_feature


@pytest.mark.parametrize(
    "cells",
    [
        np.arange(1950, 2010),
        [1, 2, 3, 4, 5],
        ["a", "b", "c", "d"],
        draw(18, 80, 60),
        [f"town {'abcdefghij'[k // 10]}{'abcdefghij'[k % 10]}" for k in draw(0, 80, 60)],
        [f"town{k}" for k in draw(0, 80, 60)],
    ],
    ids=["a row a year", "five numbers", "four labels", "60 ages", "60 rows of 80 towns", "numbered towns"],
)
def test_few_rows_make_no_identifier(cells):
    assert role_of(cells).is_feature


def test_few_rows_that_all_differ_do():
    rng = np.random.default_rng(1)
    assert role_of(np.arange(12)).reason == "counts the rows and looks like an identifier"
    assert role_of(rng.permutation(40)).role is Role.IDENTIFIER
    assert role_of([f"town {chr(97 + k)}" for k in range(20)]).role is Role.IDENTIFIER


def test_dates():
    days = np.arange("2021-11-20", "2022-03-20", dtype="datetime64[D]")
    text = [str(day) for day in days]
    assert role_of(text).role is Role.DATE
    assert role_of([*text, None, "unknown"]).role is Role.DATE
    assert role_of([text[0], text[1]] * 50).role is Role.DATE
    assert role_of([int(day.replace("-", "")) for day in text]).role is Role.DATE
    assert role_of(days.astype("datetime64[s]").astype(np.int64)).role is Role.DATE
    assert role_of(text).reason == "holds dates such as '2021-11-20'"
    assert role_of([text[0]] * 20).role is Role.CONSTANT


def test_constants_and_empty_columns():
    nan = np.nan
    assert role_of([7.0] * 20).reason == "has the same value in every row"
    assert role_of(["a"] * 20).role is Role.CONSTANT
    assert role_of(["a"] * 20 + [None]).reason == "has the same value in every row that has one"
    assert role_of([7.0, nan] * 4).role is Role.CONSTANT, "too few rows for missing or not to tell anything"
    assert role_of([7.0] * 2000 + [nan] * 15).role is Role.CONSTANT
    assert role_of([7.0] * 200 + [nan] * 50).reason == "has one value or none"
    assert role_of([nan] * 5).role is Role.EMPTY
    (nothing,) = assign_roles(Frame({"a": Coded(("x",), np.full(4, -1, np.int32))}, 4), {})
    assert (nothing.role, nothing.distinct, nothing.missing, nothing.example) == (Role.EMPTY, 0, 4, None)
    for values in (np.empty(0), Coded((), np.empty(0, np.int32))):
        assert assign_roles(Frame({"a": values}, 0), {})[0].role is Role.EMPTY


def test_what_the_user_says_wins():
    rng = np.random.default_rng(1)
    frame = frame_of(id=np.arange(50), town=["a", "b"] * 25, x=rng.normal(size=50))
    given = {"id": Role.NUMERIC, "town": Role.TARGET, "x": Role.IDENTIFIER, "other": Role.WEIGHT}
    found = assign_roles(frame, given)
    assert [own.role for own in found] == [Role.NUMERIC, Role.TARGET, Role.IDENTIFIER]
    assert [own.reason for own in found] == [None] * 3
    assert [own.is_left_out for own in found] == [False] * 3
    assert left_out_lines(found, printable) == []
    assert assign_roles(frame, {"id": "dropped"})[0].role is Role.DROPPED


def test_facts():
    found = role_of([np.nan, 2.0, 3.5, 2.0])
    assert (found.distinct, found.missing, found.example) == (2, 1, 2)
    assert isinstance(found.example, int)
    found = role_of([None, "b", "a", "b"])
    assert (found.distinct, found.missing, found.example) == (2, 1, "b")
    assert json.loads(json.dumps(found.to_dict()))["role"] == "categorical"
    part = frame_of(t=["a", "b", "c"]).take(np.array([True, False, True]))
    assert assign_roles(part, {})[0].distinct == 2, "labels that no row has do not count"
    assert role_of([2.0**53 + 2, 3.0, 5.0]).reason.startswith("has numbers above 2^53")
    many = [f"{chr(97 + k % 26)}{chr(97 + k // 26)}" for k in np.arange(300) % 600] * 5
    assert role_of(many).reason == "has 300 labels, of which the 254 most frequent count"


def test_large_tables_are_sampled():
    rng = np.random.default_rng(1)
    n = 50_000
    whole, decimal = np.arange(n) % 997, np.round(rng.normal(size=n), 1)
    late = np.zeros(n)
    late[-1] = 1.0
    frame = frame_of(id=rng.permutation(n), x=rng.normal(size=n), whole=whole, decimal=decimal, late=late,
                     same=np.ones(n), few=np.where(np.arange(n) == 7, 1.0, np.nan),
                     wide=rng.integers(0, 10**5, n), day=20240101 + rng.integers(0, 28, n))  # fmt: skip
    found = {own.name: own for own in assign_roles(frame, {})}
    roles = {name: str(own.role) for name, own in found.items()}
    assert roles == {
        "id": "identifier", "x": "numeric", "whole": "numeric", "decimal": "numeric", "late": "numeric",
        "same": "constant", "few": "constant", "wide": "numeric", "day": "date",
    }  # fmt: skip
    distinct = {name: own.distinct for name, own in found.items()}
    assert (distinct["x"], distinct["wide"]) == (None, None)
    assert (distinct["whole"], distinct["late"], distinct["id"]) == (997, 2, n)
    assert distinct["decimal"] == len(np.unique(decimal))


# ------------------------------------------------------------------------------------------------ laws


def rows_of(cells, rows):
    return frame_of(column=[cells[k] for k in rows])


@pytest.mark.parametrize("name", [*IDENTIFIERS, *FEATURES])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_the_order_of_rows_does_not_matter(name, seed):
    cells = list((IDENTIFIERS | FEATURES)[name])
    (found,) = assign_roles(rows_of(cells, np.random.default_rng(seed).permutation(len(cells))), {})
    assert found.role is role_of(cells).role


@pytest.mark.parametrize("name", [*IDENTIFIERS, *FEATURES])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_missing_values_do_not_matter(name, seed):
    cells = list((IDENTIFIERS | FEATURES)[name])
    nothing = None if any(isinstance(cell, str) for cell in cells) else np.nan
    for k in np.random.default_rng(seed).permutation(len(cells))[: len(cells) // 20]:
        cells[k] = nothing
    assert role_of(cells).role is role_of(list((IDENTIFIERS | FEATURES)[name])).role


@given(st.lists(st.one_of(st.none(), st.floats(allow_infinity=False), st.integers(-5, 5)), max_size=40))
def test_any_numbers_have_a_role(cells):
    values = np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
    (found,) = assign_roles(Frame({"a": values}, len(values)), {})
    present = values[~np.isnan(values)]
    assert (found.distinct, found.missing) == (len(np.unique(present)), len(values) - len(present))
    assert (found.role is Role.EMPTY) == (len(present) == 0)


@given(st.lists(st.one_of(st.none(), st.text(max_size=12)), min_size=1, max_size=40))
def test_any_text_has_a_role(cells):
    labels = tuple(sorted({cell for cell in cells if cell is not None}))
    codes = np.array([-1 if cell is None else labels.index(cell) for cell in cells], dtype=np.int32)
    frame = Frame({"a\x1b[31m": Coded(labels, codes)}, len(cells))
    (found,) = assign_roles(frame, {})
    assert (found.distinct, found.missing) == (len(labels), cells.count(None))
    lines = role_lines([found], printable) + left_out_lines([found], printable)
    assert all(line.isprintable() for line in lines)


# ------------------------------------------------------------------------------------------------ lines


def test_what_people_see():
    rng = np.random.default_rng(1)
    frame = frame_of(
        **{
            "id": np.arange(60),
            "odd name": [f"P-{k:04d}" for k in range(60)],
            "signed up": [f"{1 + k % 28:02d}.{1 + k % 12:02d}.2024" for k in range(60)],
            "site": ["here"] * 60,
            "void": [np.nan] * 60,
            "age": draw(18, 70, 60, rng),
        }
    )
    found = assign_roles(frame, {})
    assert left_out_lines(found, printable) == [
        "left out: 'id' counts the rows and looks like an identifier; --numeric id keeps it.",
        "left out: 'odd name' holds numbered codes such as 'P-0000' and looks like an identifier; "
        "--categorical 'odd name' keeps it.",
        "left out: 'signed up' holds dates such as '01.01.2024' (day first); "
        "--date 'signed up=year,month,weekday,age' derives features.",
        "left out: 'site' has the same value in every row.",
        "left out: 'void' has no values.",
    ]
    lines = role_lines(found, printable)
    assert lines[0].split() == ["column", "role", "distinct", "missing", "example"]
    assert lines[3].split() == ["signed", "up", "date", "60", "0", "01.01.2024"]
    assert lines[5].split() == ["void", "empty", "0", "60"]


def test_the_table_is_narrow_and_short():
    columns = {f"column with a rather long name {k}": ["long text " * 30, "b", "b", "b"] for k in range(200)}
    columns["column with a rather long name 150"] = ["a", "a", "a", "a"]
    lines = role_lines(assign_roles(frame_of(**columns), {}), printable)
    assert max(map(len, lines)) <= 79
    assert len(lines) == 33
    assert lines[-1] == "... and 169 more columns"
    many = assign_roles(frame_of(**{f"c{k}": [1.0] * 3 for k in range(100)}), {})
    assert len(role_lines(many, printable)) == 62
    assert len(left_out_lines(many, printable)) == 13
    assert left_out_lines(many, printable)[-1] == "left out: 88 more columns."
    assert role_lines([], printable)


# ------------------------------------------------------------------------------------------------ leaks


def leaks(target, classification=True, **columns):
    frame = frame_of(**columns)
    lines = leak_warnings(frame, assign_roles(frame, {}), target, classification=classification)
    return [line.split("'")[1] for line in lines]


def test_a_column_that_separates_two_classes():
    rng = np.random.default_rng(1)
    y = (np.arange(400) % 4 == 0).astype(int)
    noise = rng.normal(size=400)
    frame = frame_of(settled=y * 2.0 + 0.5 * rng.random(400), noise=noise)
    sentence = (
        "column 'settled' alone separates the target almost perfectly: is it known before the outcome? "
        "--drop settled leaves it out."
    )
    assert leak_warnings(frame, assign_roles(frame, {}), y, classification=True) == [sentence]
    assert leak_warnings(frame, assign_roles(frame, {"settled": Role.DROPPED}), y, classification=True) == []
    assert leaks(
        y,
        falling=-y + 0.1 * noise,
        strong=y + noise,
        paid=np.where(y == 1, np.nan, 1000 * noise),
        owed=np.where(y == 1, 3000 * noise, np.nan),
        code=np.where(y == 1, 3, draw(0, 3, 400, rng) * 2),
        town=[("a", "b", "c")[k] for k in draw(0, 3, 400, rng)],
        status=["closed" if k else ("open", "new")[j] for k, j in zip(y, draw(0, 2, 400, rng), strict=True)],
        blank=[None if k else "here" for k in y],
        many=[
            f"{chr(97 + k)}{chr(97 + j)}"
            for k, j in zip(draw(0, 16, 400, rng), draw(0, 16, 400, rng), strict=True)
        ],
    ) == ["falling", "paid", "owed", "code", "status", "blank"]


def test_a_column_that_separates_three_classes():
    rng = np.random.default_rng(1)
    y = np.arange(300) % 3
    order = np.array([1, 2, 0])
    noise = rng.normal(size=300)
    assert leaks(
        y,
        score=order[y] + 0.05 * noise,
        one=(y == 0) + 0.05 * noise,  # tells one class from the others, as good features do
        text=[("a", "b", "c")[k] for k in y],
    ) == ["score", "text"]


def test_a_rare_class_of_a_large_table():
    rng = np.random.default_rng(1)
    n = 200_000
    y = np.zeros(n, dtype=int)
    y[::5000] = 1
    assert leaks(y, leak=y + 0.1 * rng.random(n), noise=rng.random(n)) == ["leak"]
    assert leaks(np.zeros(n, dtype=int), leak=y) == []


def test_few_rows_say_nothing():
    y = np.arange(16) % 2
    assert leaks(y, copy=y + 0.0) == []
    y = (np.arange(60) < 3).astype(int)
    assert leaks(y, copy=y + 0.0) == []


def test_leaks_of_a_number():
    rng = np.random.default_rng(1)
    y = rng.lognormal(size=500)
    noise = rng.normal(size=500)
    town = draw(0, 4, 500, rng)
    outlier = np.append(noise[:-1], 1e6)
    assert leaks(
        y, False, double=2 * y + 1, root=-np.sqrt(y), strong=y + 0.3 * noise,
        gaps=np.where(noise > 0, y, np.nan), group=[("a", "b", "c", "d")[k] for k in town],
    ) == ["double", "root", "gaps"]  # fmt: skip
    assert leaks(town + 0.001 * noise, False, group=[("a", "b", "c", "d")[k] for k in town], noise=noise) == [
        "group"
    ]
    assert leaks(np.append(rng.normal(size=499), 1e6), False, outlier=outlier) == []
    assert leaks(np.ones(500), False, x=noise) == []
    assert leaks(np.append(y[:-1], np.nan), False, x=y) == ["x"]
    assert leaks(y[:10], False, x=y[:10]) == []


def test_many_leaks_are_counted():
    y = np.arange(100) % 2
    frame = frame_of(**{f"c{k}": y + 0.0 for k in range(30)})
    lines = leak_warnings(frame, assign_roles(frame, {}), y, classification=True)
    assert len(lines) == 13
    assert lines[-1].startswith("there are 18 more columns")


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(20, 80), n_classes=st.integers(2, 4))
@settings(max_examples=40)
def test_balanced_accuracy_decides(seed, n, n_classes):
    """Against all pairs of rows: separated means that no value of a class is among those of another."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.repeat(np.arange(n_classes), 5), rng.integers(0, n_classes, n)])
    x = rng.permutation(n_classes)[y] * 10 + rng.integers(0, 12 if rng.random() < 0.5 else 10, len(y))
    runs = 1 + np.count_nonzero(np.diff(y[np.argsort(x, kind="stable")]))
    mixed = any(len(set(y[x == value])) > 1 for value in np.unique(x))
    if runs == n_classes and not mixed:
        assert leaks(y, x=x + 0.5) == ["x"]
    elif runs > 2 * n_classes + 4 and len(np.unique(x)) > 20:
        assert leaks(y, x=x + 0.5) == []


def test_sizes():
    assert size_warnings(50, {"a": 25, "b": 25}) == []
    assert size_warnings(50, None) == []
    lines = size_warnings(49, Counter({"yes": 1, "no": 48}))
    assert lines == [
        "there are only 49 rows: with fewer than 50, much is chance.",
        "class 'yes' has only 1 row: with fewer than 10, much of what is learned about it is chance.",
    ]
    assert len(size_warnings(100, dict.fromkeys(range(30), 3))) == 13


def test_labels_of_any_length():
    long = [f"x{k}" for k in range(50)] + ["x" + "7" * 5000]
    assert role_of(long).role is Role.IDENTIFIER
    assert role_of(["9" * 400 + str(k) for k in range(20)]).role is Role.IDENTIFIER
