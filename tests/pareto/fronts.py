"""Small tables and settings that the tests of fronts share."""

import numpy as np

from cardboost import CardBoostClassifier, CardBoostRegressor

SIZES = (1, 2, 4)


def quick(**settings):
    return CardBoostClassifier(**{"l2": 0.01, "hot_start": 10, "n_jobs": 1} | settings)


def quick_regressor(**settings):
    return CardBoostRegressor(**{"l2": 0.01, "hot_start": 10, "n_jobs": 1} | settings)


def numbers(rows=180, seed=0):
    """Four columns with missing values, of which two matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).round(2)
    y = (X[:, 0] + 0.7 * X[:, 2] + 0.6 * rng.normal(size=rows) > 0).astype(int)
    X[rng.random((rows, 4)) < 0.05] = np.nan
    return X, y


def mixed(rows=240, seed=0):
    """A pandas frame with numbers, categories and missing values; three classes."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows).astype(float),
            "town": pd.Categorical(rng.choice(["Bergen", "Oslo", "Tromso", None], rows)),
            "dose": rng.normal(size=rows).round(2),
        }
    )
    frame.loc[::17, "dose"] = np.nan
    y = np.where(frame["age"] > 55, "old", np.where(frame["town"].astype(object) == "Oslo", "city", "rest"))
    return frame, y


def amounts(rows=180, seed=0):
    X, _ = numbers(rows, seed)
    rng = np.random.default_rng(seed + 1)
    known = np.nan_to_num(X)
    return X, 10 + 3 * (known[:, 0] > 0) + 2 * (known[:, 2] > 0.5) + rng.normal(size=rows)
