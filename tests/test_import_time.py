"""``import cardboost`` is quick and brings in nothing that is not needed."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json, sys, time
begun = time.process_time()
{before}
known = set(sys.modules)
started = time.process_time()
{timed}
seconds = time.process_time() - started
print(json.dumps([seconds, started - begun, sorted(set(sys.modules) - known)]))
"""


def run(before, timed):
    """Processor seconds of ``timed`` and ``before``, and new modules of ``timed``, in a fresh interpreter."""
    code = CODE.format(before=before, timed=timed)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def within(limit, before, timed, *, share=0.0):
    """New modules of ``timed``, which keeps the limit in one of eight runs: other work only makes it slower.

    The limit is in seconds or, on a slow machine, a ``share`` of the time that ``before`` takes there.
    """
    for _ in range(8):
        seconds, others, modules = run(before, timed)
        if seconds <= max(limit, share * others):
            return modules
    raise AssertionError(
        f"{timed!r} took {seconds:.2f} s, more than {limit} s; {before!r} took {others:.2f} s"
    )


def test_import_cardboost_adds_a_tenth_of_a_second_at_most():
    within(0.1, "", "import cardboost")


def test_the_classifier_adds_little_to_the_parts_of_scikit_learn_that_it_needs():
    before = "import sklearn.base, sklearn.callback, sklearn.utils.multiclass, sklearn.utils.validation"
    modules = within(0.3, before, "import cardboost; cardboost.CardBoostClassifier", share=0.3)
    others = {name.partition(".")[0] for name in modules} - {"cardboost"} - set(sys.stdlib_module_names)
    assert not others & {"click", "pandas", "polars", "rich", "pyarrow", "matplotlib", "hypothesis", "pytest"}


def test_nothing_is_imported_that_is_not_needed():
    heavy = {
        "click",
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
    _, _, modules = run("", "import cardboost")
    assert not {name.partition(".")[0] for name in modules} & heavy
    heavy -= {"sklearn", "scipy"}  # which bring in pandas or rich if they like
    _, _, modules = run(
        "import sklearn.base, sklearn.callback",
        "import cardboost; cardboost.CardBoostClassifier; import cardboost.solvers",
    )
    assert not {name.partition(".")[0] for name in modules} & heavy


def test_names_without_imports():
    _, _, modules = run(
        "", "import cardboost; dir(cardboost); cardboost.__version__; hasattr(cardboost, 'nothing')"
    )
    assert [name for name in modules if name.startswith("cardboost.")] == []
