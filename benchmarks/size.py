"""How many bytes of flash does a model take that is accurate enough? Cards against trees, forests and lines.

    python benchmarks/size.py --data DIR      # DIR/ida holds the twelve sets; arm-none-eabi-gcc is needed

Twelve sets and scikit-learn's breast cancer (wdbc): 60 % of the rows to train, 40 % to test. All models are
trained and tested on whole numbers, as a sensor gives them: every feature on a grid of 8 bits (0 to 255
between its least and largest training value) or of 16 bits (a power of two per unit). Every contender has
both grids. Numbers are never missing. Bytes are those of a Cortex-M0 (GCC, -Os): code and tables of a program
that decides one row, without what it does not use, less the same program without the decision; "linked" has
the helpers for floating point in it, "own" has not.

* cardboost: scorecards of `max_terms` 1 to 20, of as many candidates as terms or of 40, at most 10 points to
  a term. Chosen by 5-fold cross-validation on the training rows: the one with the least error, or (other
  tables) the smallest within one standard error of that. Exported as c-int16.
* emlearn: decision trees and random forests with int16_t features, as inline code and as data, whichever is
  smaller. Of a single tree the function of the tree itself is measured too, without the votes.
* m2cgen: LightGBM and scikit-learn trees. Its code computes in doubles; the logistic function at the end,
  which no decision needs, is left out, doubles are turned into floats where that is smaller, and trees are
  exported as regressors, which saves them the copies of class probabilities.
* logistic regression in whole numbers: coefficients of 8 or 16 bits, sums of 32; as a loop over a table or
  written out, whichever is smaller. L1 and L2; features with coefficient 0 are no inputs.

"Accurate enough" is a test error of at most that of the card plus one standard error: the larger of the
binomial one of the card's error and that of the difference on the same rows. In the first tables a peer is
the smallest of its grid of sizes that is accurate enough. This is chosen on the test rows and can only help
a peer; the column "same rule" is the card that is chosen on the test rows as peers are. In the other tables
peers are chosen by cross-validation: the smallest within one standard error of the least error of their
grid. A star marks those that are not accurate enough; "ratio" is to the smallest peer that is, "any" to the
smallest of all.

Goal: at most a third of the bytes of the smallest peer, in the median over sets and splits.
"""

from __future__ import annotations

import argparse
import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from _harness import (
    THREAD_VARIABLES,
    Goal,
    machine,
    print_machine,
    print_table,
    report_goals,
    require,
    timed,
    write_json,
)

SETS = (
    "wdbc", "thyroid", "heart", "breast_cancer", "diabetis", "german", "flare_solar", "banana", "image",
    "splice", "waveform", "twonorm", "ringnorm",
)  # fmt: skip
PACKAGES = ("cardboost", "numpy", "scikit-learn", "lightgbm", "emlearn", "m2cgen")
OURS = "cardboost"
TREE, FOREST, M2C_BOOST, M2C_TREE, LINE = (
    "emlearn tree", "emlearn forest", "m2cgen LightGBM", "m2cgen tree", "logistic",
)  # fmt: skip
PEERS = (TREE, FOREST, M2C_BOOST, M2C_TREE, LINE)
MEASURES = ("linked", "own")
RULES = LEAST, ONE = "least error", "within one standard error"
GRIDS = ("8 bits", "16 bits")
FOLDS = 5
TEST_SHARE = 0.4

TERMS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20)
CANDIDATES = 40
POINTS = 10
LEAVES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64)
FOREST_TREES = (1, 3, 5, 10, 20)
FOREST_DEPTHS = (1, 2, 3, 4, 6)
BOOST_TREES = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100)
BOOST_LEAVES = (2, 3, 4, 8)
BOOST_RATES = (0.1, 0.5)
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 1.0, 10.0)
COEFFICIENT_BITS = (8, 16)

COMPILER = "arm-none-eabi-gcc"
FLAGS = ("-mcpu=cortex-m0", "-mthumb", "-Os", "-std=c99", "-ffunction-sections", "-fdata-sections")
LINK = ("-nostdlib", "-nostartfiles", "-Wl,--gc-sections", "-Wl,-e,main")


# --- bytes ---


@dataclass(frozen=True)
class Program:
    """C that decides: ``text``, and a call of it on ``input``, an array of ``kind``."""

    text: str
    call: str
    kind: str = "int16_t"
    inputs: int = 1
    flags: tuple[str, ...] = ()


_known: dict[Program, dict[str, int]] = {}


