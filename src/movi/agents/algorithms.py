"""The paper's deep algorithms: the tabular declarations of ``movi.targets`` under their deep names.

| name | networks | regresses to | acts on |
|---|---|---|---|
| dqn | q | r + γ max Q⁻(s') | q |
| momentum-dqn | q, h | r + γ Q⁻(s', argmax H⁻(s')); β H⁻(s, a) + (1 − β)(the same) | h |
| deep-sql | q, two lagged copies | SQL's update (appendix) | q |
| deep-dpp | q | Q⁻(s, a) + r + γ max Q⁻(s') − max Q⁻(s) | q |
"""

from dataclasses import replace
from typing import Literal

from movi.errors import UserError
from movi.targets import AVI, DPP, MOVI, Algorithm, speedy_q_learning

DQN = replace(AVI, name="dqn")
MOMENTUM_DQN = replace(MOVI, name="momentum-dqn")
DEEP_DPP = replace(DPP, name="deep-dpp")

NAMES = ("dqn", "momentum-dqn", "deep-sql", "deep-dpp")


def deep_algorithm(name: str, sign: Literal["sql", "printed"] = "sql") -> Algorithm:
    """The algorithm of this name; ``sign`` is Deep SQL's (see ``speedy_q_learning``).

    >>> deep_algorithm("momentum-dqn").acts_on
    'h'
    """
    if name == "deep-sql":
        return replace(speedy_q_learning(sign), name="deep-sql")
    for algorithm in (DQN, MOMENTUM_DQN, DEEP_DPP):
        if algorithm.name == name:
            return algorithm
    raise UserError(f"algorithm: {name!r}, expected one of {', '.join(NAMES)}")
