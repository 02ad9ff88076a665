"""Everything that a model file says of rows: scores, probabilities, predictions, points and reasons.

Rows are taken as they come, some at a time: what is said of a row does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.data.frame import Coded, Frame
from cardboost.model.base import Array, ModelKind, label_array, labels_of
from cardboost.model.card_text import class_names, number
from cardboost.model.ensemble import LOG_ODDS, OWN_LOSS, Ensemble, score_probabilities
from cardboost.model.files import AnyModel, Model
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.reasons import Reason, ensemble_reasons
from cardboost.model.scorecard import Scorecard


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of some rows.

    Attributes
    ----------
    task : {"binary", "multiclass", "regression"}
        What is predicted.
    classes : tuple or None
        The labels; None for a regressor.
    score : array of shape (n_rows,) or (n_rows, n_classes)
        Scores, one per class where there are more than two; log-odds of a scorecard.
    probability : array of shape (n_rows, n_classes) or None
        Probabilities of the classes; None where the loss has none.
    predicted : array of shape (n_rows,)
        Class labels, or numbers.
    points : array of int of shape (n_rows,) or None
        Totals of a scorecard; None for any other model.
    points_threshold : int or None
        The least total that means the second class.
    score_threshold : float
        Of two classes, the score above which the second one is predicted.
    """

    task: ModelKind
    classes: tuple[Any, ...] | None
    score: Array
    probability: Array | None
    predicted: NDArray[Any]
    points: NDArray[np.int64] | None = None
    points_threshold: int | None = None
    score_threshold: float = 0.0

    def __len__(self) -> int:
        return len(self.score)

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """The predictions of one model for several batches, at least one, as those of one table.

        Parameters
        ----------
        parts : sequence of Predictions
            Predictions of the batches.

        Returns
        -------
        Predictions
            Their rows, in this order.
        """

        def column(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            return None if values[0] is None else np.concatenate(values)

        columns = {name: column(name) for name in ("score", "probability", "predicted", "points")}
        return replace(parts[0], **columns)


def label_codes(labels: Any, classes: Sequence[Any]) -> NDArray[np.intp]:
    """The number of the class of every label.

    Numbers and text that look the same are the same label, and so are true, True, TRUE and 1 where the
    classes are true and false.

    Parameters
    ----------
    labels : Coded or array-like of shape (n_rows,)
        Labels, as a file has them.
    classes : sequence
        The labels of a model.

    Returns
    -------
    array of int of shape (n_rows,)
        Positions in ``classes``.

    Raises
    ------
    ValueError
        If a row has no label, or one that the model does not have.
    """
    if isinstance(labels, Coded):
        distinct, codes = list(labels.labels), labels.codes
    else:
        values = np.asarray(labels)
        missing = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
        found, inverse = np.unique(values[~missing], return_inverse=True)
        distinct, codes = found.tolist(), np.full(len(values), -1)
        codes[~missing] = inverse
    if (codes < 0).any():
        raise ValueError(f"{int((codes < 0).sum())} of {len(codes)} rows have no label.")
    known = {label_text(label): k for k, label in enumerate(classes)}
    truth = {name.lower(): k for name, k in known.items()}
    if truth.keys() <= {"true", "false"} and len(truth) == len(known):
        words = {"0": "false", "1": "true"}
        distinct = [words.get(label_text(label), str(label).lower()) for label in distinct]
        known = truth
    used = np.unique(codes).tolist()
    for code in used:
        if label_text(distinct[code]) not in known:
            shown, *names = class_names([distinct[code], *classes[:6]])
            more = ", ..." if len(classes) > 6 else ""
            raise ValueError(f"the label {shown} is none of the model's classes ({', '.join(names)}{more}).")
    positions = np.zeros(len(distinct), dtype=np.intp)
    positions[used] = [known[label_text(distinct[code])] for code in used]
    return positions[codes]


def label_text(label: Any) -> str:
    """A label as files write it."""
    if isinstance(label, bool | np.bool_):
        return str(bool(label)).lower()
    return label if isinstance(label, str) else number(label)


def model_predictions(model: Model, frame: Any, threads: int = 1) -> Predictions:
    """What a model says of rows.

    Everything that a scorecard says follows from the totals of points, so that equal totals are equal in all.

    Parameters
    ----------
    model : Model
        What :func:`cardboost.load_model` returns.
    frame : Frame, or table of shape (n_samples, n_features)
        Of a Frame the columns are found by their names; those that the model does not use may be absent.
    threads : int, default=1
        Number of threads. Results do not depend on it.

    Returns
    -------
    Predictions
        A row for each of the rows.
    """
    table = model_frame(model.ensemble, frame)
    card = scorecard_of(model)
    if card is not None:
        total = card.total(table, threads)
        second = total >= card.threshold
        score = card.log_odds(total)
        probability = score_probabilities("logistic", score)
        predicted = label_array(card.classes)[second.astype(np.intp)]
        return Predictions("binary", card.classes, score, probability, predicted, total, card.threshold)
    ensemble = model.ensemble
    score = ensemble.decision_function(table, threads)
    chance = ensemble.predict_proba(table, threads) if has_probabilities(ensemble) else None
    threshold = ensemble.threshold
    predicted = score if ensemble.classes is None else labels_of(score, ensemble.classes, threshold)
    return Predictions(ensemble.kind, ensemble.classes, score, chance, predicted, score_threshold=threshold)


def top_reasons(model: Model, frame: Any, most: int, threads: int = 1) -> list[list[Reason]]:
    """The features that speak most for the prediction of every row (:mod:`cardboost.model.reasons`).

    Parameters
    ----------
    model : Model
        A card or a scorecard.
    frame : Frame, or table of shape (n_samples, n_features)
        As for :func:`model_predictions`.
    most : int
        At most so many reasons per row.
    threads : int, default=1
        Number of threads. Results do not depend on it.

    Returns
    -------
    list of list of Reason
        For every row its reasons, the strongest first: in points of a scorecard, else in parts of the score.

    Raises
    ------
    ValueError
        If the model is no card.
    """
    table = model_frame(model.ensemble, frame)
    card = scorecard_of(model)
    if card is not None:
        return card.reasons(table, most, threads)
    if not isinstance(model.ensemble, Ensemble | MulticlassEnsemble):
        raise ValueError("reasons are for cards: other models do not have a line for every value.")
    return ensemble_reasons(model.ensemble, table, most, threads)


def scorecard_of(model: Model) -> Scorecard | None:
    """The model as a scorecard, or None where its weights are no points.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    Scorecard or None
        The card: what ``model.scorecard()`` returns, without the certificate.
    """
    ensemble = model.ensemble
    points = isinstance(ensemble, Ensemble) and ensemble.unit is not None and ensemble.loss in LOG_ODDS
    return model.scorecard() if points else None


def has_probabilities(ensemble: AnyModel) -> bool:
    """Whether the scores of a model mean probabilities."""
    if isinstance(ensemble, Ensemble | MulticlassEnsemble):
        return ensemble.parts[0].has_probabilities
    return ensemble.classes is not None and ensemble.loss != OWN_LOSS


def model_frame(ensemble: AnyModel, frame: Any) -> Any:
    """The columns of a Frame as a model expects them; those that it does not use count as missing.

    Parameters
    ----------
    ensemble : model
        The model.
    frame : Frame, or table of shape (n_samples, n_features)
        A Frame with the used columns in any order; any other table is returned as it is.

    Returns
    -------
    Frame or table
        All columns of the model.

    Raises
    ------
    ValueError
        If a column that the model uses is absent.
    """
    if not isinstance(frame, Frame):
        return frame
    names = [ensemble.feature_name(j) for j in range(ensemble.n_features)]
    for feature in ensemble.features_used:
        if names[feature] not in frame.data:
            raise ValueError(f"the column {names[feature]!r}, which the model uses, is absent.")
    absent = np.full(frame.n_rows, np.nan)
    return Frame({name: frame.data.get(name, absent) for name in names}, frame.n_rows)
