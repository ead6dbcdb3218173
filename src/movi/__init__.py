"""movi."""

from typing import Any


def __getattr__(name: str) -> Any:
    """``movi.load(FILE)``, imported when it is first used: ``import movi`` stays light."""
    if name == "load":
        from movi.agents.agent import load

        return load
    raise AttributeError(f"module 'movi' has no attribute {name!r}")
