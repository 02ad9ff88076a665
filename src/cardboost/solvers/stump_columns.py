"""``StumpColumns``: all stumps of a table as the columns of a problem, without the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardboost.data.binning import bin_table
from cardboost.data.categories import Label, Other
from cardboost.data.table import check_rows, read_table
from cardboost.data.threads import usable_threads
from cardboost.data.weights import RowWeights
from cardboost.dictionary.label_orders import label_orders
from cardboost.dictionary.stump_store import StumpStore
from cardboost.dictionary.stumps import StumpDictionary
from cardboost.solvers.matrix import weighted_classes


@dataclass(frozen=True)
class Stump:
    """One stump: ``polarity`` on the left side and ``-polarity`` on the other.

    On the left are the values that are at most ``cut``, or one of ``labels``. Where both are None, the left
    side is all values that are not missing.

    Attributes
    ----------
    feature : int
        Position of the feature.
    name : str
        Its name.
    cut : float or None
        Largest value on the left side, for a feature of numbers.
    labels : tuple or None
        Labels on the left side, for a categorical feature.
    polarity : {-1, 1}
        Output on the left side.
    missing_left : bool
        Whether missing values are on the left side too. Without meaning where no value is missing.
    """

    feature: int
    name: str
    cut: float | None
    labels: tuple[Label | Other, ...] | None
    polarity: int
    missing_left: bool

    def __str__(self) -> str:
        if self.cut is not None:
            left = f"{self.name} <= {self.cut:.17g}"
        elif self.labels is None:
            left = f"{self.name} is not missing"
        else:
            words = ", ".join(map(repr, self.labels))
            left = f"{self.name} is {words}" if len(self.labels) == 1 else f"{self.name} is one of {words}"
        if self.missing_left:
            left += " or missing"
        return f"{self.polarity:+d} where {left}, else {-self.polarity:+d}"


@dataclass(frozen=True, eq=False)
class StumpColumns:
    """Every distinct stump of a table of two classes: column j is y_i h_j(x_i), y = 1 for the second class.

    Stumps with equal outputs in all rows count once, constant ones not at all. Takes the place of the matrix
    in :func:`cardboost.solvers.minimize_on_simplex`, which then never forms it. Made by :meth:`make`.

    Attributes
    ----------
    store : StumpStore
        The stumps, by column.
    weights : RowWeights
        Weights of the rows.
    classes : pair
        The two class labels.
    names : tuple of str
        Names of the features.
    total_weight : float
        Sum of the row weights.
    """

    store: StumpStore
    weights: RowWeights
    classes: tuple[Any, Any]
    names: tuple[str, ...]
    total_weight: float

    @classmethod
    def make(
        cls,
        X: Any,
        y: Any,
        *,
        max_bins: int = 255,
        sample_weight: Any = None,
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
    ) -> StumpColumns:
        """Read a table and its labels.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, or a pandas or polars data frame.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        max_bins : int, default=255
            At most so many bins per feature (2 to 255), not counting the one for missing values.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows. Rows of weight 0 are left out.
        categorical_features : "from_dtype", sequence or None, default="from_dtype"
            Which features hold categories: names, positions or a boolean mask. "from_dtype": columns of text
            and of categories. None: no feature.
        n_jobs : int or None, default=None
            Number of threads. None: all cores that joblib and threadpoolctl allow; -1: all cores.

        Returns
        -------
        StumpColumns
            The columns.

        Raises
        ------
        ValueError
            If there are not two classes, or every feature is constant.

        Examples
        --------
        >>> import numpy as np
        >>> from cardboost.solvers import StumpColumns, minimize_on_simplex
        >>> columns = StumpColumns.make(np.array([[1.0], [2.0], [3.0]]), ["no", "yes", "yes"])
        >>> len(columns), columns.describe(0)
        (4, '+1 where x0 <= 1, else -1')
        >>> result = minimize_on_simplex(columns, 1.0)
        >>> [columns.describe(j) for j in np.flatnonzero(result.x)]
        ['-1 where x0 <= 1, else +1']
        """
        table = read_table(X, categorical=categorical_features)
        check_rows(table)
        classes, positive, weight, kept = weighted_classes(y, sample_weight, table.n_rows)
        total = float(table.n_rows if weight is None else weight.sum())
        if len(kept) < table.n_rows:
            table = table.take(kept)
        threads = usable_threads(n_jobs)
        weights = RowWeights.make(table.n_rows, None if weight is None else weight[kept])
        matrix = bin_table(table, weights, max_bins, threads)
        orders = label_orders(matrix, weights, positive, threads)
        sign = np.where(positive, 1, -1).astype(np.int8)
        store = StumpStore(StumpDictionary(matrix, sign, threads, intercept=False, orders=orders), weights)
        if len(store) == 0:
            raise ValueError("X has no stumps: every column is constant.")
        names = table.names or tuple(f"x{j}" for j in range(table.n_features))
        return cls(store, weights, classes, names, total)

    def __len__(self) -> int:
        return len(self.store)

    def stump(self, j: int) -> Stump:
        """The stump of a column.

        Parameters
        ----------
        j : int
            Number of the column; negative numbers count from the end.

        Returns
        -------
        Stump
            Its feature, cut or labels, and polarity.

        Raises
        ------
        IndexError
            If there is no such column.
        """
        if not -len(self) <= j < len(self):
            raise IndexError(f"there are {len(self)} columns; got {j}.")
        matrix = self.store.dictionary.matrix
        stump = self.store.stumps(np.array([j]))
        feature, place = int(stump.feature[0]), int(stump.cut[0])
        categories = matrix.categories[feature]
        cut, labels = None, None
        if categories is not None:
            codes = np.flatnonzero(stump.left[0, : categories.n_codes]).tolist()
            if len(codes) < categories.n_codes:
                labels = tuple(map(categories.label, codes))
        elif place < len(matrix.cuts[feature]):
            cut = float(matrix.cuts[feature][place])
        return Stump(
            feature, self.names[feature], cut, labels, int(stump.polarity[0]), bool(stump.missing_left[0])
        )

    def describe(self, j: int) -> str:
        """A column in words.

        Parameters
        ----------
        j : int
            Number of the column; negative numbers count from the end.

        Returns
        -------
        str
            For example ``'+1 where x0 <= 1, else -1'``.
        """
        return str(self.stump(j))
