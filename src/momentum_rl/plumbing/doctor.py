"""`movi doctor`: what is installed, what this machine has, and what each extra would add."""

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from momentum_rl.plumbing.sizes import available_cores, available_memory, readable
from momentum_rl.version import __version__

DISTRIBUTION = "momentum-rl"
ADDS = {
    "agents": "training, evaluating and loading agents",
    "atari": "Atari games (ALE/…)",
    "gymnax": "environments in JAX (MinAtar/…, gymnax/…), compiled with the agent",
    "mujoco": "MuJoCo's environments (Hopper-v5, …)",
    "onnx": "exporting agents to ONNX",
    "ray": "movi sweep --ray: runs on a cluster",
    "report": "movi report: the page and its figures",
    "video": "movi record",
}
"""What each extra is for; those for developers are left out."""
EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")


@dataclass(frozen=True)
class Doctor:
    """Say what is installed, which devices JAX sees, and what each extra would add."""

    def execute(self) -> None:
        """Print it, one fact a line."""
        for name, fact in facts():
            print(f"{name:<12} {fact}")


def facts() -> Iterator[tuple[str, str]]:
    """Names and what is to be said of each."""
    yield "movi", __version__
    yield "python", f"{platform.python_version()} ({platform.system()}, {platform.machine()})"
    yield "cores", str(len(available_cores()))
    yield "memory", f"{readable(available_memory())} available"
    yield "jax", _jax()
    for extra, missing in extras().items():
        does = ADDS[extra]
        if not missing:
            yield extra, f"installed: {does}"
        else:
            how = f"pip install 'momentum-rl[{extra}]' (in a clone: '.[{extra}]')"
            yield extra, f"missing {', '.join(missing)}: {does}; {how}"


def _jax() -> str:
    """JAX's version and the devices it sees."""
    try:
        import jax

        devices = [
            f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices()
        ]
    except (ImportError, RuntimeError) as error:
        return f"cannot be used: {' '.join(str(error).split())}"
    return f"{jax.__version__} on {', '.join(devices)}"


def extras() -> dict[str, list[str]]:
    """By extra of this distribution that users may want: its packages that are not installed."""
    found: dict[str, list[str]] = {}
    for line in requires(DISTRIBUTION) or ():
        extra = EXTRA.search(line)
        if extra is None or extra[1] not in ADDS:
            continue
        missing = found.setdefault(extra[1], [])
        name = re.match(r"[\w.-]+", line)
        if name is not None and name[0] != DISTRIBUTION and not _there(name[0]):
            missing.append(name[0])
    return dict(sorted(found.items()))


def _there(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
