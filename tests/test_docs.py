"""What the documents say is so: examples run, links lead somewhere, and every module has its line."""

from __future__ import annotations

import contextlib
import copy
import doctest
import importlib
import json
import re
import shlex
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import cardboost
from cardboost.certificate import checker
from cardboost.cli.main import main

ROOT = Path(__file__).parents[1]
PACKAGE = Path(cardboost.__file__).parent
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
SOURCES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"^<!-- not run: .{10,} -->\n```sh\n.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks in these languages, in order."""
    found = FENCE.findall(NOT_RUN.sub("", page.read_text(encoding="utf-8")))
    return [(language, text) for language, text in found if language in languages]


@cache
def anchors(page: Path) -> set[str]:
    """The names that headings get: lower case, no punctuation, dashes for spaces."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def run_page(page: Path) -> dict[str, object]:
    """Run the Python blocks and the `cardboost` lines of a page, in order, in the present folder."""
    names: dict[str, object] = {"__name__": "__page__"}
    for language, text in blocks(page, "python", "sh"):
        if language == "python":
            exec(compile(text, relative(page), "exec"), names)
            continue
        for line in text.replace("\\\n", " ").splitlines():
            program, *words = shlex.split(line, comments=True) or [""]
            if program == "cardboost":
                run_command(words, line)
            else:
                assert program in ("", "make"), line
    return names


def run_command(words: list[str], line: str) -> None:
    """A command of a page, which may write its output into a file."""
    if ">" not in words:
        assert main(words) == 0, line
        return
    *words, _, path = words
    with open(path, "w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        assert main(words) == 0, line


def write_example_tables(folder: Path) -> None:
    """The files that pages and help speak of: a few patients and shops."""
    random = np.random.default_rng(0)
    rows = 200
    age, pressure = random.integers(20, 90, rows), random.integers(90, 200, rows)
    town, smoker = random.choice(["Oslo", "Bergen", "Tromsø"], rows), random.choice(["yes", "no"], rows)
    died = (age + 0.2 * pressure + 15 * (smoker == "yes") + 10 * random.normal(size=rows) > 95).astype(int)
    table = {"age": age, "pressure": pressure, "smoker": smoker, "town": town}
    shops = {"region": town, "zip": age // 20, "age": pressure, "name": [f"shop {k}" for k in range(rows)]}
    for name, columns in {
        "patients": table | {"site": ["B"] * rows, "died": died},
        "new": table,
        "shops": shops | {"closed": died},
    }.items():
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


WITH_CODE = [page for page in PAGES if blocks(page, "python", "sh")]


def test_there_are_pages_with_code():
    assert {"README.md", "docs/certificate.md", "docs/cli.md"} <= set(map(relative, WITH_CODE))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_commands_stand_where_they_are_run(page):
    """In blocks of the language sh, not in indented text."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert re.findall(r"^(?: {4}|\t)(?:cardboost [a-z]+ .*)", text, re.MULTILINE) == []


SLOW = {
    "README.md",
    *(f"docs/{name}.md" for name in ("cli", "estimators", "scorecards", "certificate", "export", "pareto")),
    *(f"docs/{name}.md" for name in ("annealers", "neural", "reproduce")),
}
PAGES_TO_RUN = [
    pytest.param(page, id=relative(page), marks=[pytest.mark.long] if relative(page) in SLOW else [])
    for page in WITH_CODE
]


@pytest.mark.parametrize("page", PAGES_TO_RUN)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_example_tables(tmp_path)
    names = run_page(page)
    capsys.readouterr()
    if relative(page) == "README.md":
        card = names["model"].card().splitlines()  # type: ignore[attr-defined]
        shown = [line for _, text in blocks(page, "text") for line in text.splitlines()]
        assert shown == card[: len(shown)]


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"`?make ([a-z-]+)(?=`|$)", text, re.MULTILINE))
    assert {"demo", "test"} <= targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


