"""A linear model as one page of plain text: the weights that are not zero, the heaviest on top."""

from __future__ import annotations

from collections.abc import Sequence

from cardboost.model.card_text import class_names, paragraph, wrapped
from cardboost.model.linear import LinearModel, LinearScore

_PROBABILITY = "probability of {} = 1 / (1 + exp(-score))"


def render_linear(
    model: LinearModel, *, title: str | None = None, certificate_lines: Sequence[str] = (), width: int = 78
) -> str:
    """The card as text. A weight is what a feature adds to the score for each of its units."""
    used, n = len(model.features_used), model.n_features
    facts = f"{used} of {n} feature{'' if n == 1 else 's'}, {model.loss} loss"
    heading = wrapped(title if title else "Linear model", 0, width)
    blocks = [[*heading, "=" * width, *wrapped(facts, 0, width)]]
    if len(model.scores) == 1:
        blocks.append(_rows(model, model.scores[0], width))
    else:
        assert model.classes is not None
        for name, score in zip(class_names(model.classes), model.scores, strict=True):
            blocks.append([*wrapped(f"Class {name}", 0, width), *_rows(model, score, width)])
    blocks.append(["How to read this card", *paragraph(_reading(model), width)])
    if certificate_lines:
        blocks.append(["Certificate", *paragraph(certificate_lines, width)])
    return "\n".join(line.rstrip() for block in blocks for line in [*block, ""])


def _rows(model: LinearModel, score: LinearScore, width: int) -> list[str]:
    pairs = sorted(zip(score.features, score.weights, strict=True), key=lambda pair: -abs(pair[1]))
    lines = [("intercept", score.intercept)] if score.intercept or not pairs else []
    lines += [(model.feature_name(j), weight) for j, weight in pairs]
    room = min(max(len(name) for name, _ in lines), width - 18)
    rows = []
    for name, weight in lines:
        *first, last = wrapped(name, 4, 4 + room) or [""]
        rows += [*first, f"{last:<{4 + room}}  {weight:>+12.6g}"]
    return rows


def _reading(model: LinearModel) -> list[str]:
    intercept = "intercept + " if any(own.intercept for own in model.scores) else ""
    sentences = [f"score = {intercept}the sum of weight times feature"]
    if model.classes is None:
        return [*sentences, "the score is the prediction"]
    names = class_names(model.classes)
    if len(model.scores) == 1:
        sentences.append(f"score above 0 means class {names[1]}, otherwise class {names[0]}")
        return [*sentences, _PROBABILITY.format(names[1])]
    sentences.append("the class with the highest score is predicted; of equal scores, the first")
    if model.loss == "softmax":
        return [*sentences, "probability of a class = exp(its score) / the sum of exp(score) of all"]
    sentences.append("share of a class = 1 / (1 + exp(-score))")
    return [*sentences, "probability of a class = its share divided by the sum of all shares"]
