"""placeholder"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Categories:
    kept: tuple[object, ...]
    rare: tuple[object, ...] = ()

    @property
    def n_codes(self) -> int:
        return len(self.kept) + bool(self.rare)