def bytes_of(program: Program) -> dict[str, int]:
    """Linked and own bytes, each less those of a program without the call."""
    if program not in _known:
        empty = Program("#include <stdint.h>\n", "0", program.kind, program.inputs)
        found = _sizes(program)
        if program.call != "0":
            without = bytes_of(empty)
            found = {name: found[name] - without[name] for name in found}
        _known[program] = found
    return _known[program]


def _sizes(program: Program) -> dict[str, int]:
    main = (
        f"{program.text}\n{program.kind} input[{program.inputs}];\nvolatile int32_t output;\n"
        f"int main(void);\nint main(void)\n{{\n    output = (int32_t)({program.call});\n    return 0;\n}}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.c").write_text(main)
        compile_it = [COMPILER, *FLAGS, *program.flags, "-c", "main.c", "-o", "main.o"]
        subprocess.run(compile_it, cwd=folder, check=True, capture_output=True)
        alone = _linked_size(folder, [])
        if alone is not None:  # it needs no helpers
            return dict.fromkeys(MEASURES, alone)
        ends = {"linked": ["-lm", "-lc", "-lgcc"], "own": ["-Wl,--unresolved-symbols=ignore-all"]}
        found = {name: _linked_size(folder, end) for name, end in ends.items()}
    if None in found.values():
        sys.exit(f"{COMPILER} cannot link this program:\n{main}")
    return found


def _linked_size(folder: str, end: list[str]) -> int | None:
    """The size of the program; None if something is missing."""
    command = [COMPILER, *FLAGS, *LINK, "main.o", "-o", "main.elf", *end]
    if subprocess.run(command, cwd=folder, capture_output=True).returncode != 0:
        return None
    size = subprocess.run(
        [COMPILER.replace("gcc", "size"), "main.elf"], cwd=folder, check=True, capture_output=True, text=True
    )
    text, data = re.findall(r"^\s*(\d+)\s+(\d+)", size.stdout, re.MULTILINE)[-1]
    return int(text) + int(data)


# --- candidates ---


@dataclass(eq=False)
class Candidate:
    """One setting of a contender, fitted to the training rows."""

    setting: str
    grid: str
    weight: float  # grows with its bytes: what is surely larger is not compiled
    predict: Callable[[np.ndarray], np.ndarray]  # classes -1 and 1 of codes
    programs: Callable[[], list[Program]]  # the smallest counts
    folds: np.ndarray = field(default_factory=lambda: np.zeros(0))  # errors in cross-validation

    def sizes(self) -> dict[str, int]:
        found = [bytes_of(program) for program in self.programs()]
        return {name: min(own[name] for own in found) for name in MEASURES}


Family = Callable[[np.ndarray, np.ndarray, str], list[Candidate]]


def fit_card(X: np.ndarray, y: np.ndarray, terms: int, candidates: int):
    """A card in whole points, at most 10 to a term."""
    from cardboost import CardBoostClassifier

    model = CardBoostClassifier(
        max_terms=terms, hot_start=candidates, selector="polish", l2=2.0 / len(y), n_jobs=1
    ).fit(X, y)
    return model.scorecard(POINTS).ensemble


def cards(X: np.ndarray, y: np.ndarray, grid: str) -> list[Candidate]:
    found = []
    for terms, candidates in [(own, most) for own in TERMS for most in (own, CANDIDATES)]:
        ensemble = fit_card(X, y, terms, candidates)

        def programs(ensemble=ensemble) -> list[Program]:
            from cardboost.export import export_model

            used = ensemble.features_used
            options = {"missing": False, "scales": dict.fromkeys(used, 1)}
            return [
                Program(
                    export_model(ensemble, "c-int16", **options),
                    "cardboost_class((const int16_t *)input)",
                    inputs=max(len(used), 1),
                )
            ]

        found.append(
            Candidate(
                f"{ensemble.n_terms} terms of {candidates}",
                grid,
                terms,
                lambda codes, own=ensemble: np.where(own.decision_function(codes) > 0, 1, -1),
                programs,
            )
        )
    return found


