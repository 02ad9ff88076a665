"""The functions of a C header: the score in whole points or in doubles, the class, the probability."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from cardboost.export.c_model import MISSING_CUT, CModel, CutEntry, Question, float_key
from cardboost.export.c_text import comment, float_literal, int_literal, quoted, safe, table
from cardboost.export.integer_model import HIGHEST, MISSING
from cardboost.export.points import PROBABILITY_UNIT


def functions(model: CModel) -> list[str]:
    """All functions of the header, in the order in which they use each other."""
    keys = [_key_function(model.prefix)] if _with_keys(model) else []
    checks = [_double_checks(model.prefix)] if model.points is None else []
    classes = [_class_function(model)] if model.plan.decides else []
    chances = [_probability_function(model)] if model.probability is not None else []
    return [*keys, *checks, _score_function(model), *classes, *chances]


def _score_function(model: CModel) -> str:
    """The function that returns the score, or that writes several scores."""
    kind, start = model.score_type, f"{model.prefix}_score"
    head, rows = f"static inline {kind} {start}(const {model.c_type} *x)", "a row"
    if model.several:
        head = f"static inline void {start}s(const {model.c_type} *x, {kind} *scores)"
        rows = "every class, into scores"
    if model.points is None:
        about, lines = f"The score of {rows}.", _double_sum(model)
    else:
        about = f"The points of {rows}."
        lines = _ifs(model) if model.layout == "ifs" or not model.entries else _loop(model)
    return "\n".join([comment([about]), head, "{", *lines, "}"])


def code_literal(cut: float) -> str:
    return "INT16_MIN" if cut == MISSING else int_literal(int(cut))


def _key_literal(cut: float) -> str:
    key = float_key(cut)
    return "INT32_MIN" if cut == MISSING_CUT else f"0x{key:08X}" if key >= 0 else f"-0x{-key:08X}"


def _cut_note(model: CModel, index: int, cuts: Sequence[float]) -> str:
    """The name of an input; with floats also its cuts, which are keys in the table."""
    name = quoted(model.plan.inputs[index].name)
    if not model.floats:
        return name
    return safe(f"{name}: {', '.join('missing' if cut == MISSING_CUT else repr(cut) for cut in cuts)}")


def _with_keys(model: CModel) -> bool:
    """Whether floats are compared as whole numbers in the same order, which needs no floating point."""
    if model.points is None:
        return bool(model.plan.inputs)
    return model.floats and model.layout == "table" and bool(model.entries)


def _key_function(prefix: str) -> str:
    about = (
        "The bits of a float as a whole number in the same order; INT32_MIN for NaN. So no helpers for "
        "floating point are needed, and no compiler option changes a comparison."
    )
    return f"""\
typedef char {prefix}_needs_32_bit_float[(sizeof(float) == 4u) ? 1 : -1];

