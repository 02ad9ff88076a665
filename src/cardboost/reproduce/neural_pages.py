"""The experiment on boosted networks as files: text, figures, a page and plain data."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from cardboost.report import html
from cardboost.report.figures import Chart, Figure, Line
from cardboost.report.text import WIDTH, columns, filled
from cardboost.reproduce.neural import ALLOWED, DEFAULT, PAPER, PEERS, Curve, Experiment, Score

TITLE = "Boosted neural networks"

Rows = list[list[str]]

_FEW = 20  # nets up to which every number of them has a line in the table
_LOSSES = {"squared": "Squared loss", "cross_entropy": "Cross-entropy"}


def files(found: Experiment) -> dict[str, bytes]:
    """Every file by its name."""
    figures = figures_of(found)
    texts = {
        "report.txt": report(found),
        "results.json": json.dumps(plain(found), indent=1, allow_nan=False) + "\n",
        **{name: figure.svg() for name, figure in figures.items()},
        "index.html": web_page(found, figures),
    }
    return {name: text.encode() for name, text in texts.items()}


# what is said, once for the text and for the page


def _intro(found: Experiment) -> list[str]:
    return [
        f"Gradient boosting whose weak learner is a network with one hidden layer, on the Iris data "
        f"({found.rows} rows, three classes): training loss and accuracy against the number of nets, "
        f"{_folds(found)} (RepeatedStratifiedKFold, seed {found.settings.seed}). Only the weight of the new "
        'net is found in every round (refit="last", the paper\'s), or those of all nets together '
        '(refit="all", the default).',
        "All check points hold." if found.holds else "NOT ALL CHECK POINTS HOLD.",
        _goal_words(found),
    ]


def _folds(found: Experiment) -> str:
    return f"{found.settings.repeats} x {found.settings.folds} folds"


def _goal_words(found: Experiment) -> str:
    goal = found.goal
    best = found.score(goal.best)
    verdict = "met" if goal.met else "MISSED"
    return (
        f"Accuracy goal {verdict}: {_percent(goal.reached)} of {DEFAULT} with its defaults, "
        f"{_percent(goal.needed)} needed: {_percent(best.mean)} of {goal.best}, the best of scikit-learn's "
        f"three, less {ALLOWED:g} of its standard errors. The goal is none of the check points."
    )


def _paper_words(found: Experiment) -> list[str]:
    own = found.settings
    return [
        "The paper's own setting: squared loss on one column of 0 and 1 per class, one gamma per net by its "
        f"formula, no shrinkage (learning_rate=1). All {found.rows} rows, nets of 8 tanh units, decay "
        f"l2={own.l2:g}, at most {own.nets} nets. The first net is fitted to what the shares of the classes, "
        "a constant, leave over. Loss: half the mean of |y - f|^2, that is the paper's C divided by twice "
        "the rows. Least: the loss of the best weights of the same nets, all of them by least squares.",
        _end_words(found),
    ]


def _end_words(found: Experiment) -> str:
    nets = len(found.whole.rounds)
    if nets == found.settings.nets:
        return f"All {nets} nets were fitted."
    return (
        f"The rounds end after {nets} nets: of the next, decay leaves nothing that lowers the loss by more "
        "than a millionth."
    )


def _curve_words(found: Experiment) -> list[str]:
    own = found.settings
    early = ", ".join(f"{c.ended_early} ({c.name})" for c in found.curves if c.ended_early)
    ended = f" Fits that ended earlier, and stay where they were: {early}." if early else ""
    return [
        f"Means over {_folds(found)} after so many nets: loss of the training rows, and share of the others "
        f"that are right. One fit per fold and setting, early_stopping=False, l2={own.l2:g}: a decay at "
        "which one net is not enough, chosen by a look at such curves." + ended
    ]


def _score_words(found: Experiment) -> list[str]:
    said = [
        "Accuracy on the rows held out, with the standard error over the folds (as if they were "
        f"independent), and by how much {DEFAULT} is ahead, with the standard error of the differences fold "
        "by fold. It has its defaults: early_stopping='auto' chooses nets and decay inside every training "
        "part. Scikit-learn's models have theirs, except solver='lbfgs' of the MLP, as is usual for small "
        "data; MLP and logistic regression get standardised inputs. The seed of a fit is the number of its "
        "fold.",
        f"The default chose {_sizes(found)}.",
    ]
    if found.unfinished:
        said.append(f"A model of scikit-learn said that it had not converged in {found.unfinished} folds.")
    return said


def _sizes(found: Experiment) -> str:
    ordered = sorted(found.sizes, key=lambda own: -own[2])
    shown = [f"{n} net{'s' if n > 1 else ''} with l2={l2:g} in {count} folds" for n, l2, count in ordered[:5]]
    rest = sum(count for *_, count in ordered[5:])
    return ", ".join(shown) + (f", others in {rest}" if rest else "")


def _rounds(found: Experiment) -> tuple[list[str], Rows]:
    header = ["nets", "loss", "gamma", "closed form", "least"]
    first = ["0", f"{found.whole.start:.9f}", "", "", ""]
    rows = [
        [str(own.number), f"{own.loss:.9f}", f"{own.gamma:.9g}", f"{own.closed_form:.9g}", f"{own.least:.9f}"]
        for own in found.whole.rounds
    ]
    return header, [first, *rows]


def _curves(found: Experiment, loss: str) -> tuple[list[str], Rows]:
    """With both ways to refit, after every number of few nets, else after 1, 2, 3, 5, 10, 20, ... ."""
    nets = found.settings.nets
    curves = _of_loss(found, loss)
    header = ["nets"]
    for own in curves:
        header += [f"refit={own.refit}: loss", "right", "s.e."]
    wanted = set(range(1, nets + 1)) if nets <= _FEW else {1, 2, 3, 5, 10, 20, 50, 100, nets}
    rows = []
    for k in sorted(k for k in wanted if k <= nets):
        cells = [str(k)]
        for own in curves:
            cells += [f"{own.training[k - 1]:.6f}", _percent(own.accuracy[k - 1]), _percent(own.error[k - 1])]
        rows.append(cells)
    return header, rows


def _scores(found: Experiment) -> tuple[list[str], Rows]:
    header = ["model", "accuracy", "s.e.", "ahead", "s.e."]
    return header, [_score_row(found, own) for own in found.scores]


def _score_row(found: Experiment, own: Score) -> list[str]:
    curves = {c.name: c for c in found.curves}
    name = own.name
    if name in curves:
        name = f"{curves[name].loss}, {curves[name].refit}, {found.settings.nets} nets"
        name += " (the paper's)" if own.name == PAPER else ""
    ahead = ["", ""] if own.name == DEFAULT else [_signed(own.default_ahead), _percent(own.ahead_error)]
    return [name, _percent(own.mean), _percent(own.error), *ahead]


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _signed(share: float) -> str:
    return f"{100 * share:+.2f}%"


def _verdict(holds: bool) -> str:
    return "holds" if holds else "FAILS"


# text


def report(found: Experiment) -> str:
    lines = [TITLE, "=" * WIDTH, ""]
    for words in _intro(found):
        lines += filled(words)
    lines += _section("The paper's setting", _paper_words(found))
    lines += ["", *columns(*_rounds(found)), "", "check points, on this fit and on those of all folds"]
    for check in found.checks:
        lines.append(f"  ({check.letter}) {_verdict(check.holds)}  {check.claim}")
        lines += filled(check.measured, indent=6)
    lines += _section("Loss and accuracy against the number of nets", _curve_words(found))
    for loss, title in _LOSSES.items():
        lines += ["", title, *columns(*_curves(found, loss))]
    lines += _section("Beside scikit-learn's models", _score_words(found))
    lines += ["", *columns(*_scores(found), left=(0,))]
    lines += ["", *filled(_goal_words(found))]
    return "\n".join(lines) + "\n"


def _section(title: str, words: list[str]) -> list[str]:
    lines = ["", title, "-" * WIDTH]
    for sentence in words:
        lines += filled(sentence)
    return lines


# page


def web_page(found: Experiment, figures: dict[str, Figure]) -> str:
    svg = {name: html.figure(figure.svg()) for name, figure in figures.items()}
    blocks = [html.paragraph(words) for words in _intro(found)]
    blocks += [html.heading("The paper's setting"), *map(html.paragraph, _paper_words(found))]
    checks = [[f"({c.letter})", c.claim, c.measured, _verdict(c.holds)] for c in found.checks]
    blocks += [
        html.table(*_rounds(found)),
        html.paragraph("Check points, on this fit and on those of all folds:"),
        html.table(["", "check point", "measured", ""], checks, left=(0, 1, 2, 3)),
    ]
    blocks += [html.heading("Loss and accuracy against the number of nets")]
    blocks += [*map(html.paragraph, _curve_words(found)), svg["training.svg"], svg["accuracy.svg"]]
    for loss, title in _LOSSES.items():
        blocks += [html.paragraph(f"{title}:"), html.table(*_curves(found, loss))]
    blocks += [html.heading("Beside scikit-learn's models"), *map(html.paragraph, _score_words(found))]
    blocks += [html.table(*_scores(found), left=(0,)), svg["models.svg"]]
    return html.page(TITLE, blocks)


# figures


def figures_of(found: Experiment) -> dict[str, Figure]:
    best = found.score(found.goal.best)
    own = found.settings
    return {
        "training.svg": Figure(
            "Training loss against the number of nets",
            f"Iris, mean over {_folds(found)}, nets of 8 units, l2 = {own.l2:g}. refit = last: the weight of "
            "the new net only, the paper's way; refit = all: the weights of all nets, solved for together.",
            tuple(_training(found, loss) for loss in _LOSSES),
        ),
        "accuracy.svg": Figure(
            "Accuracy on rows held out, against the number of nets",
            f"Iris, mean over {_folds(found)}; one standard error is about "
            f"{100 * best.error:.1f} percentage points. Level lines: {DEFAULT} with its defaults, which "
            f"chooses its size inside every training part, and {best.name}, the best of scikit-learn's "
            "three.",
            tuple(_accuracy(found, loss) for loss in _LOSSES),
        ),
        "models.svg": Figure(
            "Four models on the same folds",
            f"Accuracy in each of {own.repeats} repeats, every one the mean over its {own.folds} folds, and "
            "the same folds for all four.",
            (_repeats(found),),
        ),
    }


def _of_loss(found: Experiment, loss: str) -> list[Curve]:
    return [own for own in found.curves if own.loss == loss]


def _training(found: Experiment, loss: str) -> Chart:
    lines = tuple(
        Line(f"refit = {own.refit}", _numbers(own.training), own.training) for own in _of_loss(found, loss)
    )
    return Chart(_LOSSES[loss], "nets", "training loss (log scale)", lines, y_scale="log")


def _accuracy(found: Experiment, loss: str) -> Chart:
    own = _of_loss(found, loss)
    lines = [Line(f"refit = {c.refit}", _numbers(c.accuracy), _in_percent(c.accuracy)) for c in own]
    ends = (1.0, float(max(found.settings.nets, 2)))
    for name, style in ((DEFAULT, 3), (found.goal.best, 4)):
        level = 100 * found.score(name).mean
        lines.append(Line(name, ends, (level, level), style=style))
    return Chart(_LOSSES[loss], "nets", "accuracy in %", tuple(lines))


def _repeats(found: Experiment) -> Chart:
    lines = []
    for name in (DEFAULT, *PEERS):
        each = np.array(found.score(name).folds).reshape(found.settings.repeats, -1).mean(axis=1)
        lines.append(Line(name, _numbers(tuple(each)), _in_percent(tuple(each))))
    return Chart("", "repeat", "accuracy in %", tuple(lines))


def _numbers(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(k) for k in range(1, len(values) + 1))


def _in_percent(shares: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(100 * float(own) for own in shares)


# plain data


def plain(found: Experiment) -> dict[str, Any]:
    """What was found, for a script."""
    content = asdict(found)
    content["sizes"] = [{"nets": nets, "l2": l2, "folds": count} for nets, l2, count in found.sizes]
    return {
        "experiment": "neural",
        "holds": found.holds,
        "goal_met": found.goal.met,
        **content,
    }
