"""What features add to the scores of rows, in the form that the plots of SHAP take.

The contributions of a sum of step functions are its Shapley values, up to what is taken as the base: nothing
is estimated, and no rows are drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardboost.model.base import Array, TableModel


@dataclass(frozen=True, eq=False)
class Explanation:
    """Contributions of features to scores, with the names of a ``shap.Explanation``.

    Attributes
    ----------
    values : array of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
        What each feature adds to the score.
    base_values : array of shape (n_samples,) or (n_samples, n_classes)
        What the contributions are added to; the same for all rows.
    data : array of shape (n_samples, n_features)
        The rows.
    feature_names : list of str
        Names of all features.
    """

    values: Array
    base_values: Array
    data: NDArray[Any]
    feature_names: list[str]

    def __len__(self) -> int:
        return len(self.values)


def explain_rows(model: TableModel, X: Any, data: Any, background: Any = None, threads: int = 1) -> Any:
    """Contributions of all features to the scores of rows.

    Parameters
    ----------
    model : TableModel
        A model of stumps.
    X : table of shape (n_samples, n_features)
        The rows.
    data : array of shape (n_samples, n_features)
        The rows as they are shown.
    background : table of shape (n_background, n_features) or None, default=None
        Rows whose mean score is the base, and whose mean contributions are taken off; None: the intercept is
        the base, and contributions are those of the card.
    threads : int, default=1
        Number of threads. Results do not depend on it.

    Returns
    -------
    shap.Explanation or Explanation
        The former where shap is installed.
    """
    values = model.contributions(X, threads)
    intercepts = np.array([part.intercept for part in model.parts])
    base = intercepts if values.ndim == 3 else intercepts[0]
    if background is not None:
        means = model.contributions(background, threads).mean(axis=0)
        values, base = values - means, base + means.sum(axis=0)
    bases = np.broadcast_to(base, (len(values), *np.shape(base))).copy()
    names = [model.feature_name(j) for j in range(model.n_features)]
    try:
        from shap import Explanation as ShapExplanation
    except ImportError:
        return Explanation(values, bases, data, names)
    return ShapExplanation(values, base_values=bases, data=data, feature_names=names)
