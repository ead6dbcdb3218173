"""The zoo's agents in the original games: python -m paper.evidence.original OUT [EPISODES].

We train on gymnax's MinAtar, with what it leaves out put back. This plays the same agents, as
momentum_rl.load gives them, in the games of MinAtar's authors. It needs their package, which brings
nothing else that gymnax has not:

    .venv/bin/python -m pip install --no-deps MinAtar
    .venv/bin/python -m paper.evidence.original paper/evidence/original.json

OUT becomes a JSON file: the command, the commit, the versions, and of each agent the returns.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

from momentum_rl import load
from momentum_rl.plumbing.versions import of_training
from paper.evidence.collect import commit_of

HERE = Path(__file__).parent
ZOO = HERE.parent / "zoo"
NAMES = {"SpaceInvaders": "space_invaders"}
STICKY, SEED, LONGEST = 0.1, 1, 100_000


def play(agent, game: str, episodes: int) -> list[float]:
    """The returns of greedy episodes, one after the other."""
    from minatar import Environment

    env = Environment(NAMES.get(game, game.lower()), sticky_action_prob=STICKY)
    env.seed(SEED)
    returns = []
    for _ in range(episodes):
        env.reset()
        total, ended, length = 0.0, False, 0
        while not ended and length < LONGEST:
            reward, ended = env.act(agent.act(np.asarray(env.state(), bool)))
            total, length = total + float(reward), length + 1
        returns.append(total)
    return returns


def main(out: str, episodes: str = "100") -> None:
    """Plays all and writes."""
    commit, agents = commit_of(HERE), {}
    for card in sorted(ZOO.glob("*/*/card.json")):
        place = card.parent.relative_to(ZOO).as_posix()
        game = place.split("/")[0].removeprefix("MinAtar-")
        agents[place] = play(load(card.parent), game, int(episodes))
        print(place, np.mean(agents[place]), flush=True)
    record = {
        "command": f"python -m paper.evidence.original OUT {episodes}",
        "commit": commit,
        "versions": {**of_training(), "MinAtar": version("MinAtar")},
        "sticky": STICKY,
        "seed": SEED,
        "returns": agents,
    }
    Path(out).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
