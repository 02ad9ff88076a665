"""What all verbs share: errors that are one sentence, and files that are never half written."""

from __future__ import annotations

import contextlib
import glob
import os
import shlex
import shutil
import stat
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cardboost.data.sentences import reason
from cardboost.model import atomic
from cardboost.model.printable import printable

if TYPE_CHECKING:
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.files import Model
    from cardboost.model.multiclass import MulticlassEnsemble

OK = 0
CERTIFICATE_FAILS = 1
CHECK_FAILS = 1
BAD_INPUT = 2
BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


class BadInput(Exception):
    """Something the user can put right. The message is one sentence that says what and where."""


def make_folder(path: str) -> Path:
    """The folder for a run, made if it is not there; found out before any long work begins."""
    if not path:
        raise BadInput("--out is empty: name a folder.")
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make the folder {path!r}: {reason(error)}.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"cannot write into the folder {path!r}: permission denied.")
    return folder


def refuse_to_replace(written: Iterable[str | Path], read: Iterable[str]) -> None:
    """Refuse to write over a file that is read, by whatever name.

    Parameters
    ----------
    written : iterable of str or Path
        Files that will be written; - is the screen.
    read : iterable of str
        Files that are read, or patterns of them; - is the standard input.
    """
    inputs = [status for word in read for status in _statuses(word)]
    for path in written:
        try:
            status = None if str(path) == "-" else os.stat(path)
        except OSError:
            continue
        if status is None or not stat.S_ISREG(status.st_mode):
            continue
        if any(os.path.samestat(status, other) for other in inputs):
            raise BadInput(f"--out would replace {str(path)!r}, which is read here: name another place.")


def _statuses(word: str) -> Iterator[os.stat_result]:
    """The files that a word of the command names."""
    paths = [word] if os.path.exists(word) else glob.glob(word)
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if word == "-":
            yield os.fstat(sys.stdin.fileno())
    for path in paths:
        with contextlib.suppress(OSError):
            yield os.stat(path)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Text written here takes the place of ``path`` when it is complete and on the disk.

    However the program ends, the path holds the old file or the new one, never a part of one. A device or a
    pipe is never replaced: text goes straight into it.
    """
    path = Path(os.path.realpath(path))
    as_text: dict[str, Any] = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
    try:
        with open(path, "w", **as_text) if is_special(path) else atomic.replacing(path, **as_text) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BadInput(f"cannot write {str(path)!r}: {reason(error)}.") from None


def is_special(path: Path) -> bool:
    """Whether a path is something to write into that is not a file: a device, a pipe."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text)


def write_together(folder: Path, contents: Mapping[str, bytes | None]) -> list[Path]:
    """Files of one folder, which change together; see :func:`cardboost.model.atomic.write_together`."""
    for name in contents:
        target = Path(os.path.realpath(folder / name))
        if target.is_dir() or is_special(target):
            what = "folder" if target.is_dir() else "device"
            raise BadInput(f"cannot write {str(folder / name)!r}: there is a {what} of that name.")
    try:
        atomic.write_together(folder, contents)
    except OSError as error:
        raise BadInput(f"cannot write {error.filename or str(folder)!r}: {reason(error)}.") from None
    return [folder / name for name, content in contents.items() if content is not None]


def read_model_file(path: str) -> Model:
    from cardboost.model.files import load_model

    try:
        return load_model(path)
    except OSError as error:
        raise BadInput(f"cannot read {path!r}: {reason(error)}.") from None
    except ValueError as error:
        if "expected JSON" in str(error):
            raise BadInput(
                f"{path} is not a model file such as run/model.json; the model comes first, then the data."
            ) from None
        raise BadInput(f"this is not a model file that can be used: {error}.") from None


def card_of(model: Model, path: str) -> Ensemble | MulticlassEnsemble:
    """The card in a model file; linear models and networks have none."""
    from cardboost.model.ensemble import Ensemble
    from cardboost.model.multiclass import MulticlassEnsemble

    if isinstance(model.ensemble, Ensemble | MulticlassEnsemble):
        return model.ensemble
    raise BadInput(f"{path} holds no card: in Python cardboost.load_model takes it, and checks it.")


def shell_line(*arguments: str, width: int = 79) -> str:
    """A command to try, quoted for a shell; its options go on a second line if one is too short."""
    words = (_program(), *arguments)
    quoted = [_quoted(word) for word in words]
    line = "  " + " ".join(quoted)
    first_option = next((k for k, word in enumerate(words) if word.startswith("--")), 0)
    if len(line) <= width or not first_option:
        return line
    return f"  {' '.join(quoted[:first_option])} \\\n      {' '.join(quoted[first_option:])}"


def next_lines(commands: Iterable[Sequence[str]], data: Sequence[str]) -> list[str]:
    """Commands to try; none where the table came from the standard input, which is used up.

    Parameters
    ----------
    commands : iterable of sequences of str
        The words of each command, without the program.
    data : sequence of str
        The files of the table.
    """
    return [] if "-" in data else ["", "Next:", *(shell_line(*words) for words in commands)]


def _program() -> str:
    """What to type for this command: its name, or its path where a shell would not find it (`make demo`)."""
    started, known = sys.argv[0], shutil.which("cardboost")
    if os.path.basename(started) != "cardboost":
        return "cardboost"
    with contextlib.suppress(OSError):
        known = known if known is not None and os.path.samefile(known, started) else None
    return started if known is None else "cardboost"


def _quoted(word: str) -> str:
    """For a shell; characters without a shape as escapes that it reads."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{printable(escaped)}'"


def say(remark: str | None, verb: str) -> None:
    """A remark on stderr, where there is one."""
    if remark is not None:
        to_stderr(f"cardboost {verb}: {remark}")


def to_stderr(sentence: str) -> None:
    """One line on stderr; on a terminal it breaks between words."""
    text = printable(sentence)
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(
            text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    print(text, file=sys.stderr)
