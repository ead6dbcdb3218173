"""An algorithm that nobody published, declared as the package's own are: one source file.

Once it is imported, both names are known: to ``momentum_rl.solve(mdp, "discounted-twice")``, to
``momentum_rl.Config("momentum-discounted-twice-dqn", …)``, with options, ranges and help.
"""

from dataclasses import dataclass

from momentum_rl.core.algorithm import Algorithm, Target
from momentum_rl.core.options import Options, Share, on_networks, on_tables
from momentum_rl.core.targets import evaluation, greedy_value


@on_tables("discounted-twice", "Discounted twice")
@on_networks("discounted-twice-dqn", "Discounted-twice DQN")
@dataclass(frozen=True)
class DiscountedTwice(Options):
    """Value iteration whose successors count less."""

    share: Share = 0.5
    """How much of a successor's value counts."""

    def algorithm(self) -> Algorithm:
        """r + γ · share · max q(s')."""
        share = self.share
        targets = {"q": Target(lambda next_values: share * greedy_value(next_values), evaluation)}
        return Algorithm("discounted-twice", targets, accepts_momentum=True)
