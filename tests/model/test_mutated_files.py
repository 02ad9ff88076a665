"""Damaged model files and certificates: refused with the place of the fault, or sound; never a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from mutated import base_files, certified, check, damaged_bytes, damaged_tree, keeps_the_law, mutants

from cardboost.cli.main import main
from cardboost.model.files import read_model
from marks import first

#: seconds of the processor for one file, a hundred times what it takes
SLOWEST = 2.0


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_damaged_files(seed: int) -> None:
    accepted, slowest = check(seed, 1_000)
    assert 30 < accepted < 300  # both outcomes really occur
    assert slowest < SLOWEST


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_damaged_files(seed: int) -> None:
    """Together 100,000 files."""
    accepted, slowest = check(seed, 25_000)
    assert accepted > 1_000
    assert slowest < SLOWEST


def test_equal_seeds_give_equal_files() -> None:
    assert list(mutants(7, 50)) == list(mutants(7, 50))
    assert list(mutants(7, 50)) != list(mutants(8, 50))


def test_undamaged_files_are_models() -> None:
    for name, data in base_files().items():
        assert keeps_the_law(data), name


@pytest.mark.parametrize(
    "keys", [("a",), ("a.b[0]",), ("it's",), ("k" * 300,), ("a", "ünknown", "")], ids=len
)
def test_the_path_of_a_deep_fault_is_cut_between_its_steps(keys: tuple[str, ...]) -> None:
    value: Any = 1
    for k in range(100):
        value = {keys[k % len(keys)]: value}
    document = json.loads(base_files()["numbers"]) | {"training": value}
    with pytest.raises(ValueError, match="levels of nesting"):
        read_model(json.dumps(document).encode())
    assert not keeps_the_law(json.dumps(document).encode())


# ------------------------------------------------------------------------------------ the command line

NAMED = 'age,größe 身長,"quote "" \\ \n",y\n31,1,2,no\n40.5,,-5,yes\n'
UNNAMED = "x0,x1,x2,y\nblue,2.5,2,0\n,,31,1\n"
EXPORTS = ("c", "c-int16", "python", "sql", "onnx", "json")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "certificate.csv").write_text(certified()[1])
    (tmp_path / "named.csv").write_text(NAMED)
    (tmp_path / "unnamed.csv").write_text(UNNAMED)
    return tmp_path


def ending(capsys: Any, *words: str) -> int:
    """The exit code of a command that ends as documented: one sentence on stderr with 2, else none."""
    code = main(list(words))
    seen = capsys.readouterr()
    assert code in ((0, 1, 2) if words[0] == "certify" else (0, 2)), (words, seen.err)
    assert seen.err.count("\n") == (code == 2), (words, seen.err)
    assert "Traceback" not in seen.out + seen.err
    return code


@pytest.mark.long
def test_verbs_on_damaged_files(work: Path, capsys: Any) -> None:
    rng = random.Random(1)
    files = base_files()
    ends = set()
    for k in range(120):
        name = "certificate" if k % 2 else rng.choice(list(files))
        other = rng.choice(list(files.values()))
        data = files[name]
        damaged = damaged_bytes(data, other, rng) if k % 6 == 0 else damaged_tree(json.loads(data), rng)
        (work / "model.json").write_bytes(damaged)
        rows = "certificate.csv" if name == "certificate" else ("unnamed.csv", "named.csv")[k % 4 // 2]
        ends.add(("predict", ending(capsys, "predict", "model.json", rows, "--contributions")))
        ends.add(("certify", ending(capsys, "certify", "model.json", rows, "--target", "y")))
        form = EXPORTS[k % len(EXPORTS)]
        ends.add(("export", ending(capsys, "export", "model.json", "--format", form, "--out", "out")))
    expected = {("predict", 0), ("predict", 2), ("export", 0), ("export", 2)}
    assert ends >= expected | {("certify", 1), ("certify", 2)}


@pytest.mark.parametrize("count", [150, pytest.param(1_500, marks=pytest.mark.long)])
def test_damaged_certificates(work: Path, capsys: Any, count: int) -> None:
    """A certificate that was changed never holds, and nothing that it may contain is too much."""
    rng = random.Random(count)
    data = certified()[0]
    whole = json.loads(data)
    ends = set()
    for _ in range(count):
        changed = damaged_tree({"certificate": json.loads(data)["certificate"]}, rng)
        rest = json.dumps({key: own for key, own in whole.items() if key != "certificate"}).encode()
        (work / "model.json").write_bytes(rest[:-1] + b", " + changed[1:])
        more = ["--json"] if rng.random() < 0.3 else []
        code = ending(capsys, "certify", "model.json", "certificate.csv", *more)
        if code == 0:
            assert json.loads(changed)["certificate"] == whole["certificate"]
        ends.add(code)
    assert ends == {0, 1, 2}
