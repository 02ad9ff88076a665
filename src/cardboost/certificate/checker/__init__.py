"""An independent check of a certificate: is every number in the file true of this table?

Imports NumPy and the standard library only. Nothing is shared with the code that writes certificates, so an
error there cannot hide here. docs/certificate.md defines everything that is computed here.

    format.py     the form of the file: keys, types, indices, what must agree
    data.py       rows as given, their digest
    columns.py    stumps and matrices as columns on distinct rows; edges of all other stumps
    losses.py     losses, row weights and dual values
    bounds.py     the evidence for a certificate, and the bound of a leaf
    curvature.py  how much curvature of the loss a bound may set aside
    claims.py     every claim, recomputed
    linear.py     every claim about a linear model, recomputed
"""

from cardboost.certificate.checker.claims import check, verify
from cardboost.certificate.checker.data import data_digest
from cardboost.certificate.checker.format import content_digest, structure_faults

__all__ = ["check", "content_digest", "data_digest", "structure_faults", "verify"]
