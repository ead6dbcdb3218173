"""Videos of an agent at play."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from movi.agents.agent import Agent
from movi.agents.exploration import drawn
from movi.envs.gym_vector import spaces_of
from movi.envs.make import make_visible
from movi.errors import MissingExtra, UserError
from movi.files import beside, file_to_write, writing
from movi.training.draws import env_seeds

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
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError:
        raise MissingExtra("record", "video") from None
    env = make_visible(env_id, trust=trust)
    with writing(file):
        aside = beside(file, ".part.mp4")
    writer = None
    try:
        if spaces_of(env.observation_space, env.action_space, env_id) != agent.spaces:
            raise UserError(f"env: {env_id} has other spaces than the agent was trained on")
        rng = np.random.default_rng(seed)
        returns = []
        for episode_seed in env_seeds(seed, episodes, RECORDING):
            observation, _ = env.reset(seed=episode_seed)
            total, ended = 0.0, False
            while True:
                frame = _even(env.render())
                if writer is None:
                    fps = int(env.metadata.get("render_fps") or 30)
                    size = frame.shape[1], frame.shape[0]
                    writer = imageio_ffmpeg.write_frames(
                        str(aside), size, fps=fps, macro_block_size=2, ffmpeg_log_level="error"
                    )
                    writer.send(None)
                writer.send(frame)
                if ended:
                    break
                (explore,), (random,) = drawn(rng, 1, epsilon, agent.spaces.actions)
                action = int(random if explore else agent.actions(observation))
                action += agent.spaces.first_action
                observation, reward, terminated, truncated, _ = env.step(action)
                total += float(reward)
                ended = terminated or truncated
            returns.append(total)
        if writer is not None:
            writer.close()
            writer = None
            with writing(file):
                aside.replace(file)
        return returns
    finally:
        if writer is not None:
            writer.close()
        aside.unlink(missing_ok=True)
        env.close()


def _even(frame: Any) -> np.ndarray:
    """An image whose sides are even, as the video format wants them."""
    image = np.asarray(frame, np.uint8)
    padding = [(0, image.shape[0] % 2), (0, image.shape[1] % 2), (0, 0)]
    return np.ascontiguousarray(np.pad(image, padding))
