"""``import cardboost`` is quick and brings in nothing that is not needed."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json, sys, time
{before}
known = set(sys.modules)
started = time.perf_counter()
{timed}
seconds = time.perf_counter() - started
print(json.dumps([seconds, sorted(set(sys.modules) - known)]))
"""


def run(before, timed):
    """Seconds and new modules of ``timed`` in a fresh interpreter."""
    code = CODE.format(before=before, timed=timed)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def within(limit, before, timed):
    """As ``run``, again until one run keeps the limit: other work on the machine only makes it slower."""
    for _ in range(8):
        seconds, modules = run(before, timed)
        if seconds <= limit:
            return modules
    raise AssertionError(f"{timed!r} took {seconds:.2f} s, more than {limit} s")


def test_import_cardboost_adds_a_tenth_of_a_second_at_most():
    within(0.1, "import sklearn", "import cardboost")


def test_the_classifier_adds_little_to_the_parts_of_scikit_learn_that_it_needs():
    before = "import sklearn.base, sklearn.callback, sklearn.utils.multiclass, sklearn.utils.validation"
    modules = within(0.3, before, "import cardboost; cardboost.CardBoostClassifier")
    others = {name.partition(".")[0] for name in modules} - {"cardboost"} - set(sys.stdlib_module_names)
    assert not others & {"pandas", "polars", "rich", "matplotlib", "hypothesis", "pytest"}


def test_nothing_is_imported_that_is_not_needed():
    heavy = {
        "pandas",
        "polars",
        "rich",
        "sklearn",
        "scipy",
        "matplotlib",
        "pyarrow",
        "dimod",
        "torch",
        "onnx",
    }
    _, modules = run("", "import cardboost")
    assert not {name.partition(".")[0] for name in modules} & heavy
    heavy -= {"sklearn", "scipy"}  # which bring in pandas or rich if they like
    _, modules = run(
        "import sklearn.base, sklearn.callback",
        "import cardboost; cardboost.CardBoostClassifier; import cardboost.solvers",
    )
    assert not {name.partition(".")[0] for name in modules} & heavy


def test_names_without_imports():
    _, modules = run(
        "", "import cardboost; dir(cardboost); cardboost.__version__; hasattr(cardboost, 'nothing')"
    )
    assert [name for name in modules if name.startswith("cardboost.")] == []
