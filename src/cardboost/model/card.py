"""The card: a model as one page of plain text that a person can read, check and add up by hand."""

from __future__ import annotations

from collections.abc import Sequence

from cardboost.model import card_text
from cardboost.model.base import TableModel
from cardboost.model.card_text import INDENT, AlignedNumbers, class_names, paragraph, wrapped
from cardboost.model.ensemble import LOG_ODDS, Ensemble
from cardboost.model.linear import LinearModel, LinearScore
from cardboost.model.multiclass import MulticlassEnsemble
from cardboost.model.terms import StepFunction
from cardboost.problem.losses import MARGIN_LOSSES

_COLUMN = 28  # characters for intervals and labels, where a page has them
_NARROWEST_LIST = 20  # of labels, for the sake of bars
_LONGEST_BAR = 10  # characters on one side of the axis
_SHORTEST_BAR = 3  # with less room than this there are no bars
_PROBABILITY = {
    "logistic": "1 / (1 + exp(-score))",
    "exponential": "1 / (1 + exp(-2 score))",
    "squared_hinge": "(1 + score) / 2, within 0 and 1",
}
_STEEPNESS = LOG_ODDS | {"squared_hinge": 4.0}  # by which scores reach sure probabilities
_HOW_TO_READ = "How to read this card"


def render_card(
    ensemble: Ensemble | MulticlassEnsemble | LinearModel,
    *,
    title: str | None = None,
    certificate_lines: Sequence[str] | Sequence[Sequence[str]] = (),
    width: int = 78,
) -> str:
    """The card as text, with the features that move the score most on top.

    For more than two classes there is one section per class; ``certificate_lines`` may then be one list of
    lines per class. In a linear model a weight is what a feature adds to the score for each of its units.
    """
    lines = [line for line in certificate_lines if isinstance(line, str)]
    if isinstance(ensemble, LinearModel):
        used = card_text.features_of(ensemble)
        blocks = _linear_blocks(ensemble, width)
        return card_text.page(title or "Linear model", f"{used}, {ensemble.loss} loss", blocks, lines, width)
    card_text.check_width(width)
    facts = f"{card_text.size_of(ensemble)}, {ensemble.loss} loss"
    if isinstance(ensemble, MulticlassEnsemble):
        facts = f"{len(ensemble.classes)} classes, {facts}"
        per_class = [lines for lines in certificate_lines if not isinstance(lines, str)]
        blocks = _sections(ensemble, per_class, width)
    else:
        sheet = _Sheet([ensemble], width)
        blocks = [*sheet.features(ensemble), _reading(ensemble, sheet, width)]
    return card_text.page(title or "Scorecard", facts, blocks, lines, width)


# ------------------------------------------------------------------------------------------------ parts


def _sections(
    ensemble: MulticlassEnsemble, certificate_lines: Sequence[Sequence[str]], width: int
) -> list[list[str]]:
    """How to read the card, then one section per class."""
    sheet = _Sheet(ensemble.ensembles, width)
    sentences = [
        "every class has its own section and its own score",
        "score of a class = intercept + the value of one line per feature of its section",
        *sheet.meanings(),
        *_decision(ensemble),
    ]
    table = _probabilities(ensemble, width, "share")
    blocks = [[_HOW_TO_READ, *paragraph(sentences, width), *table]]
    for k, (name, member) in enumerate(zip(class_names(ensemble.classes), ensemble.ensembles, strict=True)):
        facts = wrapped(f"{card_text.size_of(member)}, {sheet.span(member)}", 0, width)
        blocks.append([*wrapped(f"Class {name}", 0, width), "-" * width, *facts])
        blocks += sheet.features(member)
        blocks += [wrapped(sentence, 0, width) for sentence in sheet.missing(member)]
        if k < len(certificate_lines) and certificate_lines[k]:
            proof = paragraph(certificate_lines[k], width)
            blocks.append([*wrapped(f"Certificate for {name}", 0, width), *proof])
    return blocks


