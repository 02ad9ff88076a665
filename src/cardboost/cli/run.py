"""A run: fit, then the model, its card, its C and a log in one folder. Shared by `fit` and `demo`."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cardboost.cli.config import CONFIG
from cardboost.cli.files import BadInput, write_together
from cardboost.cli.options import in_options
from cardboost.cli.progress import Interrupt, Progress
from cardboost.data.frame import Array, Frame
from cardboost.model.printable import printable_json
from cardboost.problem.budget import Budget, Stage

if TYPE_CHECKING:
    from cardboost.certificate.certificate import Certificate
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.scorecard import Scorecard
    from cardboost.problem.trace import Trace

MODEL, CARD, LOG = "model.json", "card.txt", "log.jsonl"
HEADER, VECTORS = "card.h", "test_vectors.h"
#: forms of C, the smaller one first, with what is said of them
_C = {
    "c-int16": f"{HEADER} is C without floating point (c-int16), proven to decide as the model does.",
    "c": f"{HEADER} is C that takes floats (c): for whole numbers (c-int16) no proof was found that they "
    "decide as the model does.",
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to train or to test on."""

    table: Frame
    positive: NDArray[np.bool_]
    weight: Array | None = None

    def take(self, rows: NDArray[np.bool_]) -> Rows:
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.table.take(rows), self.positive[rows], weight)


@dataclass(frozen=True)
class Headers:
    """The model as C, by the names of the files: None for those that cannot be."""

    format: str | None
    remark: str
    files: dict[str, bytes | None]

    @classmethod
    def of(cls, ensemble: Ensemble) -> Headers:
        """Whole numbers where they are proven to decide as the model does, else floats."""
        from cardboost.export import FORMATS

        why = ""
        for name, remark in _C.items():
            try:
                found = FORMATS[name](ensemble, HEADER, {"test_vectors": VECTORS})
            except ValueError as error:
                why = str(error)
                continue
            texts = {file: text.encode() if isinstance(text, str) else text for file, text in found}
            return cls(name, remark, {HEADER: texts[HEADER], VECTORS: texts[VECTORS]})
        return cls(None, f"There is no {HEADER}: {why}", {HEADER: None, VECTORS: None})


