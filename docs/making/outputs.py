"""Runs the commands of a page and writes what they print beneath them.

python docs/making/outputs.py docs/start.md
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```console\n(.*?)```", re.S)
_STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.M)


def steps(page: str) -> list[tuple[str, str]]:
    """The commands of a page, each with what is shown beneath it."""
    return [step for block in _BLOCK.findall(page) for step in _STEP.findall(block)]


def run(command: str, directory: Path) -> str:
    """What a command prints; an error if it fails."""
    words = shlex.split(command)
    programs = {"movi": ["-m", "momentum_rl"], "python": []}
    if words[0] not in programs:
        raise ValueError(f"{command!r}, expected a command of movi or of the paper")
    done = subprocess.run(
        [sys.executable, *programs[words[0]], *words[1:]],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # where `python -m paper` is
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stderr}")
    return done.stdout.strip()


def main(path: Path) -> None:
    """Runs the page's commands, in order and in one empty directory, and rewrites the page."""
    with tempfile.TemporaryDirectory() as name:

        def printed(block: re.Match[str]) -> str:
            commands = [command for command, _ in _STEP.findall(block[1])]
            told = [f"$ {command}\n{run(command, Path(name))}\n" for command in commands]
            return f"```console\n{''.join(told)}```"

        path.write_text(_BLOCK.sub(printed, path.read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