def _emlearn_programs(model, features: int) -> list[Program]:
    """emlearn writes x <= 7.5 as x < 7: thresholds are raised first, so that it decides as scikit-learn."""
    import emlearn

    model = copy.deepcopy(model)
    for own in getattr(model, "estimators_", [model]):
        inner = own.tree_.children_left >= 0
        own.tree_.threshold[inner] = np.floor(own.tree_.threshold[inner]) + 1.0
    found = []
    single = not hasattr(model, "estimators_") or len(model.estimators_) == 1
    include = (f"-I{emlearn.includedir}",)
    for method in ("inline", "loadable"):
        text = emlearn.convert(model, method=method, dtype="int16_t").save(
            name="peer", format="c", include_proba=False
        )
        text = text.replace("int32_t peer_predict(", "static inline int32_t peer_predict(")
        found.append(Program(text, f"peer_predict(input, {features})", inputs=features, flags=include))
        if single and method == "inline":
            found.append(Program(text, f"peer_tree_0(input, {features})", inputs=features, flags=include))
    return found


def trees(X: np.ndarray, y: np.ndarray, grid: str) -> list[Candidate]:
    from sklearn.tree import DecisionTreeClassifier

    found = []
    for leaves in LEAVES:
        model = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, y > 0)
        found.append(
            Candidate(
                f"{leaves} leaves",
                grid,
                model.tree_.node_count,
                lambda codes, own=model: np.where(own.predict(codes), 1, -1),
                lambda own=model: _emlearn_programs(own, X.shape[1]),
            )
        )
    return found


def forests(X: np.ndarray, y: np.ndarray, grid: str) -> list[Candidate]:
    from sklearn.ensemble import RandomForestClassifier

    found = []
    for depth in FOREST_DEPTHS:
        for count in FOREST_TREES:
            model = RandomForestClassifier(count, max_depth=depth, random_state=0, n_jobs=1).fit(X, y > 0)
            found.append(
                Candidate(
                    f"{count} trees, depth {depth}",
                    grid,
                    sum(tree.tree_.node_count for tree in model.estimators_),
                    lambda codes, own=model: _votes(own, codes),
                    lambda own=model: _emlearn_programs(own, X.shape[1]),
                )
            )
    return found


def _votes(model, codes: np.ndarray) -> np.ndarray:
    """The majority of the trees, the first class where they are equal: as the C code decides."""
    share = np.mean([tree.predict(codes) for tree in model.estimators_], axis=0)
    return np.where(share > 0.5, 1, -1)


def _m2cgen_programs(text: str, call: str, features: int) -> list[Program]:
    shorter = ("-fsingle-precision-constant",)
    return [
        Program(f"#include <stdint.h>\n{text}", call, "double", features),
        Program(f"#include <stdint.h>\n{text.replace('double', 'float')}", call, "float", features, shorter),
    ]


def boosters(X: np.ndarray, y: np.ndarray, grid: str) -> list[Candidate]:
    from lightgbm import LGBMClassifier

    found = []
    for rate in BOOST_RATES:
        for leaves in BOOST_LEAVES:
            model = LGBMClassifier(
                n_estimators=max(BOOST_TREES),
                num_leaves=leaves,
                learning_rate=rate,
                n_jobs=1,
                verbose=-1,
                random_state=0,
            ).fit(X, y)
            for count in BOOST_TREES:

                def programs(model=model, count=count, leaves=leaves, rate=rate) -> list[Program]:
                    import m2cgen

                    short = LGBMClassifier(
                        n_estimators=count,
                        num_leaves=leaves,
                        learning_rate=rate,
                        n_jobs=1,
                        verbose=-1,
                        random_state=0,
                    ).fit(X, y)
                    text = m2cgen.export_to_c(short)
                    text = text[text.index("void score(") :].replace(
                        "void score(double * input, double * output)", "static double score(double * input)"
                    )
                    body, end = re.split(r"    double var\d+;\n    var\d+ = sigmoid\(", text)
                    total = end[: end.index(");\n")]
                    return _m2cgen_programs(
                        f"{body}    return {total};\n}}\n", "score(input) > 0", X.shape[1]
                    )

                found.append(
                    Candidate(
                        f"{count} trees, {leaves} leaves, rate {rate}",
                        grid,
                        count * (leaves - 0.5),
                        lambda codes, own=model, k=count: np.where(
                            own.predict(codes, raw_score=True, num_iteration=k) > 0, 1, -1
                        ),
                        programs,
                    )
                )
    return found


