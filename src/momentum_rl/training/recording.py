"""Videos of an agent at play."""

import os
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from momentum_rl.agents.agent import Agent
from momentum_rl.envs.gym_vector import spaces_of
from momentum_rl.envs.make import make_visible
from momentum_rl.errors import MissingExtra, Unwritable, UserError, check_count, check_fraction
from momentum_rl.plumbing.files import beside, file_to_write, writing
from momentum_rl.spaces import LONGEST
from momentum_rl.training.loop import drawn, env_seeds, epsilon_greedy

RECORDING = 2  # the purpose of the seeds


def record(
    agent: Agent,
    env_id: str,
    out: str | Path,
    *,
    episodes: int = 1,
    epsilon: float = 0.0,
    seed: int = 0,
    trust: Collection[str] = (),
) -> list[float]:
    """Writes an mp4 of whole episodes, one after the other; their returns.

    An id of the form MODULE:NAME is taken only if the module is in ``trust``.
    """
    if Path(out).suffix != ".mp4":
        raise UserError(f"out: {out}, expected a file name that ends in .mp4")
    file = file_to_write(out)
    check_count("episodes", episodes)
    check_fraction("epsilon", epsilon)
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ModuleNotFoundError:
        raise MissingExtra("record", "video") from None
    with writing(file):
        aside = beside(file, ".part.mp4")
    with _no_devices():
        env = make_visible(env_id, trust=trust)
        try:
            if spaces_of(env.observation_space, env.action_space, env_id) != agent.spaces:
                raise UserError(f"env: {env_id} has other spaces than the agent was trained on")
            returns: list[float] = []
            frames = _play(agent, env, env_seeds(seed, episodes, RECORDING), epsilon, seed, returns)
            fps = int(env.metadata.get("render_fps") or 30)
            _encode(get_ffmpeg_exe(), frames, aside, fps)
            with writing(file):
                aside.replace(file)
            return returns
        finally:
            aside.unlink(missing_ok=True)
            env.close()


def _play(
    agent: Agent, env: Any, seeds: Collection[int], epsilon: float, seed: int, returns: list[float]
) -> Iterator[np.ndarray]:
    """The images of whole episodes; the return of each is appended at its end."""
    rng = np.random.default_rng(seed)
    for episode_seed in seeds:
        observation, _ = env.reset(seed=episode_seed)
        total, ended, steps = 0.0, False, 0
        while True:
            yield _even(env.render())
            if ended or steps == LONGEST:
                break
            exploration = drawn(rng, 1, epsilon, agent.spaces)
            (action,) = epsilon_greedy(
                exploration, partial(agent.actions, np.asarray(observation)[None])
            )
            observation, reward, terminated, truncated, _ = env.step(agent.spaces.own(action))
            total, steps = total + float(reward), steps + 1
            ended = terminated or truncated
        returns.append(total)


def _encode(ffmpeg: str, frames: Iterator[np.ndarray], file: Path, fps: int) -> None:
    """Writes images of one size as H.264.

    Without a fork of Python, which JAX's threads could deadlock: nothing is to run in the child
    before ffmpeg does. In a process group of its own, so that a terminal's SIGINT reaches us alone.
    """
    first = next(frames)
    size = f"{first.shape[1]}x{first.shape[0]}"
    given = f"-f rawvideo -pix_fmt rgb24 -video_size {size} -framerate {fps} -i -"
    wanted = "-an -vcodec libx264 -crf 25 -pix_fmt yuv420p"
    command = [ffmpeg, "-y", "-v", "error", *given.split(), *wanted.split(), str(file)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            process_group=0,
        ) as process,
    ):
        assert process.stdin is not None
        try:
            for frame in chain((first,), frames):
                process.stdin.write(frame.data)
        except BrokenPipeError:
            pass  # it says why
        except BaseException:
            process.kill()
            raise
        process.communicate()  # closes its input and waits for its end
        if process.returncode != 0:
            log.seek(0)
            lines = log.read().decode(errors="replace").splitlines()
            reason = next((line for line in lines if line.strip()), f"status {process.returncode}")
            raise Unwritable(f"out: ffmpeg could not write the video: {reason.strip()}")


@contextmanager
def _no_devices() -> Iterator[None]:
    """Neither sound nor a window, which SDL (under pygame) would open and complain about."""
    dummies = {"SDL_AUDIODRIVER": "dummy", "SDL_VIDEODRIVER": "dummy"}
    before = {name: os.environ.get(name) for name in dummies}
    os.environ.update(dummies)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _even(frame: Any) -> np.ndarray:
    """An image whose sides are even, as the video format wants them."""
    image = np.asarray(frame, np.uint8)
    padding = [(0, image.shape[0] % 2), (0, image.shape[1] % 2), (0, 0)]
    return np.ascontiguousarray(np.pad(image, padding))
