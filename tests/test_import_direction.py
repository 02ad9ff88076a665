"""Imports point one way.

    estimators -> boosting -> (dictionary, master, cardinality) -> losses, data -> kernels

Linear models stand beside the estimators, on kernels, solvers and model.

The model knows nothing of training, what shows or exports a model knows only the model, and the checker
shares no code with anything it checks.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import cardboost

ROOT = Path(cardboost.__file__).parent
SOURCES = {
    ".".join(("cardboost", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}

# What each part may import of ours, besides itself. A part that is not listed has no place in the picture.
GROUND = {"_kernels", "losses", "data", "risk", "budget"}
MIDDLE = {"dictionary", "master", "cardinality", "certificate"}
RESULTS = {"certificate.certificate"}  # plain results, which anything may show
ANNOTATIONS = RESULTS | {"boosting.column_generation"}  # and those that are only named in signatures
MAY_IMPORT = {
    "threads": {"_kernels"},
    "budget": set(),
    "validation": set(),
    "outputs": set(),
    "losses": {"_kernels"},
    "testing": {"losses"},
    "data": {"_kernels"},
    "risk": {"_kernels", "losses", "data"},
    "dictionary": GROUND | {"outputs"},
    "master": GROUND | {"dictionary", "certificate.bounds"},
    "cardinality": GROUND | {"dictionary", "master", "certificate.bounds", "threads"},
    "certificate": GROUND | {"master.problem"},
    "certificate.checker": set(),
    "model": {"_kernels", "losses", "data", "outputs"},
    "boosting": GROUND | MIDDLE | {"model", "outputs"},
    "matrix": {"data", "dictionary", "master.problem"},
    "stump_columns": {"data", "dictionary", "threads"},
    "on_simplex": GROUND | {"dictionary", "master", "matrix", "stump_columns", "threads", "validation"},
    "solvers": GROUND
    | MIDDLE
    | {"boosting", "matrix", "on_simplex", "stump_columns", "threads", "validation"},
    "thinning": {"boosting", "data.exact", "losses", "outputs", "threads", "validation"},
    "estimators": GROUND
    | {
        "dictionary",
        "outputs",
        "threads",
        "validation",
        "boosting",
        "cardinality",
        "model",
        "certificate",
        "export",
        "report",
    },
    "linear": {"_kernels", "certificate.certificate", "data.exact", "estimators.validation", "model"}
    | {"solvers", "threads", "validation"},
    "datasets": set(),
    "export": {"model"},
    "report": {"model", *RESULTS},
    "pareto": {"certificate", "data.categories", "data.exact", "estimators", "model", "outputs", "report"}
    | {"budget", "validation"},
    "reproduce": {"boosting", "cardinality", "data", "datasets", "dictionary", "estimators", "losses"}
    | {"master", "report", "risk", "solvers", "threads"},
    "cli": {
        "budget",
        "model",
        "estimators",
        "datasets",
        "export",
        "pareto",
        "report",
        "reproduce",
        "certificate.checker",
        *RESULTS,
    },
    "": {"estimators", "linear", "model", "pareto", "solvers"},
}


def imported_by(name: str, path: Path) -> set[str]:
    """Full names of all modules that a file imports; types of results may be named in signatures."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    types = [
        node
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom) and (node.module or "").removeprefix("cardboost.") in ANNOTATIONS
    ]
    found: set[str] = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in (node for node in ast.walk(tree) if node not in types):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, base] if base else parts)
            modules = {f"{base}.{alias.name}" for alias in node.names}
            known = {module for module in modules if module in SOURCES or module == "cardboost._kernels"}
            found.update(known)
            if known != modules:
                found.add(base)
    return found


def part_of(module: str) -> str:
    """The entry of the picture that a module belongs to."""
    own = module.removeprefix("cardboost").removeprefix(".")
    return own if own in MAY_IMPORT else own.partition(".")[0]


def allowed(importer: str, module: str) -> bool:
    part, own = part_of(importer), module.removeprefix("cardboost").removeprefix(".")
    if part.startswith("certificate.checker"):
        return own.startswith("certificate.checker")
    if own == "":  # public names
        return part in ("cli", "export", "report")
    if part != "" and own.partition(".")[0] == part:
        return True
    return any(own == other or own.startswith(f"{other}.") for other in MAY_IMPORT[part])


def test_every_part_has_its_place():
    assert {part_of(name) for name in SOURCES} <= set(MAY_IMPORT)


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
    """At the top of a module: NumPy, SciPy and scikit-learn; anything else only where it is used."""
    tree = ast.parse(SOURCES[name].read_text(encoding="utf-8"))
    top: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            top.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            top.add((node.module or "").partition(".")[0])
    assert top - set(sys.stdlib_module_names) <= {"numpy", "scipy", "sklearn", "cardboost"}


def test_there_is_no_circle():
    """Between modules, counting only imports made while loading."""
    graph = {}
    for name, path in SOURCES.items():
        top = ast.Module(
            [
                n
                for n in ast.parse(path.read_text(encoding="utf-8")).body
                if isinstance(n, ast.Import | ast.ImportFrom)
            ],
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
