"""The experiment on boosted networks as files: text, figures, a page and plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from cardboost.report import document as doc
from cardboost.report.figures import Chart, Figure, Series
from cardboost.reproduce.neural import ALLOWED, DEFAULT, PAPER, PEERS, IrisExperiment, MeanCurve

TITLE = "Boosted neural networks"

_FEW_NETS = 20  # up to which every number of nets has a row in the table
_LOSSES = {"squared": "Squared loss", "cross_entropy": "Cross-entropy"}


def files(experiment: IrisExperiment) -> dict[str, bytes]:
    """Every file by its name."""
    figures = figures_of(experiment)
    return doc.report_files(TITLE, _blocks(experiment, figures), figures, plain(experiment))


def _blocks(experiment: IrisExperiment, figures: dict[str, Figure]) -> list[doc.ReportBlock]:
    goal = _goal_words(experiment)
    curve_tables = []
    for loss, title in _LOSSES.items():
        curve_tables += [doc.caption(title), _curve_table(experiment, loss)]
    return [
        doc.paragraph(
            f"Gradient boosting whose weak learner is a network with one hidden layer, on the Iris data "
            f"({experiment.rows} rows, three classes): training loss and accuracy against the number of "
            f"nets, {_folds(experiment)} (RepeatedStratifiedKFold, seed {experiment.settings.seed}). Only "
            'the weight of the new net is found in every round (refit="last", the paper\'s), or those of all '
            'nets together (refit="all", the default).'
        ),
        doc.paragraph("All check points hold." if experiment.holds else "NOT ALL CHECK POINTS HOLD."),
        doc.paragraph(goal),
        doc.heading("The paper's setting"),
        *map(doc.paragraph, _paper_words(experiment)),
        _rounds(experiment),
        doc.caption("check points, on this fit and on those of all folds"),
        doc.check_list(experiment.checks),
        doc.heading("Loss and accuracy against the number of nets"),
        doc.paragraph(_curve_words(experiment)),
        doc.figure(figures["training.svg"]),
        doc.figure(figures["accuracy.svg"]),
        *curve_tables,
        doc.heading("Beside scikit-learn's models"),
        *map(doc.paragraph, _score_words(experiment)),
        _scores(experiment),
        doc.figure(figures["models.svg"]),
        doc.text_only(doc.paragraph(goal)),
    ]


def _folds(experiment: IrisExperiment) -> str:
    return f"{experiment.settings.repeats} x {experiment.settings.folds} folds"


def _goal_words(experiment: IrisExperiment) -> str:
    goal = experiment.goal
    best = experiment.score(goal.best)
    verdict = "met" if goal.met else "MISSED"
    return (
        f"Accuracy goal {verdict}: {_percent(goal.reached)} of {DEFAULT} with its defaults, "
        f"{_percent(goal.needed)} needed: {_percent(best.mean)} of {goal.best}, the best of scikit-learn's "
        f"three, less {ALLOWED:g} of its standard errors. The goal is none of the check points."
    )


def _paper_words(experiment: IrisExperiment) -> list[str]:
    settings, nets = experiment.settings, len(experiment.whole.rounds)
    end = f"All {nets} nets were fitted."
    if nets < settings.nets:
        end = (
            f"The rounds end after {nets} nets: of the next, decay leaves nothing that lowers the loss by "
            "more than a millionth."
        )
    return [
        "The paper's own setting: squared loss on one column of 0 and 1 per class, one gamma per net by its "
        f"formula, no shrinkage (learning_rate=1). All {experiment.rows} rows, nets of 8 tanh units, decay "
        f"l2={settings.l2:g}, at most {settings.nets} nets. The first net is fitted to what the shares of "
        "the classes, a constant, leave over. Loss: half the mean of |y - f|^2, that is the paper's C "
        "divided by twice the rows. Least: the loss of the best weights of the same nets, all of them by "
        "least squares.",
        end,
    ]


def _curve_words(experiment: IrisExperiment) -> str:
    early = ", ".join(f"{c.ended_early} ({c.name})" for c in experiment.curves if c.ended_early)
    ended = f" Fits that ended earlier, and stay where they were: {early}." if early else ""
    return (
        f"Means over {_folds(experiment)} after so many nets: loss of the training rows, and share of the "
        "others that are right. One fit per fold and setting, early_stopping=False, "
        f"l2={experiment.settings.l2:g}: a decay at which one net is not enough, chosen by a look at such "
        f"curves.{ended}"
    )


def _score_words(experiment: IrisExperiment) -> list[str]:
    words = [
        "Accuracy on the rows held out, with the standard error over the folds (as if they were "
        f"independent), and by how much {DEFAULT} is ahead, with the standard error of the differences fold "
        "by fold. It has its defaults: early_stopping='auto' chooses nets and decay inside every training "
        "part. Scikit-learn's models have theirs, except solver='lbfgs' of the MLP, as is usual for small "
        "data; MLP and logistic regression get standardised inputs. The seed of a fit is the number of its "
        "fold.",
        f"The default chose {_sizes(experiment)}.",
    ]
    if experiment.unfinished:
        words.append(
            f"A model of scikit-learn said that it had not converged in {experiment.unfinished} folds."
        )
    return words


def _sizes(experiment: IrisExperiment) -> str:
    ordered = sorted(experiment.sizes, key=lambda size: -size[2])
    shown = [f"{n} net{'s' if n > 1 else ''} with l2={l2:g} in {count} folds" for n, l2, count in ordered[:5]]
    rest = sum(count for *_, count in ordered[5:])
    return ", ".join(shown) + (f", others in {rest}" if rest else "")


def _rounds(experiment: IrisExperiment) -> doc.ReportBlock:
    first = ["0", f"{experiment.whole.start:.9f}", "", "", ""]
    rows = [
        [str(r.number), f"{r.loss:.9f}", f"{r.gamma:.9g}", f"{r.closed_form:.9g}", f"{r.least:.9f}"]
        for r in experiment.whole.rounds
    ]
    return doc.table(["nets", "loss", "gamma", "closed form", "least"], [first, *rows])


def _curve_table(experiment: IrisExperiment, loss: str) -> doc.ReportBlock:
    """Both ways to refit, after every number of few nets, else after 1, 2, 3, 5, 10, 20, ... ."""
    nets = experiment.settings.nets
    curves = _of_loss(experiment, loss)
    header = ["nets"]
    for curve in curves:
        header += [f"refit={curve.refit}: loss", "right", "s.e."]
    numbers = set(range(1, nets + 1)) if nets <= _FEW_NETS else {1, 2, 3, 5, 10, 20, 50, 100, nets}
    rows = []
    for k in sorted(k for k in numbers if k <= nets):
        row = [str(k)]
        for curve in curves:
            row += [f"{curve.training[k - 1]:.6f}", _percent(curve.accuracy[k - 1])]
            row.append(_percent(curve.error[k - 1]))
        rows.append(row)
    return doc.table(header, rows)


def _scores(experiment: IrisExperiment) -> doc.ReportBlock:
    names = {c.name: f"{c.loss}, {c.refit}, {experiment.settings.nets} nets" for c in experiment.curves}
    names[PAPER] += " (the paper's)"
    rows = []
    for score in experiment.scores:
        ahead = [f"{100 * score.default_ahead:+.2f}%", _percent(score.ahead_error)]
        row = [names.get(score.name, score.name), _percent(score.mean), _percent(score.error)]
        rows.append([*row, *(["", ""] if score.name == DEFAULT else ahead)])
    return doc.table(["model", "accuracy", "s.e.", "ahead", "s.e."], rows, left=(0,))


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


# figures


def figures_of(experiment: IrisExperiment) -> dict[str, Figure]:
    best = experiment.score(experiment.goal.best)
    settings = experiment.settings
    return {
        "training.svg": Figure(
            "Training loss against the number of nets",
            f"Iris, mean over {_folds(experiment)}, nets of 8 units, l2 = {settings.l2:g}. refit = last: the "
            "weight of the new net only, the paper's way; refit = all: the weights of all nets, solved for "
            "together.",
            tuple(_training(experiment, loss) for loss in _LOSSES),
        ),
        "accuracy.svg": Figure(
            "Accuracy on rows held out, against the number of nets",
            f"Iris, mean over {_folds(experiment)}; one standard error is about "
            f"{100 * best.error:.1f} percentage points. Level lines: {DEFAULT} with its defaults, which "
            f"chooses its size inside every training part, and {best.name}, the best of scikit-learn's "
            "three.",
            tuple(_accuracy(experiment, loss) for loss in _LOSSES),
        ),
        "models.svg": Figure(
            "Four models on the same folds",
            f"Accuracy in each of {settings.repeats} repeats, every one the mean over its {settings.folds} "
            "folds, and the same folds for all four.",
            (_repeats(experiment),),
        ),
    }


def _of_loss(experiment: IrisExperiment, loss: str) -> list[MeanCurve]:
    return [curve for curve in experiment.curves if curve.loss == loss]


def _training(experiment: IrisExperiment, loss: str) -> Chart:
    series = tuple(_numbered(f"refit = {c.refit}", c.training) for c in _of_loss(experiment, loss))
    return Chart(_LOSSES[loss], "nets", "training loss (log scale)", series, y_scale="log")


def _accuracy(experiment: IrisExperiment, loss: str) -> Chart:
    series = [_numbered(f"refit = {c.refit}", c.accuracy, 100) for c in _of_loss(experiment, loss)]
    ends = (1.0, float(max(experiment.settings.nets, 2)))
    for name, style in ((DEFAULT, 3), (experiment.goal.best, 4)):
        level = 100 * experiment.score(name).mean
        series.append(Series(name, ends, (level, level), style=style))
    return Chart(_LOSSES[loss], "nets", "accuracy in %", tuple(series))


def _repeats(experiment: IrisExperiment) -> Chart:
    series = []
    for name in (DEFAULT, *PEERS):
        folds = np.array(experiment.score(name).folds).reshape(experiment.settings.repeats, -1)
        series.append(_numbered(name, tuple(folds.mean(axis=1)), 100))
    return Chart("", "repeat", "accuracy in %", tuple(series))


def _numbered(name: str, values: tuple[float, ...], factor: int = 1) -> Series:
    """Values, times a factor, at 1, 2, ... ."""
    numbers = tuple(float(k) for k in range(1, len(values) + 1))
    return Series(name, numbers, tuple(factor * float(value) for value in values))


# plain data


def plain(experiment: IrisExperiment) -> dict[str, Any]:
    """All numbers, for a script."""
    content = asdict(experiment)
    content["sizes"] = [{"nets": nets, "l2": l2, "folds": count} for nets, l2, count in experiment.sizes]
    return {
        "experiment": "neural",
        "holds": experiment.holds,
        "goal_met": experiment.goal.met,
        **content,
    }
