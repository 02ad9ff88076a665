"""The files in constraints/ name one version of everything that tests and benchmarks need."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def pins(name):
    """Versions by distribution, with those of the files that this one includes."""
    found = {}
    for line in (ROOT / "constraints" / name).read_text().splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("-c "):
            found |= pins(line[3:].strip())
        elif line:
            pin = Requirement(line)
            (version,) = pin.specifier
            assert version.operator == "=="
            found[canonicalize_name(pin.name)] = version.version
    return found


def requirements(extra):
    """What an extra asks for, and what that needs, as far as it is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [*project["dependencies"], *project["optional-dependencies"][extra]]
    seen = set()
    while waiting:
        text = waiting.pop()
        if text in seen:
            continue
        seen.add(text)
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        if wanted.name == "cardboost":
            waiting += [part for name in wanted.extras for part in project["optional-dependencies"][name]]
            continue
        yield wanted
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            waiting += importlib.metadata.requires(wanted.name) or []


@pytest.mark.parametrize(
    ("extra", "file"), [("test", "test.txt"), ("dev", "test.txt"), ("bench", "bench.txt")]
)
def test_everything_has_one_version_that_fits(extra, file):
    versions = pins(file)
    for wanted in requirements(extra):
        version = versions.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted.name} is not in constraints/{file}"
        assert wanted.specifier.contains(version, prereleases=True), f"{wanted} against {version}"


def test_the_benchmark_of_readers_finds_its_libraries():
    text = (ROOT / "benchmarks" / "readers.py").read_text()
    names = re.search(r"^LIBRARIES = \(CHOSEN, (.*)\)$", text, re.MULTILINE)[1]
    asked = {canonicalize_name(wanted.name) for wanted in requirements("bench")}
    assert asked >= {"pyarrow", *re.findall(r'"(\w+)"', names)}
