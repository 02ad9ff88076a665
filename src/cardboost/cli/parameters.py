"""What the estimators document of their parameters, read from their source.

Importing an estimator imports scikit-learn, which takes longer than a person waits for help or for a shell to
complete a word. The tests compare what is read here with the signatures.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CLASSIFIER, REGRESSOR = "CardBoostClassifier", "CardBoostRegressor"
_SOURCE = Path(__file__).parents[1] / "estimators" / "card_boost.py"
_ENTRY = re.compile(r"^(\w+) : (.+), default=(.+)\n((?:    .+\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator: the entry of its docstring."""

    name: str
    kind: str  # as documented: 'int or None', '{"gain", "edge"}'
    default: Any
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """The words that are accepted, in quotes or as None."""
        return tuple(word or "none" for word in re.findall(r'"(\w+)"|\bNone\b', self.kind))

    @property
    def summary(self) -> str:
        """The first sentence; of a long one the first part."""
        sentence = re.split(r"\.(?:\s|$)", " ".join(self.text.split()), maxsplit=1)[0]
        if len(sentence) > 80:
            sentence = re.split(r"[:;,] ", sentence, maxsplit=1)[0]
        return sentence[0].lower() + sentence[1:]


@cache
def documented(estimator: str) -> dict[str, Parameter]:
    """The parameters of an estimator, by name, in the order of its docstring."""
    tree = ast.parse(_SOURCE.read_text(encoding="utf-8"))
    text = next(
        ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == estimator
    )
    section = re.split(r"^\w+\n-+\n", text, flags=re.MULTILINE)[1]
    entries = [
        Parameter(name, kind, ast.literal_eval(default), words)
        for name, kind, default, words in _ENTRY.findall(section)
    ]
    return {parameter.name: parameter for parameter in entries}
