"""How a fitted model shows itself: a card in a notebook, a figure of its step functions, contributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cardboost.data.threads import usable_threads
from cardboost.model.learners import LearnerEnsemble
from cardboost.model.printable import printable_html

_FONT = "font: 13px/1.35 'DejaVu Sans Mono', Consolas, Menlo, monospace; white-space: pre"
_CARD = f'<div style="overflow-x: auto"><pre style="{_FONT}">{{card}}</pre></div>'


class Looks:
    """For an estimator of stumps, before scikit-learn's base class. Not for use by itself."""

    def _card_html(self, otherwise: str) -> str:
        """The card, with scikit-learn's diagram folded below it; the diagram alone before a fit."""
        model = getattr(self, "ensemble_", None)
        if model is None or isinstance(model, LearnerEnsemble):
            return otherwise
        card = _CARD.format(card=printable_html(self.card()))  # type: ignore[attr-defined]
        return f"{card}<details><summary>parameters</summary>{otherwise}</details>"

    def _repr_html_inner(self) -> str:
        return self._card_html(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._card_html(bundle["text/html"])
        return bundle

    def plot(self, X: Any = None, y: Any = None, *, max_features: int = 12) -> Any:
        """Draw the step functions of the features, those that move the score most first, by matplotlib.

        Parameters
        ----------
        X : table of shape (n_samples, n_features) or None, default=None
            Rows to be counted below the step functions: where they lie, and how many are missing.
        y : array-like of shape (n_samples,) or None, default=None
            Their targets: the share of the second class, the shares of several classes, or the mean of a
            number, for every line of the card.
        max_features : int, default=12
            At most so many features are drawn.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; ``figure.savefig("card.png")`` writes it.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the model holds other learners than stumps, or y is given without X.
        """
        from cardboost.report.plot import plot_steps

        model = self._stump_model("step functions")  # type: ignore[attr-defined]
        if X is None and y is not None:
            raise ValueError("y: the targets of which rows? Give X too.")
        columns = None if X is None else model.read(self._table(X))  # type: ignore[attr-defined]
        return plot_steps(model, columns, None if y is None else np.asarray(y), max_features)

    def explain(self, X: Any, background: Any = None) -> Any:
        """What each feature adds to the score of each row, for the plots of the shap library.

        The base is the intercept of the model, so that values are those of the card. With ``background`` rows
        it is their mean score, and values are how far a row's contributions are from the mean ones: exact
        Shapley values, as the model is a sum over features. Either way ``base_values + values.sum(axis=1)``
        is ``decision_function(X)`` up to rounding.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows to explain.
        background : table of shape (n_background, n_features) or None, default=None
            Rows to compare with.

        Returns
        -------
        shap.Explanation or Explanation
            ``values``, ``base_values``, ``data`` and ``feature_names``; a ``shap.Explanation`` where shap is
            installed. With more than two classes, values have shape (n_samples, n_features, n_classes).

        Raises
        ------
        ValueError
            If the model holds other learners than stumps.
        """
        from cardboost.model.explanation import explain_rows

        check_is_fitted(self)
        model = self._stump_model("contributions per feature")  # type: ignore[attr-defined]
        rows = self._table(X)  # type: ignore[attr-defined]
        compared = None if background is None else self._table(background)  # type: ignore[attr-defined]
        data = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
        threads = usable_threads(self.n_jobs)  # type: ignore[attr-defined]
        return explain_rows(model, rows, data, compared, threads)