@pytest.mark.parametrize(
    "name",
    [
        "cardboost.datasets.catalogue",
        "cardboost.certificate.certificate",
        "cardboost.data.shards",
        "cardboost.estimators.callbacks",
        "cardboost.estimators.card_boost",
        "cardboost.estimators.neural_boost",
        "cardboost.estimators.soft_margin",
        "cardboost.estimators.stagewise_estimators",
        "cardboost.export",
        "cardboost.model.ensemble",
        "cardboost.model.scorecard",
        "cardboost.pareto.compute",
        "cardboost.problem.losses",
        "cardboost.problem.trace",
        "cardboost.solvers.column_selection",
        "cardboost.solvers.l1",
        "cardboost.solvers.on_simplex",
        "cardboost.solvers.stump_columns",
        "cardboost.solvers.thinning",
    ],
)
def test_doctests(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.long
def test_the_first_card(capsys):
    text = (ROOT / "examples" / "first_card.py").read_text(encoding="utf-8")
    exec(compile(text, "examples/first_card.py", "exec"), {"__name__": "__main__"})
    shown = capsys.readouterr().out
    assert "How to read this card" in shown
    assert shown.endswith("the certificate holds\n")


@pytest.mark.long
def test_thinning_a_forest(capsys):
    text = (ROOT / "examples" / "thin_a_forest.py").read_text(encoding="utf-8")
    exec(compile(text, "examples/thin_a_forest.py", "exec"), {"__name__": "__main__"})
    shown = capsys.readouterr().out
    assert "12 of them" in shown
    assert shown.endswith("the certificate holds\n")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page):
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert target.is_relative_to(ROOT.resolve()), link
        if anchor:
            assert anchor in anchors(target), link


def test_sections_that_the_sources_name_exist():
    """Docstrings point to pages, some with a section: docs/page.md, "Section"."""
    named = set()
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "kernels").glob("*"), ROOT / "CMakeLists.txt"]:
        text = path.read_text(encoding="utf-8")
        named.update(re.findall(r'(docs/[\w-]+\.md)(?:,\s+"([^"]+)")?', text))
    assert ("docs/mathematics.md", "Relaxation") in named
    for page, section in named:
        assert (ROOT / page).is_file(), page
        titles = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert not section or section in titles, (page, section)


def test_every_room_has_its_line():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    rooms |= {path.name for path in PACKAGE.glob("*.py")}
    assert {room for room in rooms if f"`{room}`" not in text} == set()


def test_places_in_the_glossary_exist():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`([a-z_]+/(?:[a-z_]+/|[a-z_]+\.py)?)`", text))
    assert {"problem/risk.py", "certificate/checker/"} <= paths
    assert {path for path in paths if not (PACKAGE / path).exists()} == set()


def test_every_kernel_is_named():
    text = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    stub = (PACKAGE / "_kernels.pyi").read_text(encoding="utf-8")
    functions = {name.removesuffix("_real") for name in re.findall(r"^def (\w+)", stub, re.MULTILINE)}
    files = {path.name for path in (ROOT / "kernels").glob("*.cpp")}
    assert {name for name in functions - {"max_threads"} if f"`{name}`" not in text} == set()
    assert {name for name in files if name not in text} == set()


def test_every_key_of_the_certificate_is_described():
    from cardboost.certificate.checker import format as form

    def keys(spec):
        if isinstance(spec, dict):
            for key, value in spec.items():
                yield key
                yield from keys(value)
        elif isinstance(spec, tuple):
            for part in spec:
                yield from keys(part)

    text = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    forms = [form.form_of(version, "stumps") for version in range(1, form.VERSION + 1)]
    wanted = {key for part in forms for key in keys(part)}
    assert {key for key in wanted if f"`{key}`" not in text} == set()


