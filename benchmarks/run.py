"""This project and its peers, side by side.

    python benchmarks/run.py [--only NAME ...] [--out FILE] [--repetitions N] [--full]
    python benchmarks/run.py --markdown FILE

Every ``bench_NAME.py`` beside this file is a benchmark: a command that prints one JSON object, sets
up the peers it needs by itself and takes ``--repetitions N``. They run one after the other. Each
object has ``comparisons`` (rows of work, unit, movi, peer, peer_figure, ratio, to_reach), or the
short form: ``work``, ``unit``, ``median`` (movi's figure first, then the others'),
``ratio``, ``to_reach``. A ratio above 1 is in movi's favour, whatever the unit. ``remarks`` are
lines for below the table.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from momentum_rl.plumbing.versions import installed
from processes import stage

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BENCHMARKS = {path.stem.removeprefix("bench_"): path for path in sorted(HERE.glob("bench_*.py"))}
# What `--full` adds to a benchmark's command.
FULL = {"compare": ("--full",)}
PACKAGES = ("movi", "jax", "jaxlib", "numpy", "scipy", "flax", "optax", "gymnasium")


def machine() -> dict[str, Any]:
    """What figures depend on, and nothing that tells machines of a kind apart."""
    facts: dict[str, Any] = {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "load_at_start": [round(x, 2) for x in os.getloadavg()],
    }
    for file, key, name in (
        ("/proc/cpuinfo", "model name", "processor"),
        ("/proc/meminfo", "MemTotal", "memory"),
    ):
        if Path(file).exists():
            lines = (line.split(":", 1) for line in Path(file).read_text().splitlines())
            found = [line[1].strip() for line in lines if line[0].strip() == key]
            facts |= {name: found[0]} if found else {}
    return facts


def versions() -> dict[str, str]:
    """Python, the packages of this environment that count, and the commit."""
    result = installed(PACKAGES)
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(git, capture_output=True, text=True)
    return {**result, "commit": done.stdout.strip()} if done.returncode == 0 else result


def benchmark(name: str, *, full: bool, repetitions: int | None) -> dict[str, Any]:
    """The JSON of one benchmark, or why there is none. Its progress goes to the terminal."""
    words = [sys.executable, str(BENCHMARKS[name]), *(FULL.get(name, ()) if full else ())]
    words += [] if repetitions is None else ["--repetitions", str(repetitions)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=None, text=True, cwd=ROOT)
    if done.returncode:
        return {"benchmark": name, "failed": f"status {done.returncode}; see its message above"}
    return json.loads(done.stdout)


def comparisons(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a benchmark's result, in either form."""
    if "comparisons" in result or "ratio" not in result:
        return result.get("comparisons", [])
    (_, ours), *others = result["median"].items()
    # The peer at its best, and none of this project's own variants.
    peer, theirs = max((o for o in others if not o[0].startswith("movi")), key=lambda o: o[1])
    row = {key: result.get(key) for key in ("work", "unit", "ratio", "to_reach")}
    return [{**row, "movi": ours, "peer": peer, "peer_figure": theirs}]


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as text."""
    reach, ratio = row["to_reach"], row["ratio"]
    verdict = "" if reach is None else f"≥ {reach:g} {'✓' if ratio >= reach else '✗'}"
    figures = (
        f"{row[name]:.3g}" if row[name] < 100 else f"{row[name]:,.0f}"
        for name in ("movi", "peer_figure")
    )
    return (
        row["work"],
        row["unit"],
        next(figures),
        row["peer"],
        next(figures),
        f"{ratio:.2f}",
        verdict,
    )


HEADINGS = ("work", "unit", "movi", "peer", "its figure", "ratio", "to reach")


def remarks(results: dict[str, dict[str, Any]]) -> list[str]:
    """Lines on what a table of ratios cannot hold."""
    lines = []
    for name, result in results.items():
        if "failed" in result:
            lines.append(f"{name}: no figures ({result['failed']}).")
        lines += [f"{name}, {line}" for line in result.get("remarks", [])]
        for size in result.get("sizes", []):
            at = f"{name}, {size['states']:,} states"
            lines += [f"{at}: {peer} {why}." for peer, why in size["failed"].items()]
            worst = ", ".join(f"{p} {m['error']:.1g}" for p, m in size["median"].items())
            lines.append(f"{at}: errors in the sup norm: {worst}.")
            if "sweep" in size:
                sweep, limits = size["sweep"], size["limits"]
                lines.append(
                    f"{at}: a sweep of movi solve takes {sweep['seconds_per_sweep'] * 1e3:.3g} ms "
                    f"and moves {sweep['gb_s']:.3g} GB/s, {sweep['of_copy']:.0%} of the machine's "
                    f"copy bandwidth ({limits['copy_gb_s']:.3g} GB/s) and "
                    f"{sweep['of_gathers']:.0%} of its random gathers "
                    f"({limits['gathers_m_s']:,.0f} M/s)."
                )
    return lines


def markdown(record: dict[str, Any]) -> str:
    """The tables of a results file, to be pasted into docs/benchmarks.md."""
    machine_, results = record["machine"], record["benchmarks"]
    known = {**record["versions"]}
    for result in results.values():
        peers = result.get("peers", {})
        known |= {name: peers[name] for name in ("quantecon", "mdpsolver") if name in peers}
    known_as = ", ".join(f"{name} {number}" for name, number in known.items())
    lines = [
        f"{record['date']}; {machine_.get('processor', machine_['architecture'])}, "
        f"{machine_['cores']} cores, load {machine_['load_at_start'][0]:g} at the start. "
        f"Versions: {known_as}.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---|---|---:|---|---:|---:|---|",
    ]
    rows = (cells(row) for result in results.values() for row in comparisons(result))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *(f"- {line}" for line in remarks(results))])


def show(record: dict[str, Any]) -> None:
    """The table in the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*HEADINGS)
    table.columns[0].no_wrap = True
    for result in record["benchmarks"].values():
        for row in comparisons(result):
            table.add_row(*cells(row))
    console = Console(width=None if sys.stdout.isatty() else 130)
    console.print(table)
    for line in remarks(record["benchmarks"]):
        console.print(line, highlight=False, markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=f"of {', '.join(BENCHMARKS)}"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench.json")
    parser.add_argument("--repetitions", type=int, help="instead of each benchmark's own number")
    parser.add_argument("--full", action="store_true", help="nothing is scaled from shorter runs")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="print the tables of an earlier run instead"
    )
    options = parser.parse_args()
    if options.markdown:
        if not options.markdown.exists():
            sys.exit(f"{options.markdown}: no such file; `make bench` writes one")
        print(markdown(json.loads(options.markdown.read_text())))
        return
    record: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "benchmarks": {},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    chosen = options.only or list(BENCHMARKS)
    for number, name in enumerate(chosen, 1):
        with stage(f"benchmark {number} of {len(chosen)}: {name}"):
            record["benchmarks"][name] = benchmark(
                name, full=options.full, repetitions=options.repetitions
            )
        # After each: a long run that is interrupted keeps what it has.
        options.out.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    show(record)
    if any("failed" in result for result in record["benchmarks"].values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
