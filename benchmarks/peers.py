"""The peers' own environment, ``.venv-bench``: from PyPI, pinned by ``peers.txt``, made once."""

import json
import subprocess
import sys
from pathlib import Path

from processes import say, stage

HERE = Path(__file__).resolve().parent
PINS = HERE / "peers.txt"
FOLDER = HERE.parent / ".venv-bench"
PYTHON = FOLDER / "bin" / "python"
NAMES = ("numba", "quantecon", "mdpsolver")  # asked for by name; the other pins are what they need


class PeerMissing(Exception):
    """In one line, what could not be set up and why."""


def set_up() -> dict[str, str]:
    """Make the environment if need be; for each peer that cannot be installed, why."""
    stamp = FOLDER / ".ready"
    wanted = f"{sys.version_info[:2]}\n{PINS.read_text()}"
    if stamp.exists() and stamp.read_text() == wanted:
        return {}
    with stage(f"setting up {FOLDER.name} from {PINS.name}"):
        failed = _installed()
    if not failed:
        stamp.write_text(wanted)
    return failed


def _installed() -> dict[str, str]:
    try:
        subprocess.run(
            [sys.executable, "-m", "venv", str(FOLDER)], check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise PeerMissing(f"{FOLDER}: no virtual environment could be made: {error}") from None
    failed = {}
    for name in NAMES:
        words = ["install", "--quiet", "--disable-pip-version-check", "-c", str(PINS), name]
        done = subprocess.run(
            [str(PYTHON), "-m", "pip", *words], capture_output=True, text=True, timeout=1_200
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            why = (lines or done.stderr.splitlines() or ["no message"])[-1]
            failed[name] = f"cannot be installed from PyPI: {why.removeprefix('ERROR: ')}"
            say(f"{name}: {failed[name]}; it is left out")
    return failed


def versions() -> dict[str, str]:
    """What is installed there, by name."""
    done = subprocess.run(
        [str(PYTHON), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {entry["name"]: entry["version"] for entry in json.loads(done.stdout)}
