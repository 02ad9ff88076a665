"""Checks for losses that users write.

:func:`check_loss` is for losses of the margin or the residual, :func:`check_vector_loss` for losses of
several outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardboost.problem.losses import Array, EvaluationLoss, Loss
from cardboost.problem.vector_losses import VectorLoss

__all__ = ["check_loss", "check_vector_loss"]

_POINTS = np.linspace(-6.0, 6.0, 241) + 0.0123  # 0 and 1, where many losses have a kink, are not among them
_STEP = 1e-6  # of finite differences
_KINK_DISTANCE = 1e-4  # closer to a kink finite differences are not compared
_SLACK = 1e-9  # for rounding, relative


def check_loss(loss: Loss) -> None:
    """Check every property of a loss that training relies on.

    * ``rows``, ``derivative``, ``curvature`` and ``conjugate`` take arrays and keep their shape.
    * The derivative is that of finite differences, away from ``kinks``; so is the curvature.
    * The loss is convex and never negative.
    * Fenchel-Young: ``rows(z) + conjugate(v) + v z >= 0``, with equality at ``v = -derivative(z)``.
    * A loss of the margin never rises, and divided by ``rows(0)`` it is at least 1 wherever z <= 0, at least
      the number of errors.
    * A loss of the residual is least at 0.
    * ``probability``, where there is one, never falls, is 1/2 at 0, and at f and -f adds up to 1.

    Parameters
    ----------
    loss : Loss
        An instance of a subclass of :class:`cardboost.problem.losses.Loss`.

    Raises
    ------
    AssertionError
        Says which property does not hold, and where.

    Examples
    --------
    >>> from cardboost.problem.losses import LOSSES
    >>> from cardboost.testing import check_loss
    >>> check_loss(LOSSES["logistic"])
    """
    _require_instance(loss, Loss, "cardboost.problem.losses.Loss")
    if isinstance(loss, EvaluationLoss):
        raise AssertionError(loss.refusal())
    z = _POINTS
    for kink in loss.kinks:
        z = z[np.abs(z - kink) > _KINK_DISTANCE]
    _shapes(loss)
    _convex(loss)
    _derivatives(loss, z)
    _conjugate(loss, z)
    if loss.of_residual:
        _residual(loss)
    else:
        _margin(loss)
        _probability(loss)


def _shapes(loss: Loss) -> None:
    for name in ("rows", "derivative", "curvature", "conjugate"):
        for argument in (np.array([0.25, 0.5, 0.75]), np.full((2, 3), 0.5), 0.5):
            values = np.asarray(getattr(loss, name)(argument))
            shape = np.shape(argument)
            _require(loss, values.shape == shape, f"{name} of shape {shape} has shape {values.shape}")
            finite = np.isfinite(values) if name != "conjugate" else ~np.isnan(values)
            _require(loss, finite, f"{name} at 0.25 to 0.75 is not finite")


def _derivatives(loss: Loss, z: Array) -> None:
    slope = (loss.rows(z + _STEP) - loss.rows(z - _STEP)) / (2 * _STEP)
    _near(loss, "derivative", "finite differences of rows", z, loss.derivative(z), slope, 1e-6)
    bend = (loss.derivative(z + _STEP) - loss.derivative(z - _STEP)) / (2 * _STEP)
    change = np.abs(loss.curvature(z + _KINK_DISTANCE) - loss.curvature(z - _KINK_DISTANCE))
    calm = change <= 0.1 * (1 + np.abs(bend))
    curvature = loss.curvature(z)
    _near(loss, "curvature", "finite differences of derivative", z[calm], curvature[calm], bend[calm], 1e-5)


def _convex(loss: Loss) -> None:
    rows = loss.rows(_POINTS)
    _require(loss, rows >= 0.0, "rows is below 0", _POINTS)
    between = loss.rows(0.5 * (_POINTS[:-2] + _POINTS[2:]))
    chord = 0.5 * (rows[:-2] + rows[2:])
    below = between <= chord + _SLACK * (1.0 + chord)
    _require(loss, below, "rows is not convex: it is above a chord", _POINTS[1:-1])
    rising = np.diff(loss.derivative(_POINTS)) >= -_SLACK
    _require(loss, rising, "rows is not convex: its derivative falls", _POINTS[1:])
    _require(loss, loss.curvature(_POINTS) >= 0.0, "curvature is below 0", _POINTS)


def _conjugate(loss: Loss, z: Array) -> None:
    best = -loss.derivative(z)
    room = _SLACK * (1.0 + np.abs(best * z) + loss.rows(z))
    left = loss.rows(z) + loss.conjugate(best) + best * z
    _require(loss, np.abs(left) <= room, "Fenchel-Young is no equality at v = -derivative(z)", z)
    for v in np.unique(np.concatenate([best, np.linspace(-2.0, 2.0, 17)])):
        value = float(loss.conjugate(v))
        _require(loss, not np.isnan(value), f"the conjugate at v = {v:g} is NaN")
        room = _SLACK * (1.0 + np.abs(v * z) + loss.rows(z))
        holds = loss.rows(z) + value + v * z >= -room
        fault = f"Fenchel-Young does not hold for v = {v:g}: rows(z) + conjugate(v) + v z < 0"
        _require(loss, holds, fault, z)


def _margin(loss: Loss) -> None:
    falls = loss.derivative(_POINTS) <= 0.0
    _require(loss, falls, "rows rises: a loss of the margin may only fall", _POINTS)
    at_zero = float(loss.rows(0.0))
    _require(loss, at_zero > 0.0, f"rows(0) is {at_zero:g}: a margin of 0 must cost something")
    fault = "derivative(0) is not below 0, so that a row with no margin asks for nothing"
    _require(loss, float(loss.derivative(0.0)) < 0.0, fault)
    wrong = _POINTS[_POINTS <= 0.0]
    bound = loss.rows(wrong) * loss.surrogate_factor >= 1.0 - _SLACK
    _require(loss, bound, "rows(z) / rows(0) is below 1: no bound on the number of errors", wrong)


def _residual(loss: Loss) -> None:
    _require(loss, loss.rows(_POINTS) >= loss.rows(0.0) - _SLACK, "rows is below rows(0)", _POINTS)
    signs = loss.derivative(_POINTS) * _POINTS >= 0.0
    _require(loss, signs, "the derivative points away from 0", _POINTS)


def _probability(loss: Loss) -> None:
    try:
        p = loss.probability(_POINTS)
    except ValueError:
        return  # it has none, and says so
    _require(loss, (p >= 0.0) & (p <= 1.0), "probability is outside 0 and 1", _POINTS)
    _require(loss, np.diff(p) >= -_SLACK, "probability falls as the score rises", _POINTS[1:])
    _require(loss, abs(float(loss.probability(0.0)) - 0.5) <= _SLACK, "probability(0) is not 1/2")
    both = np.abs(p + loss.probability(-_POINTS) - 1.0) <= _SLACK
    _require(loss, both, "the probabilities of f and -f do not add up to 1", _POINTS)


def _near(loss: Loss, what: str, other: str, z: Array, values: Array, expected: Array, rel: float) -> None:
    """Compare two ways to the same values."""
    holds = np.abs(values - expected) <= rel * (1.0 + np.abs(expected) + np.abs(loss.rows(z)))
    if not holds.all():
        k = int(np.argmin(holds))
        raise AssertionError(
            f"{loss.name}: {what} at {z[k]:g} is {values[k]:g}, but {other} give {expected[k]:g}."
        )


def _require(loss: Loss | VectorLoss, holds: Any, fault: str, z: Array | None = None) -> None:
    """Report a fault where something does not hold, with the first of the points ``z`` that shows it."""
    if not np.all(holds):
        where = "" if z is None else f" (at {z[int(np.argmin(holds))]:g})"
        raise AssertionError(f"{loss.name}: {fault}{where}.")


def _require_instance(loss: Any, kind: type, path: str) -> None:
    if not isinstance(loss, kind):
        raise AssertionError(f"a loss must be an instance of {path}; found {loss!r}.")
    if not isinstance(getattr(loss, "name", None), str) or not getattr(loss, "name", ""):
        raise AssertionError("a loss needs a name: a text that is not empty.")


def check_vector_loss(loss: VectorLoss, outputs: int = 3) -> None:
    """Check every property of a loss of several outputs that training relies on.

    * ``rows``, ``gradient`` and ``hessian`` have the shapes (rows,), (rows, m) and (rows, m, m), and are
      finite.
    * The gradient is that of finite differences of ``rows``; away from kinks the Hessian is that of
      ``gradient``.
    * The loss is convex, and no Hessian has an eigenvalue below 0.

    Targets are columns of 0 and 1 with one 1 in every row for ``cross_entropy``, signs for ``logistic`` and
    numbers for all others.

    Parameters
    ----------
    loss : VectorLoss
        An instance of a subclass of :class:`cardboost.problem.vector_losses.VectorLoss`.
    outputs : int, default=3
        How many outputs to check it with.

    Raises
    ------
    AssertionError
        Says which property does not hold.
    """
    _require_instance(loss, VectorLoss, "cardboost.problem.vector_losses.VectorLoss")
    rng = np.random.default_rng(0)
    rows = 50
    f = rng.normal(size=(rows, outputs))
    y = rng.normal(size=(rows, outputs))
    if loss.name == "cross_entropy":
        y = np.eye(outputs)[rng.integers(0, outputs, rows)]
    elif loss.name == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    for name, shape in (("rows", f.shape[:1]), ("gradient", f.shape), ("hessian", (*f.shape, outputs))):
        values = np.asarray(getattr(loss, name)(y, f))
        _require(loss, values.shape == shape, f"{name} has shape {values.shape} in place of {shape}")
        _require(loss, np.isfinite(values), f"{name} is not finite")
    other = f + rng.normal(size=f.shape)
    chord = 0.5 * (loss.rows(y, f) + loss.rows(y, other))
    above = loss.rows(y, 0.5 * (f + other)) - chord
    _require(loss, above <= _SLACK * (1.0 + np.abs(chord)), "rows is not convex")
    for o in range(outputs):
        step = np.zeros(outputs)
        step[o] = _STEP
        slope = (loss.rows(y, f + step) - loss.rows(y, f - step)) / (2 * _STEP)
        near = np.abs(loss.gradient(y, f)[:, o] - slope) <= 1e-5 * (1.0 + np.abs(slope))
        _require(loss, near, f"gradient differs from finite differences of rows (output {o})")
        bend = (loss.gradient(y, f + step) - loss.gradient(y, f - step)) / (2 * _STEP)
        near = np.abs(loss.hessian(y, f)[:, :, o] - bend) <= 1e-4 * (1.0 + np.abs(bend))
        jumps = np.abs(bend) >= 1e3  # where the slope jumps, differences mean nothing
        _require(loss, near | jumps, f"hessian differs from finite differences of gradient (output {o})")
    least = np.linalg.eigvalsh(loss.hessian(y, f)).min()
    _require(loss, least >= -_SLACK, f"hessian has an eigenvalue of {least:g}: it is not convex")
