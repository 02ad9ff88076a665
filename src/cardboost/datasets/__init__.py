"""Data sets by name: ``load("twonorm")``."""

from cardboost.datasets.catalogue import NAMES, Dataset, SetMissing, load

__all__ = ["NAMES", "Dataset", "SetMissing", "load"]
