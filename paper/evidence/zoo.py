"""Puts trained agents into paper/zoo/, each with a card: python -m paper.evidence.zoo.

The agents of seed 0 that collect.py has copied, of the algorithms below; only the network that acts
is kept. What was copied for this is removed from paper/evidence/runs: an agent is kept once.
Each plays 500 episodes for its card: some agents get stuck in one game of thirty, and a run's own
100 may miss that.
"""

import json
import math
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from momentum_rl.agents.agent import AGENT_FILE, Agent, load, save
from momentum_rl.agents.registry import title_of
from momentum_rl.envs.make import make_environment
from momentum_rl.plumbing.files import write_aside
from momentum_rl.runs.config import Config
from momentum_rl.runs.files import EVALUATION, VERSIONS, EvaluationFile, read_if_there
from momentum_rl.runs.finding import Run, find_runs
from momentum_rl.training.evaluation import Evaluation, evaluate

HERE = Path(__file__).parent
ZOO = HERE.parent / "zoo"
LABELS = ("dqn", "momentum-dqn", "munchausen-dqn")
LICENCE = "Apache-2.0"
EPISODES, TOGETHER, SEED = 500, 50, 1
"""Of the evaluation for a card; the seed is not that of the run's own evaluations."""
NORMAL = 1.96
"""Standard errors on either side of a mean that a normal interval of 95 % has."""
PROTOCOL = (
    "MinAtar with sticky actions 0.1 and six actions, episodes cut at "
    "100,000 steps (Freeway ends by its own timer); Adam 2.5e-4, squared error, batches of 32 from "
    "100,000 transitions, an update every 4 steps, synchronisation every 1,000, ε from 1 to 0.1 "
    "over 1,000,000 steps, γ 0.99."
)


def acting(agent: Agent) -> Agent:
    """The agent with the network that acts alone; all of them, if its policy takes more."""
    if agent.named is not None:
        return agent
    name = agent.acts_on
    return Agent(
        {name: agent.networks[name]},
        {name: agent.params[name]},
        agent.spaces,
        acts_on=name,
        kinds={entry: kind for entry, kind in agent.kinds.items() if entry == name},
        spec=agent.spec,
        about=agent.about,
    )


def card_of(run: Run, agent: Agent, played: Evaluation) -> dict[str, Any]:
    """What a reader must know of an agent."""
    config = run.config
    ended: EvaluationFile = read_if_there(run.path, EVALUATION, EvaluationFile)
    versions = json.loads((run.path / VERSIONS).read_text(encoding="utf-8"))
    half = NORMAL * played.std / math.sqrt(len(played.returns) - 1)
    place = f"paper/zoo/{place_of(config.env, config.algorithm)}"
    return {
        "env": config.env,
        "algorithm": config.algorithm,
        "seed": config.seed,
        "steps": config.steps,
        "protocol": PROTOCOL,
        "command": command_of(config),
        "commit": commit_of(run),
        "versions": versions["since"][-1]["versions"],
        "at_the_end": ended.mean,
        "epsilon": config.evaluation_epsilon,
        "networks": sorted(agent.params),
        "licence": LICENCE,
        "score": played.mean,
        "deviation": played.std,
        "interval": [played.mean - half, played.mean + half],
        "episodes": len(played.returns),
        "evaluation": (
            f"movi evaluate {place} --episodes {EPISODES} --num-envs {TOGETHER} --seed {SEED}"
        ),
    }


def command_of(config: Config) -> str:
    """What trains such an agent: every field that is not its preset's."""
    usual = Config(config.algorithm, config.env, preset=config.preset)
    changed = {
        name.replace("_", "-"): value
        for name, value in config.to_dict().items()
        if value != usual.to_dict()[name]
    }
    words = [f"--{name} {value}" for name, value in changed.items() if name != "seed"]
    start = f"movi train {config.algorithm} --env {config.env} --seed {config.seed}"
    return " ".join([start, f"--preset {config.preset}", *words])


