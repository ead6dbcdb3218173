"""The config of a run: one frozen dataclass, which is also the command line and ``config.json``.

All durations are in agent steps: one decision (four frames on Atari). Nothing is derived in place:
what a field leaves open (κ, the network's kind) is decided where it is used, so that saving and
loading a config changes nothing.
"""

import json
from dataclasses import MISSING, asdict, dataclass, fields
from numbers import Real
from typing import Any, Literal, get_args, get_origin

from movi.errors import UserError
from movi.reading import checked, of_format
from movi.schedules import Constant, Epsilon, Heuristic, Mean, RateUpdates, Schedule
from movi.transitions import ONE_STEP, Horizon

FORMAT = 2
LARGEST_STEP = 2**31 - 1  # steps are int32 in compiled code


@dataclass(frozen=True)
class Config:
    """Everything that decides a run's results."""

    algorithm: str
    """dqn, momentum-dqn, deep-sql or deep-dpp."""
    env: str
    """A Gymnasium id such as CartPole-v1; an Atari game such as ALE/Seaquest-v5; or a JAX-native
    environment, trained on in compiled code: MinAtar/Breakout (Asterix, Freeway, Seaquest,
    SpaceInvaders) or gymnax/CartPole-v1."""
    preset: str = "control"
    """Where the other fields' defaults come from: control (small environments), paper (Dopamine's
    DQN of 2019, the paper's baseline), modern (Adam and squared error), minatar (the DQN of
    MinAtar's authors) or minatar-published (a published study's, with greedy evaluations). Compare
    algorithms within one preset."""
    seed: int = 0
    """Of everything random in the run."""
    steps: int = 100_000
    """Length of the run, in agent steps (Dopamine: 50,000,000 = 200 iterations of 250,000)."""
    num_envs: int = 1
    """Environments that step together; updates per agent step stay the same (Dopamine: 1)."""
    iteration_steps: int = 5_000
    """Agent steps per row of metrics, an "iteration" (paper: 250,000)."""
    save_every: int = 10_000
    """Agent steps between two writings of the agent's file, at the ends of iterations."""
    checkpoint_every: int = 10_000
    """Agent steps between two checkpoints, from which a run that was stopped goes on exactly; 0 for
    none. The replay is then kept in files of the run directory."""

    gamma: float = 0.99
    """Discount γ (paper: 0.99)."""
    n_step: int = 1
    """n: learn from n successive rewards and the state after them; fewer where an episode ends
    (paper: 1)."""
    replay_capacity: int = 100_000
    """Transitions kept (paper: 1,000,000)."""
    learning_starts: int = 1_000
    """Learn once more than this many transitions are stored (Dopamine: 20,000)."""
    batch_size: int = 128
    """Transitions per minibatch (paper: 32)."""
    shared_batch: bool = False
    """Momentum-DQN: one minibatch for both networks instead of one each (paper: one each)."""
    update_period: int = 2
    """F: agent steps per update (paper: 4)."""
    sync_period: int = 200
    """C: agent steps between two synchronisations of the lagged networks (paper: 8,000 in a table,
    25,000 in the text)."""

    epsilon_warmup: int = 1_000
    """Agent steps with exploration ε = 1 (Dopamine: 20,000)."""
    epsilon_decay: int = 10_000
    """Agent steps in which ε falls linearly from 1 to its final value (paper: 250,000)."""
    epsilon_final: float = 0.05
    """ε from then on (paper: 0.01)."""
    evaluation_epsilon: float = 0.001
    """ε in evaluation (Dopamine: 0.001)."""
    evaluation_episodes: int = 10
    """Episodes of the evaluation at the end of the run; 0 for none."""
    evaluate_every: int = 0
    """Agent steps between two evaluations during the run, at the ends of iterations, with the same
    ε; 0 for none. Training is the same with and without them."""
    evaluate_episodes: int = 20
    """Episodes of each of these."""

    beta_schedule: Literal["rate-updates", "constant", "heuristic", "mean"] = "rate-updates"
    """β_k of Momentum-DQN and Deep SQL. rate-updates: n/(n+1) with n = ⌊k/κ⌋ (paper); constant: β;
    heuristic: 0.1 n, at most 0.9 (appendix); mean: k/(k+1)."""
    kappa: int | None = None
    """κ: agent steps between two changes of β (paper: 2,500,000); None: a twentieth of the run, as
    2,500,000 is of Dopamine's 50,000,000."""
    beta: float = 0.5
    """β of the constant schedule (appendix: 0.1, 0.5, 0.9)."""
    sign: Literal["sql", "printed"] = "sql"
    """Deep SQL's last term: Speedy Q-learning's sign, or the one that the appendix prints."""

    network: Literal["auto", "nature", "minatar", "mlp"] = "auto"
    """auto: by the observations: nature for images from 36×36, minatar for smaller ones, else mlp
    (paper: nature)."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers of an mlp."""
    padding: Literal["SAME", "VALID"] = "SAME"
    """Padding of the nature network's convolutions (Dopamine: SAME)."""
    loss: Literal["huber", "squared"] = "squared"
    """Of the regression; the minibatch's mean (the paper prints squares; Dopamine: huber)."""
    optimiser: Literal["rmsprop", "adam", "sgd"] = "adam"
    """rmsprop: centred, decay 0.95, as Dopamine had it (paper: rmsprop)."""
    learning_rate: float = 1e-3
    """Step size of the optimiser (paper: 0.00025)."""
    optimiser_epsilon: float = 3.125e-4
    """ε of the optimiser; in rmsprop inside the root (Dopamine: 0.00001)."""
    reward_clip: float | None = None
    """Learn from rewards clipped to ± this; scores stay raw (Dopamine: 1)."""
    timeouts_are_terminal: bool = False
    """Treat a truncated episode as terminated, as old Dopamine did (otherwise it bootstraps)."""

    def __post_init__(self) -> None:
        """Checks every field."""
        for field in fields(self):
            known, value = get_args(field.type), getattr(self, field.name)
            if field.type is bool and not isinstance(value, bool):
                raise UserError(f"{field.name}: {value!r}, expected true or false")
            number = isinstance(value, Real) and not isinstance(value, bool)
            if field.type is float and not number:
                raise UserError(f"{field.name}: {value!r}, expected a number")
            if get_origin(field.type) is Literal and value not in known:
                expected = ", ".join(known)
                raise UserError(f"{field.name}: {value!r}, expected one of {expected}")
        for name in _POSITIVE:
            _check_integer(name, getattr(self, name), 1)
        for name in _NATURAL:
            _check_integer(name, getattr(self, name), 0)
        if self.kappa is not None:
            _check_integer("kappa", self.kappa, 1)
        for name in ("gamma", "epsilon_final", "evaluation_epsilon"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise UserError(f"{name}: {value!r}, expected a number in [0, 1]")
        if self.gamma == 1:
            raise UserError("gamma: 1, expected a number in [0, 1)")
        if not 0 <= self.beta < 1:
            raise UserError(f"beta: {self.beta!r}, expected a number in [0, 1)")
        for name in ("learning_rate", "optimiser_epsilon", "reward_clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UserError(f"{name}: {value!r}, expected a number above 0")
        if not all(isinstance(width, int) and width >= 1 for width in self.hidden):
            raise UserError(f"hidden: {self.hidden!r}, expected widths of at least 1")
        if self.learning_starts >= self.replay_capacity:
            raise UserError(
                f"learning_starts: {self.learning_starts}, expected less than replay_capacity "
                f"({self.replay_capacity}): learning would never start"
            )
        if self.learns_after >= self.replay_capacity:
            most = (self.replay_capacity - 1 - self.learning_starts) // self.num_envs + 1
            raise UserError(
                f"n_step: {self.n_step}, expected at most {most}: with replay_capacity "
                f"{self.replay_capacity}, learning_starts {self.learning_starts} and num_envs "
                f"{self.num_envs} learning would never start"
            )

    @property
    def horizon(self) -> Horizon:
        """The horizon of the transitions that are learned from."""
        if self.n_step == 1:
            return ONE_STEP
        return Horizon(self.n_step, self.num_envs, self.reward_clip)

    @property
    def learns_after(self) -> int:
        """Transitions stored when no more than ``learning_starts`` can be sampled."""
        return self.learning_starts + self.horizon.unripe

    @property
    def default_kappa(self) -> int:
        """κ where the config names none: a twentieth of the run."""
        return max(1, self.steps // 20)

    @property
    def beta_of(self) -> Schedule:
        """β as a function of the agent step."""
        kappa = self.kappa if self.kappa is not None else self.default_kappa
        if self.beta_schedule == "constant":
            return Constant(self.beta)
        if self.beta_schedule == "heuristic":
            return Heuristic(kappa)
        if self.beta_schedule == "mean":
            return Mean()
        return RateUpdates(kappa)

    @property
    def epsilon_of(self) -> Schedule:
        """ε as a function of the agent step."""
        return Epsilon(self.epsilon_warmup, self.epsilon_decay, self.epsilon_final)

    def to_json(self) -> str:
        """The text of ``config.json``."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, name: str = "config.json") -> "Config":
        """The inverse of ``to_json``.

        >>> config = Config("dqn", "CartPole-v1", hidden=(32,))
        >>> Config.from_json(config.to_json()) == config
        True
        """
        return cls.from_dict(of_format(text, FORMAT, name), name)

    @classmethod
    def from_dict(cls, data: dict[str, Any], name: str = "config") -> "Config":
        """A config from its fields."""
        known = {field.name for field in fields(cls)}
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        wrong = sorted(set(data) - known) + sorted(needed - set(data))
        if wrong:
            raise UserError(f"{name}: unknown or missing fields: {', '.join(wrong)}")
        config: Config = checked(data, cls, name)
        return config


_POSITIVE = (
    "steps",
    "num_envs",
    "n_step",
    "iteration_steps",
    "save_every",
    "replay_capacity",
    "batch_size",
    "update_period",
    "sync_period",
    "epsilon_decay",
    "evaluate_episodes",
)
_NATURAL = (
    "seed",
    "checkpoint_every",
    "learning_starts",
    "epsilon_warmup",
    "evaluation_episodes",
    "evaluate_every",
)


def _check_integer(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_STEP:
        raise UserError(f"{name}: {value!r}, expected an integer from {least} to {LARGEST_STEP}")
