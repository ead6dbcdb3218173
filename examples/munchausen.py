"""Munchausen-DQN (Vieillard, Pietquin, Geist 2020) as an algorithm of your own, options included.

y = r + α [τ ln π(a|s)]_{l0}^0 + γ Σ_b π(b|s') (q⁻(s', b) − τ ln π(b|s')),  π = softmax(q⁻ / τ).

    movi train munchausen:Munchausen --env CartPole-v1 --tau 0.1
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import momentum_rl


@dataclass(frozen=True)
class Munchausen(momentum_rl.Options):
    """Its fields are its options; from here on, what is its own."""

    title = "My Munchausen"
    alpha: float = 0.9
    tau: float = 0.03
    floor: float = -1.0

    def algorithm(self):  # noqa: D102
        def log_pi(values):
            return self.tau * jax.nn.log_softmax(values.preference / self.tau)

        def bootstrap(values):
            return jnp.sum(jnp.exp(log_pi(values) / self.tau) * (values["q"][0] - log_pi(values)))

        def backup(values, a, r, discount, v, beta):
            return r + self.alpha * jnp.clip(log_pi(values)[a], self.floor, 0) + discount * v

        return momentum_rl.Algorithm(
            "my-munchausen", {"q": momentum_rl.Target(bootstrap, backup)}, accepts_momentum=True
        )


if __name__ == "__main__":
    print(
        momentum_rl.train(
            momentum_rl.Config("munchausen", "CartPole-v1"), algorithm=Munchausen
        ).evaluation
    )
