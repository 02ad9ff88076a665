"""Reference documentation: every public parameter is documented, in numpydoc's form."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

import cardboost

#: public modules and their names; without names, those of ``__all__``
PUBLIC = {
    "cardboost": None,
    "cardboost.solvers": None,
    "cardboost.certificate.certificate": ["Certificate"],
    "cardboost.model.ensemble": ["Ensemble"],
    "cardboost.model.scorecard": ["Scorecard"],
    "cardboost.problem.trace": ["Record", "Status", "Trace"],
    "cardboost.datasets": ["load"],
    "cardboost.export": ["export_model"],
    "cardboost.testing": ["check_loss", "check_vector_loss"],
}


def public_objects():
    for module_name, names in PUBLIC.items():
        module = importlib.import_module(module_name)
        for name in module.__all__ if names is None else names:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module_name}.{name}", value


def with_methods():
    """Every public function and class, and the public methods that this package defines."""
    for name, value in public_objects():
        yield name, value
        if not inspect.isclass(value):
            continue
        for method_name, method in inspect.getmembers(value, inspect.isfunction):
            ours = method.__module__.startswith("cardboost")
            if ours and not method_name.startswith("_"):
                yield f"{name}.{method_name}", method


def documented(docstring):
    """The names of the section "Parameters", several of which may share a line."""
    section = re.search(r"\n\s*Parameters\n\s*-+\n(.*?)(\n\s*\w[\w ]*\n\s*-{3,}|\Z)", docstring, re.DOTALL)
    if section is None:
        return set()
    indent = min(len(line) - len(line.lstrip()) for line in section[1].splitlines() if line.strip())
    heads = [line for line in section[1].splitlines() if line.strip() and line[indent] != " "]
    names = (head.split(":")[0].replace("*", "") for head in heads)
    return {name.strip() for head in names for name in head.split(",")}


CASES = dict(with_methods())


@pytest.mark.parametrize("name", CASES)
def test_every_parameter_is_documented(name):
    value = CASES[name]
    docstring = inspect.getdoc(value)
    assert docstring, f"{name} has no docstring"
    if inspect.isclass(value) and issubclass(value, (Exception, str)):
        return
    parameters = set(inspect.signature(value).parameters) - {"self", "cls"}
    if inspect.isclass(value):  # results are read, not made: their fields may be documented as attributes
        fields = documented(docstring.replace("Attributes\n----------", "Parameters\n----------"))
    else:
        fields = set()
    missing = parameters - documented(docstring) - fields
    assert not missing, f"{name} does not document {sorted(missing)}"


def test_the_list_is_whole():
    assert {name for name in CASES if name.count(".") == 1} >= {
        f"cardboost.{name}" for name in cardboost.__all__ if inspect.isclass(getattr(cardboost, name))
    }