{comment([about])}
static inline int32_t {prefix}_key(float value)
{{
    uint32_t bits = 0u;
    const uint8_t *from = (const uint8_t *)&value;
    uint8_t *to = (uint8_t *)&bits;
    uint32_t size;
    int32_t key;
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
    size = bits & 0x7FFFFFFFu;
    key = (int32_t)size;
    if (key > 0x7F800000) {{
        key = INT32_MIN;
    }} else if (bits > 0x7FFFFFFFu) {{
        key = -key - 1;
    }} else {{
        /* a number that is not negative is its own key */
    }}
    return key;
}}"""


# whole points


def _sum_type(model: CModel) -> str:
    """The type of one sum: 16 bits on small processors, where they are enough."""
    assert model.points is not None
    return "int_fast16_t" if model.points.reach <= HIGHEST else model.score_type


def _total(model: CModel) -> str:
    value = "sum" if _sum_type(model) == model.score_type else f"({model.score_type})sum"
    assert model.points is not None
    limit = int_literal(model.points.threshold) + " - " if model.points.threshold else "-"
    return f"{limit}{value}" if model.negated else value


def _negated(model: CModel) -> list[str]:
    """A comment on a sum that is not the score."""
    if not model.negated or model.points is None:
        return []
    what = f"{model.points.threshold} less the score" if model.points.threshold else "minus the score"
    return [f"    /* {what}: a negative number is the shortest thing to test for */"]


def _ifs(model: CModel) -> list[str]:
    """One statement per cut."""
    several = model.several
    lines = [] if model.entries else ["    (void)x;"]
    lines += _negated(model)
    for k, (base, entries) in enumerate(model.programs):
        target = f"scores[{k}]" if several else "sum"
        lines.append(f"    {'' if several else f'{_sum_type(model)} '}{target} = {int_literal(base)};")
        for entry in entries:
            test = _test(model, entry)
            sign, size = ("-", -entry.points) if entry.points < 0 else ("+", entry.points)
            lines.append(f"    if ({test}) {{ {target} {sign}= {int_literal(size)}; }}")
    return lines if several else [*lines, f"    return {_total(model)};"]


def _test(model: CModel, entry: CutEntry, above: bool = True) -> str:
    """A condition: a value is above a cut, or it is not."""
    literal = float_literal(entry.cut) if model.floats else code_literal(entry.cut)
    value = f"x[{model.identifiers[entry.input][0]}]"
    plain, opposite = ("<=", ">") if entry.nan_above else (">", "<=")
    if above != entry.nan_above:
        return f"{value} {plain} {literal}"
    return f"!({value} {plain} {literal})" if model.floats else f"{value} {opposite} {literal}"


def _condition(model: CModel, question: Question) -> str:
    """A question, and those after it, as one condition."""

    def part(answer: Question) -> str:
        return f"({_condition(model, answer)})"

    test, other = (f"({_test(model, question.entry, above)})" for above in (True, False))
    above, below = question.above, question.below
    if isinstance(above, Question) and isinstance(below, Question):
        return f"{test} ? {part(above)} : {part(below)}"
    if isinstance(above, Question):
        return f"{other} || {part(above)}" if below else f"{test} && {part(above)}"
    if isinstance(below, Question):
        return f"{test} || {part(below)}" if above else f"{other} && {part(below)}"
    return (test if above else other)[1:-1]


def _loop(model: CModel) -> list[str]:
    """One loop over all cuts of all inputs."""
    sum_type = model.score_type if model.several else _sum_type(model)
    kinds, lines = model.cells, _tables(model)
    member = "entries[k].{}" if kinds.together else "{}s[k]"
    cut, points = member.format("cut"), member.format("point")
    index = "k" if kinds.input is None else member.format("input")
    value = f"{model.prefix}_key(x[{index}])" if model.floats else f"x[{index}]"
    cut = f"(int_fast16_t){cut}" if kinds.cut.startswith("u") else cut
    points = f"({sum_type}){points}" if kinds.points.startswith("u") else points
    body = [
        f"        if ({value} > {cut}) {{",
        f"            sum {'+' if kinds.sign > 0 else '-'}= {points};",
        "        }",
    ]
    if not model.several:
        return [
            *lines,
            *_negated(model),
            f"    {sum_type} sum = {int_literal(model.programs[0][0])};",
            "    uint_fast16_t k;",
            f"    for (k = 0u; k < {len(model.entries)}u; k++) {{",
            *body,
            "    }",
            f"    return {_total(model)};",
        ]
    ends = np.cumsum([len(part) for _, part in model.programs]).tolist()
    bases = [int_literal(base) for base, _ in model.programs]
    return [
        *lines,
        table(f"uint16_t ends[{len(ends)}]", [[f"{end}u" for end in ends]]),
        table(f"{sum_type} bases[{len(ends)}]", [bases]),
        "    uint_fast16_t k = 0u;",
        "    uint_fast16_t j;",
        f"    for (j = 0u; j < {len(ends)}u; j++) {{",
        f"        {sum_type} sum = bases[j];",
        "        for (; k < ends[j]; k++) {",
        *(f"    {line}" for line in body),
        "        }",
        "        scores[j] = sum;",
        "    }",
    ]


def _literals(model: CModel, entry: CutEntry) -> dict[str, str]:
    """The cells of an entry."""
    kinds = model.cells
    cut = _key_literal(entry.cut) if model.floats else code_literal(entry.cut)
    points = int_literal(kinds.sign * entry.points)
    return {
        "cut": f"{cut}u" if kinds.cut.startswith("u") else cut,
        "point": f"{points}u" if kinds.points.startswith("u") else points,
        "input": f"{entry.input}u",
    }


def _tables(model: CModel) -> list[str]:
    """The entries as one table of structures, or as one table for each member.

    Structures have wide members first, so that there are no holes; tables of their own lose no byte where the
    types differ in size.
    """
    kinds, size = model.cells, len(model.entries)
    members = {"cut": kinds.cut, "point": kinds.points} | ({"input": kinds.input} if kinds.input else {})
    by_input = [list(part) for _, part in groupby(model.entries, key=lambda entry: entry.input)]
    notes = [_cut_note(model, part[0].input, [entry.cut for entry in part]) for part in by_input]
    rows = [[_literals(model, entry) for entry in part] for part in by_input]
    if kinds.together:
        order = sorted(members, key=lambda name: -int(members[name].strip("uint_")))
        declared = " ".join(f"{members[name]} {name};" for name in order)
        cells = [[f"{{{', '.join(entry[name] for name in order)}}}" for entry in row] for row in rows]
        return [table(f"struct {{ {declared} }} entries[{size}]", cells, notes)]
    tables = []
    for name, kind in members.items():
        by_row = [[entry[name] for entry in row] for row in rows]
        noted = name == "cut"
        cells = by_row if noted else [[cell for row in by_row for cell in row]]
        tables.append(table(f"{kind} {name}s[{size}]", cells, notes if noted else ()))
    return tables


# doubles


def _double_checks(prefix: str) -> str:
    about = comment(["The bits of the scores need doubles of 64 bits without excess precision."])
    return f"""\
{about}
typedef char {prefix}_needs_64_bit_double[(sizeof(double) == 8u) ? 1 : -1];
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ == 2)
#error "{prefix}: doubles have excess precision here"
#endif"""


