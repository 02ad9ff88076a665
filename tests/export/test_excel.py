"""Workbooks: formulas that LibreOffice recalculates, one case per row, and text that stays text."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from xml.sax.saxutils import escape

import numpy as np
import pytest
from cross import application
from exported import fixed_models, float64_values, random_ensemble, raw_rows, table_of
from openpyxl import load_workbook

from cardboost.data.categories import Categories
from cardboost.export import export_model
from cardboost.export.excel import export_excel
from cardboost.model import Ensemble, MulticlassEnsemble, Term
from cardboost.model.files import Model
from cardboost.model.operating_point import OperatingPoint
from cardboost.model.scorecard import OddsScale, Scorecard

MODELS = {name: model for name, model in fixed_models().items() if name != "no terms"}
MODELS["threshold"] = replace(random_ensemble(1), operating_point=OperatingPoint(-0.8, "fpr<=0.1"))
FORMULAS = (
    *("=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("x")', "#N/A", "TRUE"),
    *("1", "a", "A", "a*", "?", "~", "_x0041_"),
)
HEAD = 3
N = 10_000


def hostile_model():
    labels = Categories(tuple(sorted(FORMULAS)), ("b\n", 'quote"s', "é身"))
    terms = tuple(Term(0, None, 1, False, 0.5 + k, category=label) for k, label in enumerate(labels.kept))
    terms = (*terms, *(Term(1 + j, 0.5, 1, True, 1.0 + j) for j in range(len(FORMULAS))))
    names = ("label", *FORMULAS)
    return Ensemble("exponential", 0.25, terms, names, len(names), ("=1+1", "a"), {0: labels})


def scorecard(scale=None):
    unit = 0.5 if scale is None else scale.unit("logistic")
    terms = (
        Term(0, 2.5, 1, False, 3 * unit),
        Term(0, 4.0, -1, True, unit),
        Term(1, 10.0, -1, False, 2 * unit),
        Term(2, None, 1, True, 4 * unit, category=True),
    )
    labels = {2: Categories((False, True))}
    model = Ensemble("logistic", 0.125, terms, ("age", "dose", "kind"), 3, ("no", "yes"), labels, unit)
    return Scorecard(model, scale=scale)


def filled(model, rows):
    """The workbook with rows in its yellow cells, written into its XML: openpyxl keeps 16 digits only."""
    ensemble = getattr(model, "ensemble", model)
    source = zipfile.ZipFile(io.BytesIO(export_excel(model, rows=len(rows))))
    stream = io.BytesIO()

    def cell(match):
        place, row = ord(match[1]) - ord("A"), int(match[2]) - HEAD - 1
        value = rows[row][ensemble.features_used[place]] if row >= 0 and place < ensemble.n_features else None
        if value is None or value != value:
            return match[0]
        start = f'<c r="{match[1]}{match[2]}" s="{match[3]}"'
        if isinstance(value, str):
            text = escape(value.replace("_x", "_x005F_x"))
            return f'{start} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
        kind = ' t="b"' if isinstance(value, bool) else ""
        return f"{start}{kind}><v>{int(value) if kind else value!r}</v></c>"

    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text, count = re.subn(r'<c r="([A-Z])([0-9]+)" s="([0-9]+)" t="n" ?/>', cell, data.decode())
                assert count == len(rows) * len(ensemble.features_used)
                data = text.encode()
            target.writestr(name, data)
    return stream.getvalue()


def recalculated(books, folder):
    """The values of all cells, by LibreOffice."""
    office = application("soffice")
    (folder / "out").mkdir()
    for name, book in books.items():
        (folder / f"{name}.xlsx").write_bytes(book)
    files = [str(folder / f"{name}.xlsx") for name in books]
    profile = f"-env:UserInstallation=file://{folder}/profile"
    command = [office, profile, "--headless", "--convert-to", "xlsx", "--outdir", str(folder / "out"), *files]
    subprocess.run(command, capture_output=True, check=True, timeout=500)
    return {name: load_workbook(folder / "out" / f"{name}.xlsx", data_only=True)["Score"] for name in books}


def answers(sheet, count):
    """Columns behind the inputs, by their headings."""
    headings = [cell.value for cell in sheet[HEAD]]
    table = list(sheet.iter_rows(min_row=HEAD + 1, max_row=HEAD + count, values_only=True))
    assert len(table) == count
    return headings, table


def check(model, rows, sheet):
    ensemble = getattr(model, "ensemble", model)
    used, several = list(ensemble.features_used), isinstance(model, MulticlassEnsemble)
    given = [any(row[j] is not None and row[j] == row[j] for j in used) for row in rows]
    headings, found = answers(sheet, len(rows))
    table, n = table_of(ensemble, rows), len(used)
    points = isinstance(model, Scorecard)
    scores = model.total(table) if points else ensemble.decision_function(table)
    added = model.points(table) if points else ensemble.contributions(table)
    scores, added = scores.reshape(len(rows), -1), added.reshape(len(rows), ensemble.n_features, -1)[:, used]
    count = scores.shape[1]
    values = [row for row, any_value in zip(found, given, strict=True) if any_value]
    empty = [row for row, any_value in zip(found, given, strict=True) if not any_value]
    assert all(cell in (None, "") for row in empty for cell in row)
    scores, added = scores[given], added[given]
    contributions = np.array([row[n : n + n * count] for row in values], dtype=float)
    wanted = added.transpose(0, 2, 1).reshape(len(values), -1)
    np.testing.assert_allclose(contributions, wanted, rtol=1e-14, atol=0)  # LibreOffice writes 15 digits
    totals = np.array([row[n * (1 + count) : n * (1 + count) + count] for row in values], dtype=float)
    if points:
        assert (totals == scores).all()
    else:
        largest = np.abs(wanted).max() + np.abs(scores).max()
        assert np.abs(totals - scores).max() <= 1e-14 * n * largest
    if ensemble.classes is None:
        assert len(headings) == n * 2 + 1
        return
    clear = (
        np.abs(scores[:, 0] - getattr(model, "threshold", 0)) > 1e-13
        if not several
        else np.diff(np.sort(scores, axis=1))[:, -1] > 1e-13
    )
    labels = model.predict(table)[given]
    assert [row[-1] for row, sure in zip(values, clear, strict=True) if sure] == labels[clear].tolist()
    if ensemble.parts[0].has_probabilities:
        chance = model.predict_proba(table)[given]
        got = np.array([row[-1 - (count if several else 1) : -1] for row in values], dtype=float)
        np.testing.assert_allclose(got, chance if several else chance[:, 1:], rtol=1e-12, atol=1e-300)


@pytest.mark.long
def test_recalculated_by_libreoffice(tmp_path):
    """Every cut, its neighbours, missing values, unseen labels: the right line of every feature."""
    models = {**MODELS, "hostile": hostile_model(), "squared hinge": random_ensemble(8, loss="squared_hinge")}
    models |= {"points": scorecard(), "odds": scorecard(OddsScale(600.0, 30.0, 20.0))}
    rows = {}
    for name, model in models.items():
        ensemble = getattr(model, "ensemble", model)
        rows[name] = raw_rows(ensemble, N if name == "random" else 100, float64_values)
    books = {name: filled(model, rows[name]) for name, model in models.items()}
    for name, sheet in recalculated(books, tmp_path).items():
        check(models[name], rows[name], sheet)


def test_text_is_never_a_formula():
    model = hostile_model()
    book = load_workbook(io.BytesIO(export_excel(model, rows=2)))
    texts = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.data_type == "s"]
    shown = {cell.value.replace("_x005F_x", "_x") for cell in texts}
    assert {*FORMULAS, 'quote"s', "é身", "b\n"} <= shown
    assert all(cell.quotePrefix for cell in texts)
    formulas = [cell.value for row in book["Score"].iter_rows() for cell in row if cell.data_type == "f"]
    assert len(formulas) == 2 * (1 + len(FORMULAS) + 3)
    assert not any(name in formula for name in ("HYPERLINK", "@", "é", "label") for formula in formulas)
    assert not [cell for row in book["Card"].iter_rows() for cell in row if cell.data_type == "f"]


def test_a_scorecard_speaks_in_points():
    card = scorecard()
    book = load_workbook(io.BytesIO(export_model(card, "excel")))
    assert [cell.value for cell in book["Score"][HEAD]][3:] == [
        "age: points",
        "dose: points",
        "kind: points",
        "points",
        "probability of yes",
        "class",
    ]
    assert f">={card.threshold}," in book["Score"].cell(HEAD + 1, 9).value
    notes = Model(card.ensemble, None, {"scorecard": card.notes()})
    again = load_workbook(io.BytesIO(export_model(notes, "excel")))
    assert [[c.value for c in row] for row in again["Card"]] == [
        [c.value for c in row] for row in book["Card"]
    ]


def test_columns_and_cells_that_help():
    sheet = load_workbook(io.BytesIO(export_excel(scorecard())))["Score"]
    numbers, _, labels = sheet.data_validations.dataValidation
    assert (numbers.type, numbers.showErrorMessage, str(numbers.sqref)) == ("decimal", True, "A4:A103")
    assert (labels.type, labels.showErrorMessage, str(labels.sqref)) == ("list", False, "C4:C103")
    assert labels.formula1.startswith("Card!$A$")
    constant = load_workbook(io.BytesIO(export_excel(fixed_models()["no terms"], rows=1)))["Score"]
    assert [cell.value for cell in constant[HEAD]] == ["score", "probability of 1", "class"]
    assert constant.cell(HEAD + 1, 1).value == "=Card!$B$4"


def labelled(*labels):
    terms = (Term(0, None, 1, False, 1.0, category=labels[0]),)
    return Ensemble("logistic", 0.0, terms, None, 1, (0, 1), {0: Categories(labels)})


def test_openpyxl_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'cardboost\[excel\]'"):
        export_excel(random_ensemble(1))


def test_what_cannot_be_exported():
    for rows in (0, True, 2.5, 2**20):
        with pytest.raises(ValueError, match="rows: expected"):
            export_excel(random_ensemble(1), rows=rows)
    with pytest.raises(ValueError, match="more digits than numbers in Excel"):
        export_excel(labelled(1, 2**53 + 1))
    with pytest.raises(ValueError, match="does not tell"):
        export_excel(labelled(1.0, 1.0 + 1e-15))
    for text in ("\0", "a\r", "\ud800", "\x1b"):
        with pytest.raises(ValueError, match="a character that Excel cannot"):
            export_excel(labelled(text, "\uffff a" if text > "\uffff" else "\ue000"))
