"""A run: fit, then the model, its card, its C and a log in one folder. Shared by `fit` and `demo`."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardboost.cli.config import CONFIG
from cardboost.cli.files import BadInput, write_together
from cardboost.cli.options import in_options
from cardboost.cli.progress import Interrupt, Progress
from cardboost.model.printable import printable, printable_json
from cardboost.problem.budget import Budget, Stage

if TYPE_CHECKING:
    from cardboost.boosting.cross_validation import Regularisation
    from cardboost.certificate.certificate import Certificate
    from cardboost.cli.rows import Rows, Target
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.files import Model
    from cardboost.model.multiclass import MulticlassEnsemble
    from cardboost.model.scorecard import Scorecard
    from cardboost.problem.trace import Record, Trace
    from cardboost.report.facts import Facts

MODEL, CARD, LOG = "model.json", "card.txt", "log.jsonl"
HEADER, VECTORS = "card.h", "test_vectors.h"
#: of a run
FILES = (MODEL, CARD, HEADER, VECTORS, LOG, CONFIG)
_MOST_LEFT_OUT = 12  # names on a card
USUAL_ENDINGS = ("column limit", "optimal", "exhausted")
#: forms of C, the smaller one first, with what is said of them
_C = {
    "c-int16": f"{HEADER} is C without floating point (c-int16), proven to decide as the model does.",
    "c": f"{HEADER} is C that takes floats (c): for whole numbers (c-int16) no proof was found that they "
    "decide as the model does.",
}


@dataclass(frozen=True)
class Headers:
    """The model as C, by the names of the files: None for those that cannot be."""

    format: str | None
    remark: str
    files: dict[str, bytes | None]

    @classmethod
    def of(cls, ensemble: Ensemble | MulticlassEnsemble | Scorecard) -> Headers:
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

    ensemble: Ensemble | MulticlassEnsemble
    certificates: tuple[Certificate, ...]  # one, or one per class
    traces: tuple[Trace, ...]  # likewise
    parameters: dict[str, Any]
    regularisation: Regularisation
    data: dict[str, Any]
    scores: dict[str, Facts]
    seconds: float
    interrupted: bool
    scorecard: Scorecard | None = None  # where whole points were asked for
    config: str | None = None  # the options of the command, where it has such a file

    @property
    def card(self) -> str:
        title = card_title(self.data, self.ensemble)
        if self.scorecard is not None:
            text = self.scorecard.to_text(title)
        else:
            text = model_card(self.ensemble, self.certificates, title)
        return with_left_out(text, self.data)

    def result(self) -> dict[str, Any]:
        """What came out, as plain data: the last line of the log, and what --json prints."""
        proofs = [_proof(certificate) for certificate in self.certificates]
        classes = list(self.ensemble.classes or ())
        one = len(proofs) == 1
        used = [self.ensemble.feature_name(j) for j in self.ensemble.features_used]
        points, point = None, getattr(self.ensemble, "operating_point", None)
        if self.scorecard is not None:
            card = self.scorecard
            points = {
                "unit": card.ensemble.unit,
                "start": card.start,
                "lowest": card.lowest,
                "highest": card.highest,
                "threshold": card.threshold,
                "continuous_objective": self.certificates[0].continuous_objective,
                "share_given_up": self.certificates[0].points_cost,
            }
        return {
            "task": self.ensemble.kind,
            "terms": self.ensemble.n_terms,
            "points": points,
            "threshold": point.to_dict() if point is not None else None,
            "regularisation": self.regularisation.to_dict(),
            "features_used": used,
            "classes": classes,
            **(proofs[0] if one else {"certificates": dict(zip(map(str, classes), proofs, strict=True))}),
            "scores": {name: score_values(facts) for name, facts in self.scores.items()},
            "stopped_because": self.ending.message,
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 3),
        }

    def log(self) -> str:
        """One JSON object per line: the start, every round, the end."""
        from cardboost import __version__

        lines: list[dict[str, Any]] = [
            {"event": "start", "cardboost": __version__, "data": self.data, "parameters": self.parameters}
        ]
        for k, trace in enumerate(self.traces):
            part = {"class": (self.ensemble.classes or ())[k]} if len(self.traces) > 1 else {}
            lines += [{"event": "round", **part, **_round(record)} for record in trace]
        lines.append({"event": "end", **self.result()})
        text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
        return printable_json(text)

    @property
    def ending(self) -> Trace:
        """The rounds that end in a way worth telling; of several classes the first of these."""
        return next((trace for trace in self.traces if trace.status not in USUAL_ENDINGS), self.traces[0])

    @cached_property
    def headers(self) -> Headers:
        return Headers.of(self.ensemble if self.scorecard is None else self.scorecard)

    def contents(self) -> dict[str, bytes | None]:
        """The files of a run, by name, one for each of ``FILES``. None: there is none."""
        from cardboost.model.files import model_bytes

        training: dict[str, Any] = {
            "parameters": self.parameters, "regularisation": self.regularisation.to_dict(), "data": self.data
        }  # fmt: skip
        if self.scorecard is not None:
            training["scorecard"] = self.scorecard.notes()
        return {
            MODEL: model_bytes(self.ensemble, certificate_content(self.certificates), training),
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


def _round(record: Record) -> dict[str, Any]:
    """A round of the log."""
    return {
        "columns": record.n_columns,
        "terms": record.n_terms,
        "objective": record.objective,
        "lower_bound": record.lower_bound if math.isfinite(record.lower_bound) else None,
        "edge": record.edge if math.isfinite(record.edge) else None,
        "seconds": round(record.seconds, 6),
    }


def _proof(certificate: Certificate) -> dict[str, Any]:
    """A certificate in numbers."""
    keys = ("scope", "lower_bound", "gap", "relative_gap", "guarantee")
    return {
        "objective": certificate.objective,
        "null_objective": certificate.null_objective,
        "status": certificate.status,
        "bounds": [{key: getattr(bound, key) for key in keys} for bound in certificate.bounds],
        "scope": certificate.scope,
        "lower_bound": certificate.lower_bound,
        "guarantee": certificate.guarantee,
    }


def certificate_content(certificates: Sequence[Certificate]) -> Any:
    """What a model file holds of certificates: one, or a list of one per class."""
    contents = [certificate.to_dict() for certificate in certificates]
    return contents[0] if len(contents) == 1 else contents


def model_card(ensemble: Any, certificates: Sequence[Certificate], title: str) -> str:
    """The card of a model with the lines of its certificates."""
    from cardboost.model.card import render_card

    lines = [certificate.lines() for certificate in certificates]
    return render_card(ensemble, title=title, certificate_lines=lines[0] if len(lines) == 1 else lines)


def card_title(data: Any, ensemble: Any) -> str:
    """What a card is for: the target and its positive class; ``data``: what was noted of them."""
    target = data.get("target") if isinstance(data, dict) else None
    title = "Scorecard" if target is None else f"Scorecard for {target}"
    return f"{title} = {ensemble.classes[1]}" if ensemble.kind == "binary" else title


def with_left_out(card: str, data: Any) -> str:
    """A card with a line at its end for the columns that were left out by themselves."""
    left_out = data.get("left_out") if isinstance(data, dict) else None
    if not isinstance(left_out, dict) or not left_out:
        return card
    names = [printable(name) for name in left_out]
    more = f" and {len(names) - _MOST_LEFT_OUT} more" if len(names) > _MOST_LEFT_OUT else ""
    sentence = f"Left out of the table: {', '.join(names[:_MOST_LEFT_OUT])}{more}."
    return card.rstrip("\n") + "\n\n" + "\n".join(textwrap.wrap(sentence, 78)) + "\n"


def fit_rows(
    rows: Rows,
    target: Target,
    options: dict[str, Any],
    data: dict[str, Any],
    test: Rows | None = None,
    interrupt: Interrupt | None = None,
    quiet: bool = False,
    points: dict[str, Any] | None = None,
    budget: Budget | None = None,
) -> Run:
    """Train an estimator with these parameters; a wish to stop is granted after the first column.

    ``points``: options of ``scorecard``, if the model is to be one. ``budget``: what is left of the time.
    """
    from cardboost import CardBoostClassifier, CardBoostRegressor, FitCallback
    from cardboost.data.labels import class_factors
    from cardboost.estimators.base import certificates_of
    from cardboost.model.base import label_array
    from cardboost.model.files import Model, parameters_to_json

    kind = CardBoostRegressor if target.task == "regression" else CardBoostClassifier
    estimator = kind(**options)
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
        following = Following()
        time_to_fit = budget if points is None else budget.within(Stage.FIT)
        following.budget = replace(time_to_fit, stopped=following.stopped)
        estimator.fit(rows.table, rows.labels(target), rows.weight, callback=following)
        ensemble, certificates = estimator.ensemble_, certificates_of(estimator)
        scorecard = None
        if points is not None:
            left = max(budget.left, 1e-9) if budget.limited else None
            scorecard = estimator.scorecard(**points, time_limit=left)
            ensemble, certificates = scorecard.ensemble, [scorecard.certificate]
        seconds = budget.elapsed - began
        for part, certificate in zip(ensemble.parts, certificates, strict=True):
            for bound in reversed(certificate.bounds):  # the headline comes last
                n_terms, objective = part.n_terms, certificate.objective
                progress.end(bound.scope, n_terms, objective, bound.lower_bound, bound.guarantee)
    except (ValueError, TypeError) as error:
        raise BadInput(in_options(str(error))) from None
    finally:
        progress.close()
    if target.task == "multiclass" and options.get("class_weight") is not None:
        labels = label_array(target.classes or ())
        factors = class_factors(options["class_weight"], labels, rows.target, rows.weight)
        data = {**data, "class_weight": factors.tolist()}  # certificates are about rows with these weights
    if target.task == "binary":
        ensemble, certificates = relabelled(ensemble, certificates[0], target)
    if scorecard is not None:
        scorecard = replace(scorecard, ensemble=ensemble, certificate=certificates[0])
    parameters = parameters_to_json(estimator)
    notes = {} if scorecard is None else {"scorecard": scorecard.notes()}
    model = Model(ensemble, None, notes)
    parts = {"training": rows} | ({} if test is None else {"test": test})
    scores = {name: model_facts(model, part) for name, part in parts.items()}
    interrupted = interrupt is not None and interrupt.asked
    traces = estimator.trace_ if isinstance(estimator.trace_, list) else [estimator.trace_]
    return Run(
        ensemble,
        tuple(certificates),
        tuple(traces),
        parameters,
        estimator.regularisation_,
        data,
        scores,
        seconds,
        interrupted,
        scorecard,
    )


def relabelled(ensemble: Any, certificate: Certificate, target: Target) -> tuple[Any, list[Certificate]]:
    """A model of two classes with the labels of the file in place of 0 and 1."""
    assert target.classes is not None
    return replace(ensemble, classes=target.classes), [replace(certificate, positive=target.classes[1])]


def model_facts(model: Model, rows: Rows, **options: Any) -> Facts:
    """What is known of a model's predictions on rows; without intervals unless they are asked for."""
    from cardboost.model.predictions import model_predictions
    from cardboost.report.facts import evaluate_predictions

    weight = rows.weight
    if weight is not None:  # times a power of two, so that the sum of large ones is a number
        weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    options = {"n_bootstrap": 0, **options}
    predictions = model_predictions(model, rows.table)
    return evaluate_predictions(predictions, rows.target, sample_weight=weight, **options)