class _Sheet:
    """The rows of some ensembles, with the values of the whole card in one column."""

    def __init__(self, ensembles: Sequence[Ensemble], width: int) -> None:
        self._width = width
        steps = [(ensemble, step) for ensemble in ensembles for step in ensemble.step_functions()]
        values = [level for _, step in steps for level in (*step.levels, step.missing)]
        self._largest = max(map(abs, values), default=0.0)
        self.points = AlignedNumbers(values, [ensemble.intercept for ensemble in ensembles])
        room = width - INDENT - 2 - self.points.width
        with_bars = room - 2 - (2 * _SHORTEST_BAR + 1)
        intervals = {
            step: card_text.interval_rows(step, card_text.notes_missing(ensemble, step.feature))
            for ensemble, step in steps
            if step.categories is None
        }
        lengths = [len(row.text) for rows in intervals.values() for row in rows]
        lengths += [_NARROWEST_LIST] if any(step.categories for _, step in steps) else []
        bars = max(lengths, default=0) <= with_bars
        most = with_bars if bars else room
        list_room = min(most, max(_COLUMN, room - 3 - 2 * _LONGEST_BAR))

        self._words: set[str] = set()
        self._blocks: dict[StepFunction, list[tuple[tuple[str, ...], float]]] = {}
        for ensemble, step in steps:
            if step.categories is None:
                rows = card_text.fit_notes(intervals[step], most)
            else:
                labels, noted = (
                    ensemble.categories[step.feature],
                    card_text.notes_missing(ensemble, step.feature),
                )
                rows = card_text.label_rows(step, labels, self.points, list_room, noted)
            self._words.update(word for row in rows for word in row.words)
            self._blocks[step] = [(row.broken(most), row.level) for row in rows]
        used = [len(line) for block in self._blocks.values() for lines, _ in block for line in lines]
        self._column = max([*used, min(_COLUMN, with_bars)])
        self._half = min(_LONGEST_BAR, (room - self._column - 3) // 2) if bars else 0

    def features(self, ensemble: Ensemble) -> list[list[str]]:
        """The intercept and one block per feature."""
        blocks = [[f"{'intercept':<{INDENT + self._column}}  {self.points.show(ensemble.intercept)}"]]
        steps = _by_spread(ensemble)
        if not steps:
            blocks.append(["No feature is used: every row gets the intercept."])
        return blocks + [self._block(step) for step in steps]

    def _block(self, step: StepFunction) -> list[str]:
        rows = [
            (lines, self.points.show(level), card_text.bar(level, self._largest, self._half))
            for lines, level in self._blocks[step]
        ]
        return card_text.feature_block(step.name, rows, self._column, self._width)

    def missing(self, ensemble: Ensemble) -> list[str]:
        """What missing values add where the rows do not say so."""
        values = [(step.feature, self.points.text(step.missing)) for step in _by_spread(ensemble)]
        return card_text.missing_sentences(ensemble, values)

    def meanings(self) -> list[str]:
        """What the words mean that occur in the rows."""
        return [text for word, text in card_text.MEANING.items() if word in self._words]

    def span(self, ensemble: Ensemble) -> str:
        """The lowest and the highest score, with the decimals of the card."""
        lowest, highest = map(self.points.text, _range(ensemble))
        thing = "score"
        if ensemble.classes is None:
            thing, lowest, highest = "prediction", lowest.lstrip("+"), highest.lstrip("+")
        return f"{thing}s run from {lowest} to {highest}" if ensemble.terms else f"every {thing} is {lowest}"


def _by_spread(ensemble: Ensemble) -> list[StepFunction]:
    """The features in the order of the card: those that move the score most on top."""
    return sorted(ensemble.step_functions(), key=lambda step: (-step.spread, step.feature))


def _reading(ensemble: Ensemble, sheet: _Sheet, width: int) -> list[str]:
    """How to get from the card to a class and a probability, or to a prediction."""
    regressor = ensemble.classes is None
    sentences = [
        f"{'prediction' if regressor else 'score'} = intercept + the value of one line per feature",
        *(["all values are in the units of the target"] if regressor else []),
        *sheet.meanings(),
        *_decision(ensemble),
        sheet.span(ensemble),
        *sheet.missing(ensemble),
    ]
    table = [] if regressor else _probabilities(ensemble, width, "probability")
    return [_HOW_TO_READ, *paragraph(sentences, width), *table]


def _decision(model: TableModel) -> list[str]:
    """How scores become a class and probabilities, in sentences; none for a regressor."""
    if model.classes is None:
        return []
    names, formula = class_names(model.classes), _PROBABILITY.get(model.loss)
    if len(model.parts) == 1:
        point = getattr(model, "operating_point", None)
        chosen = "" if point is None else f" ({point})"
        sentences = [
            f"score above {model.threshold:.6g} means class {names[1]}, otherwise class {names[0]}{chosen}"
        ]
        return [*sentences, f"probability of {names[1]} = {formula}"] if formula else sentences
    sentences = ["the class with the highest score is predicted; of equal scores, the first"]
    if model.loss == "softmax":
        return [*sentences, "probability of a class = exp(its score) / the sum of exp(score) of all"]
    shares = "probability of a class = its share divided by the sum of all shares"
    return [*sentences, f"share of a class = {formula}", shares] if formula else sentences


def _range(ensemble: Ensemble) -> tuple[float, float]:
    """The lowest and the highest score."""
    steps = ensemble.step_functions()
    lowest = ensemble.intercept + sum(min(*step.levels, step.missing) for step in steps)
    highest = ensemble.intercept + sum(max(*step.levels, step.missing) for step in steps)
    return lowest, highest


def _probabilities(ensemble: Ensemble | MulticlassEnsemble, width: int, name: str) -> list[str]:
    """Scores and what they mean, in two lines below an empty one; none for a loss without probabilities."""
    if ensemble.loss not in _PROBABILITY:
        return []
    factor = _STEEPNESS[ensemble.loss]
    reach = min(max(abs(end) for part in ensemble.parts for end in _range(part)) * factor, 4.0)
    step_size = next(s for s in (0.05, 0.1, 0.2, 0.5, 1.0) if 4 * s >= reach) / factor
    count = min(4, (width - 13 - 7) // 14)  # scores on each side of 0, seven characters each
    scores = [k * step_size for k in range(-count, count + 1)]
    decimals = max(len(f"{score:.3f}".rstrip("0").split(".")[1]) for score in scores)
    shares = MARGIN_LOSSES[ensemble.loss].probability(scores)
    return [
        "",
        "  score      " + "".join(f"{s:>+7.{decimals}f}" if s else f"{0:>7}" for s in scores),
        f"  {name:<11}" + "".join(f"{100 * p:>6.1f}%" for p in shares),
    ]


# ------------------------------------------------------------------------------------- linear models


def _linear_blocks(model: LinearModel, width: int) -> list[list[str]]:
    """The weights of every score, and how to read them."""
    blocks = [_weights(model, score, width) for score in model.scores]
    if len(blocks) > 1:
        names = class_names(model.classes or ())
        blocks = [[*wrapped(f"Class {n}", 0, width), *b] for n, b in zip(names, blocks, strict=True)]
    intercept = "intercept + " if any(score.intercept for score in model.scores) else ""
    sentences = [f"score = {intercept}the sum of weight times feature", *_decision(model)]
    sentences += ["the score is the prediction"] if model.classes is None else []
    return [*blocks, [_HOW_TO_READ, *paragraph(sentences, width)]]


def _weights(model: LinearModel, score: LinearScore, width: int) -> list[str]:
    pairs = sorted(zip(score.features, score.weights, strict=True), key=lambda pair: -abs(pair[1]))
    lines = [("intercept", score.intercept)] if score.intercept or not pairs else []
    lines += [(model.feature_name(j), weight) for j, weight in pairs]
    room = min(max(len(name) for name, _ in lines), width - 18)
    rows = []
    for name, weight in lines:
        *first, last = wrapped(name, INDENT, INDENT + room) or [""]
        rows += [*first, f"{last:<{INDENT + room}}  {weight:>+12.6g}"]
    return rows