def test_the_examples_of_digests_are_right():
    """The page on certificates prints digests that a reader can try a checker of his own on."""
    text = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    content = {"b": [1, 2.5, 1e-9, None, True], "a": {"é": "x"}, "digest": "anything"}
    assert f"\n    {checker.content_digest(content)}\n" in text
    rows = np.array([[1.5, "red"], [np.nan, "blue"], [-0.0, None]], dtype=object)
    positive, weights, target = [True, False, True], [2.0, 1.0, 0.0], [1.0, 0.25, -3.0]
    digest = checker.data_digest(rows, positive, weights, categorical=[1])
    assert f"\n    {digest}\n" in text
    assert digest == checker.data_digest(rows[[1, 0, 0]], [False, True, True], categorical=[1])
    assert f"`{checker.data_digest(rows, positive, [2.0, 1.0, 0.5], categorical=[1])}`" in text
    assert f"`{checker.data_digest(rows, None, weights, categorical=[1], target=target)}`" in text


def test_the_steps_of_the_digest_are_right():
    """The table of the example, by the recipe of the page."""
    text = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    names = re.search(r"`red` is the number (\d+) and `blue` (\d+)", text)
    assert names is not None
    first, second = (
        [int(word, 16) for word in re.findall(r"`([0-9a-f]{16})`", line)]
        for line in text.splitlines()
        if line.startswith(("| 1.5 | red", "| missing | blue"))
    )

    def stir(h: int, b: int, factor: int, shift: int) -> int:
        mixed = (h ^ b) * factor % 2**64
        return mixed ^ (mixed >> shift)

    def bits(value: float) -> int:
        return int(np.float64(value).view(np.uint64))

    for steps, number, category, label in (
        (first, bits(1.5), bits(int(names[1])), 1),
        (second, 0x7FF8000000000000, bits(int(names[2])), 0),
    ):
        h = stir(0x9E3779B97F4A7C15, number, 0xBF58476D1CE4E5B9, 29)
        after = stir(h, category, 0xBF58476D1CE4E5B9, 29)
        assert steps == [h, after, stir(after, label, 0x94D049BB133111EB, 32)]
    lane = (2 * first[-1] + second[-1]) % 2**64
    assert re.search(rf"\n    {lane:016x}[0-9a-f]{{16}}\n", text)


def test_the_whole_file_on_the_page_holds():
    ((_, text),) = blocks(ROOT / "docs" / "certificate.md", "json")
    certificate = json.loads(text)
    A = np.array([[1, 1], [1, -1], [1, 1], [-1, 1]])
    assert checker.check(certificate, A) == []
    changed = copy.deepcopy(certificate)
    changed["bounds"][0]["leaves"][0]["bound"] += 1e-6
    changed["digest"] = checker.content_digest(changed)
    assert checker.check(changed, A) != []


def test_the_constants_on_the_page_are_those_of_the_checker():
    from cardboost.certificate.checker import bounds, claims, curvature, format, losses

    text = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    section = text.split("\n## All constants\n")[1].split("\n## ")[0]
    line = {row.split(" | ")[0].strip("| "): row for row in section.splitlines() if row.startswith("|")}
    for name, values in {
        "sums over rows": [bounds.TOLERANCE],
        "size": [bounds.LEAST_SIZE],
        "optimal": [format.OPTIMAL],
        "worthless": [bounds.WORTHLESS],
        "nearby": [claims.NEARBY],
        "arithmetic": [claims.ARITHMETIC],
        "scaling": [claims.SCALING],
        "rounds": [curvature.ROUNDS],
        "ROOM": [curvature.ROOM],
        "WIDER": [curvature.WIDER],
        "PIVOT": [curvature.PIVOT],
        "SPARE": [curvature.SPARE],
        "cover": [claims.COVER_STEPS],
    }.items():
        found = [float(word) for word in re.findall(r"\d[\d.]*(?:e-?\d+)?", line[name].split(" | ")[1])]
        assert set(values) <= set(found), name
    assert "1/4" in line["corner"]
    assert losses.CORNER == 0.25
