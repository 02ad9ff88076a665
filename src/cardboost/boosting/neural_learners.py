"""What a round of boosting networks fits: the built-in net, or a scikit-learn regressor of the user's."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from cardboost.dictionary.nets import DivergedError, NetInputs, NetSettings, NetWeights, fit_net
from cardboost.model.fitted_learner import name_of

Array = NDArray[np.float64]


class IgnoredWeightsWarning(UserWarning):
    """A learner cannot be told that rows differ in weight."""


@dataclass(frozen=True, eq=False)
class NetLearner:
    """The built-in net, on standardised rows."""

    inputs: NetInputs
    settings: NetSettings
    held: Array | None = None

    def fit(self, target: Array, weight: Array, seed: int) -> NetWeights:
        return fit_net(self.inputs, target, weight, self.settings, np.random.default_rng(seed)).weights

    def outputs(self, fitted: NetWeights, held: bool = False) -> Array:
        Z = self.held if held else self.inputs.Z1[:, :-1]
        assert Z is not None
        return fitted.outputs(Z, self.settings.activation)


@dataclass(frozen=True, eq=False)
class ScaledRegressor:
    """A regressor fitted to targets divided by ``size``."""

    regressor: Any
    size: float


class RegressorLearner:
    """Clones of a regressor, on rows as they were given."""

    def __init__(self, estimator: Any, X: Any, outputs: int, held: Any = None) -> None:
        self._estimator, self._X, self._outputs, self._held = estimator, X, outputs, held
        self._weighted = has_fit_parameter(estimator, "sample_weight")
        self._single = is_skorch(estimator)
        self._warned = False

    def fit(self, target: Array, weight: Array, seed: int) -> ScaledRegressor:
        """On targets of unit size, as regressors like them: their tolerances and prices mean the same in
        every round."""
        share = np.broadcast_to(weight, target.shape)
        size = float(np.sqrt(np.sum(share * target * target) / np.sum(share)))
        target = target / size
        learner = clone(self._estimator)
        seeds = {name: seed % (2**31) for name in learner.get_params() if name.endswith("random_state")}
        if seeds:
            learner.set_params(**seeds)
        labels: Any = target if self._outputs > 1 or self._single else target[:, 0]
        if self._outputs > 1 and not self._single and not get_tags(learner).target_tags.multi_output:
            from sklearn.multioutput import MultiOutputRegressor

            learner = MultiOutputRegressor(learner)
        rows = weight.mean(axis=1)
        options = {}
        if not np.allclose(rows, rows[0], rtol=1e-12, atol=0.0):
            if self._weighted:
                options = {"sample_weight": rows * (len(rows) / rows.sum())}
            else:
                self._warn()
        if self._single:
            labels = labels.astype(np.float32)
            if "torch" in sys.modules:  # from where nets of skorch get their first weights
                sys.modules["torch"].manual_seed(seed)
        try:
            return ScaledRegressor(learner.fit(_cast(self._X, self._single), labels, **options), size)
        except FloatingPointError as error:
            raise DivergedError(str(error)) from error

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"estimator: the fit of {name_of(self._estimator)} takes no sample_weight, so it does not "
                "know that rows differ in weight or curvature; only the weights of the learners do.",
                IgnoredWeightsWarning,
                stacklevel=2,
            )

    def outputs(self, fitted: Any, held: bool = False) -> Array:
        return regressor_outputs(fitted, self._held if held else self._X, self._outputs)


def regressor_outputs(fitted: ScaledRegressor, X: Any, outputs: int) -> Array:
    """(rows, outputs) of a fitted regressor, in the size of its targets."""
    regressor = fitted.regressor
    predicted = np.asarray(regressor.predict(_cast(X, is_skorch(regressor))), dtype=np.float64)
    predicted = predicted[:, None] if predicted.ndim == 1 else predicted
    if predicted.ndim != 2 or predicted.shape[1] != outputs:
        raise ValueError(
            f"estimator: predict of {name_of(regressor)} must return {outputs} numbers per row; found shape "
            f"{predicted.shape}."
        )
    return predicted * fitted.size


def is_skorch(estimator: Any) -> bool:
    """A net of torch that skorch makes an estimator of: it wants single precision, and columns of targets."""
    return any(base.__module__.partition(".")[0] == "skorch" for base in type(estimator).__mro__)


def _cast(X: Any, single: bool) -> Any:
    return np.asarray(X, dtype=np.float32) if single else X
