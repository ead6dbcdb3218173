"""Copies the ended runs of a sweep here: python -m paper.evidence.collect SWEEP NAME CLONE.

Everything that makes a number: the matrix, each run's config, metrics, evaluations, status and
versions, in paper/evidence/runs/NAME; and the agents of seed 0 that zoo.py takes from there.
origins.json says of each run by which commit (that of CLONE, the clone that ran it) and on which
processor it was made, so call this on the machine that ran it: another rounds differently. Nothing
is computed here; fields of a config that have been renamed since have their new names.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

FILES = (
    "config.json",
    "metrics.jsonl",
    "evaluations.jsonl",
    "evaluation.json",
    "status.json",
    "versions.json",
)
IN_THE_ZOO = {"1-momentum": ("dqn", "momentum-dqn"), "3-munchausen": ("munchausen-dqn",)}
RENAMED = {"evaluation_episodes": "final_episodes", "evaluate_episodes": "periodic_episodes"}
"""Fields of a config that had another name at the commit of PLAN-2's clone."""
ENDED = ("finished", "diverged")
ORIGINS = "origins.json"


def processor() -> str:
    """Vendor, family and model, where the system says so."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().split("\n\n")[0].splitlines() if file.exists() else []
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    known = {name.strip(): value.strip() for name, value in fields.items()}
    return " ".join(known.get(name, "unknown") for name in ("vendor_id", "cpu family", "model"))


def commit_of(clone: Path) -> str:
    """The commit of a clone, of which no file has been changed since."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=clone, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no")
    if changed:
        sys.exit(f"{clone}: expected a clone of which no file was changed, found\n{changed}")
    return git("rev-parse", "HEAD")


def collect(sweep: Path, out: Path, commit: str) -> list[Path]:
    """The runs that were copied; those that are there already stay."""
    out.mkdir(parents=True, exist_ok=True)
    matrix = json.loads((sweep / "sweep.json").read_text())
    matrix["command"] = f"movi sweep evidence/{out.name}.toml"  # no directory of one machine
    for cell in matrix.get("cells", ()):
        cell["config"] = converted(cell["config"])
    (out / "sweep.json").write_text(json.dumps(matrix, indent=1, ensure_ascii=False) + "\n")
    copied = []
    for status in sorted(sweep.glob("runs/*/*/*/status.json")):
        run = status.parent
        target = out / run.relative_to(sweep)
        if json.loads(status.read_text())["status"] not in ENDED or target.exists():
            continue
        target.mkdir(parents=True)
        kept = run.name == "seed-0" and run.parent.name in IN_THE_ZOO.get(out.name, ())
        for name in (*FILES, "agent.safetensors") if kept else FILES:
            if (run / name).exists():
                shutil.copy(run / name, target / name)
        if (target / "config.json").exists():
            config = converted(json.loads((target / "config.json").read_text()))
            (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        copied.append(target)
    file = out / ORIGINS
    known = json.loads(file.read_text()) if file.exists() else {}
    origin = {"commit": commit, "processor": processor()}
    known |= {str(run.relative_to(out / "runs")): origin for run in copied}
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return copied


def converted(config: dict[str, Any]) -> dict[str, Any]:
    """A config with today's names."""
    return {RENAMED.get(name, name): value for name, value in config.items()}


if __name__ == "__main__":
    source, name, clone = sys.argv[1:]
    for run in collect(Path(source), Path(__file__).parent / "runs" / name, commit_of(Path(clone))):
        print(run)
