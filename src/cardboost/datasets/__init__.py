"""Data sets by name: ``load("twonorm")``."""

from cardboost.datasets.catalogue import NAMES, load
from cardboost.datasets.dataset import Dataset, SetMissing

__all__ = ["NAMES", "Dataset", "SetMissing", "load"]
