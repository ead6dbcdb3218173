# %% [markdown]
# # Train, stop, resume, compare
#
# DQN and Momentum-DQN on MinAtar's Breakout: two algorithms, three seeds each, in a few minutes. On the way we
# kill a run in the middle and resume it, and see that nothing has changed. The runs are short, 8,000 steps
# instead of a million, so the numbers at the end show how to compare, and decide nothing.

# %%
import json
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import altair as alt
import numpy as np

alt.renderers.enable("svg")
runs = Path(tempfile.mkdtemp())
STEPS = "--steps 8000 --iteration-steps 1000 --epsilon-decay 4000 --learning-starts 1000"


def shell(command):
    """Runs a command of movi, as in a terminal, and shows what it prints."""
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", "momentum_rl", *words[1:]], cwd=runs, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    print(f"$ {command}\n{done.stdout}")


# %% [markdown]
# ## Train
#
# On environments written in JAX the whole loop is one compiled program. The seeds train one after another;
# several at once are a sweep.

# %%
for algorithm in ("dqn", "momentum-dqn"):
    shell(
        f"movi train {algorithm} --env MinAtar/Breakout --preset minatar --seeds 3 "
        f"--out {algorithm} {STEPS} --final-episodes 20"
    )

# %% [markdown]
# A run is a directory of plain files:

# %%
for path in sorted((runs / "dqn" / "seed-0").iterdir()):
    print(path.name)

# %% [markdown]
# ## Stop and resume
#
# The same run of DQN with seed 0 again, but this time it is stopped in the middle, as by Ctrl-C.

# %%
command = (
    f"movi train dqn --env MinAtar/Breakout --preset minatar --seed 0 --out stopped {STEPS} "
    "--final-episodes 20 --checkpoint-every 2000"
)
words = [sys.executable, "-m", "momentum_rl", *shlex.split(command)[1:]]
process = subprocess.Popen(words, cwd=runs, stderr=subprocess.PIPE, text=True)
metrics = runs / "stopped" / "metrics.jsonl"
while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= 3):
    time.sleep(0.05)
process.send_signal(signal.SIGINT)
_, said = process.communicate()
print(f"exit status {process.returncode}: {said.strip().splitlines()[-1]}")

# %%
shell("movi resume stopped")

# %% [markdown]
# The resumed run has the same metrics as the run of seed 0 that was not stopped, byte for byte, because every
# random number is a function of the seed and of a count.

# %%
shell(command.removesuffix(" --checkpoint-every 2000").replace("--out stopped", "--out whole"))
stopped, whole = ((runs / name / "metrics.jsonl").read_bytes() for name in ("stopped", "whole"))
assert stopped == whole
len(stopped), stopped == whole

# %% [markdown]
# ## Compare
#
# Every row of `metrics.jsonl` is an iteration. `score` is the mean return of the training episodes that ended
# in it.

# %%
rows = []
for algorithm in ("dqn", "momentum-dqn"):
    for seed in range(3):
        path = runs / algorithm / f"seed-{seed}" / "metrics.jsonl"
        for line in path.read_text().splitlines():
            row = json.loads(line)
            rows.append(
                {"algorithm": algorithm, "seed": seed, "step": row["step"], "score": row["score"]}
            )

base = alt.Chart(alt.Data(values=rows), width=560, height=240).encode(
    alt.X("step:Q", title="agent steps"),
    alt.Color("algorithm:N", title=None, legend=alt.Legend(orient="bottom")),
)
thin = base.mark_line(strokeWidth=1, opacity=0.4).encode(alt.Y("score:Q"), alt.Detail("seed:N"))
mean = base.mark_line(strokeWidth=3).encode(alt.Y("mean(score):Q", title="training score"))
thin + mean

# %% [markdown]
# The area under a learning curve is its mean over iterations. The improvement of Momentum-DQN over DQN is the
# difference of the areas, divided by DQN's. Its interval comes from a bootstrap over the seeds, the same that
# `movi report` uses:

# %%
from momentum_rl.report.statistics import compare  # noqa: E402


def areas(algorithm):
    """The area under the curve of each run."""
    return np.array(
        [
            np.mean(
                [row["score"] for row in rows if row["algorithm"] == algorithm and row["seed"] == s]
            )
            for s in range(3)
        ]
    )


comparison = compare({"Breakout": areas("momentum-dqn")}, {"Breakout": areas("dqn")})
mean = comparison.mean
print(f"improvement {mean.value:+.0%}, 95 % interval [{mean.low:+.0%}, {mean.high:+.0%}]")
print("decided" if mean.low > 0 or mean.high < 0 else "not decided: the interval contains 0")

# %% [markdown]
# Three seeds of a short run on one game cannot decide more. For the full comparison, run `movi sweep minatar
# --scale laptop --out sweep` overnight, and then `movi report sweep`:
# [Sweeps and clusters](../sweeps.md).
