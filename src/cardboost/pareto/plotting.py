"""The front by matplotlib, an extra that is asked for only here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cardboost.pareto.front import ParetoFront


def plot(front: ParetoFront, ax: Any = None) -> Any:
    """Mean scores with their standard errors; what the rules pick is marked. Returns the axes."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "ParetoFront.plot needs matplotlib: pip install 'cardboost[plot]'. Without it, "
                "ParetoFront shows itself in notebooks, and `cardboost pareto` draws SVG."
            ) from error
        _, ax = plt.subplots()
    sizes, means = list(front.sizes), [point.mean for point in front]
    errors = [point.standard_error or 0.0 for point in front]
    ax.errorbar(sizes, means, yerr=errors, marker="o", markersize=4, capsize=3, linewidth=1.5)
    for size, rules in front.marks().items():
        ax.annotate(
            rules, (size, front.at(size).mean), xytext=(0, 12), textcoords="offset points", ha="center"
        )
    ax.margins(y=0.15)  # room for what is written above the points
    ax.set_xlabel("terms at most")
    ax.set_ylabel(f"{front.scoring}, mean of {front.n_folds_done} folds")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return ax
