"""The C headers decide as the model does on every boundary, in every layout, and compile without a word."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess

import numpy as np
import pytest
from exported import (
    HOSTILE,
    STRICT,
    Compiled,
    coded,
    decisions,
    fixed_models,
    float32_values,
    random_ensemble,
    random_multiclass,
    raw_rows,
    stumps,
    table_of,
    tool,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from runners import code_rows, decoded

from cardboost.export import export_model
from cardboost.export.c import header
from cardboost.export.c_model import c_model, float32_at_most, float_key
from cardboost.export.c_text import safe
from cardboost.export.c_vectors import answers, encoded, vectors
from cardboost.export.integer_model import HIGHEST, MISSING, IntegerModel
from cardboost.export.points import find_points
from cardboost.model import Ensemble, Term

from drawn_models import bits, drawn_ensembles, drawn_multiclass  # isort: skip

MODELS = fixed_models()
FINITE = {"allow_nan": False, "allow_infinity": False}


def float_variants(name, ensemble):
    """All that can be asked of a model."""
    whole = c_model(ensemble).points is not None
    yield {"probability": whole and ensemble.kind == "binary"}
    if whole:
        yield {"score": "double"}
    if whole or ensemble.kind == "regression":
        yield {"layout": "ifs", "score": "points"}


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """(name, index in the library, options) of every model with every option."""
    found, models = [], []
    for name, ensemble in MODELS.items():
        for options in float_variants(name, ensemble):
            found.append((name, len(models), options))
            models.append(c_model(ensemble, prefix=f"m{len(models)}", **options))
    return Compiled(models, tmp_path_factory.mktemp("floats")), found


@pytest.fixture(scope="module")
def wholes(tmp_path_factory):
    found, models = [], []
    for name, ensemble in MODELS.items():
        exact = name != "lost digits"
        for options in ({"layout": "ifs"}, {"layout": "table"}):
            found.append((name, len(models), exact))
            models.append(c_model(ensemble, number="int16", prefix=f"w{len(models)}", exact=exact, **options))
    return Compiled(models, tmp_path_factory.mktemp("wholes")), found


@pytest.mark.parametrize("name", MODELS)
def test_decisions_of_floats(name, floats):
    library, entries = floats
    ensemble = MODELS[name]
    rows = raw_rows(ensemble, 3_000, float32_values)
    wanted = ensemble.decision_function(table_of(ensemble, rows)).reshape(len(rows), -1)
    x = coded(ensemble, rows)[:, list(ensemble.features_used)]
    for _, k, options in (entry for entry in entries if entry[0] == name):
        model = library.models[k]
        scores, classes, chances = library.run(k, x)
        if model.points is None:
            assert bits(scores) == bits(wanted), options
        else:
            off = np.abs(scores.astype(np.float64) * model.points.value - wanted)
            assert off.max() <= model.points.error
            assert (model.points.lowest <= scores.min(axis=0)).all()
            assert (model.points.highest >= scores.max(axis=0)).all()
        if ensemble.classes is not None:
            assert (classes == decisions(ensemble, wanted)).all(), options
        if model.probability is not None:
            exact = ensemble.predict_proba(table_of(ensemble, rows))[:, 1]
            assert np.abs(chances / 10_000 - exact).max() <= model.probability.error < 0.002
            assert (chances == model.probability.evaluate(scores[:, 0].astype(np.int64))).all()
        assert library.failures(k) == 0


@pytest.mark.parametrize("name", MODELS)
def test_whole_numbers(name, wholes):
    library, entries = wholes
    ensemble = MODELS[name]
    for _, k, exact in (entry for entry in entries if entry[0] == name):
        integer = IntegerModel.from_ensemble(ensemble, exact=exact)
        codes = code_rows(integer, 3_000)
        wanted = integer.decision_function(codes).reshape(len(codes), -1)
        scores, classes, _ = library.run(k, codes)
        assert (scores == wanted).all()
        assert library.failures(k) == 0
        if ensemble.classes is not None:
            assert (classes == decisions(ensemble, wanted)).all()
            if exact:
                at_grid = ensemble.decision_function(table_of(ensemble, decoded(ensemble, integer, codes)))
                assert (classes == decisions(ensemble, at_grid)).all()


@settings(max_examples=2)
@given(st.lists(st.one_of(drawn_ensembles(), drawn_multiclass()), min_size=8, max_size=8))
def test_drawn_models(tmp_path_factory, ensembles):
    models, about = [], []
    for ensemble in ensembles:
        for options in ({"number": "float"}, {"number": "float", "score": "double"}, {"number": "int16"}):
            if options["number"] == "int16":
                options["exact"] = c_model(ensemble, score="auto").points is not None
            models.append(c_model(ensemble, prefix=f"m{len(models)}", **options))
            about.append((ensemble, options))
    library = Compiled(models, tmp_path_factory.mktemp("drawn"))
    for k, (ensemble, options) in enumerate(about):
        assert library.failures(k) == 0
        if options["number"] == "float":
            rows = raw_rows(ensemble, 200, float32_values)
            wanted = ensemble.decision_function(table_of(ensemble, rows)).reshape(len(rows), -1)
            scores, classes, _ = library.run(k, coded(ensemble, rows)[:, list(ensemble.features_used)])
            if models[k].points is None:
                assert bits(scores) == bits(wanted)
        else:
            integer = IntegerModel.from_ensemble(ensemble, exact=False)
            codes = code_rows(integer, 200)
            if not integer.points.proven:
                continue
            rows = decoded(ensemble, integer, codes)
            wanted = ensemble.decision_function(table_of(ensemble, rows)).reshape(len(rows), -1)
            scores, classes, _ = library.run(k, codes)
            assert (scores == integer.decision_function(codes).reshape(len(codes), -1)).all()
        if ensemble.classes is not None:
            assert (classes == decisions(ensemble, wanted)).all()


OTHERS = [["g++", "-x", "c++", "-std=c++17"]]
OTHERS += [["clang", "-std=c99"]] if shutil.which("clang") else []


@pytest.mark.parametrize("compiler", OTHERS, ids=lambda own: own[0])
def test_other_compilers(compiler, floats, wholes):
    tool(compiler[0])
    for library, _ in (floats, wholes):
        command = [*compiler, *STRICT, "-fsyntax-only", str(library.source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_header_needs_nothing():
    for name, ensemble in MODELS.items():
        text = header(c_model(ensemble))
        assert re.findall(r"#include (.*)", text) == ["<stdint.h>"], name
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= 110
    whole = header(c_model(MODELS["random"], number="int16"))
    guarded = r"#ifdef CARDBOOST_ENCODE.*?#endif|/\*.*?\*/|#define CARDBOOST_SCALE[^\n]*"
    code = re.sub(guarded, "", whole, flags=re.DOTALL)
    assert "cardboost_score" in code
    assert not re.search(r"\b(float|double|malloc)\b|\d\.\d", code)


def test_encode_macros(tmp_path):
    """The codes of numbers on and around the grid are those of the definition."""
    grids = [1, 10, 100, 3, 0.1, 1000.5, (10, 200), (8, -30_000), (7, 2**35), 2.0**-3, 64]
    terms = tuple(Term(j, 0.5, 1, False, 1.0 + j) for j in range(len(grids)))
    names = tuple(f"x {j}" for j in range(len(grids)))
    ensemble = Ensemble("logistic", 0.0, terms, names, len(grids), (0, 1))
    model = c_model(ensemble, number="int16", prefix="card", scales=dict(enumerate(grids)), exact=False)
    rng = np.random.default_rng(0)
    columns = []
    for grid in model.grids:
        codes = [*range(-40, 40), *rng.integers(-33_000, 33_000, 600).tolist(), -32768, -32767, 32767, 32768]
        values = np.array([(code + grid.offset) / grid.scale for code in codes])
        near = [np.nextafter(values, end) for end in (-np.inf, np.inf)]
        random = rng.normal(size=300) * 3e4 / grid.scale
        columns.append(np.concatenate([values, *near, random, [np.nan, 1e300, -1e300]]))
    cases = "".join(f"case {k}: return CARD_ENCODE_X_{k}(x); " for k in range(len(grids)))
    (tmp_path / "card.h").write_text(header(model))
    (tmp_path / "use.c").write_text(
        '#define CARD_ENCODE\n#include "card.h"\nint16_t encode(int k, double x);\n'
        f"int16_t encode(int k, double x) {{ switch (k) {{ {cases} default: return 0; }} }}\n"
    )
    command = [tool("gcc"), "-std=c99", *STRICT, "-shared", "-fPIC", "-o", "use.so", "use.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    encode = ctypes.CDLL(str(tmp_path / "use.so")).encode
    encode.restype, encode.argtypes = ctypes.c_int16, [ctypes.c_int, ctypes.c_double]
    for k, (grid, values) in enumerate(zip(model.grids, columns, strict=True)):
        found = [encode(k, value) for value in values.tolist()]
        assert found == [grid.encode(value) for value in values.tolist()], grid
    text = header(model)
    assert "#define CARD_SCALE_X_1 10.0\n#define CARD_OFFSET_X_1 0\n" in text
    assert "#define CARD_OFFSET_X_6 200\n" in text


@pytest.mark.parametrize("number", ["float", "int16"])
def test_rows_of_a_table_among_the_vectors(number, tmp_path):
    ensemble = random_ensemble(1)
    rows = raw_rows(ensemble, 50, float32_values)
    model, table = c_model(ensemble, number=number, prefix="card"), table_of(ensemble, rows)
    more = encoded(model, ensemble, table)
    assert more.shape == (len(rows), len(model.plan.inputs))
    format = "c" if number == "float" else "c-int16"
    path = tmp_path / "test.h"
    export_model(ensemble, format, tmp_path / "card.h", prefix="card", test_vectors=path)
    assert path.read_text() == vectors(model)
    export_model(ensemble, format, tmp_path / "card.h", prefix="card", test_vectors=path, test_rows=table)
    assert path.read_text() == vectors(model, more=more) != vectors(model)
    (tmp_path / "use.c").write_text('#include "test.h"\nint main(void) { return (int)card_self_test(); }\n')
    command = [tool("gcc"), "-std=c99", *STRICT, "-o", "use", "use.c"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    assert subprocess.run([str(tmp_path / "use")], check=False).returncode == 0
    if number == "float":
        assert (answers(model, more)[1] == decisions(ensemble, ensemble.decision_function(table))).all()
    with pytest.raises(ValueError, match="test_rows: they are for test vectors"):
        export_model(ensemble, format, test_rows=table)


def test_equal_models_give_equal_files():
    assert header(c_model(random_ensemble(1))) == header(c_model(random_ensemble(1)))
    assert vectors(c_model(random_ensemble(1))) == vectors(c_model(random_ensemble(1)))


def test_the_self_test_finds_a_wrong_number(tmp_path):
    """A header with one number changed fails its own vectors."""
    model = c_model(random_ensemble(1), prefix="wrong")
    (tmp_path / "wrong.h").write_text(
        re.sub(r"sum = (-?\d+)", r"sum = 1 + \1", header(c_model(random_ensemble(1), prefix="wrong")))
    )
    (tmp_path / "vectors.h").write_text(vectors(model))
    (tmp_path / "main.c").write_text(
        '#include "vectors.h"\nint main(void) { return wrong_self_test() > 0; }\n'
    )
    subprocess.run([tool("gcc"), "-std=c99", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path, check=False).returncode == 1


# ------------------------------------------------------------------------------------------------ parts


@given(st.floats(**FINITE), st.floats(width=32, **FINITE))
def test_a_float32_is_below_a_cut_as_before(cut, value):
    own = float32_at_most(cut)
    assert (value <= cut) == (value <= own)


@given(st.floats(width=32, **FINITE), st.floats(width=32, **FINITE))
def test_keys_have_the_order_of_floats(one, two):
    if one != two:
        assert (one < two) == (float_key(one) < float_key(two))
    assert float_key(math.nan) < float_key(one)
    assert abs(float_key(0.0) - float_key(-0.0)) == 1


@settings(max_examples=50)
@given(st.text(max_size=20))
def test_comments_stay_comments(text):
    for own in (text, f"*/{text}", f"{text}*", "?" * 5):
        shown = safe(f"*{own}/")
        assert shown.isascii()
        assert shown.isprintable()
        for mark in ("*/", "/*", "//", "??", "\\"):
            assert mark not in shown


def test_names_are_identifiers_and_differ():
    text = header(c_model(MODELS["hostile names"]))
    names = re.findall(r"^    (\w+) = \d+,?$", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(HOSTILE)
    assert all(re.fullmatch(r"CARDBOOST_X_[A-Z0-9_]+", name) for name in names)


def test_a_proof_is_needed_for_whole_points():
    lost = MODELS["lost digits"]  # 1e16 + 1 - 1e16 - 0.5 is -0.5 in doubles and 0.5 in whole numbers
    assert c_model(lost).points is None
    with pytest.raises(ValueError, match="exact=False"):
        c_model(lost, score="points")
    with pytest.raises(ValueError, match="exact=False"):
        c_model(lost, number="int16")
    assert not c_model(lost, number="int16", exact=False).points.proven


def test_many_inputs_are_proven_in_two_halves():
    rng = np.random.default_rng(0)
    weights = (
        rng.integers(1, 200, 30) * 2 + 1
    )  # odd numbers of which an even number is added: never 0 with 0.5
    ensemble = stumps(*((k, 0.0, float(w)) for k, w in enumerate(weights)), intercept=0.5)
    points = c_model(ensemble).points
    assert points.proven
    even = stumps(*((k, 0.0, float(w)) for k, w in enumerate(weights)), intercept=0.0)
    assert c_model(even).points is None  # exact ties: some scores are 0


def test_points_are_as_wide_as_needed():
    assert c_model(MODELS["a tie"]).points.width == 8
    assert c_model(MODELS["a tie"], probability=True).points.width == 16  # for the probabilities
    assert c_model(MODELS["a tie"], score="points", point_bits=32).points.width == 32
    assert c_model(MODELS["near ties"]).points.width == 32
    assert c_model(MODELS["too near"]).points.width == 64
    plan = c_model(MODELS["random"]).plan
    steps = [own.steps() for own in plan.inputs]
    assert find_points(plan, steps, widths=(32,), most=2**24).reach <= 2**24


def test_grids_hold_the_cuts_where_they_can():
    from cardboost.export.integer_model import CodeGrid

    assert CodeGrid.for_cuts([23.375]) == CodeGrid(8.0)
    assert CodeGrid.for_cuts([812.0, 34.0]) == CodeGrid(1.0)
    assert CodeGrid.for_cuts([100_000.0]) == CodeGrid(2.0**-5)
    assert CodeGrid.for_cuts([0.135]) == CodeGrid(1000.0)
    assert CodeGrid.for_cuts([2.2, -77.0]) == CodeGrid(10.0)
    for cuts in (
        [0.1, 0.2],
        [1e6 + 0.25, 1e6 + 0.5],
        [1e300, -1e300],
        [5e-324],
        [1e-300, 1e300],
        [1e15, 1e15 + 1],
    ):
        grid = CodeGrid.for_cuts(cuts)
        for cut in cuts:
            code = grid.at_most(cut)
            assert code == -math.inf or grid.value(int(code)) <= cut
            assert code >= HIGHEST or code == -math.inf or grid.value(int(code) + 1) > cut
    two = CodeGrid.for_cuts([1e6 + 0.1, 1e6 + 0.2])
    assert two.at_most(1e6 + 0.1) < two.at_most(1e6 + 0.2)


@given(st.floats(-1e6, 1e6), st.floats(-100, 100), st.sampled_from([64, 100]))
def test_codes_decide_as_numbers_where_cuts_are_on_the_grid(value, cut, parts):
    from cardboost.export.integer_model import CodeGrid

    cut = round(cut * parts) / parts
    grid = CodeGrid.for_cuts([cut])
    assert grid.holds(cut)
    assert (grid.encode(value) <= grid.at_most(cut)) == (value <= cut)
    assert grid.encode(math.nan) == MISSING


def test_scales_of_the_user():
    ensemble = Ensemble("logistic", 0.1, (Term(0, 36.65, 1, False, 1.0),), ("temperature",), 1, (0, 1))
    model = IntegerModel.from_ensemble(ensemble, {"temperature": 10})
    codes = np.array([[366], [367], [MISSING]], dtype=np.int16)
    assert (model.decision_function(codes) > 0).tolist() == [True, False, False]
    assert model.encode([[36.6], [36.65], [math.nan]]).tolist() == [[366], [367], [MISSING]]
    assert model.decode(codes[:2]).ravel().tolist() == [36.6, 36.7]
    assert "Scale 10.0: some cut lies between two codes" in header(
        c_model(ensemble, number="int16", scales={0: 10})
    )
    shifted = IntegerModel.from_ensemble(ensemble, {0: (100, 3000)})
    assert shifted.encode([[36.65]]).tolist() == [[665]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number": "int8"}, "number: expected 'float', 'int16'"),
        ({"layout": "tree"}, "layout: expected"),
        ({"score": "float"}, "score: expected"),
        ({"prefix": "_x"}, "prefix: expected"),
        ({"prefix": "a" * 25}, "prefix: expected"),
        ({"prefix": 3}, "prefix: expected"),
        ({"probability": 1}, "probability: expected True or False"),
        ({"score": "double", "probability": True}, "probability: needs scores in whole points"),
        ({"number": "int16", "score": "double"}, "score: 'double' does not go with"),
        ({"scales": {0: 1}}, "scales: only number='int16'"),
        ({"number": "int16", "scales": {"nothing": 1}}, "'nothing' is no feature that the model uses"),
        ({"number": "int16", "scales": {4: 1}}, "scales: 4 holds labels"),
        ({"number": "int16", "scales": {0: -1}}, "expected a positive number, found -1"),
        ({"number": "int16", "scales": {0: (1, 0.5)}}, "expected a whole number as offset"),
        ({"number": "int16", "scales": [1]}, "scales: expected a mapping"),
        ({"missing": 0}, "missing: expected True or False"),
        ({"point_bits": 12}, "point_bits: expected 8, 16, 32 or 64"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        c_model(random_ensemble(1), **options)


def test_wrong_uses():
    with pytest.raises(ValueError, match="only classifiers for two classes"):
        c_model(random_multiclass(4), probability=True, score="points")
    with pytest.raises(ValueError, match="include the header by its name"):
        vectors(c_model(random_ensemble(1)), 'a"b')
    integer = IntegerModel.from_ensemble(random_ensemble(1))
    with pytest.raises(ValueError, match="columns"):
        integer.decision_function(np.zeros((2, 1), dtype=np.int16))
    with pytest.raises(ValueError, match="expected int16"):
        integer.decision_function(np.zeros((2, len(integer.steps)), dtype=np.int64))
