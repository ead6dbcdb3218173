"""stable-baselines3's SAC beside matrix 9: python paper/evidence/peer.py OUT ENV SEED.

Run by an interpreter that has stable-baselines3 and MuJoCo, and not this package:

    make recipes
    .venv-recipes/bin/python -m pip install -c constraints.txt 'gymnasium[mujoco]'
    .venv-recipes/bin/python paper/evidence/peer.py OUT Hopper-v5 0

The settings, steps and evaluations are those of 9-mujoco.toml. OUT becomes a JSON file:
the command, the settings, the seed, the versions, and every 10,000 steps the returns of ten
episodes of the mean action.
"""

import copy
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

STEPS = 100_000
EVERY = 10_000
EPISODES = 10
# The preset ``sac``, in stable-baselines3's names; all of them are its defaults.
SETTINGS = {
    "learning_rate": 3e-4,
    "buffer_size": 1_000_000,
    "learning_starts": 100,
    "batch_size": 256,
    "tau": 0.005,
    "gamma": 0.99,
    "train_freq": 1,
    "gradient_steps": 1,
    "ent_coef": "auto",
    "target_entropy": "auto",
    "policy_kwargs": {"net_arch": [256, 256]},
}
PACKAGES = ("stable-baselines3", "torch", "gymnasium", "mujoco", "numpy")


def main(out: str, env: str, seed: str) -> None:
    """Trains, evaluates on the way, and writes."""
    import gymnasium
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    torch.set_num_threads(1)
    # A copy: stable-baselines3 writes into the keywords that it is given what it adds by default.
    model = SAC("MlpPolicy", env, seed=int(seed), device="cpu", **copy.deepcopy(SETTINGS))
    watched = Monitor(gymnasium.make(env))
    watched.reset(seed=10_000 + int(seed))
    rows = []
    for step in range(EVERY, STEPS + 1, EVERY):
        model.learn(EVERY, reset_num_timesteps=False, log_interval=None)
        assert model.num_timesteps == step
        returns, _ = evaluate_policy(
            model, watched, EPISODES, deterministic=True, return_episode_rewards=True
        )
        rows.append({"step": step, "mean": sum(returns) / EPISODES, "returns": returns})
    record = {
        "command": f"python paper/evidence/peer.py OUT {env} {seed}",
        "env": env,
        "seed": int(seed),
        "settings": SETTINGS,
        "versions": {"python": platform.python_version(), **{n: version(n) for n in PACKAGES}},
        "rows": rows,
    }
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
