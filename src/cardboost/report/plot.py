"""The step functions of a model by matplotlib, an extra: a panel for every feature.

With rows, a strip below each panel counts them; with targets it shows their mean on every line of the card.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.model.base import TableModel, UsedColumns
from cardboost.model.card_text import category_names
from cardboost.model.printable import printable
from cardboost.report.figures import COLOURS, GREY, INK, PALE

Array = NDArray[np.float64]
_COLUMNS = 3  # panels side by side, at most
_BINS = 30
_MOST_LABELS = 12  # of a feature with categories: those that add most
_LONGEST = 14  # characters of a label below its bar


def plot_steps(model: TableModel, columns: UsedColumns | None, y: Any, max_features: int) -> Any:
    """The figure of :meth:`plot`.

    Parameters
    ----------
    model : TableModel
        A model of stumps.
    columns : UsedColumns or None
        Rows to count.
    y : array of shape (n_rows,) or None
        Their targets.
    max_features : int
        At most so many panels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        import matplotlib
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot needs matplotlib: pip install 'cardboost[plot]'.") from error
    if isinstance(max_features, bool) or not isinstance(max_features, int) or max_features < 1:
        raise ValueError(f"max_features must be a whole number from 1; got {max_features!r}.")
    targets = None if columns is None or y is None else _targets(model, columns, y)
    features = _by_spread(model)[:max_features]
    across = max(1, min(_COLUMNS, len(features)))
    down = max(1, math.ceil(len(features) / across))
    height = 3.4 if columns is not None else 2.5
    figure = plt.figure(figsize=(3.9 * across, height * down + 0.5), layout="constrained")
    if "inline" in matplotlib.get_backend():
        plt.close(figure)  # a notebook would show it twice
    title = _title(model, columns is not None, targets is not None)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left", color=INK)
    grid = figure.add_gridspec(down, across)
    limits = _limits(model, features)
    for k, feature in enumerate(features):
        ratios = (2.2, 1) if columns is not None else (1,)
        cell = grid[k // across, k % across].subgridspec(len(ratios), 1, height_ratios=ratios, hspace=0.06)
        upper = figure.add_subplot(cell[0])
        panel = _Panel(model, feature, columns, targets)
        panel.draw_steps(upper, limits)
        if columns is not None:
            last = k % across == across - 1 or k == len(features) - 1
            panel.draw_rows(figure.add_subplot(cell[1], sharex=upper), last)
            upper.tick_params(labelbottom=False, bottom=False)
    if len(model.parts) > 1 and features:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    return figure


def _title(model: TableModel, with_rows: bool, with_targets: bool) -> str:
    if model.classes is None:
        title, mean = "What each feature adds to the prediction", "mean target"
    elif len(model.parts) > 1:
        title, mean = "What each feature adds to the scores", "shares of the classes"
    else:
        label = _short(printable(str(model.classes[1])))
        title, mean = f"What each feature adds to the score of {label}", f"share of {label}"
    if not with_rows:
        return title
    return f"{title}\nbelow: rows (grey){f', {mean}' if with_targets else ''}"


def _by_spread(model: TableModel) -> list[int]:
    spreads = dict.fromkeys(model.features_used, 0.0)
    for part in model.parts:
        for step in part.step_functions():
            spreads[step.feature] += step.spread
    return sorted(spreads, key=lambda feature: (-spreads[feature], feature))


def _limits(model: TableModel, features: Sequence[int]) -> tuple[float, float]:
    """One scale for all panels, so that heights can be compared."""
    levels = [0.0]
    for part in model.parts:
        for step in part.step_functions():
            if step.feature in features:
                levels += [*step.levels, step.missing]
    room = 0.08 * (max(levels) - min(levels) or 1.0)
    return min(levels) - room, max(levels) + room


def _targets(model: TableModel, columns: UsedColumns, y: Any) -> Array:
    """A column of numbers to average: targets, or for every drawn class 1 where it holds."""
    if y.shape != (columns.n_rows,):
        raise ValueError(f"y: expected one target for each of {columns.n_rows} rows, found shape {y.shape}.")
    if model.classes is None:
        return y.astype(np.float64)[:, None]
    classes = model.classes if len(model.parts) > 1 else model.classes[1:]
    return np.column_stack([(y == label).astype(np.float64) for label in classes])


class _Panel:
    """A feature on an axis of numbers, or of labels side by side; missing values stand on the right."""

    def __init__(
        self, model: TableModel, feature: int, columns: UsedColumns | None, targets: Array | None
    ) -> None:
        self.model, self.feature, self.targets = model, feature, targets
        self.steps = [
            (k, step)
            for k, part in enumerate(model.parts)
            for step in part.step_functions()
            if step.feature == feature
        ]
        self.categories = model.categories.get(feature)
        self.values = None if columns is None else np.asarray(columns.values[feature], dtype=np.float64)
        self.several = len(model.parts) > 1
        if self.categories is None:
            self._numbers()
        else:
            self._labels()

    def _numbers(self) -> None:
        """The ends of the axis: cuts, and all rows but the last hundredths."""
        self.cuts = sorted({cut for _, step in self.steps for cut in step.cuts})
        present = np.empty(0) if self.values is None else self.values[~np.isnan(self.values)]
        ends = [*self.cuts, *(np.quantile(present, (0.01, 0.99)).tolist() if len(present) else [])] or [0.0]
        low, high = min(ends), max(ends)
        room = (0.05 if len(present) else 0.35) * (high - low) or 0.5 * abs(high) or 1.0
        self.low, self.high = low - room, high + room
        self.missing = self.high + 0.09 * (self.high - self.low)
        self.edge = self.high + 0.16 * (self.high - self.low)

    def _labels(self) -> None:
        assert self.categories is not None
        names = category_names([*self.categories.kept, *self.categories.rare])[: len(self.categories.kept)]
        names += ["other"] if self.categories.rare else []
        heights = [max(abs(step.levels[code]) for _, step in self.steps) for code in range(len(names))]
        order = sorted(range(len(names)), key=lambda code: -heights[code])
        self.shown = sorted(order[:_MOST_LABELS])
        self.names = [_short(names[code]) for code in self.shown]
        self.low, self.high = -0.6, len(self.shown) - 0.4
        self.missing, self.edge = len(self.shown) + 0.2, len(self.shown) + 0.8

    def draw_steps(self, axes: Any, limits: tuple[float, float]) -> None:
        """What the feature adds, and what a missing value adds."""
        axes.axhline(0, color=PALE, linewidth=1, zorder=0)
        for k, step in self.steps:
            colour = COLOURS[k % len(COLOURS)]
            label = _short(printable(str(self.model.classes[k])), 20) if self.several else None
            if self.categories is None:
                cuts, levels = step.distinct()
                ends = np.array([self.low, *cuts, self.high])
                axes.stairs(levels, ends, baseline=None, color=colour, linewidth=2, label=label)
                if not self.several:
                    axes.stairs(levels, ends, baseline=0, fill=True, color=colour, alpha=0.12)
            else:
                places = np.arange(len(self.shown)) + self._shift(k)
                levels = [step.levels[code] for code in self.shown]
                axes.bar(places, levels, 0.72 / self._side_by_side, color=colour, alpha=0.75, label=label)
            axes.plot(
                [self.missing], [step.missing], "D", color=colour, markersize=5, markerfacecolor="white"
            )
        axes.axvspan(self.high, self.edge, color="#f5f5f5", zorder=-1, linewidth=0)
        axes.set_ylim(limits)
        axes.set_xlim(self.low, self.edge)
        name = printable(self.model.feature_name(self.feature))
        axes.set_title(_short(name, 40), fontsize=10, loc="left", fontweight="bold", color=INK)
        self._finish(axes)

    @property
    def _side_by_side(self) -> int:
        return max(1, len(self.steps))

    def _shift(self, k: int) -> float:
        place = [part for part, _ in self.steps].index(k)
        return (place - (self._side_by_side - 1) / 2) * 0.72 / self._side_by_side

    def draw_rows(self, axes: Any, last: bool) -> None:
        """How many rows there are, and the mean target on every line."""
        assert self.values is not None
        absent = np.isnan(self.values)
        count = len(self.values) or 1
        if self.categories is None:
            bins = np.linspace(self.low, self.high, _BINS + 1)
            inside = np.clip(self.values[~absent], self.low, self.high)
            heights = np.histogram(inside, bins)[0] / count
            axes.stairs(heights, bins, fill=True, color=PALE)
            width = 0.5 * (self.edge - self.high)
        else:
            heights = np.array([(self.values == code).sum() for code in self.shown]) / count
            axes.bar(np.arange(len(self.shown)), heights, 0.72, color=PALE)
            width = 0.72
        axes.bar([self.missing], [absent.mean() if count else 0.0], width, color=PALE)
        axes.axvspan(self.high, self.edge, color="#f5f5f5", zorder=-1, linewidth=0)
        axes.set_ylabel("rows", fontsize=8, color=GREY)
        axes.set_yticks([])
        self._finish(axes)
        if self.targets is not None:
            self._draw_means(axes.twinx(), last)

    def _draw_means(self, axes: Any, last: bool) -> None:
        """The mean target of the rows on every line: a bar over its interval, and a diamond where missing."""
        assert self.values is not None
        assert self.targets is not None
        absent = np.isnan(self.values)
        for k in range(self.targets.shape[1]):
            target = self.targets[:, k]
            colour = COLOURS[k % len(COLOURS)] if self.several else COLOURS[1]
            if self.categories is None:
                cuts = np.array(self.cuts)
                line = np.searchsorted(cuts, self.values[~absent])
                ends = np.array([self.low, *self.cuts, self.high])
                means = [_mean(target[~absent][line == i]) for i in range(len(ends) - 1)]
                axes.stairs(means, ends, baseline=None, color=colour, linewidth=1.6)
                axes.plot(0.5 * (ends[1:] + ends[:-1]), means, "o", color=colour, markersize=4)
            else:
                means = [_mean(target[self.values == code]) for code in self.shown]
                axes.plot(np.arange(len(means)), means, "o", color=colour, markersize=4)
            if absent.any():
                axes.plot([self.missing], [_mean(target[absent])], "o", color=colour, markersize=4)
        classifier = self.model.classes is not None
        if classifier:
            axes.set_ylim(-0.06, 1.06)
            axes.set_yticks([0, 0.5, 1], ["0%", "50%", "100%"])
        else:
            axes.margins(y=0.15)
        if last:
            axes.set_ylabel("share" if classifier else "mean target", fontsize=8, color=GREY)
        axes.tick_params(labelsize=8, colors=GREY, length=2)
        axes.spines[["top", "left", "right"]].set_visible(False)

    def _finish(self, axes: Any) -> None:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.tick_params(labelsize=8, colors=GREY, length=3)
        if self.categories is not None:
            axes.set_xticks([*range(len(self.names)), self.missing], [*self.names, "missing"])
            if sum(map(len, self.names)) > 30:
                axes.tick_params("x", rotation=35)
                for text in axes.get_xticklabels():
                    text.set_ha("right")
            return
        from matplotlib.ticker import MaxNLocator

        ticks = list(MaxNLocator(4).tick_values(self.low, self.high))
        ticks = [tick for tick in ticks if self.low <= tick <= self.high]
        axes.set_xticks([*ticks, self.missing], [*(f"{tick:.6g}" for tick in ticks), "missing"])


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else math.nan


def _short(text: str, most: int = _LONGEST) -> str:
    text = text.replace("$", r"\$")  # no formula
    return text if len(text) <= most else text[: most - 1] + "…"