def plain_trees(X: np.ndarray, y: np.ndarray, grid: str) -> list[Candidate]:
    """Regressors of -1 and 1: the squared error and Gini's index prefer the same splits."""
    from sklearn.tree import DecisionTreeRegressor

    found = []
    for leaves in LEAVES:
        model = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0).fit(X, y)

        def programs(model=model) -> list[Program]:
            import m2cgen

            text = m2cgen.export_to_c(model).replace("double score(", "static double score(")
            return _m2cgen_programs(text, "score(input) > 0", X.shape[1])

        found.append(
            Candidate(
                f"{leaves} leaves",
                grid,
                model.tree_.node_count,
                lambda codes, own=model: np.where(own.predict(codes) > 0, 1, -1),
                programs,
            )
        )
    return found


def lines(X: np.ndarray, y: np.ndarray, grid: str) -> list[Candidate]:
    """Fitted to standardized codes; coefficients per code are then rounded."""
    from sklearn.linear_model import LogisticRegression

    found = []
    middle, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0
    reach = np.abs(X).max(axis=0) + 1.0
    for penalty, ratio in (("l2", 0.0), ("l1", 1.0)):
        for strength in STRENGTHS:
            model = LogisticRegression(
                C=strength, l1_ratio=ratio, solver="liblinear", random_state=0, max_iter=1000
            ).fit((X - middle) / spread, y)
            slopes = model.coef_[0] / spread
            start = float(model.intercept_[0] - slopes @ middle)
            for bits in COEFFICIENT_BITS:
                largest = np.abs(slopes).max()
                if largest == 0:
                    continue
                unit = largest / (2 ** (bits - 1) - 1)
                unit = max(unit, (np.abs(slopes) @ reach + abs(start)) / 2**30)
                whole, base = np.rint(slopes / unit).astype(np.int64), round(start / unit)
                used = np.flatnonzero(whole)
                found.append(
                    Candidate(
                        f"{penalty}, C {strength}, {bits} bits, {len(used)} inputs",
                        grid,
                        len(used) * bits,
                        lambda codes, w=whole, b=base: np.where(codes.astype(np.int64) @ w + b > 0, 1, -1),
                        lambda w=whole[used], b=base: _line_programs(w.tolist(), b),
                    )
                )
    return found


def _line_programs(coefficients: list[int], start: int) -> list[Program]:
    """The sum is minus the score, as in the headers of cardboost."""
    count = len(coefficients)
    if not count:
        return [Program("#include <stdint.h>\n", f"{int(start > 0)} + 0")]
    kind = "int8_t" if max(map(abs, coefficients)) < 128 else "int16_t"
    turned = ", ".join(str(-own) for own in coefficients)
    loop = (
        "#include <stdint.h>\n"
        "static inline uint8_t peer(const int16_t *x)\n{\n"
        f"    static const {kind} weights[{count}] = {{{turned}}};\n"
        f"    int32_t sum = {-start};\n    uint_fast16_t k;\n"
        f"    for (k = 0u; k < {count}u; k++) {{ sum += (int32_t)weights[k] * x[k]; }}\n"
        "    return (sum < 0) ? 1u : 0u;\n}\n"
    )
    total = " + ".join(f"(int32_t)x[{k}] * ({-own})" for k, own in enumerate(coefficients))
    written = (
        "#include <stdint.h>\n"
        "static inline uint8_t peer(const int16_t *x)\n{\n"
        f"    const int32_t sum = {-start} + {total};\n    return (sum < 0) ? 1u : 0u;\n}}\n"
    )
    texts = [loop, written] if count <= 8 else [loop]
    return [Program(text, "peer((const int16_t *)input)", inputs=count) for text in texts]


FAMILIES: dict[str, Family] = {
    OURS: cards,
    TREE: trees,
    FOREST: forests,
    M2C_BOOST: boosters,
    M2C_TREE: plain_trees,
    LINE: lines,
}


# --- data ---