def written(card: Mapping[str, Any]) -> str:
    """A card in words."""
    place = f"paper/zoo/{place_of(card['env'], card['algorithm'])}"
    rows = {
        "score": f"{interval(card)}: mean raw return of {card['episodes']} episodes with ε = "
        f"{card['epsilon']:g}, and its normal interval of 95 % over these episodes "
        f"(`{card['evaluation']}`); the run's own evaluation at its end: {card['at_the_end']:.2f}",
        "steps": f"{card['steps']:,} agent steps, seed {card['seed']}",
        "protocol": card["protocol"],
        "command": f"`{card['command']}`",
        "commit": card["commit"],
        "versions": ", ".join(f"{entry} {number}" for entry, number in card["versions"].items()),
        "networks": f"{', '.join(card['networks'])}: what acts, and nothing else",
        "licence": card["licence"],
    }
    lines = [
        f"# {title_of(card['algorithm'])} on {card['env']}",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in rows.items()),
        "",
        "One seed of several: what the algorithm does on average is in",
        "[docs/evidence.md](../../../../docs/evidence.md).",
        "",
        "```sh",
        f"movi evaluate {place}",
        f"movi record {place} --out game.mp4",
        "```",
    ]
    return "\n".join(lines) + "\n"


def interval(card: Mapping[str, Any]) -> str:
    """A card's score."""
    low, high = card["interval"]
    return f"{card['score']:.2f} [{low:.2f}, {high:.2f}]"


def place_of(env: str, label: str) -> str:
    """Where an agent is in the zoo."""
    return f"{env.replace('/', '-')}/{label}"


def commit_of(run: Run) -> str:
    """The commit that a collected run was made by."""
    env, label, seed = run.path.parts[-3:]
    origins = json.loads((run.path.parents[3] / "origins.json").read_text())
    return origins[f"{env}/{label}/{seed}"]["commit"]


def fill(folder: Path, zoo: Path) -> list[Path]:
    """Writes what a folder has for the zoo; the agents' directories."""
    filled = []
    for run in find_runs(folder).runs:
        file = run.path / AGENT_FILE
        known = run.config.seed == 0 and run.state == "finished"
        if not known or run.label not in LABELS or not file.exists():
            continue
        agent = acting(load(file))
        epsilon = run.config.evaluation_epsilon
        with closing(make_environment(run.config.env, TOGETHER)) as environment:
            played = evaluate(agent, environment, EPISODES, epsilon=epsilon, seed=SEED)
        card = card_of(run, agent, played)
        place = zoo / place_of(run.config.env, run.label or "")
        place.mkdir(parents=True, exist_ok=True)
        save(agent, place / AGENT_FILE)
        write_aside(place / "card.json", json.dumps(card, indent=1, ensure_ascii=False) + "\n")
        write_aside(place / "README.md", written(card))
        file.unlink()
        filled.append(place)
    return filled


def index(zoo: Path) -> str:
    """The table of all agents in a zoo."""
    lines = [
        "# Trained agents",
        "",
        "Agents of seed 0 of the runs in [evidence](../evidence/PLAN.md), 1,000,000 steps each by",
        f"one protocol. The score is the mean raw return of {EPISODES} greedy episodes, with its",
        "95 % interval. Each has a card: protocol, command, commit, versions, licence. Made by",
        "`python -m paper.evidence.zoo`.",
        "",
        "| environment | algorithm | score | at play |",
        "|---|---|---|---|",
    ]
    for file in sorted(zoo.glob("*/*/card.json")):
        card = json.loads(file.read_text(encoding="utf-8"))
        place = file.parent.relative_to(zoo).as_posix()
        lines.append(
            f"| [{card['env']}]({place}/README.md) | {title_of(card['algorithm'])} "
            f"| {interval(card)} | `movi record paper/zoo/{place} --out game.mp4` |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path in fill(HERE, ZOO):
        print(path.relative_to(HERE.parent))
    write_aside(ZOO / "README.md", index(ZOO))