def _columns_at_most(estimator: Any) -> int:
    if estimator.reselect or (estimator.max_terms is None and not estimator.l0):
        return int(estimator.max_iter)
    terms = 0 if estimator.max_terms in (None, "auto") else estimator.max_terms
    return int(min(estimator.max_iter, max(estimator.hot_start, terms)))


def certificate_lines(certificate: Certificate) -> list[str]:
    """The certificate in words, wrapped for a terminal."""
    lines: list[str] = []
    for line in certificate.lines():
        label = re.match(r"\w+ {2,}", line)  # what follows is a column
        indent = " " * (2 + (2 if label is None else label.end()))
        lines += textwrap.wrap(line, 78, initial_indent="  ", subsequent_indent=indent)
    return lines


def files_lines(run: Run, written: Sequence[str]) -> list[str]:
    """The files that a run has written, and which form of C is among them."""
    remark = textwrap.wrap(run.headers.remark, 78)
    return ["", "The files of this run:", *(f"  {path}" for path in written), "", *remark]


_SCORES = ("accuracy", "auc", "log_loss", "rmse", "mae", "r2")
_SHOWN_SCORES = {
    "accuracy": lambda value: f"accuracy {100 * value:.1f} %",
    "auc": lambda value: f"AUC {value:.4f}",
    "log_loss": lambda value: f"log loss {value:.4f}",
    "r2": lambda value: f"R2 {value:.4f}",
    "rmse": lambda value: f"RMSE {value:.4g}",
    "mae": lambda value: f"MAE {value:.4g}",
}


def score_values(facts: Facts) -> dict[str, float | None]:
    """The measures that a run reports."""
    return {name: facts.measures[name].value for name in _SCORES if name in facts.measures}


def score_line(name: str, facts: Facts) -> str:
    values = score_values(facts)
    shown = [show(values[key]) for key, show in _SHOWN_SCORES.items() if values.get(key) is not None]
    return f"{name:<10} {'   '.join(shown)}"
