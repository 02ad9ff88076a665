"""Imports between rooms point one way (docs/architecture.md): none of them forms a circle.

The model knows nothing of training, what shows or exports a model knows only the model, and the checker
shares no code with anything it checks.
"""

from __future__ import annotations

import ast
import re
import runpy
import sys
from functools import cache
from pathlib import Path

import pytest

import cardboost

ROOT = Path(cardboost.__file__).parent
SOURCES = {
    ".".join(("cardboost", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

# What each room may import of ours, besides itself and the kernels, from the ground floor up.
# A room that is not listed has no place in the picture.
MAY_IMPORT = {
    "data": set(),
    "problem": {"data"},
    "model": {"data", "problem"},
    "dictionary": {"data", "problem", "model"},
    "master": {"problem", "dictionary"},
    "certificate": {"problem"},
    "certificate.checker": set(),
    "selection": {"data", "problem", "dictionary", "master"},
    "boosting": {"data", "problem", "model", "dictionary", "master", "certificate", "selection"},
    "solvers": {"data", "problem", "model", "dictionary", "master", "certificate", "selection", "boosting"},
    "export": {"model"},
    "report": {"model"},
    "estimators": {
        "data",
        "problem",
        "model",
        "dictionary",
        "certificate",
        "selection",
        "boosting",
        "export",
        "report",
    },
    "linear": {"data", "problem", "model", "certificate", "estimators", "solvers"},
    "pareto": {"data", "problem", "model", "certificate", "estimators", "report"},
    "datasets": set(),
    "reproduce": {"data", "problem", "dictionary", "master", "selection", "boosting", "solvers", "estimators"}
    | {"datasets", "report", "model"},
    "cli": {
        "data",
        "problem",
        "model",
        "certificate",
        "boosting",
        "export",
        "estimators",
        "pareto",
        "datasets",
    }
    | {"reproduce", "report"},
    "testing": {"problem"},
    "": {"data", "estimators", "linear", "model", "pareto"},
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_by(name: str, path: Path) -> set[str]:
    """Full names of all modules that a file imports, wherever it does."""
    modules: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            submodules = {module for module in names if module in SOURCES or module == "cardboost._kernels"}
            modules |= submodules
            if submodules != names:
                modules.add(str(node.module))
    return modules


def room_of(module: str) -> str:
    """The entry of the table that a module belongs to."""
    place = module.removeprefix("cardboost").removeprefix(".")
    return "certificate.checker" if place.startswith("certificate.checker") else place.partition(".")[0]


def allowed(importer: str, module: str) -> bool:
    room, other = room_of(importer), room_of(module)
    if room == "certificate.checker":
        return other == room
    if other == "":  # public names
        return room in ("cli", "export", "report")
    if other == "certificate.checker":
        other = "certificate"
    return other in ("_kernels", room) or other in MAY_IMPORT[room]


def test_every_module_has_a_room():
    assert {room_of(name) for name in SOURCES} <= set(MAY_IMPORT)


def test_the_table_has_no_circle():
    below: set[str] = set()
    while ready := {room for room, needs in MAY_IMPORT.items() if room not in below and needs <= below}:
        below |= ready
    assert below == set(MAY_IMPORT)


def test_the_picture_of_the_rooms_is_up_to_date():
    script = runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "import_graph.py"))
    assert script["FIGURE"].read_text(encoding="utf-8") == script["draw"](script["imports"]())


@pytest.mark.parametrize("name", SOURCES)
def test_imports_point_one_way(name):
    ours = {module for module in imported_by(name, SOURCES[name]) if module.partition(".")[0] == "cardboost"}
    assert [module for module in sorted(ours) if not allowed(name, module)] == []


@pytest.mark.parametrize("name", [name for name in SOURCES if "certificate.checker" in name])
def test_the_checker_needs_numpy_and_the_standard_library_only(name):
    others = {module.partition(".")[0] for module in imported_by(name, SOURCES[name])} - {"cardboost"}
    assert others - set(sys.stdlib_module_names) <= {"numpy"}


@pytest.mark.parametrize("name", SOURCES)
def test_only_declared_dependencies(name):
    """At the top of a module: NumPy, SciPy, scikit-learn, click in the command; others where used."""
    tree = tree_of(SOURCES[name])
    top: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            top.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            top.add((node.module or "").partition(".")[0])
    declared = {"numpy", "scipy", "sklearn", "cardboost"} | ({"click"} if room_of(name) == "cli" else set())
    assert top - set(sys.stdlib_module_names) <= declared


def test_there_is_no_circle():
    """Between modules, counting only imports made while loading."""
    graph = {}
    for name, path in SOURCES.items():
        top = ast.Module(
            [n for n in tree_of(path).body if isinstance(n, ast.Import | ast.ImportFrom)],
            [],
        )
        names: set[str] = set()
        for node in top.body:
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= {module for module in full if module in SOURCES} or {node.module}
        graph[name] = names & set(SOURCES) - {name}
    done: set[str] = set()
    while ready := {name for name, needs in graph.items() if name not in done and needs <= done}:
        done |= ready
    assert set(graph) - done == set()


def test_modules_of_tests_do_not_import_each_other():
    """What several of them need is in a module without tests; scripts that a test starts count too."""
    paths = sorted(Path(__file__).parent.rglob("*.py"))
    statement = re.compile(
        r"^\s*(?:from\s+(?:\S+\.)?|import\s+(?:\S+\.)?|from\s+\S+\s+import\s+)(test_\w+)", re.M
    )
    tests = {path.stem for path in paths if path.stem.startswith("test_")}
    imports = {path.name: set(statement.findall(path.read_text(encoding="utf-8"))) & tests for path in paths}
    assert {name: modules for name, modules in imports.items() if modules} == {}
