"""Momentum-DQN in one file of PyTorch, in the style of CleanRL; it needs nothing of movi.

    python cleanrl_style.py --seed 1

It is DQN but for the lines between MOMENTUM and END: a second network H, which learns the average
of what Q learns and which acts; β, the weight of what it has learned so far; and H in the place of
Q where the target chooses the next action.
"""

import argparse
import copy
import random
from dataclasses import dataclass, fields

import gymnasium as gym
import numpy as np
import torch
from torch import nn


@dataclass
class Args:
    """The options."""

    env_id: str = "CartPole-v1"
    seed: int = 1
    total_timesteps: int = 100_000
    learning_rate: float = 1e-3
    adam_epsilon: float = 3e-4
    buffer_size: int = 100_000
    gamma: float = 0.99
    target_network_frequency: int = 200
    batch_size: int = 128
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.1
    learning_starts: int = 1_000
    train_frequency: int = 2
    final_episodes: int = 20
    # MOMENTUM: β = n / (n + 1), with n = step // κ (Section 5 of the paper).
    kappa: int = 5_000
    # END


def mlp(inputs: int, outputs: int) -> nn.Module:
    """Action values of a vector."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs)
    )


def targets(h, next_q, next_h, actions, rewards, discounts, beta):
    """What Q and H regress to, [B] each; all values are those of the lagged copies.

    ``h`` [B, A] is of the states, ``next_q`` and ``next_h`` [B, A] are of the next ones; a discount
    is γ, or 0 after a termination.
    """
    # MOMENTUM: H chooses the next action (DQN: next_q.max(1)), and averages what Q learns.
    chosen = next_h.argmax(1, keepdim=True)
    q_target = rewards + discounts * next_q.gather(1, chosen).squeeze(1)
    before = h.gather(1, actions[:, None]).squeeze(1)
    h_target = beta * before + (1 - beta) * q_target
    # END
    return q_target, h_target


class ReplayBuffer:
    """The last transitions, drawn uniformly."""

    def __init__(self, size: int, shape: tuple[int, ...], seed: int) -> None:
        """Room for this many."""
        self.size, self.count, self.random = size, 0, np.random.default_rng(seed)
        self.observations = np.zeros((2, size, *shape), np.float32)
        self.actions = np.zeros(size, np.int64)
        self.rewards, self.ends = np.zeros((2, size), np.float32)

    def add(self, observation, next_observation, action, reward, terminated) -> None:
        """Over the oldest one, when it is full."""
        i = self.count % self.size
        self.observations[:, i] = observation, next_observation
        self.actions[i], self.rewards[i], self.ends[i] = action, reward, terminated
        self.count += 1

    def sample(self, n: int):
        """Tensors of n transitions."""
        i = self.random.integers(min(self.count, self.size), size=n)
        parts = (*self.observations[:, i], self.actions[i], self.rewards[i], self.ends[i])
        return map(torch.as_tensor, parts)


def evaluate(network: nn.Module, env_id: str, episodes: int, seed: int) -> float:
    """The mean return of the greedy policy."""
    env, returns = gym.make(env_id), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        total, over = 0.0, False
        while not over:
            with torch.no_grad():
                action = int(network(torch.as_tensor(observation)).argmax())
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def main(args: Args) -> float:
    """Trains, and plays; the mean return."""
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the networks are small
    env = gym.make(args.env_id)
    shape, actions = env.observation_space.shape, int(env.action_space.n)
    inputs = int(np.prod(shape))

    q_network = mlp(inputs, actions)
    lagged_q = copy.deepcopy(q_network)
    # MOMENTUM: two more networks. The one that acts is H.
    h_network = mlp(inputs, actions)
    lagged_h = copy.deepcopy(h_network)
    parameters = [*q_network.parameters(), *h_network.parameters()]
    acting = h_network
    # END
    optimizer = torch.optim.Adam(parameters, lr=args.learning_rate, eps=args.adam_epsilon)
    replay = ReplayBuffer(args.buffer_size, shape, args.seed)

    observation, _ = env.reset(seed=args.seed)
    for step in range(args.total_timesteps):
        share = step / (args.exploration_fraction * args.total_timesteps)
        epsilon = max(args.start_e + share * (args.end_e - args.start_e), args.end_e)
        if random.random() < epsilon:
            action = random.randrange(actions)
        else:
            with torch.no_grad():
                action = int(acting(torch.as_tensor(observation)).argmax())
        next_observation, reward, terminated, truncated, _ = env.step(action)
        replay.add(observation, next_observation, action, reward, terminated)
        observation = next_observation
        if terminated or truncated:
            observation, _ = env.reset()

        if step <= args.learning_starts:
            continue
        if step % args.train_frequency == 0:
            states, next_states, taken, rewards, ends = replay.sample(args.batch_size)
            # MOMENTUM: β, and a second target and loss (the paper draws a second minibatch for H).
            n = step // args.kappa
            with torch.no_grad():
                q_target, h_target = targets(
                    lagged_h(states),
                    lagged_q(next_states),
                    lagged_h(next_states),
                    taken,
                    rewards,
                    args.gamma * (1 - ends),
                    n / (n + 1),
                )
            q = q_network(states).gather(1, taken[:, None]).squeeze(1)
            h = h_network(states).gather(1, taken[:, None]).squeeze(1)
            loss = nn.functional.mse_loss(q, q_target) + nn.functional.mse_loss(h, h_target)
            # END
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % args.target_network_frequency == 0:
            lagged_q.load_state_dict(q_network.state_dict())
            # MOMENTUM
            lagged_h.load_state_dict(h_network.state_dict())
            # END
    return evaluate(acting, args.env_id, args.final_episodes, seed=10_000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for own in fields(Args):
        flag = f"--{own.name.replace('_', '-')}"
        parser.add_argument(flag, type=type(own.default), default=own.default)
    print(main(Args(**vars(parser.parse_args()))))
