"""What the documents say is so: examples run, links lead somewhere, and every module has its line."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

import cardboost
from cardboost.cli.main import main

ROOT = Path(__file__).parents[1]
PACKAGE = Path(cardboost.__file__).parent
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
SOURCES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks in these languages, in order."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
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
        for line in text.splitlines():
            program, *words = shlex.split(line, comments=True) or [""]
            if program == "cardboost":
                assert main(words) == 0, line
            else:
                assert program in ("", "make"), line
    return names


WITH_CODE = [page for page in PAGES if blocks(page, "python")]


def test_there_are_pages_with_code():
    assert {"README.md", "docs/certificate.md"} <= set(map(relative, WITH_CODE))


SLOW = {
    "README.md",
    *(f"docs/{name}.md" for name in ("estimators", "scorecards", "certificate", "export", "pareto")),
}
PAGES_TO_RUN = [
    pytest.param(page, id=relative(page), marks=[pytest.mark.long] if relative(page) in SLOW else [])
    for page in WITH_CODE
]


@pytest.mark.parametrize("page", PAGES_TO_RUN)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
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
        "cardboost.estimators.classifier",
        "cardboost.estimators.stagewise",
        "cardboost.estimators.stagewise_regressor",
        "cardboost.pareto.compute",
        "cardboost.solvers",
        "cardboost.thinning",
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


@pytest.mark.parametrize("name", SOURCES)
def test_every_module_has_its_line(name):
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folder, _, file = name.rpartition("/")
    wanted = f"{folder}/" if folder and file == "__init__.py" else name
    assert f"`{wanted}`" in text


def test_every_kernel_is_named():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    stub = (PACKAGE / "_kernels.pyi").read_text(encoding="utf-8")
    functions = {name.removesuffix("_real") for name in re.findall(r"^def (\w+)", stub, re.MULTILINE)}
    files = {path.name for path in (ROOT / "kernels").glob("*.cpp")}
    assert {name for name in functions - {"max_threads"} if f"`{name}`" not in text} == set()
    assert {name for name in files if name not in text} == set()


def test_every_key_of_the_certificate_is_described():
    from cardboost.certificate.checker import format as checker_format

    def keys(spec):
        if isinstance(spec, dict):
            for key, value in spec.items():
                yield key
                yield from keys(value)
        elif isinstance(spec, tuple):
            for part in spec:
                yield from keys(part)

    text = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    wanted = {*keys(checker_format._CERTIFICATE), *checker_format._STUMPS} - {"cuts"}
    assert {key for key in wanted if f"`{key}`" not in text} == set()
