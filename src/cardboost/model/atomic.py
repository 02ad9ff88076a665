"""The writer of all files: a path holds the old content or the new one, and files of a run change together.

One file is written beside its target and takes the target's name once it is on the disk; such a rename is
atomic on Linux, macOS and Windows. No system renames several files at once, so several files have a journal.
It names every new file and what it replaces, and appears only when all of them are on the disk. From then on
the new files count: a program that is killed between two renames leaves the journal, and whoever next writes
into the folder, or loads a model from it, makes the renames that are left (:func:`finish_switch`). Killed
before, it leaves the old files untouched. Other files of the folder are never touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

ABANDONED_SECONDS = 3600.0  # no write takes an hour: older drafts are of a killed program
_JOURNAL = "journal"
_DRAFT_NAME = re.compile(r"\.cardboost-[0-9a-f]+\.tmp")


def write_atomically(target: Path, data: bytes) -> None:
    """Write one file.

    Parameters
    ----------
    target : Path
        The file; one that exists keeps its permissions. A link is followed by the caller, if at all.
    data : bytes
        Its content.

    Raises
    ------
    FileNotFoundError
        The folder does not exist.
    ValueError
        The target is a folder or a device.
    """
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(target.parent)!r} does not exist.")
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: expected a file to replace, found a folder or a device")
    with replacing(target) as file:
        file.write(data)
    _sync_folder(target.parent)


@contextlib.contextmanager
def replacing(target: Path, **text_options: Any) -> Iterator[IO[Any]]:
    """A file to write into that takes the place of ``target`` at the end; as text, if there are options."""
    draft = _draft_beside(target)
    try:
        with _filling(draft, target, **text_options) as file:
            yield file
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _filling(draft: Path, target: Path, **text_options: Any) -> Iterator[IO[Any]]:
    """A draft to write into, which is on the disk at the end and has the permissions of its target."""
    with open(draft, "x" if text_options else "xb", **text_options) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    if target.exists():
        os.chmod(draft, stat.S_IMODE(target.stat().st_mode))


def write_together(folder: Path, contents: Mapping[str, bytes | None]) -> None:
    """Write several files of one folder, which change together: all of them are old, or all are new.

    Parameters
    ----------
    folder : Path
        The folder, which exists.
    contents : mapping
        The content of every file by its name. A file whose content is None is removed with the switch: it is
        what an earlier run has left, and would not go with the others. A link is followed; where it leads out
        of the folder, its file is replaced right before the others.

    Raises
    ------
    OSError
        With the file in ``filename``; all old files are as they were.
    """
    folder = Path(os.path.realpath(folder))
    finish_switch(folder)
    clear_abandoned(folder)
    drafts: dict[Path, Path] = {}
    journal = folder / f".cardboost-{secrets.token_hex(8)}.{_JOURNAL}"
    target = folder
    try:
        for name, content in contents.items():
            if content is not None:
                target = Path(os.path.realpath(folder / name))
                drafts[target] = draft = _draft_beside(target)
                with _filling(draft, target) as file:
                    file.write(content)
        inside = {path.name: drafts[path].name for path in drafts if path.parent == folder}
        removed = [name for name, content in contents.items() if content is None]
        for target in [path for path in drafts if path.parent != folder]:
            os.replace(drafts[target], target)
        target = folder
        if len(inside) + len(removed) > 1:
            notes = json.dumps({"replace": inside, "remove": removed})
            with replacing(journal) as file:
                file.write(notes.encode())
            _sync_folder(folder)
        try:
            _switch(folder, inside, removed, journal)
        except KeyboardInterrupt:
            finish_switch(folder)  # the new files count already
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error
    finally:
        if not journal.exists():  # else the drafts are still to get their names
            for draft in drafts.values():
                draft.unlink(missing_ok=True)


def finish_switch(folder: Path) -> None:
    """Complete what a program that was killed, or that the system stopped, had begun to switch."""
    for journal in sorted(folder.glob(f".cardboost-*.{_JOURNAL}")):
        try:
            if not _is_of_this_user(journal):
                continue
            notes = json.loads(journal.read_bytes())
            inside, removed = dict(notes["replace"]), list(notes["remove"])
            sound = all(map(_is_plain_name, [*inside, *removed]))
            sound = sound and all(_DRAFT_NAME.fullmatch(draft) for draft in inside.values())
        except FileNotFoundError:
            continue  # another program has finished it
        except (ValueError, KeyError, TypeError, AttributeError):
            sound = False
        if sound:
            _switch(folder, inside, removed, journal)
        else:
            journal.unlink(missing_ok=True)  # not ours: nothing is renamed by it


def _switch(folder: Path, inside: Mapping[str, str], removed: list[str], journal: Path) -> None:
    """Give the drafts their names. Any of these steps may have been done before, here or elsewhere."""
    begun = False
    try:
        for name, draft in inside.items():
            with contextlib.suppress(FileNotFoundError):
                os.replace(folder / draft, folder / name)
            begun = True
        for name in removed:
            (folder / name).unlink(missing_ok=True)
    except OSError:
        if not begun:
            journal.unlink(missing_ok=True)  # the old files are all there and stay
        raise
    _sync_folder(folder)
    journal.unlink(missing_ok=True)


def clear_abandoned(folder: Path) -> None:
    """Remove drafts that a program left when it was killed an hour ago or more."""
    for draft in folder.glob(".cardboost-*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > ABANDONED_SECONDS:
                draft.unlink()


def _draft_beside(target: Path) -> Path:
    """A name that no file has, in the same folder and so on the same disk."""
    return target.with_name(f".cardboost-{secrets.token_hex(8)}.tmp")


def _is_of_this_user(path: Path) -> bool:
    """Whether this user has written a file: in a folder of many users others must not rename our files."""
    user = getattr(os, "geteuid", None)
    return user is None or path.stat().st_uid == user()


def _is_plain_name(name: Any) -> bool:
    """Whether this names a file of the folder itself: a journal reaches nothing else."""
    return isinstance(name, str) and name not in ("", ".", "..") and name == os.path.basename(name)


def _sync_folder(folder: Path) -> None:
    """Make new names last; not every system lets a folder be opened, and the files themselves are safe."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
