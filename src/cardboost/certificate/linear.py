"""The certificate of a linear model: its objective and a lower bound for every other linear model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cardboost.certificate.certificate import BaseCertificate
from cardboost.certificate.checker.linear import OPTIMAL_GAP, ROUNDING, LinearClaims, evaluate
from cardboost.certificate.statement import percent


@dataclass(frozen=True, eq=False, repr=False)
class LinearCertificate(LinearClaims, BaseCertificate):
    """Objective and lower bound of a linear model; every optimum lies between them.

    Attributes
    ----------
    loss, l1, l2, fit_intercept
        What is minimised: mean loss, regularisation, and whether there is an intercept.
    coef, intercept
        One row and one number per score: one, or one per class for the loss "softmax".
    objective, lower_bound, null_objective
        Of this model, of every model of the scope, and of the model without features.
    status : str
        "optimal", "feasible", "iteration limit", "precision" or "separable".
    classes, class_weight, target
        Labels, their factors, and for the loss "logistic" the class that is told from the others.
    dual : array or None
        Row weights of the absolute loss.
    box : float or None
        With l1 = l2 = 0 the bound covers all coefficients of at most ``box`` times (target / root mean square
        of the column, with an intercept about its mean); else None, and it covers all coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from cardboost import SparseLinearRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> certificate = SparseLinearRegression(l2=0.1).fit(X, [0.0, 1.0, 2.0, 4.0]).certificate_
    >>> certificate.status, certificate.scope, certificate.verify(X, [0.0, 1.0, 2.0, 4.0])
    ('optimal', 'all coefficients', True)
    """

    @property
    def scope(self) -> str:
        """Which models the lower bound is about: "all coefficients", or "coefficients in the box"."""
        return "all coefficients" if self.box is None else "coefficients in the box"

    def recomputed(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """The same with the objectives and the bound that these data give, and a status that they allow."""
        objective, bound, null = evaluate(self, self.rows(X, y, sample_weight))
        bound = min(bound, objective)
        status = self.status
        if status == "optimal" and not objective - bound <= OPTIMAL_GAP * null:
            status = "feasible"
        return replace(self, objective=objective, lower_bound=bound, null_objective=null, status=status)

    def no_worse_than_empty(self, X: Any, y: Any, sample_weight: Any = None, rounding: float = 0.0) -> Self:
        """This model, or the one without features where these data give this one a higher objective.

        ``rounding``: by how much it may be higher, as a share.
        """
        rows = self.rows(X, y, sample_weight)
        objective, _, null = evaluate(self, rows)
        if objective <= null * (1.0 + rounding):
            return self
        return replace(self, coef=np.zeros_like(self.coef), intercept=rows.constant)

    def lines(self) -> list[str]:
        """The certificate in words: what is minimised, what was reached, and what no model can undercut."""
        intercept = "with" if self.fit_intercept else "without"
        weighted = ""
        if self.class_weight is not None:
            weighted = f", classes weighted {', '.join(f'{weight:g}' for weight in self.class_weight)}"
        if self.loss == "logistic" and self.classes is not None and self.target is not None:
            weighted += f", for class {self.classes[self.target]!r}"
        scope = "" if self.box is None else f", among coefficients of at most {self.box:g} in standard units"
        n = self.coef.shape[1]
        return [
            f"minimised: mean {self.loss} loss + {self.l1:g} |coef|_1 + {self.l2:g}/2 |coef|_2^2, "
            f"{intercept} an intercept{weighted}",
            f"objective {self.objective:.8g}, without features {self.null_objective:.8g}: {self.status}",
            f"no model on the {n} feature{'' if n == 1 else 's'} has an objective below "
            f"{self.lower_bound:.8g}{scope}",
            f"guarantee: at least {percent(self.guarantee)} of the improvement over the model without "
            "features that any of them could make",
            f"relative gap {self.relative_gap:.2g}; sums over rows hold to {ROUNDING:g} and a gap of "
            f"{OPTIMAL_GAP:g} counts as optimal, as shares of the objective without features",
        ]

    def __repr__(self) -> str:
        return (
            f"LinearCertificate(loss={self.loss!r}, l1={self.l1:g}, l2={self.l2:g}, "
            f"fit_intercept={self.fit_intercept}, n_features={self.coef.shape[1]}, box={self.box}, "
            f"objective={self.objective:.6g}, lower_bound={self.lower_bound:.6g}, "
            f"relative_gap={self.relative_gap:.2g}, status={self.status!r})"
        )
