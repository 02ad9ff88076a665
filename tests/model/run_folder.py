"""A folder with the files of one run or of the next, for programs that are killed while they write them."""

from __future__ import annotations

from pathlib import Path

from cardboost.model.atomic import finish_switch

NAMES = ("model.json", "card.txt", "card.h", "log.jsonl")


OLD: dict[str, bytes | None] = {name: f"old {name}".encode() * 100 for name in NAMES}


NEW: dict[str, bytes | None] = {name: f"new {name}".encode() * 300 for name in NAMES[:3]} | {NAMES[3]: None}


NOTE = "notes of the user.txt"


def content_of(folder: Path) -> dict[str, bytes]:
    names = [path.name for path in folder.iterdir()]
    assert not [name for name in names if name.endswith(".journal")]
    return {name: (folder / name).read_bytes() for name in names if not name.startswith(".cardboost-")}


def check_whole(folder: Path) -> bool:
    """Whether all files are new; otherwise all of them are old."""
    finish_switch(folder)
    files = content_of(folder)
    assert files.pop(NOTE) == b"keep"
    new = {name: content for name, content in NEW.items() if content is not None}
    assert files in (OLD, new), sorted(files)
    return files == new
