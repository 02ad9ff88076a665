"""scikit-learn's own callbacks (progress bars, scoring monitors), where the installed version has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover - older scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "Rounds", "with_callbacks"]


class Rounds:
    """Tells scikit-learn's callbacks of the fit and of every round in it; they may ask to stop."""

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.context: Any = None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def after(self, fitted: Callable[[], dict[str, Any]] | None) -> bool:
        """One round is over. ``fitted``: the attributes that make the present state a fitted estimator."""
        if self.context is None:
            return False
        facts = {"X": self.X, "y": self.y, "reconstruction_attributes": fitted}
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.estimator, **facts)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, **facts))

    def end(self) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)
