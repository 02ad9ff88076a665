"""`cardboost --version`: what the command is made of, for a report of a bug."""

from __future__ import annotations

import platform
from importlib.metadata import version


def version_lines() -> list[str]:
    """Versions of what takes part in a fit, and the threads it may use."""
    from cardboost import __version__
    from cardboost.data.threads import usable_threads

    numerics = ", ".join(
        f"{name} {version(package)}"
        for name, package in (("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn"))
    )
    return [
        f"cardboost {__version__}",
        f"{platform.python_implementation()} {platform.python_version()}, {numerics}",
        f"{platform.system()} {platform.machine()}, kernels with {usable_threads(None)} threads",
    ]