def _double_sum(model: CModel) -> list[str]:
    """One loop over the inputs, levels added in the order of the model."""
    plan, count = model.plan, model.plan.n_scores
    ordered = [steps.missing_first(MISSING_CUT) for steps in model.steps]
    notes = [_cut_note(model, k, steps.cuts) for k, steps in enumerate(ordered)]
    cuts = [[_key_literal(cut) for cut in steps.cuts] for steps in ordered]
    levels = [list(map(repr, steps.levels.ravel().tolist())) for steps in ordered]
    bases = [repr(value) for value in plan.intercepts.tolist()]
    lines, declared = [], [f"    double sum = {bases[0]};"]
    add = "        sum += levels[at];"
    if model.several:
        lines.append(table(f"double bases[{count}]", [bases]))
        declared = [
            "    uint_fast16_t j;",
            f"    for (j = 0u; j < {count}u; j++) {{ scores[j] = bases[j]; }}",
        ]
        add = f"        for (j = 0u; j < {count}u; j++) {{ scores[j] += levels[(at * {count}u) + j]; }}"
    if not plan.inputs:
        lines += [*declared, "    (void)x;"]
    else:
        n_cuts = sum(map(len, cuts))
        lines += [
            table(f"int32_t cuts[{max(n_cuts, 1)}]", cuts if n_cuts else [["0"]], notes if n_cuts else ()),
            table(f"double levels[{sum(map(len, levels))}]", levels),
            table(f"uint16_t counts[{len(cuts)}]", [[f"{len(part)}u" for part in cuts]]),
            *declared,
            "    uint_fast16_t cut = 0u;",
            "    uint_fast16_t level = 0u;",
            "    uint_fast16_t i;",
            f"    for (i = 0u; i < {len(cuts)}u; i++) {{",
            f"        const int32_t key = {model.prefix}_key(x[i]);",
            "        uint_fast16_t at = level;",
            "        uint_fast16_t k;",
            "        for (k = 0u; k < counts[i]; k++) {",
            "            if (key > cuts[cut + k]) { at++; }",
            "        }",
            add,
            "        cut += counts[i];",
            "        level += counts[i] + (uint_fast16_t)1u;",
            "    }",
        ]
    return lines if model.several else [*lines, "    return sum;"]