@dataclass(frozen=True, eq=False)
class Run:
    """A fitted model with everything that the files of a run say."""

    ensemble: Ensemble
    certificate: Certificate
    trace: Trace
    parameters: dict[str, Any]
    data: dict[str, Any]
    scores: dict[str, dict[str, float | None]]
    seconds: float
    interrupted: bool
    scorecard: Scorecard | None = None  # where whole points were asked for
    config: str | None = None  # the options of the command, where it has such a file

    @property
    def card(self) -> str:
        from cardboost.model.card import render_card

        title = card_title(self.data, self.ensemble)
        if self.scorecard is not None:
            return self.scorecard.to_text(title)
        return render_card(self.ensemble, title=title, certificate_lines=self.certificate.lines())

    def result(self) -> dict[str, Any]:
        """What came out, as plain data: the last line of the log, and what --json prints."""
        bounds = [
            {
                "scope": own.scope,
                "lower_bound": own.lower_bound,
                "gap": own.gap,
                "relative_gap": own.relative_gap,
                "guarantee": own.guarantee,
            }
            for own in self.certificate.bounds
        ]
        used = [self.ensemble.feature_name(j) for j in self.ensemble.features_used]
        points = None
        if self.scorecard is not None:
            own = self.scorecard
            points = {
                "unit": self.ensemble.unit,
                "start": own.start,
                "lowest": own.lowest,
                "highest": own.highest,
                "threshold": own.threshold,
                "continuous_objective": self.certificate.continuous_objective,
                "share_given_up": self.certificate.points_cost,
            }
        return {
            "terms": self.ensemble.n_terms,
            "points": points,
            "features_used": used,
            "classes": list(self.ensemble.classes or ()),
            "objective": self.certificate.objective,
            "null_objective": self.certificate.null_objective,
            "status": self.certificate.status,
            "bounds": bounds,
            "scope": self.certificate.scope,
            "lower_bound": self.certificate.lower_bound,
            "guarantee": self.certificate.guarantee,
            "scores": self.scores,
            "stopped_because": self.trace.message,
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 3),
        }

    def log(self) -> str:
        """One JSON object per line: the start, every round, the end."""
        from cardboost import __version__

        lines: list[dict[str, Any]] = [
            {"event": "start", "cardboost": __version__, "data": self.data, "parameters": self.parameters}
        ]
        for record in self.trace:
            bound = record.lower_bound if math.isfinite(record.lower_bound) else None
            edge = record.edge if math.isfinite(record.edge) else None
            lines.append(
                {
                    "event": "round",
                    "columns": record.n_columns,
                    "terms": record.n_terms,
                    "objective": record.objective,
                    "lower_bound": bound,
                    "edge": edge,
                    "seconds": round(record.seconds, 6),
                }
            )
        lines.append({"event": "end", **self.result()})
        text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
        return printable_json(text)

    @cached_property
    def headers(self) -> Headers:
        return Headers.of(self.ensemble)

    def contents(self) -> dict[str, bytes | None]:
        """The files of a run, by name: the one place that says which there are. None: there is none."""
        from cardboost.model.files import model_bytes

        training: dict[str, Any] = {"parameters": self.parameters, "data": self.data}
        if self.scorecard is not None:
            training["scorecard"] = self.scorecard.notes()
        return {
            MODEL: model_bytes(self.ensemble, self.certificate.to_dict(), training),
            CARD: self.card.encode(),
            **self.headers.files,
            LOG: self.log().encode(),
            CONFIG: None if self.config is None else self.config.encode(),
        }

    def write(self, folder: Path) -> list[Path]:
        """All files of the run, each of them whole or as it was before."""
        try:
            contents = self.contents()
        except ValueError as error:
            raise BadInput(f"cannot write into {str(folder)!r}: {error}.") from None
        return write_together(folder, contents)


def card_title(data: Any, ensemble: Ensemble) -> str:
    """What a card is for: the target and its positive class; ``data``: what was noted of them."""
    target = data.get("target") if isinstance(data, dict) else None
    title = "Scorecard" if target is None else f"Scorecard for {target}"
    return title if ensemble.classes is None else f"{title} = {ensemble.classes[1]}"


def fit_rows(
    rows: Rows,
    classes: tuple[Any, Any],
    options: dict[str, Any],
    data: dict[str, Any],
    test: Rows | None = None,
    interrupt: Interrupt | None = None,
    quiet: bool = False,
    points: dict[str, Any] | None = None,
    budget: Budget | None = None,
) -> Run:
    """Train with these options of the classifier; a wish to stop is granted after the first column.

    ``points``: options of ``scorecard``, if the model is to be one. ``budget``: what is left of the time.
    """
    from cardboost import CardBoostClassifier, FitCallback
    from cardboost.model.files import parameters_to_json

    estimator = CardBoostClassifier(**options)
    selects = estimator.max_terms is not None or estimator.l0 > 0
    budget = Budget.of(estimator.time_limit) if budget is None else budget
    seconds_left = budget.left if budget.limited else None
    progress = Progress(_columns_at_most(estimator), quiet, selects, seconds_left, interrupt)

    class Following(FitCallback):
        """Shows how far the fit is, and ends it when somebody asks to."""

        def after_round(self, record: Any) -> bool:
            progress.update(record)
            enough = self.stopped() and record.n_columns > 0
            if enough and selects:
                progress.choose(record)
            return enough

        def proving(self, nodes: int, open_nodes: int, lower_bound: float, objective: float) -> None:
            progress.prove(nodes, lower_bound, objective)

        def stopped(self) -> bool:
            return interrupt is not None and interrupt.asked

    began = budget.elapsed
    try:
        progress.begin("binning")
        # labels go in as 0 and 1, so that either class can be the positive one
        labels = rows.positive.astype(np.int64)
        following = Following()
        time_to_fit = budget if points is None else budget.within(Stage.FIT)
        following.budget = replace(time_to_fit, stopped=following.stopped)
        estimator.fit(rows.table, labels, rows.weight, callback=following)
        ensemble, certificate = estimator.ensemble_, estimator.certificate_
        scorecard = None
        if points is not None:
            left = max(budget.left, 1e-9) if budget.limited else None
            scorecard = estimator.scorecard(**points, time_limit=left)
            ensemble, certificate = scorecard.ensemble, scorecard.certificate
        seconds = budget.elapsed - began
        for own in reversed(certificate.bounds):  # the headline comes last
            progress.end(own.scope, ensemble.n_terms, certificate.objective, own.lower_bound, own.guarantee)
    except (ValueError, TypeError) as error:
        raise BadInput(in_options(str(error))) from None
    finally:
        progress.close()
    ensemble = replace(ensemble, classes=classes)
    certificate = replace(certificate, positive=classes[1])
    if scorecard is not None:
        scorecard = replace(scorecard, ensemble=ensemble, certificate=certificate)
    parameters = parameters_to_json(estimator)
    scores = {"training": score(ensemble, rows)}
    if test is not None:
        scores["test"] = score(ensemble, test)
    interrupted = interrupt is not None and interrupt.asked
    return Run(
        ensemble, certificate, estimator.trace_, parameters, data, scores, seconds, interrupted, scorecard
    )


