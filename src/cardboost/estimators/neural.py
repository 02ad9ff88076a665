"""What the estimators of boosted networks share: arguments, fits, and the choice of how much to fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from cardboost.boosting.neural import (
    NeuralPath,
    NeuralSettings,
    RoundsAndDecay,
    Rows,
    WeakLearner,
    boost_networks,
    choose_by_folds,
    choose_by_rows,
)
from cardboost.boosting.neural_learners import NetLearner, RegressorLearner, regressor_outputs
from cardboost.boosting.neural_pruning import prune_networks
from cardboost.data.arguments import number, whole
from cardboost.data.exact import require_exact_columns, unmasked
from cardboost.data.labels import sample_weights, split_rows
from cardboost.data.threads import blas_threads, usable_threads
from cardboost.dictionary.nets import NetInputs, NetSettings
from cardboost.estimators.base import FittedModel
from cardboost.estimators.column_roles import warn_of_matrix
from cardboost.estimators.rows import plain
from cardboost.model.fitted_learner import ACTIVATIONS
from cardboost.model.nets import LearnerSum, Net, NetEnsemble
from cardboost.problem.trace import Record
from cardboost.problem.vector_losses import VectorLoss

Array = NDArray[np.float64]

REFITS = ("all", "last")
FEW_ROWS = 5000  # below which "auto" is "cv"
MERGED_ROWS = 20_000  # up to which equal rows are added up


@dataclass(frozen=True, eq=False)
class NeuralTask:
    """What a fit works on.

    Parameters
    ----------
    X : array of shape (rows, features)
        As they were given; networks read them standardised.
    rows : Rows
        The outputs wanted, in the units of the loss, and the weights of the rows.
    loss : VectorLoss
        Of the outputs.
    codes : array or None
        The class of every row, for folds that keep their shares.
    """

    X: Array
    rows: Rows
    loss: VectorLoss
    codes: NDArray[np.intp] | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralBoost(FittedModel):
    """Base of both estimators. Not for use by itself.

    An estimator says how targets become a :class:`NeuralTask` (``_task``), also for rows that a certificate
    is checked with (``_rows_to_check``).
    """

    max_iter: int = 50
    hidden: int = 8
    activation: str = "tanh"
    loss: str | VectorLoss = "auto"
    learning_rate: float = 1.0
    refit: str = "all"
    l2: float = 1e-4
    net_iter: int = 200
    max_terms: int | None = None
    early_stopping: str | bool = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    estimator: Any = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    # ------------------------------------------------------------------------------------ arguments

    def _check_arguments(self) -> None:
        for name in ("max_iter", "hidden", "net_iter", "n_iter_no_change"):
            whole(name, getattr(self, name), 1)
        number("learning_rate", self.learning_rate, 0.0, strict=True)
        if self.learning_rate > 1.0:
            raise ValueError(f"learning_rate must be at most 1; got {self.learning_rate!r}.")
        number("l2", self.l2, 0.0)
        if self.max_terms is not None:
            whole("max_terms", self.max_terms, 1)
        for name, accepted in (("activation", ACTIVATIONS), ("refit", REFITS)):
            if getattr(self, name) not in accepted:
                listed = ", ".join(map(repr, accepted))
                raise ValueError(f"{name} must be one of {listed}; got {getattr(self, name)!r}.")
        stopping = self.early_stopping
        if not isinstance(stopping, bool | np.bool_) and stopping not in ("auto", "cv"):
            raise ValueError(f"early_stopping must be 'auto', 'cv', True or False; got {stopping!r}.")
        for method in ("fit", "predict", "get_params") if self.estimator is not None else ():
            if not callable(getattr(self.estimator, method, None)) or isinstance(self.estimator, type):
                raise TypeError(
                    f"estimator must be a regressor with fit, predict and get_params, or None; got "
                    f"{self.estimator!r}, which has no {method}."
                )

    def _vector_loss(self, named: dict[str, VectorLoss]) -> VectorLoss:
        if isinstance(self.loss, VectorLoss):
            return self.loss
        if not isinstance(self.loss, str) or self.loss not in named:
            listed = ", ".join(map(repr, named))
            raise ValueError(f"loss must be one of {listed}, or a VectorLoss of your own; got {self.loss!r}.")
        return named[self.loss]

    # ------------------------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a table of finite numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) for a regressor
            Class labels, or targets.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows. A weight of 2 is the row twice.

        Returns
        -------
        self
        """
        self._check_arguments()
        table = self._read(X, reset=True)
        task = self._task(table, y, sample_weights(sample_weight, len(table)))
        threads = usable_threads(self.n_jobs)
        self._fitted_loss = task.loss
        self._mean, self._scale = _standard(task.X, task.rows.s)
        settings = NeuralSettings(
            max_iter=int(self.max_iter),
            learning_rate=float(self.learning_rate),
            refit_all=self.refit == "all",
            patience=int(self.n_iter_no_change),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        with blas_threads(1):
            choice = self._choose(task, settings, threads)
            path = choice.path
            if path is None:
                learner = self._learner(task.X, task.rows.y.shape[1], choice.l2, threads)
                told = _print_round if self.verbose else None
                final = replace(settings, max_iter=choice.rounds, callback=told)
                path = boost_networks(learner, task.loss, task.rows, final)
            self._accept(task, path, choice, settings.seed, threads)
        return self

    @abstractmethod
    def _task(self, X: Array, y: Any, raw: Array | None) -> NeuralTask:
        """Read and check the targets; ``raw``: the weights that the user passed."""

    @abstractmethod
    def _rows_to_check(self, X: Array, y: Any, raw: Array | None) -> tuple[Array, Array, Array]:
        """Rows, outputs wanted and weights, as in the task of the fit."""

    def _read(self, X: Any, reset: bool) -> Array:
        require_exact_columns(X, "X")
        read = validate_data(self, unmasked(X), reset=reset, dtype=np.float64, order="C")
        if reset and len(read) < 2:
            raise ValueError(f"X must have at least two rows; found n_samples={len(read)}.")
        if reset:
            warn_of_matrix(X, read)
        return np.asarray(read)

    def _fitted_rows(
        self, X: Array, Y: Array, raw: Array | None, factor: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """The rows that have a weight, and weights that add up to 1. Equal rows are one, except for learners
        of the user's, which may not take weights, and in large tables. ``factor``: of the class of every
        row."""
        factor, weight = np.ones(len(X)) if factor is None else factor, np.ones(len(X))
        if raw is not None:
            keep = raw > 0  # then divided by a power of two, which rounds nothing
            X, Y, factor = X[keep], Y[keep], factor[keep]
            weight = np.ldexp(raw[keep], -int(np.frexp(raw.max())[1]))
        if self.estimator is None and len(X) <= MERGED_ROWS:
            X, Y, weight, factor = merged_rows(X, Y, weight, factor)
        weight = weight * factor
        return X, Y, weight / weight.sum()

    def _learner(
        self, X: Array, outputs: int, l2: float, threads: int, held: Array | None = None
    ) -> WeakLearner:
        if self.estimator is not None:
            return RegressorLearner(self.estimator, X, outputs, held)
        settings = NetSettings(int(self.hidden), self.activation, l2, int(self.net_iter), threads=threads)
        other = None if held is None else (held - self._mean) / self._scale
        return NetLearner(NetInputs.of((X - self._mean) / self._scale), settings, other)

    def _choose(self, task: NeuralTask, settings: NeuralSettings, threads: int) -> RoundsAndDecay:
        """How many rounds and how much decay: as given, or by rows that are held out."""
        rows, n_rows, seed = task.rows, len(task.X), settings.seed
        if not self.early_stopping or n_rows < 2:  # of one distinct row none can be held out
            return RoundsAndDecay(int(self.max_iter), float(self.l2))

        def fit(kept: NDArray[np.intp], aside: NDArray[np.intp], l2: float) -> NeuralPath:
            learner = self._learner(task.X[kept], rows.y.shape[1], l2, threads, task.X[aside])
            return boost_networks(learner, task.loss, rows.take(kept), settings, rows.take(aside))

        decays = self.estimator is None
        if self.early_stopping == "cv" or (self.early_stopping == "auto" and n_rows < FEW_ROWS):
            choice = choose_by_folds(fit, n_rows, task.codes, seed, float(self.l2), decays)
        else:
            kept, aside = split_rows(self.validation_fraction, task.codes, n_rows, seed)
            choice = choose_by_rows(partial(fit, kept, aside), float(self.l2), decays)
        if self.verbose:
            print(f"[cardboost] {choice.rounds} nets, l2 = {choice.l2:g} by held-out rows")
        return choice

    def _accept(
        self, task: NeuralTask, path: NeuralPath, choice: RoundsAndDecay, seed: int, threads: int
    ) -> None:
        """The fitted attributes."""
        constant, gammas = path.weights(path.best_round)
        learners = path.learners
        self.trace_ = path.trace
        self.loss_curve_ = [record.objective for record in path.trace]
        self.validation_curve_ = choice.curve
        self.l2_ = choice.l2
        self._path = path
        self.certificate_ = None
        if self.max_terms is not None and learners:
            read = partial(self._outputs_of_rows, learners)
            outputs = self._outputs(learners, task.X, task.rows.y.shape[1])
            pruned = prune_networks(
                task.loss, outputs, task.rows, constant, gammas, int(self.max_terms), read, seed, threads
            )
            constant, gammas = pruned.constant, pruned.gammas
            learners = tuple(learners[k] for k in pruned.kept)
            self.certificate_ = pruned.certificate
        self.n_iter_ = max(1, path.best_round)
        self.ensemble_ = self._ensemble(constant, learners, gammas)

    def _ensemble(
        self, constant: Array, learners: tuple[Any, ...], gammas: Array
    ) -> NetEnsemble | LearnerSum:
        """In the units of the target."""
        unit, middle = self._units
        name, intercept, classes = self._loss_name, constant * unit + middle, self._class_labels
        if self.estimator is not None:
            scaled = partial(_scaled_outputs, unit)
            return LearnerSum(name, self.n_features_in_, classes, intercept, learners, gammas, scaled)
        names = getattr(self, "feature_names_in_", None)
        nets = tuple(
            Net(float(gamma), net.hidden, net.bias, net.out * unit, net.offset * unit)
            for net, gamma in zip(learners, gammas, strict=True)
        )
        return NetEnsemble(
            name, self.n_features_in_, None if names is None else tuple(map(str, names)), classes,
            self.activation, self._mean, self._scale, intercept, nets,
        )  # fmt: skip

    def _outputs(self, learners: Any, X: Array, n_outputs: int) -> Array:
        """What learners answer to rows: (learners, rows, outputs)."""
        if self.estimator is not None:
            return np.array([regressor_outputs(learner, X, n_outputs) for learner in learners])
        standard = (X - self._mean) / self._scale
        return np.array([net.outputs(standard, self.activation) for net in learners])

    def _outputs_of_rows(
        self, learners: tuple[Any, ...], X: Any, y: Any, sample_weight: Any
    ) -> tuple[Array, Array, Array]:
        """Outputs of all nets, targets and weights of rows that a certificate is checked with."""
        table = self._read(X, reset=False)
        table, target, s = self._rows_to_check(table, y, sample_weights(sample_weight, len(table)))
        with blas_threads(1):
            return self._outputs(learners, table, target.shape[1]), target, s

    # ------------------------------------------------------------------------------------ using

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "ensemble_")
        table = self._read(X, reset=False)
        with blas_threads(1):
            return self.ensemble_.scores(table)

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        """After every round, and last those of the model if it has been pruned."""
        check_is_fitted(self, "ensemble_")
        table = self._read(X, reset=False)
        unit, middle = self._units
        outputs: list[Array] = []
        for k, learner in enumerate(self._path.learners):
            with blas_threads(1):
                outputs += [*self._outputs([learner], table, len(unit))]
            constant, gammas = self._path.weights(k + 1)
            yield (constant + np.tensordot(gammas, np.array(outputs), axes=1)) * unit + middle
        if self.max_terms is not None or not self._path.learners:
            yield self._scores(table)

    @property
    def _class_labels(self) -> tuple[Any, ...] | None:
        return tuple(map(plain, self.classes_)) if hasattr(self, "classes_") else None

    @property
    def _loss_name(self) -> str:
        return "own" if isinstance(self.loss, VectorLoss) else self._fitted_loss.name


def merged_rows(X: Array, Y: Array, weight: Array, factor: Array) -> tuple[Array, Array, Array, Array]:
    """Rows in an order of their own, equal ones as one with their weights added up.

    So a weight of 2 is the row twice, and the order of the rows does not matter: the steps of a net
    make large differences of small ones. Equal rows have equal factors, which are left for later: weights
    that are whole numbers add up without rounding.
    """
    columns = np.column_stack([X, Y])
    order = np.lexsort([weight, *columns.T[::-1]])  # equal rows by weight: their sum has an order too
    ordered = columns[order]
    first = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    kept = order[first]
    return X[kept], Y[kept], np.add.reduceat(weight[order], first), factor[kept]


def _scaled_outputs(unit: Array, learner: Any, X: Any, outputs: int) -> Array:
    return regressor_outputs(learner, X, outputs) * unit


def _standard(X: Array, s: Array) -> tuple[Array, Array]:
    """Weighted mean and deviation of every column; a constant one is left as it is."""
    mean, scale = mean_and_deviation(X, s, "X")
    scale[scale <= 1e-12 * np.abs(mean)] = 1.0
    return mean, scale


def mean_and_deviation(values: Array, s: Array, name: str) -> tuple[Array, Array]:
    """Weighted means and standard deviations of columns; numbers too large for them are refused by name."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = s @ values
        most = np.abs(values - mean).max(axis=0)
        unit = np.where(most > 0.0, most, 1.0)
        deviation = most * np.sqrt(s @ ((values - mean) / unit) ** 2)  # no square overflows or vanishes
    if not (np.isfinite(mean).all() and np.isfinite(deviation).all()):
        raise ValueError(f"{name} holds numbers that are too large: divide them by some power of ten.")
    return mean, deviation


def _print_round(record: Record) -> None:
    held_out = "" if record.held_out is None else f", held out {record.held_out:.6g}"
    restarts = f" ({record.restarts} restarts)" if record.restarts else ""
    start = f"[cardboost] net {record.n_columns}: loss {record.objective:.6g}{held_out}"
    print(f"{start}, {record.seconds:.1f} s{restarts}")
