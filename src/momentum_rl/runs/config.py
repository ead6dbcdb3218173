"""The config of a run: one frozen dataclass, which is also the command line and ``config.json``.

All durations are in agent steps: one decision (four frames on Atari). Nothing is derived in place:
what a field leaves open (κ, the network's kind) is decided where it is used, so that saving and
loading a config changes nothing. Each field says what it belongs to, so that there is one
answer to what makes two runs the same, or comparable.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import wraps
from typing import Any, Literal

from momentum_rl.agents.registry import known, options_of
from momentum_rl.core.options import (
    Averaging,
    BelowOne,
    Count,
    Natural,
    Options,
    Positive,
    Share,
    Unknown,
    check_ranges,
)
from momentum_rl.core.schedules import Epsilon, Schedule
from momentum_rl.errors import UserError, check_fields, of_type
from momentum_rl.plumbing.reading import checked, of_format
from momentum_rl.runs.presets import chosen_fields, preset_options
from momentum_rl.spaces import ONE_STEP, NStep

FORMAT = 3

FieldRole = Literal["run", "algorithm", "preset", "learning", "evaluation", "files"]
"""What a field of a config belongs to.

run: which one it is; algorithm: shared with no other; preset: the name of where defaults came from;
learning: shared by an algorithm and its baseline; evaluation: changes what is measured, and nothing
that is learned; files: how often something is written, which changes no result.
"""


ALGORITHM, RUN, PRESET, EVALUATION, FILES = (
    {"of": role} for role in ("algorithm", "run", "preset", "evaluation", "files")
)


@dataclass(frozen=True)
class Config:
    """Everything that decides a run's results; what is not given has its preset's value."""

    algorithm: str = field(metadata=ALGORITHM)
    """Its registered name (dqn, momentum-dqn, …), or MODULE:NAME."""
    env: str = field(metadata=RUN)
    """A Gymnasium id such as CartPole-v1; an Atari game such as ALE/Seaquest-v5; or a JAX-native
    environment, trained on in compiled code: MinAtar/Breakout (Asterix, Freeway, Seaquest,
    SpaceInvaders) or gymnax/CartPole-v1."""
    preset: str = field(default="control", metadata=PRESET)
    """Where the other fields' defaults come from, by default what is usual for the algorithm and
    the environment: control (small environments), paper (Dopamine's DQN of 2019, the paper's
    baseline), minatar (the DQN of MinAtar's authors) or sac (soft actor-critic's). Compare
    algorithms within one preset."""
    seed: Natural = field(default=0, metadata=RUN)
    """Seeds everything that is random in the run."""
    steps: Count = 100_000
    """Length of the run, in agent steps (Dopamine: 50,000,000 = 200 iterations of 250,000)."""
    num_envs: Count = 1
    """Environments that step together; updates per agent step stay the same (Dopamine: 1)."""
    iteration_steps: Count = 1_000
    """Agent steps per row of metrics, an "iteration" (paper: 250,000)."""
    save_every: Count = field(default=10_000, metadata=FILES)
    """Agent steps between two saves of the agent's file, at the ends of iterations."""
    checkpoint_every: Natural = field(default=10_000, metadata=FILES)
    """Agent steps between two checkpoints, from which a run that was stopped goes on exactly; 0 for
    none. The replay is then in files of the run directory."""

    gamma: BelowOne = 0.99
    """Discount γ (paper: 0.99)."""
    n_step: Count = 1
    """n: learn from n successive rewards and the state after them; fewer where an episode ends
    (paper: 1)."""
    replay_capacity: Count = 100_000
    """Transitions kept (paper: 1,000,000)."""
    learning_starts: Natural = 1_000
    """Learn once more than this many transitions are stored, or the replay is full (Dopamine:
    20,000)."""
    batch_size: Count = 128
    """Transitions per minibatch (paper: 32)."""
    update_period: Count = 2
    """F: agent steps per update (paper: 4)."""
    sync_period: Count = 200
    """C: agent steps between two synchronisations of the lagged networks (paper: 8,000 in a table,
    25,000 in the text)."""

    epsilon_warmup: Natural = 1_000
    """Agent steps with exploration ε = 1 (Dopamine: 20,000)."""
    epsilon_decay: Count = 10_000
    """Agent steps in which ε falls linearly from 1 to its final value (paper: 250,000)."""
    epsilon_final: Share = 0.05
    """ε from then on (paper: 0.01)."""
    evaluation_epsilon: Share = field(default=0.001, metadata=EVALUATION)
    """ε in evaluation (Dopamine: 0.001)."""
    final_episodes: Natural = field(default=10, metadata=EVALUATION)
    """Episodes of the evaluation at the end of the run; 0 for none."""
    evaluate_every: Natural = field(default=0, metadata=EVALUATION)
    """Agent steps between two evaluations during the run, at the ends of iterations, with the same
    ε; 0 for none. Training is the same with and without them."""
    periodic_episodes: Count = field(default=20, metadata=EVALUATION)
    """Episodes of each of these."""
    average: Natural = field(default=0, metadata=EVALUATION)
    """M: evaluations are played twice more, by the mean of the values of the last M copies of the
    network that acts, and by one network with the mean of their parameters; 0 for neither. Training
    is the same with and without them."""
    average_every: Count = field(default=4_000, metadata=EVALUATION)
    """Agent steps between two of these copies."""

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
    learning_rate: Positive = 1e-3
    """Step size of the optimiser (paper: 0.00025)."""
    optimiser_epsilon: Positive = 3.125e-4
    """ε of the optimiser; in rmsprop inside the root (Dopamine: 0.00001)."""
    reward_clip: Positive | None = None
    """Learn from rewards clipped to ± this; scores stay raw (Dopamine: 1)."""
    timeouts_are_terminal: bool = False
    """Treat a truncated episode as terminated, as old Dopamine did (otherwise it bootstraps)."""
    options: Options = field(default_factory=Unknown, metadata=ALGORITHM)
    """The algorithm's own options."""

    def __post_init__(self) -> None:
        """Checks every field."""
        if type(self) is Config:  # a command may miss some
            of_type("algorithm", self.algorithm, str)
            of_type("preset", self.preset, str)
        options = chosen_options(self.algorithm, self.preset, self.options)
        object.__setattr__(self, "options", options)
        taken = {option.name for option in fields(options)} & RESERVED
        if taken:
            raise UserError(f"options: {sorted(taken)[0]} of {self.algorithm} is a config's field")
        check_ranges(self)
        if type(self) is Config:
            check_fields(self)
        if not all(width >= 1 for width in self.hidden):
            raise UserError(f"hidden: {self.hidden!r}, expected widths of at least 1")
        if self.learning_starts > self.replay_capacity:
            raise UserError(
                f"learning_starts: {self.learning_starts}, expected at most replay_capacity "
                f"({self.replay_capacity}): learning would never start"
            )
        incomplete = self.horizon.incomplete
        if incomplete and self.learning_starts + incomplete >= self.replay_capacity:
            most = max(0, self.replay_capacity - 1 - self.learning_starts) // self.num_envs + 1
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
        new = {key: value for key, value in changes.items() if key in FIELDS}
        options = {key: value for key, value in changes.items() if key not in FIELDS}
        given = new.pop("options", None)
        anew = given is not None or not new.keys().isdisjoint(("algorithm", "preset"))
        before = {} if anew else self.options.to_json()
        if isinstance(given, Options):
            given = given.to_json()
        new["options"] = {**before, **(given or {}), **options}
        if "preset" not in new:
            return replace(self, **new)
        kept: dict[str, Any] = {"algorithm": self.algorithm, "env": self.env, "seed": self.seed}
        return Config(**{**kept, **new})  # what is not given is that preset's

    @property
    def horizon(self) -> NStep:
        """The horizon of the transitions that are learned from."""
        if self.n_step == 1:
            return ONE_STEP
        return NStep(self.n_step, self.num_envs, self.reward_clip)

    @property
    def stored(self) -> int:
        """Transitions that the run stores in all: whole vector steps."""
        return -(-self.steps // self.num_envs) * self.num_envs

    @property
    def replay_size(self) -> int:
        """Transitions that the replay holds in the end."""
        return min(self.replay_capacity, self.stored)

    @property
    def kappa_follows(self) -> bool:
        """Whether β changes by a share of the run's length."""
        options = self.options
        return isinstance(options, Averaging) and options.kappa is None and options.counts

    @property
    def learns_after(self) -> int:
        """Transitions stored when no more than ``learning_starts`` can be sampled.

        A full replay that holds no more is enough.
        """
        return min(self.learning_starts + self.horizon.incomplete, self.replay_capacity - 1)

    @property
    def iterations(self) -> int:
        """Rows of metrics of a run that has ended."""
        return math.ceil(self.steps / self.iteration_steps)

    @property
    def iteration_ends(self) -> list[int]:
        """The agent steps at which iterations end."""
        every = self.iteration_steps
        return [min((i + 1) * every, self.steps) for i in range(self.iterations)]

    def passes(self, step: int, every: int) -> bool:
        """Whether the iteration that ends at this step passes a multiple of ``every``.

        >>> config = Config("dqn", "CartPole-v1", steps=310, iteration_steps=40)
        >>> [step for step in config.iteration_ends if config.passes(step, 100)]
        [120, 200, 310]
        """
        before = (step - 1) // self.iteration_steps * self.iteration_steps
        return step // every > before // every

    def evaluates_at(self, step: int) -> bool:
        """Whether the run is evaluated at this step, the end of an iteration."""
        return bool(self.evaluate_every) and self.passes(step, self.evaluate_every)

    @property
    def identity(self) -> str:
        """A digest of what makes a run this one, however long and however often it is saved."""
        of = {name: value for name, value in flat(self).items() if FIELD_ROLES.get(name) != "files"}
        of |= {"steps": None, "kappa": None}  # κ may follow from the length
        return hashlib.sha256(json.dumps(of, sort_keys=True, allow_nan=False).encode()).hexdigest()

    @property
    def beta_of(self) -> Schedule | None:
        """β as a function of the agent step; None for an algorithm without."""
        return self.options.beta_of(self.steps)

    @property
    def epsilon_schedule(self) -> Schedule:
        """ε as a function of the agent step."""
        return Epsilon(self.epsilon_warmup, self.epsilon_decay, self.epsilon_final)

    def to_json(self) -> str:
        """The text of ``config.json``."""
        data = {"format": FORMAT, **self.to_dict()}
        return json.dumps(data, indent=2, allow_nan=False) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The fields, of JSON's types."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "options": self.options.to_json()}

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
        wrong = sorted(set(data) - FIELDS) + sorted({"algorithm", "env"} - set(data))
        if wrong:
            raise UserError(f"{name}: unknown or missing fields: {', '.join(wrong)}")
        given = checked(data.get("options", {}), dict[str, Any], f"{name}: options")
        algorithm = checked(data["algorithm"], str, f"{name}: algorithm")
        try:
            options = chosen_options(algorithm, str(data.get("preset", "control")), given)
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
        config: Config = checked({**_DEFAULTS, **data, "options": options}, cls, name)
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
        values = {key: value for key, value in data.items() if key in FIELDS}
        return cls.from_dict({**values, "options": {**given, **options}}, name)


_DEFAULTS = {of.name: of.default for of in fields(Config) if of.default is not MISSING}
"""What a file that leaves a field out means: a preset's values are all written down."""

FIELD_ROLES: Mapping[str, FieldRole] = {
    of.name: of.metadata.get("of", "learning") for of in fields(Config)
}
"""What each field belongs to."""
FIELDS = frozenset(FIELD_ROLES)
RESERVED = FIELDS | {"out", "seeds", "trust"}
"""Names that no algorithm's option may have: those of the config, and of the command's own."""
SHARED = tuple(name for name, role in FIELD_ROLES.items() if role == "learning")
"""The fields that an algorithm and its baseline have in common."""


def _preset_first(generated: Callable[..., None]) -> Callable[..., None]:
    """A config's constructor that gives what is left out the preset's values."""
    names = [of.name for of in fields(Config)]

    @wraps(generated)
    def initialise(self: Config, *given: Any, **named: Any) -> None:
        taken = {**dict(zip(names, given)), **named}
        if FIELDS - taken.keys():
            env, algorithm = (str(taken.get(name, "")) for name in ("env", "algorithm"))
            chosen = chosen_fields(taken.get("preset"), env, algorithm)
            named = {**{k: value for k, value in chosen.items() if k not in taken}, **named}
        generated(self, *given, **named)

    return initialise


Config.__init__ = _preset_first(Config.__init__)  # type: ignore[method-assign]


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


def changes(old: Config, new: Config) -> dict[str, tuple[Any, Any]]:
    """The fields and options in which two configs differ, of those that decide results.

    >>> changes(Config("dqn", "CartPole-v1"), Config("dqn", "CartPole-v1", gamma=0.9, save_every=7))
    {'gamma': (0.99, 0.9)}
    """
    before, after = flat(old), flat(new)
    return {
        name: (before.get(name), after.get(name))
        for name in {**before, **after}
        if FIELD_ROLES.get(name) != "files" and before.get(name) != after.get(name)
    }