def _columns_at_most(estimator: Any) -> int:
    if estimator.reselect or (estimator.max_terms is None and not estimator.l0):
        return int(estimator.max_iter)
    return int(min(estimator.max_iter, max(estimator.hot_start, estimator.max_terms or 0)))


def certificate_lines(certificate: Certificate) -> list[str]:
    """The certificate in words, wrapped for a terminal."""
    lines: list[str] = []
    for line in certificate.lines():
        lines += textwrap.wrap(line, 78, initial_indent="  ", subsequent_indent=" " * 15)
    return lines


def score(ensemble: Ensemble, rows: Rows) -> dict[str, float | None]:
    """Accuracy, area under the ROC curve (None where one class is absent) and mean log loss (None where
    scores are no probabilities)."""
    from sklearn.metrics import roc_auc_score

    points = ensemble.decision_function(rows.table)
    two = rows.positive.any() and not rows.positive.all()
    weight = None if rows.weight is None else _near_one(rows.weight)
    auc = float(roc_auc_score(rows.positive, points, sample_weight=weight)) if two else None
    log_loss = None
    if ensemble.has_probabilities:
        chance = ensemble.predict_proba(rows.table)
        own = np.where(rows.positive, chance[:, 1], chance[:, 0])
        log_loss = float(np.average(-np.log(np.maximum(own, 1e-300)), weights=weight))
    accuracy = float(np.average((points > 0) == rows.positive, weights=weight))
    return {"accuracy": accuracy, "auc": auc, "log_loss": log_loss}


def _near_one(weight: Array) -> Array:
    """Weights times a power of two, so that their sum is a number."""
    return np.ldexp(weight, -np.frexp(weight.max())[1])


def files_lines(run: Run, written: Sequence[str]) -> list[str]:
    """The files that a run has written, and which form of C is among them."""
    remark = textwrap.wrap(run.headers.remark, 78)
    return ["", "The files of this run:", *(f"  {path}" for path in written), "", *remark, "", "Next:"]


def score_line(name: str, scores: dict[str, float | None]) -> str:
    auc = "" if scores["auc"] is None else f"   AUC {scores['auc']:.4f}"
    accuracy = 100 * (scores["accuracy"] or 0.0)
    log_loss = "" if scores["log_loss"] is None else f"   log loss {scores['log_loss']:.4f}"
    return f"{name:<10} accuracy {accuracy:.1f} %{auc}{log_loss}"


def kept_rows(positive: NDArray[np.bool_], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which rows stay in training when a fraction of each class is held out. Equal seeds, equal rows."""
    random = np.random.default_rng(seed)
    keep = np.ones(len(positive), dtype=bool)
    for own in (np.flatnonzero(~positive), np.flatnonzero(positive)):
        keep[random.permutation(own)[: round(fraction * len(own))]] = False
    return keep
