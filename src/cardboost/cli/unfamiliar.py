"""What a model has not seen in the rows that it scores: labels it does not know, numbers that are gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardboost.cli.model_rows import recorded
from cardboost.data.categories import CategoricalColumn, Categories, shown
from cardboost.data.frame import Coded, Frame
from cardboost.model.files import Model

_EXAMPLES = 3
_MOST_REMARKS = 12
_GONE = 0.5  # share of the cells that are missing here and were not in training


@dataclass
class _Seen:
    """Counts of a column over all parts of a table."""

    rows: int = 0
    strange: int = 0  # rows of unseen labels, or without a number
    labels: dict[Any, None] = field(default_factory=dict)  # the first few of them, in the order of the rows


class Unfamiliar:
    """Looks at the rows of a table, a part at a time, and has a sentence for every strange column at the end.

    Parameters
    ----------
    model : Model
        The model that scores the rows.
    """

    def __init__(self, model: Model) -> None:
        ensemble, notes = model.ensemble, recorded(model)
        names = {j: ensemble.feature_name(j) for j in ensemble.features_used}
        by_feature = getattr(ensemble, "categories", {})
        self._categories: dict[str, Categories] = {
            name: by_feature[j] for j, name in names.items() if j in by_feature
        }
        rows, missing = notes.get("rows"), notes.get("missing_cells")
        self._missing: dict[str, float] = {}  # shares in training, of numbers
        if isinstance(rows, int) and rows > 0 and isinstance(missing, dict):
            numeric = [name for name in names.values() if name not in self._categories]
            counts = {name: missing.get(name, 0) for name in numeric}
            self._missing = {name: count / rows for name, count in counts.items() if isinstance(count, int)}
        self._seen: dict[str, _Seen] = {}

    def look(self, features: Frame) -> Frame:
        """Count the rows of a part of the table, and hand it on."""
        for name, categories in self._categories.items():
            if name in features.data:
                self._count_labels(name, features.data[name], categories)
        for name in self._missing:
            values = features.data.get(name)
            if isinstance(values, np.ndarray):
                seen = self._seen.setdefault(name, _Seen())
                seen.rows += len(values)
                seen.strange += int(np.count_nonzero(np.isnan(values)))
        return features

    def _count_labels(self, name: str, values: Any, categories: Categories) -> None:
        column = values if isinstance(values, Coded) else CategoricalColumn.from_numbers(values)
        seen = self._seen.setdefault(name, _Seen())
        present = column.codes[column.codes >= 0]
        unseen = np.isnan(categories.codes_of(column.labels))[present]
        seen.rows += len(present)
        seen.strange += int(np.count_nonzero(unseen))
        strange, first = np.unique(present[unseen], return_index=True)
        for code in strange[np.argsort(first)][:_EXAMPLES].tolist():
            if len(seen.labels) < _EXAMPLES:
                seen.labels.setdefault(column.labels[code])

    def remarks(self) -> list[str]:
        """A sentence for every column; at most a dozen."""
        sentences = []
        for name, seen in self._seen.items():
            if name in self._categories and seen.strange:
                examples = ", ".join(map(shown, seen.labels))
                which = "all" if seen.strange == seen.rows else f"{seen.strange:,} of"
                sentences.append(
                    f"column {name!r}: {which} {seen.rows:,} labels are unknown to the model, such as "
                    f"{examples}; they count as missing."
                )
            elif name in self._missing and seen.strange > (self._missing[name] + _GONE) * seen.rows:
                sentences.append(
                    f"column {name!r} has no number in {seen.strange:,} of {seen.rows:,} rows; in training "
                    f"{100 * self._missing[name]:.3g} % were missing."
                )
        rest = len(sentences) - _MOST_REMARKS
        more = f"there are {rest:,} more columns with unseen labels or missing numbers."
        return sentences if rest <= 0 else [*sentences[:_MOST_REMARKS], more]
