"""SVG as PNG, where a program that can draw SVG is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_TIME_LIMIT = 60.0  # seconds


def png_of(svg: str, width: float, height: float, scale: float = 2.0) -> bytes | None:
    """The figure at ``scale`` times its size; None where no program can draw it."""
    try:
        import cairosvg
    except (ImportError, OSError):  # the module may be there without its library
        pass
    else:
        return bytes(cairosvg.svg2png(bytestring=svg.encode(), scale=scale))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "figure.svg"), Path(folder, "figure.png")
        source.write_text(svg, encoding="utf-8")
        for command in _commands(source, target, width, height, scale):
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=_TIME_LIMIT)
                return target.read_bytes()
            except (OSError, subprocess.SubprocessError):
                continue
    return None


def _commands(source: Path, target: Path, width: float, height: float, scale: float) -> list[list[str]]:
    """Commands to try, the best first: only programs that are installed."""
    commands = []
    if program := shutil.which("rsvg-convert"):
        commands.append([program, "--zoom", f"{scale:g}", "--output", str(target), str(source)])
    for name in _BROWSERS:
        if program := shutil.which(name):
            size = f"{round(width)},{round(height)}"
            commands.append(
                [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 f"--user-data-dir={source.parent / name}", f"--force-device-scale-factor={scale:g}",
                 f"--window-size={size}", f"--screenshot={target}", source.as_uri()]
            )  # fmt: skip
    return commands
