"""Momentum-DQN as a subclass of stable-baselines3's DQN, with the targets of movi.

    python sb3_momentum_dqn.py --seed 1

    model = MomentumDQN(MomentumPolicy, "CartPole-v1", kappa=2_500)
    model.learn(50_000)

It differs from its host in four places, each marked MOMENTUM: a second network H with its lagged
copy, which acts; the lagged copy follows with Q's; the targets; the loss.
"""

import argparse
import functools
from typing import Any

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.dqn.policies import DQNPolicy
from torch.nn import functional as F

from momentum_rl.core.schedules import RateUpdates
from momentum_rl.core.targets import MOVI


class MomentumPolicy(DQNPolicy):
    """DQN's policy with a second network, H, which acts."""

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        # MOMENTUM: H and its lagged copy, learned by the same optimiser.
        self.h_net = self.make_q_net()
        self.h_net_target = self.make_q_net()
        self.h_net_target.load_state_dict(self.h_net.state_dict())
        self.h_net_target.set_training_mode(False)
        self.optimizer.add_param_group({"params": list(self.h_net.parameters())})

    def _predict(self, obs: Any, deterministic: bool = True) -> torch.Tensor:
        return self.h_net._predict(obs, deterministic=deterministic)  # MOMENTUM: H acts

    def set_training_mode(self, mode: bool) -> None:
        """Of both networks."""
        super().set_training_mode(mode)
        self.h_net.set_training_mode(mode)


def targets(h, next_q, next_h, actions, rewards, discounts, beta):
    """What Q and H regress to, [B] each, by movi: one transition, mapped over the minibatch.

    ``h`` [B, A] is of the states, ``next_q`` and ``next_h`` [B, A] are of the next ones, all of the
    lagged copies; a discount is γ, or 0 after a termination.
    """
    # Rows are [B, L, A]: there is L = 1 lagged copy. Q's own values at s are read by no target.
    here = {"q": torch.zeros_like(h)[:, None], "h": h[:, None]}
    there = {"q": next_q[:, None], "h": next_h[:, None]}
    return tuple(
        torch.func.vmap(functools.partial(MOVI.target, name, beta=beta))(
            here, actions, rewards, discounts, there
        )
        for name in ("q", "h")
    )


class MomentumDQN(DQN):
    """DQN whose policy is read from the average of its values."""

    def __init__(self, *args: Any, kappa: int = 5_000, **options: Any) -> None:
        """κ: environment steps between two changes of β = n / (n + 1), n = step // κ."""
        self.kappa = kappa
        super().__init__(*args, **options)

    def _on_step(self) -> None:
        super()._on_step()
        # MOMENTUM: H's lagged copy follows when Q's does.
        if self._n_calls % max(self.target_update_interval // self.n_envs, 1) == 0:
            online, lagged = self.policy.h_net, self.policy.h_net_target
            polyak_update(online.parameters(), lagged.parameters(), self.tau)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Moves both networks towards their targets."""
        policy = self.policy
        policy.set_training_mode(True)
        self._update_learning_rate(policy.optimizer)
        beta = RateUpdates(self.kappa)(self.num_timesteps)  # MOMENTUM
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            discounts = self.gamma if batch.discounts is None else batch.discounts
            # MOMENTUM: two targets (the paper draws a second minibatch for H).
            with torch.no_grad():
                q_target, h_target = targets(
                    policy.h_net_target(batch.observations),
                    policy.q_net_target(batch.next_observations),
                    policy.h_net_target(batch.next_observations),
                    batch.actions.squeeze(1).long(),
                    batch.rewards.squeeze(1),
                    (discounts * (1 - batch.dones)).squeeze(1),
                    beta,
                )
            q, h = (
                network(batch.observations).gather(1, batch.actions.long()).squeeze(1)
                for network in (policy.q_net, policy.h_net)
            )
            loss = F.smooth_l1_loss(q, q_target) + F.smooth_l1_loss(h, h_target)  # MOMENTUM
            policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), self.max_grad_norm)
            policy.optimizer.step()
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", loss.item())
        self.logger.record("train/beta", beta)


def main(total_timesteps: int = 50_000, seed: int = 1, episodes: int = 20) -> float:
    """Trains on CartPole, and plays; the mean return.

    The settings are those that the host publishes for its DQN on CartPole (RL Baselines3 Zoo).
    """
    torch.set_num_threads(1)  # the networks are small
    model = MomentumDQN(
        MomentumPolicy,
        "CartPole-v1",
        kappa=max(total_timesteps // 20, 1),  # MOMENTUM
        learning_rate=2.3e-3,
        buffer_size=100_000,
        learning_starts=1_000,
        batch_size=64,
        train_freq=256,
        gradient_steps=128,
        target_update_interval=10,
        exploration_fraction=0.16,
        exploration_final_eps=0.04,
        policy_kwargs={"net_arch": [256, 256]},
        seed=seed,
        device="cpu",
    )
    model.learn(total_timesteps)
    mean, _ = evaluate_policy(model, model.get_env(), episodes)
    return float(mean)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--total-timesteps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(main(given.total_timesteps, given.seed))
