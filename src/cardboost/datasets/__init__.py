"""Data sets by name: ``load("twonorm")``."""

from cardboost.datasets.catalogue import NAMES, SetMissing, load
from cardboost.datasets.table import Dataset

__all__ = ["NAMES", "Dataset", "SetMissing", "load"]
