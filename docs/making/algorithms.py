"""What the pages of the algorithms have from the code and from the runs of the evidence."""

import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import altair as alt
import numpy as np
from fields import settings, table
from links import ROOT

from momentum_rl.agents.learner import method_of
from momentum_rl.agents.registry import find, title_of
from momentum_rl.core.options import Averaging
from momentum_rl.runs.finding import Run, find_runs

METRICS = {
    "iteration": "The number of the row, from 0.",
    "step": "Agent steps so far.",
    "episodes": "Episodes that ended in the iteration.",
    "score": "The mean return of these episodes: raw rewards, whole episodes. Empty without any.",
    "score_std": "The standard deviation of these returns.",
    "length": "The mean length of these episodes, in agent steps.",
    "largest_reward": "The largest absolute reward of a step in the iteration.",
    "alpha": "The temperature α, the weight of the entropy.",
    "clipped_q": "The share of a target's probability that falls outside the support and is moved "
    "to its ends. Above 1 % over an iteration there is a warning: widen the support.",
    "entropy": "The mean of −ln π(a|s) over actions drawn from the policy.",
    "loss_actor": "The actor's loss: α ln π(a|s) minus the value that it climbs.",
    "loss_h": "The loss of H, averaged over the iteration's updates.",
    "loss_q": "The loss of Q, averaged over the iteration's updates.",
    "loss_temperature": "The loss of the temperature; not logged where the temperature is fixed.",
    "mean_h": "The mean of H(s, a) over sampled (s, a).",
    "mean_q": "The mean of Q(s, a) over sampled (s, a). Far above what returns can be, it shows "
    "that values are overestimated.",
    "dormant": "The share of dormant units of the network that acts, in the hidden layer that has "
    "most of them (Sokar et al. 2023: at most a fortieth of the layer's mean activity).",
    "rms_update_actor": "Of the actor, as `rms_update_q`.",
    "rms_update_h": "Of H, as `rms_update_q`.",
    "rms_update_q": "The root mean square of Q's next update, over its learning rate. Far below 1 "
    "the optimiser's ε swallows the gradients.",
    "rms_update_temperature": "Of the temperature, as `rms_update_q`.",
    "beta": "β at the iteration's last step.",
    "epsilon": "ε, the share of random actions, at the iteration's last step.",
    "updates": "Updates so far.",
    "syncs": "Synchronisations of the lagged copies so far.",
    "stored": "Transitions that can be sampled.",
    "bias": "With evaluations on the way: the mean of the acting network's value of what it did, "
    "less that of the discounted return from there on, over the episodes that terminated. Above 0 "
    "the values are too high. Only where values are plain returns.",
}
"""Every metric that a run may log, in the order of a row, with what it means."""
_LEARNED = ("alpha", "bias", "clipped", "entropy", "loss", "mean", "rms")
KITAMURA = "Kitamura et al. 2023, a mean over the first million steps"
OTHER = "minatar"
"""The preset of runs beside those by a study's protocol: named in curves, without its scores."""
ZOO = "stable-baselines3's zoo, 20,000 steps"
PUBLISHED: Mapping[tuple[str, str], tuple[str, str]] = {
    ("dqn", "MinAtar/Breakout"): ("7.26", KITAMURA),
    ("dqn", "MinAtar/Asterix"): ("4.36", KITAMURA),
    ("dqn", "MinAtar/Freeway"): ("35.56", KITAMURA),
    ("dqn", "MinAtar/Seaquest"): ("1.11", KITAMURA),
    ("dqn", "MinAtar/SpaceInvaders"): ("20.53", KITAMURA),
    ("munchausen-dqn", "MinAtar/Breakout"): ("8.89", KITAMURA),
    ("munchausen-dqn", "MinAtar/Asterix"): ("10.61", KITAMURA),
    ("munchausen-dqn", "MinAtar/Freeway"): ("50.12", KITAMURA),
    ("munchausen-dqn", "MinAtar/Seaquest"): ("3.42", KITAMURA),
    ("munchausen-dqn", "MinAtar/SpaceInvaders"): ("34.63", KITAMURA),
    ("sac", "gymnax/Pendulum-v1"): ("−157 ± 89", ZOO),
}
"""Published scores, by algorithm and environment, with their sources."""


def options(name: str) -> str:
    """The table of an algorithm's own options."""
    rows = list(settings(find(name)))
    return table(rows) if rows else "It has no options of its own."