def load(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "wdbc":
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
        return X, np.where(y > 0, 1, -1)
    with np.load(Path(folder) / "ida" / f"{name}.npz") as held:
        return held["X"].astype(np.float64), np.where(held["y"] > 0, 1, -1)


def on_grid(train: np.ndarray, rows: np.ndarray, grid: str) -> np.ndarray:
    """Whole numbers for rows, by what is known from the training rows."""
    if grid == "8 bits":
        least, span = train.min(axis=0), np.ptp(train, axis=0)
        return np.clip(np.rint((rows - least) * (255.0 / np.where(span > 0, span, 1.0))), 0, 255)
    size = np.maximum(np.abs(train).max(axis=0), 1e-9)
    return np.clip(np.rint(rows * 2.0 ** np.floor(np.log2(32767.0 / size))), -32767, 32767)


# --- choice ---


def standard_error(wrong: np.ndarray, other: np.ndarray) -> float:
    """The larger of that of an error, and that of the difference to another on the same rows."""
    count, error = len(wrong), wrong.mean()
    return max(
        float(np.sqrt(error * (1 - error) / count)),
        float(np.std(wrong.astype(float) - other) / np.sqrt(count)),
    )


def within_one_error(candidates: list[Candidate]) -> list[Candidate]:
    best = min(candidates, key=lambda own: own.folds.mean())
    limit = best.folds.mean() + best.folds.std(ddof=1) / np.sqrt(FOLDS)
    return [own for own in candidates if own.folds.mean() <= limit]


def smallest(
    candidates: list[Candidate], wrong: dict[int, np.ndarray], close: Callable[[Candidate], bool]
) -> dict[str, dict | None]:
    """The one with the fewest bytes, by each measure."""
    if not candidates:
        return dict.fromkeys(MEASURES)
    lightest = min(own.weight for own in candidates)
    tried = [own for own in candidates if own.weight <= 1.6 * lightest + 4]
    sizes = [own.sizes() for own in tried]
    found: dict[str, dict | None] = {}
    for measure in MEASURES:
        k = min(range(len(tried)), key=lambda k: (sizes[k][measure], wrong[id(tried[k])].mean()))
        own = tried[k]
        error = float(wrong[id(own)].mean())
        found[measure] = {
            "bytes": sizes[k][measure],
            "error": error,
            "setting": own.setting,
            "grid": own.grid,
            "close": bool(close(own)),
        }
    return found


def run_split(X: np.ndarray, y: np.ndarray, seed: int) -> dict:
    from sklearn.model_selection import StratifiedKFold, train_test_split

    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, stratify=y, random_state=seed)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    families: dict[str, list[Candidate]] = {}
    wrong: dict[int, np.ndarray] = {}
    for name, family in FAMILIES.items():
        families[name] = []
        for grid in GRIDS:
            codes, test = on_grid(X, X, grid), on_grid(X, X_test, grid)
            own = family(codes, y, grid)
            errors = []
            for rows, held in folds:
                part, rest = on_grid(X[rows], X[rows], grid), on_grid(X[rows], X[held], grid)
                errors.append([(one.predict(rest) != y[held]).mean() for one in family(part, y[rows], grid)])
            if len({len(row) for row in (own, *errors)}) > 1:  # a setting without a model in some fold
                count = min(len(row) for row in (own, *errors))
                own, errors = own[:count], [row[:count] for row in errors]
            for k, one in enumerate(own):
                one.folds = np.array([row[k] for row in errors])
                wrong[id(one)] = one.predict(test) != y_test
            families[name] += own
    # ties: fewer terms, then the smaller codes
    fewest = [(own.weight, GRIDS.index(own.grid), own.folds.mean()) for own in families[OURS]]
    order = [own for _, own in sorted(zip(fewest, families[OURS], strict=True), key=lambda pair: pair[0])]
    near = within_one_error(families[OURS])
    chosen = {
        LEAST: min(order, key=lambda own: round(float(own.folds.mean()), 12)),
        ONE: next(own for own in order if own in near),
    }
    return {
        rule: compare(card, families, wrong) | {"rows": [len(y), len(y_test)]}
        for rule, card in chosen.items()
    }


def compare(card: Candidate, families: dict[str, list[Candidate]], wrong: dict[int, np.ndarray]) -> dict:
    """The card, and the peers that are as accurate."""
    ours, size = wrong[id(card)], card.sizes()

    def close(own: Candidate) -> bool:
        other = wrong[id(own)]
        return other.mean() <= ours.mean() + standard_error(ours, other)

    return {
        "card": {"setting": card.setting, "grid": card.grid, "error": float(ours.mean())} | size,
        "same rule": smallest([own for own in families[OURS] if close(own)], wrong, close),
        "test": {
            name: smallest([own for own in families[name] if close(own)], wrong, close) for name in PEERS
        },
        "cv": {name: smallest(within_one_error(families[name]), wrong, close) for name in PEERS},
    }


# --- report ---


def ratio(run: dict, choice: str, measure: str, who: str | None = None, any_error: bool = False) -> float:
    """Bytes of the card by those of a peer, or of the smallest peer; 0 if none is accurate enough.

    Infinite if a peer takes no bytes: its answer is the same for all rows.
    """
    all_found = [run[choice][name][measure] for name in (PEERS if who is None else (who,))]
    found = [own["bytes"] for own in all_found if own is not None and (own["close"] or any_error)]
    if not found:
        return 0.0
    return run["card"][measure] / min(found) if min(found) > 0 else float("inf")


