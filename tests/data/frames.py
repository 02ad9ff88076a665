"""Frames of lists of cells, as files are read into them."""

import numpy as np

from cardboost.data.frame import Coded, Frame


def column(cells):
    """Text, with None for missing, as labels and codes; anything else as numbers."""
    if not any(isinstance(cell, str) for cell in cells):
        return np.array(cells, dtype=np.float64)
    labels = sorted({cell for cell in cells if cell is not None})
    code = {label: k for k, label in enumerate(labels)} | {None: -1}
    return Coded(tuple(labels), np.array([code[cell] for cell in cells], dtype=np.int32))


def frame_of(**columns):
    data = {name: column(list(cells)) for name, cells in columns.items()}
    return Frame(data, len(next(iter(columns.values()))))
