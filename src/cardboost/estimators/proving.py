"""Going on with the proof of a model that was read from a file, on the rows that it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cardboost.boosting.candidates import restored_candidates
from cardboost.certificate.certificate import Certificate
from cardboost.data.arguments import number, whole
from cardboost.data.threads import usable_threads
from cardboost.model.ensemble import Ensemble
from cardboost.problem.budget import Budget, Stage
from cardboost.selection.exact import Progress as Proving


def prove_model(
    ensemble: Ensemble,
    certificate: Mapping[str, Any],
    rows: tuple[Any, Any, Any],
    *,
    time_limit: float | None = None,
    max_nodes: int = 20_000,
    started: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
    proving: Proving | None = None,
) -> tuple[Ensemble, Certificate]:
    """The model and the certificate that exact search comes to from the leaves of a certificate.

    Parameters
    ----------
    ensemble, certificate : a model of stumps and the content of its certificate
    rows : X, labels (True for the positive rows) or targets, and weights (or None), of the fit
    time_limit : seconds at most; None: no limit. Checking the certificate is not cut short.
    max_nodes : nodes of the search at most
    started : when the time began, by ``cardboost.problem.budget.clock``; None: now
    stopped : asked whether to end early
    proving : told of nodes, open nodes, bound and objective
    """
    budget = Budget.of(
        None if time_limit is None else number("time_limit", time_limit, 0.0, strict=True), stopped
    )
    if started is not None:
        budget = replace(budget, started=started)
    nodes = whole("max_nodes", max_nodes, 1)
    late = budget.end_of(Stage.SEARCH)
    before = restored_candidates(certificate, ensemble, rows, usable_threads(None), late)
    if before is None:
        return ensemble, Certificate(dict(certificate), ensemble.classes and ensemble.classes[1])
    after = before.proved(budget, nodes, proving)
    return after.model(after.weights, None), after.certificate