def cell(found: dict | None) -> str:
    if found is None:
        return "none"
    return f"{found['bytes']} ({100 * found['error']:.1f}){'' if found['close'] else '*'}"


def report(runs: dict[tuple[str, int], dict], rule: str) -> None:
    for choice, title in (
        ("test", "peers chosen on the test rows, in their favour"),
        ("cv", "peers chosen by cross-validation"),
    ):
        for measure in MEASURES:
            print(f"\nBytes, {measure}, and test error in %; card: {rule}; {title}")
            by_test = choice == "test"
            rows = []
            for (name, seed), run in runs.items():
                card = {"bytes": run["card"][measure], "error": run["card"]["error"], "close": True}
                rows.append(
                    [f"{name}, split {seed}", run["card"]["setting"], cell(card)]
                    + ([cell(run["same rule"][measure])] if by_test else [])
                    + [cell(run[choice][who][measure]) for who in PEERS]
                    + [f"{ratio(run, choice, measure):.2f}"]
                    + ([] if by_test else [f"{ratio(run, choice, measure, None, True):.2f}"])
                )
            more = (["same rule"], []) if by_test else ([], ["any"])
            print_table(["data", "card", OURS, *more[0], *PEERS, "ratio", *more[1]], rows)
            each = []
            for who in PEERS:
                known = [
                    own for own in (ratio(run, choice, measure, who) for run in runs.values()) if own > 0
                ]
                each.append(f"{who} {np.median(known) if known else 0:.2f} ({len(known)} of {len(runs)})")
            every = np.median([ratio(own, choice, measure) for own in runs.values()])
            print(f"Median ratio to the smallest peer {every:.2f}")
            print(f"to each, where it is accurate enough: {', '.join(each)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder that holds ida/*.npz; without it only scikit-learn's set")
    parser.add_argument("--sets", nargs="+", default=None, choices=SETS)
    parser.add_argument("--splits", nargs="+", type=int, default=[0])
    parser.add_argument("--json", help="write everything measured into this file")
    options = parser.parse_args()
    require(
        dict.fromkeys(("lightgbm", "emlearn", "m2cgen"), "pip install -c constraints/bench.txt '.[bench]'")
    )
    if shutil.which(COMPILER) is None:
        sys.exit(f"{COMPILER} is not installed: this benchmark measures what it makes.")
    warnings.simplefilter("ignore")
    os.environ |= dict.fromkeys(THREAD_VARIABLES, "1")
    names = options.sets or (SETS if options.data else ("wdbc",))
    facts = machine(PACKAGES)
    print_machine(facts)
    version = subprocess.run([COMPILER, "-dumpversion"], capture_output=True, text=True, check=True)
    print(f"{COMPILER} {version.stdout.strip()}")
    import cardboost.export.c  # noqa: F401  (a long run is not to see edits)

    runs: dict[str, dict[tuple[str, int], dict]] = {rule: {} for rule in RULES}
    seconds = {}
    for seed in options.splits:
        for name in names:
            X, y = load(options.data, name)
            seconds[name, seed], found = timed(lambda X=X, y=y, seed=seed: run_split(X, y, seed))
            for rule, own in found.items():
                runs[rule][name, seed] = own
            print(f"{name}, split {seed}: {seconds[name, seed]:.0f} s", file=sys.stderr)
            write_json(options.json, described(facts, version.stdout.strip(), runs), [])
    for rule in RULES:
        report(runs[rule], rule)
    goals = [
        Goal(
            f"bytes {measure} / smallest peer chosen {how}, card: {rule}, median",
            float(np.median([ratio(own, choice, measure) for own in runs[rule].values()])),
            1 / 3,
        )
        for rule in RULES
        for choice, how in (("test", "on the test rows"), ("cv", "by cross-validation"))
        for measure in MEASURES
    ]
    report_goals(goals)
    write_json(options.json, described(facts, version.stdout.strip(), runs), goals)


def described(facts: dict, compiler: str, runs: dict[str, dict[tuple[str, int], dict]]) -> dict:
    return {
        "machine": facts,
        "compiler": compiler,
        "runs": [
            {"set": name, "split": seed, "rule": rule} | own
            for rule, found in runs.items()
            for (name, seed), own in found.items()
        ],
    }


if __name__ == "__main__":
    main()