# decisions and probabilities


def decision(model: CModel) -> tuple[str, str]:
    """How a score is compared in C, and with what."""
    if model.points is None:
        return ">", repr(model.plan.threshold)
    if model.plan.in_points:
        return ">=", int_literal(model.points.threshold + 1)
    return ">", "0"


def decision_text(model: CModel) -> str:
    """Which scores mean the second of two classes."""
    sign, limit = decision(model)
    return f"a total of {limit} or more" if sign == ">=" else f"a score above {limit.removesuffix('.0')}"


def _class_function(model: CModel) -> str:
    prefix, kind, count = model.prefix, model.score_type, model.plan.n_scores
    arguments = f"const {model.c_type} *x"
    if count == 1:
        sign, limit = decision(model)
        about = comment([f"The class of a row: 1 for {decision_text(model)}, else 0."])
        body = f"    return ({prefix}_score(x) {sign} {limit}) ? 1u : 0u;"
        question = None if model.points is None else model.questions
        if isinstance(question, Question):
            condition = _condition(model, question)
            body = f"    uint8_t found = 0u;\n    if ({condition}) {{ found = 1u; }}\n    return found;"
        elif question is not None:
            body = f"    (void)x;\n    return {int(question)}u;"
        return f"{about}\nstatic inline uint8_t {prefix}_class({arguments})\n{{\n{body}\n}}"
    about = comment(["The class of a row: that of the highest score, the first of equals."])
    return f"""\
{about}
static inline uint16_t {prefix}_class({arguments})
{{
    {kind} scores[{count}];
    uint16_t best = 0u;
    uint16_t j;
    {prefix}_scores(x, scores);
    for (j = 1u; j < {count}u; j++) {{
        if (scores[j] > scores[best]) {{ best = j; }}
    }}
    return best;
}}"""


def _probability_function(model: CModel) -> str:
    chances = model.probability
    assert chances is not None
    last = len(chances.entries) - 1
    literals = [[f"{value}u" for value in chances.entries.tolist()]]
    about = (
        f"The probability of class 1 for a total of points, in units of 1/{PROBABILITY_UNIT}. The largest "
        f"error is {chances.error:.2g}."
    )
    fraction, half = chances.fraction, (1 << chances.fraction) >> 1
    kind = model.score_type
    size = f"((score < 0) ? (u{kind})(-score) : (u{kind})score)"
    mirror = f"    if (score < 0) {{ found = {PROBABILITY_UNIT}u - found; }}\n"
    if chances.first is not None:
        first, mirror = int_literal(chances.first), ""
        size = f"((score > {first}) ? ((u{kind})score - (u{kind}){first}) : 0u)"
    return f"""\
{comment([about])}
static inline uint16_t {model.prefix}_probability({kind} score)
{{
{table(f"uint16_t entries[{last + 1}]", literals)}
    const u{kind} size = {size} >> {chances.shift}u;
    const u{kind} at = size >> {fraction}u;
    uint32_t found = entries[{last}];
    if (at < {last}u) {{
        const uint32_t low = entries[at];
        const uint32_t part = (uint32_t)size & {(1 << fraction) - 1}u;
        found = low + ((((entries[at + 1u] - low) * part) + {half}u) >> {fraction}u);
    }}
{mirror}    return (uint16_t)found;
}}"""
