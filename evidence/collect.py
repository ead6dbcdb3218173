"""Copies the ended runs of a sweep into the repository: python evidence/collect.py SWEEP NAME.

Everything that makes a number: the matrix, each run's config, metrics, evaluations, status and
versions, in evidence/runs/NAME; and the agents of seed 0 that evidence/zoo.py takes from there.
processors.json says on which processor each run was made, so call this on the machine that ran
it: another rounds differently. Nothing is computed here.
"""

import json
import shutil
import sys
from pathlib import Path

FILES = (
    "config.json",
    "metrics.jsonl",
    "evaluations.jsonl",
    "evaluation.json",
    "status.json",
    "versions.json",
)
IN_THE_ZOO = ("dqn", "momentum-dqn", "munchausen-dqn")
ENDED = ("finished", "diverged")
PROCESSORS = "processors.json"


def processor() -> str:
    """Vendor, family and model, where the system says so."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().split("\n\n")[0].splitlines() if file.exists() else []
    said = dict(line.split(":", 1) for line in lines if ":" in line)
    known = {name.strip(): value.strip() for name, value in said.items()}
    return " ".join(known.get(name, "unknown") for name in ("vendor_id", "cpu family", "model"))


def collect(sweep: Path, out: Path) -> list[Path]:
    """The runs that were copied; those that are there already stay."""
    out.mkdir(parents=True, exist_ok=True)
    shutil.copy(sweep / "sweep.json", out / "sweep.json")
    copied = []
    for status in sorted(sweep.glob("runs/*/*/*/status.json")):
        run = status.parent
        target = out / run.relative_to(sweep)
        if json.loads(status.read_text())["status"] not in ENDED or target.exists():
            continue
        target.mkdir(parents=True)
        kept = run.name == "seed-0" and run.parent.name in IN_THE_ZOO
        names = (*FILES, "agent.safetensors") if kept else FILES
        for name in names:
            if (run / name).exists():
                shutil.copy(run / name, target / name)
        copied.append(target)
    made_on = out / PROCESSORS
    known = json.loads(made_on.read_text()) if made_on.exists() else {}
    known |= {str(run.relative_to(out / "runs")): processor() for run in copied}
    made_on.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    return copied


if __name__ == "__main__":
    for run in collect(Path(sys.argv[1]), Path(__file__).parent / "runs" / sys.argv[2]):
        print(run)