def logged(name: str) -> list[str]:
    """The names of what an algorithm logs, in the order of a row."""
    method = method_of(find(name)(), "squared", None)
    networks = [
        f"{kind}_{network}" for network in method.networks for kind in ("loss", "rms_update")
    ]
    learned = {*method.shown, *networks, *(["bias"] if method.values_are_returns else [])}
    if issubclass(find(name), Averaging):
        learned.add("beta")
    unexplained = learned - set(METRICS)
    if unexplained:
        raise ValueError(f"{name} logs {sorted(unexplained)}, which nothing explains")
    return [
        metric
        for metric in METRICS
        if metric in learned or not (metric == "beta" or metric.split("_")[0] in _LEARNED)
    ]


def metrics(name: str) -> str:
    """The table of an algorithm's metrics."""
    lines = ["| metric | meaning |", "|---|---|"]
    lines += [f"| `{one}` | {METRICS[one].replace('|', chr(92) + '|')} |" for one in logged(name)]
    return "\n".join(lines)


@cache
def _runs() -> Sequence[Run]:
    found = find_runs(ROOT / "paper" / "evidence" / "runs").runs
    return [run for run in found if run.state != "unfinished"]


def _of(names: Iterable[str]) -> dict[tuple[str, str, str], list[Run]]:
    """The runs of algorithms, by environment, label and preset."""
    cells = defaultdict(list)
    for run in _runs():
        if run.config.algorithm in names:
            config = run.config
            cells[config.env, run.label or config.algorithm, config.preset].append(run)
    return dict(sorted(cells.items()))


def results(name: str) -> str:
    """A table of the scores at the end of the runs of the evidence, beside published ones."""
    lines = [
        "| environment | variant | preset | steps | seeds | ours | published |",
        "|---|---|---|---|---|---|---|",
    ]
    for (env, label, preset), runs in _of({name}).items():
        scores = [run.evaluation for run in runs if run.evaluation is not None]
        mean = f"{np.mean(scores):.1f} ± {np.std(scores):.1f}" if scores else "–"
        gone = sum(run.state == "diverged" for run in runs)
        mean += f" ({gone} diverged)" if gone else ""
        config = runs[0].config
        value, source = PUBLISHED.get((name, env), ("", "")) if preset != OTHER else ("", "")
        beside = f"{value} ({source})" if value else "none known"
        cells = (env, label, f"`{preset}`", f"{config.steps:,}", len(runs), mean, beside)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    if len(lines) == 2:
        return "The repository holds no complete run of this algorithm yet."
    return (
        "The mean return of the episodes that the final agent plays, with the standard deviation "
        "over seeds. The runs, with their configs and every score, are in "
        "`paper/evidence/runs`.\n\n" + "\n".join(lines)
    )


def curves(name: str) -> bytes | None:
    """Learning curves of an algorithm beside those of what it changes; None without runs."""
    base = name.removeprefix("momentum-") if name.startswith("momentum-") else "dqn"
    if not _of({name}):
        return None
    rows = [
        {
            "environment": env,
            "variant": label if preset != OTHER else f"{label}, preset {preset}",
            "seed": run.config.seed,
            "step": float(step),
            "score": float(score),
        }
        for (env, label, preset), runs in _of({name, base}).items()
        for run in runs
        for step, score in zip(run.training.steps, run.training.scores)
        if np.isfinite(score)
    ]
    one = (
        alt.Chart(width=250, height=170)
        .mark_line()
        .encode(
            alt.X("step:Q", title="agent steps", axis=alt.Axis(format="~s")),
            alt.Y("mean(score):Q", title="training score, mean over seeds"),
            alt.Color("variant:N", legend=alt.Legend(orient="bottom", title=None)),
        )
    )
    chart = one.facet("environment:N", columns=2, data=alt.Data(values=rows))
    chart = chart.resolve_scale(y="independent").configure_view(stroke=None)
    file = io.StringIO()
    chart.save(file, format="svg")
    return file.getvalue().encode()


_MARK = re.compile(r"<!-- (options|metrics|results): ([\w-]+) -->")


def filled(markdown: str) -> str:
    """A page with its tables in the place of their marks."""

    def made(mark: re.Match[str]) -> str:
        kind, name = mark[1], mark[2]
        if kind == "options":
            return options(name)
        if kind == "metrics":
            return metrics(name)
        figure = f"![Learning curves of {title_of(name)}](curves-{name}.svg)"
        return f"{results(name)}\n\n{figure}" if _of({name}) else results(name)

    return _MARK.sub(made, markdown)
