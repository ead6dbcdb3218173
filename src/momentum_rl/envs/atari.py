"""Atari games by the paper's protocol, through ale-py's native vector environment.

One agent step is four emulator frames. In each frame the emulator repeats the action of the frame
before with probability 0.25 (sticky actions). An observation is four greyscale images, each the
maximum of the last two frames of a step, then resized to 84×84; the newest is last, and before the
first there are zeros. Rewards are raw. An episode is a whole game, cut after 27,000 steps.

The cut is made here and not by the emulator, which leaves the last frames of a game out of its last
observation. After a cut that observation is learned from; after a game's own end it is not.
"""

import difflib
import re
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from momentum_rl.envs.gym_vector import GymnasiumVector
from momentum_rl.errors import MissingExtra, UserError
from momentum_rl.spaces import ATARI

FRAMES_PER_STEP = 4
EPISODE_STEPS = 27_000
STICKINESS = 0.25

# Every setting is written out: most of ale-py's defaults are another protocol's.
PROTOCOL: dict[str, Any] = {
    "max_num_frames_per_episode": (EPISODE_STEPS + 1) * FRAMES_PER_STEP,  # never reached
    "repeat_action_probability": STICKINESS,
    "full_action_space": False,
    "continuous": False,
    "autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP,
    "img_height": 84,
    "img_width": 84,
    "grayscale": True,
    "stack_num": 4,
    "frameskip": FRAMES_PER_STEP,
    "maxpool": True,
    "noop_max": 0,
    "episodic_life": False,
    "life_loss_info": False,
    "reward_clipping": False,
    "use_fire_reset": False,
}


class AtariVector(GymnasiumVector):
    """n games that step together.

    The emulator starts a game by itself only in the step after an end, and a reset before that step
    takes its place: so the adapter resets, as in DISABLED. A seed makes the emulator start anew,
    which takes 0.1 s; a reset without one takes 5 ms and goes on in its random numbers.
    """

    autoreset = gym.vector.AutoresetMode.NEXT_STEP
    seed_after = 1_000

    def __init__(self, env: Any, episode_steps: int = EPISODE_STEPS) -> None:
        """Wraps ale-py's vector environment; games are cut after ``episode_steps``."""
        super().__init__(env)
        self._limit = episode_steps
        self._length = np.zeros(self.num_envs, int)

    def _play(self, actions: np.ndarray) -> tuple[Any, ...]:
        """One step; games at the limit are cut."""
        observation, reward, terminated, truncated = super()._play(actions)
        self._length += 1
        cut = (self._length >= self._limit) & ~terminated
        return observation, reward, terminated, truncated | cut

    def _begin(self, mask: np.ndarray, seeds: list[int] | None) -> np.ndarray:
        self._length[mask] = 0
        chosen = None if seeds is None else emulator_seeds(np.array(seeds)[mask].tolist())
        return self._own(self._env.reset(seed=chosen, options={"reset_mask": mask})[0])


class AtariScreen(gym.Env):
    """One game with its colour screen, for videos.

    The vector environment does not show the screen, so two of them play the same game: with the
    same seed and actions the emulator does the same. One gives what the agent sees, the other the
    screen; they are compared at every step.
    """

    def __init__(self, env_id: str, *, episode_steps: int = EPISODE_STEPS, **settings: Any) -> None:
        self.metadata = {"render_fps": 60 // FRAMES_PER_STEP}
        self._limit, self._length = episode_steps, 0
        whole = {"img_height": 210, "img_width": 160, "grayscale": False, "stack_num": 1}
        self._game = vector_env(env_id, 1, **settings)
        self._screen = vector_env(env_id, 1, **{**settings, **whole})
        self.observation_space = self._game.single_observation_space
        self.action_space = self._game.single_action_space
        self._image = np.zeros((210, 160, 3), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts a game: a seed's own, without one any."""
        super().reset(seed=seed, options=options)
        seeds = emulator_seeds([int(self.np_random.integers(2**31)) if seed is None else seed])
        observation, _ = self._game.reset(seed=seeds)
        self._image = np.array(self._screen.reset(seed=seeds)[0][0, 0])
        self._length = 0
        return np.array(observation[0]), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes an action."""
        actions = np.array([action], np.int64)
        observation, *outcome, info = self._game.step(actions)
        screen, *shown, shown_info = self._screen.step(actions)
        numbers = [array[0] for array in (*outcome, info["frame_number"])]
        if numbers != [array[0] for array in (*shown, shown_info["frame_number"])]:
            raise RuntimeError("two emulators with the same seed and actions went different ways")
        self._image = np.array(screen[0, 0])
        self._length += 1
        terminated = bool(numbers[1])
        truncated = self._length >= self._limit and not terminated
        return np.array(observation[0]), float(numbers[0]), terminated, truncated, {}

    def render(self) -> Any:
        """The screen, [210, 160, 3]."""
        return self._image

    def close(self) -> None:
        """Closes both."""
        self._game.close()
        self._screen.close()


def emulator_seeds(seeds: Sequence[int]) -> np.ndarray:
    """Seeds as the emulator takes them: it ignores negative 32-bit ones, and so from 2³¹ on."""
    return np.array([int(seed) % 2**31 for seed in seeds], np.int64)


def vector_env(env_id: str, num_envs: int, **settings: Any) -> Any:
    """ale-py's vector environment with the protocol's settings, some of them replaced."""
    try:
        import ale_py
        from ale_py.vector_env import AtariVectorEnv
    except ModuleNotFoundError:
        raise MissingExtra(f"env: {env_id!r}", "atari") from None
    gym.register_envs(ale_py)
    names = sorted(
        name for name in gym.registry if re.fullmatch(rf"{ATARI}[^-]+-v5", name) is not None
    )
    if env_id not in names:
        near = ", ".join(difflib.get_close_matches(env_id, names, 3, 0.5) or ["ALE/Pong-v5"])
        raise UserError(
            f"env: {env_id!r} is not an Atari game, expected one of {len(names)} such as {near}"
        )
    game = gym.spec(env_id).kwargs["game"]
    return AtariVectorEnv(game, num_envs, **{**PROTOCOL, **settings})


def make_atari(
    env_id: str, num_envs: int = 1, *, episode_steps: int = EPISODE_STEPS, **settings: Any
) -> AtariVector:
    """n games of an id such as ALE/Seaquest-v5; ``settings`` replace the protocol's."""
    return AtariVector(vector_env(env_id, num_envs, **settings), episode_steps)
