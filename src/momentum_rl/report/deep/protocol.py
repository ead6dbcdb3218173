"""How the numbers of some runs came about, in words."""

from collections.abc import Mapping, Sequence

from momentum_rl.report.deep.naming import usual
from momentum_rl.report.drawing.numbers import span
from momentum_rl.runs.config import SHARED, Config
from momentum_rl.runs.finding import Run, Score
from momentum_rl.runs.sweep import Sweep

STICKY = {"Atari": "sticky actions 0.25", "MinAtar": "sticky actions 0.1"}
"""By suite; the others have none."""


def protocol_of(suite: str, cells: Mapping[tuple[str, str], Sequence[Run]], score: Score) -> str:
    """How scores of a kind came about."""
    configs = [run.config for own in cells.values() for run in own]
    presets = list(dict.fromkeys(config.preset for config in configs))
    seeds = span([len(own) for own in cells.values()])
    parts = [
        f"{'preset' if len(presets) == 1 else 'presets'} {', '.join(presets)}",
        f"{span([config.steps for config in configs])} agent steps a run, in "
        f"{span([config.iterations for config in configs])} iterations of "
        f"{span([config.iteration_steps for config in configs])}",
        f"{seeds} {'seed' if seeds == '1' else 'seeds'} of each algorithm on each game",
        STICKY.get(suite, "no sticky actions"),
        _kind(configs, score),
    ]
    text = "; ".join(parts) + "."
    changed = _changed(configs)
    if changed:
        text += f" Changed from the preset: {', '.join(changed)}."
    return text[0].upper() + text[1:]


def _kind(configs: Sequence[Config], score: Score) -> str:
    """What a score of this kind is the mean of."""
    if score == "training":
        return "training scores (mean raw score of the episodes that ended in an iteration)"
    evaluated = [config for config in configs if config.evaluate_every]
    epsilons = ", ".join(f"{e:g}" for e in sorted({c.evaluation_epsilon for c in evaluated}))
    return (
        f"greedy scores (mean raw score of {span([c.periodic_episodes for c in evaluated])} "
        f"episodes with ε = {epsilons}, every "
        f"{span([c.evaluate_every for c in evaluated])} steps)"
    )


def _changed(configs: Sequence[Config]) -> list[str]:
    """Shared settings that are not their preset's: what keeps these from being that protocol."""
    changed: dict[str, set[str]] = {}
    for config in configs:
        for name in set(SHARED) - {"steps", "iteration_steps"}:
            if getattr(config, name) != usual(config, name):
                changed.setdefault(name, set()).add(str(getattr(config, name)))
    return [f"{name} {' or '.join(sorted(values))}" for name, values in sorted(changed.items())]


def notes_of(runs: Sequence[Run], sweep: Sweep | None) -> tuple[str, ...]:
    """What a reader must know of runs that diverged, are unfinished or have not begun."""
    notes = []
    diverged = [run for run in runs if run.state == "diverged"]
    unfinished = [run for run in runs if run.state == "unfinished"]
    if sweep is not None and len(runs) < sweep.runs:
        notes.append(f"{len(runs)} of the sweep's {sweep.runs} runs have begun.")
    if diverged:
        notes.append(
            f"{_runs(len(diverged))} diverged (marked × in the figures). A diverged run counts: "
            "from the iteration that it did not complete on, it has the lowest score that any run "
            "of these results reached on that game."
        )
    if unfinished:
        notes.append(
            f"{_runs(len(unfinished))} not finished: drawn up to where they are, and left out of "
            "areas, improvements and verdicts until they end."
        )
    return tuple(notes)


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"
