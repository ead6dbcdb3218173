"""The config of a run: one frozen dataclass, which is also the command line and ``config.json``.

All durations are in agent steps: one decision (four frames on Atari). Nothing is derived in place:
what a field leaves open (κ, the network's kind) is decided where it is used, so that saving and
loading a config changes nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from movi.agents.options import Options, Unknown, check_fields, check_integer
from movi.agents.registry import known, options_of
from movi.errors import UserError, check_fraction, check_positive
from movi.reading import checked, of_format
from movi.schedules import Epsilon, Schedule
from movi.training.presets import preset_options
from movi.transitions import ONE_STEP, Horizon

FORMAT = 3


@dataclass(frozen=True)
class Config:
    """Everything that decides a run's results."""

    algorithm: str
    """Its registered name (dqn, momentum-dqn, …), or MODULE:NAME."""
    env: str
    """A Gymnasium id such as CartPole-v1; an Atari game such as ALE/Seaquest-v5; or a JAX-native
    environment, trained on in compiled code: MinAtar/Breakout (Asterix, Freeway, Seaquest,
    SpaceInvaders) or gymnax/CartPole-v1."""
    preset: str = "control"
    """Where the other fields' defaults come from: control (small environments), paper (Dopamine's
    DQN of 2019, the paper's baseline), modern (Adam and squared error), c51 and munchausen
    (their published optimisers), minatar (the DQN of MinAtar's authors), minatar-published (a
    published study's, with greedy evaluations), sac and sac-cleanrl (soft actor-critic's). Compare
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
    options: Options = field(default_factory=Unknown)
    """The algorithm's own options."""

    def __post_init__(self) -> None:
        """Checks every field."""
        if type(self) is Config and not isinstance(self.algorithm, str):  # a command may miss it
            raise UserError(f"algorithm: {self.algorithm!r}, expected a name")
        options = chosen_options(self.algorithm, self.preset, self.options)
        object.__setattr__(self, "options", options)
        taken = {own.name for own in fields(options)} & RESERVED
        if taken:
            raise UserError(f"options: {sorted(taken)[0]} of {self.algorithm} is a config's field")
        check_fields(self)
        for name in _POSITIVE:
            check_integer(name, getattr(self, name), 1)
        for name in _NATURAL:
            check_integer(name, getattr(self, name), 0)
        for name in ("gamma", "epsilon_final", "evaluation_epsilon"):
            check_fraction(name, getattr(self, name))
        if self.gamma == 1:
            raise UserError("gamma: 1, expected a number in [0, 1)")
        for name in ("learning_rate", "optimiser_epsilon", "reward_clip"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
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

    def replace(self, **changes: Any) -> "Config":
        """The config with other fields, or other options of its algorithm.

        >>> Config("momentum-dqn", "CartPole-v1").replace(steps=100, beta=0.9).options.beta
        0.9
        """
        own = {key: value for key, value in changes.items() if key in FIELDS}
        theirs = {key: value for key, value in changes.items() if key not in FIELDS}
        given = own.pop("options", None)
        before = {} if "algorithm" in own or given is not None else self.options.to_json()
        if isinstance(given, Options):
            given = given.to_json()
        own["options"] = {**before, **(given or {}), **theirs}
        return replace(self, **own)

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
    def beta_of(self) -> Schedule | None:
        """β as a function of the agent step; None for an algorithm without."""
        return self.options.beta_of(self.steps)

    @property
    def epsilon_of(self) -> Schedule:
        """ε as a function of the agent step."""
        return Epsilon(self.epsilon_warmup, self.epsilon_decay, self.epsilon_final)

    def to_json(self) -> str:
        """The text of ``config.json``."""
        data = {"format": FORMAT, **self.to_dict()}
        return json.dumps(data, indent=2, allow_nan=False) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The fields, of JSON's types."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**own, "options": self.options.to_json()}

    @classmethod
    def from_json(cls, text: str, name: str = "config.json") -> "Config":
        """The inverse of ``to_json``.

        >>> config = Config("dqn", "CartPole-v1", hidden=(32,))
        >>> Config.from_json(config.to_json()) == config
        True
        """
        data = of_format(text, (2, FORMAT), name)
        return cls.from_dict(upgraded(data), name)

    @classmethod
    def from_dict(cls, data: dict[str, Any], name: str = "config") -> "Config":
        """A config from its fields."""
        wrong = sorted(set(data) - FIELDS) + sorted({"algorithm", "env"} - set(data))
        if wrong:
            raise UserError(f"{name}: unknown or missing fields: {', '.join(wrong)}")
        given = checked(data.get("options", {}), dict[str, Any], f"{name}: options")
        algorithm = checked(data["algorithm"], str, f"{name}: algorithm")
        try:
            options = chosen_options(algorithm, str(data.get("preset", "control")), given)
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
        config: Config = checked({**data, "options": options}, cls, name)
        return config

    @classmethod
    def from_flat(cls, data: Mapping[str, Any], name: str = "config") -> "Config":
        """A config from its fields and the options of its algorithm, side by side.

        >>> config = {"algorithm": "momentum-dqn", "env": "CartPole-v1", "beta": 0.9}
        >>> Config.from_flat(config).options.beta
        0.9
        """
        given = checked(data.get("options", {}), dict[str, Any], f"{name}: options")
        options = {key: value for key, value in data.items() if key not in FIELDS}
        own = {key: value for key, value in data.items() if key in FIELDS}
        return cls.from_dict({**own, "options": {**given, **options}}, name)


FIELDS = frozenset(field.name for field in fields(Config))
RESERVED = FIELDS | {"out", "seeds", "trust"}
"""Names that no algorithm's option may have: those of the config, and of the command's own."""


def chosen_options(algorithm: str, preset: str, given: Any) -> Options:
    """The options of an algorithm: those that are given, the preset's, and its own defaults."""
    kind = known(algorithm)
    if kind is None or (isinstance(given, Options) and not isinstance(given, Unknown)):
        return options_of(algorithm, given)
    values = given.to_json() if isinstance(given, Unknown) else given
    if isinstance(values, Mapping | None):
        values = {**preset_options(preset, kind), **(values or {})}
    return options_of(algorithm, values)


def flat(config: Config) -> dict[str, Any]:
    """A config's fields and its algorithm's options, side by side: ``from_flat``'s inverse."""
    data = config.to_dict()
    options = data.pop("options")
    return {**data, **options}


_BEFORE = ("shared_batch", "beta_schedule", "kappa", "beta", "sign")


def upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a config of format 2, which had the options of all algorithms among them."""
    if "options" in data or not set(_BEFORE) & set(data):
        return data
    kind = known(str(data.get("algorithm")))
    theirs = {field.name for field in fields(kind)} if kind is not None else set(_BEFORE)
    options = {name: data[name] for name in _BEFORE if name in data and name in theirs}
    return {**{k: v for k, v in data.items() if k not in _BEFORE}, "options": options}


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
