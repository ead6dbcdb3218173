"""The order and the gates of the host loop, its counters, and what it stores."""

import numpy as np
import pytest

from momentum_rl.runs.config import Config
from momentum_rl.spaces import ObservationSpace, Outcome, Spaces
from momentum_rl.training.host_loop import HostLoop
from momentum_rl.training.loop import ACTING, SAMPLING, Draws, bits, env_seeds, key_of
from momentum_rl.training.train import train
from tests.training.diagnostics import OneState, Scripted, scripted, vector


class Recorder:
    """A learner, an environment and a replay that only write down what happens to them."""

    def __init__(self, num_envs=1, episode=7):
        self.log, self.num_envs, self.episode = [], num_envs, episode
        self.spaces = Spaces(ObservationSpace((1,), "float32"), 3)
        self.stored = 0
        self.time = np.zeros(num_envs, int)

    # environment
    def reset(self, seeds):
        self.seeds = seeds
        return np.zeros((self.num_envs, 1), np.float32)

    def step(self, actions):
        self.log.append(("act", tuple(actions)))
        self.time += 1
        ended = self.time % self.episode == 0
        observation = np.zeros((self.num_envs, 1), np.float32)
        return Outcome(
            observation,
            observation,
            np.ones(self.num_envs),
            ended,
            np.zeros(self.num_envs, bool),
        )

    def close(self):
        pass

    # replay
    def __len__(self):
        return self.stored

    def add(self, env, transition, ended):
        self.stored += 1
        self.log.append(("store", env))

    def sample(self, words):
        self.words = words
        return words

    # learner as the loop drives it
    def update(self, batches, step):
        self.log.append(("update", step))

    def start(self):
        pass

    def sync(self):
        self.log.append(("sync", self.stored))

    def act(self, observation, tick):
        return np.zeros(len(observation), int)

    def diverged_at(self):
        return None


def loop_of(recorder, monkeypatch, **fields):
    import momentum_rl.training.host_loop as module

    monkeypatch.setattr(module, "HostLearner", lambda learner, key: recorder)

    class Learner:
        minibatches = 2

    config = Config("dqn", "none", num_envs=recorder.num_envs, **fields)
    loop = HostLoop(config, recorder, Learner(), lambda slack: recorder)
    loop.begin()
    return loop


def steps_of(log, kind):
    return [value for name, value in log if name == kind]


@pytest.mark.parametrize(("f", "c"), [(4, 10), (3, 7), (1, 1), (4, 8)])
@pytest.mark.parametrize("num_envs", [1, 3, 5])
def test_updates_and_syncs_are_gated_as_in_the_reference_whatever_the_number_of_environments(
    monkeypatch, f, c, num_envs
):
    recorder = Recorder(num_envs)
    loop = loop_of(
        recorder, monkeypatch, update_period=f, sync_period=c, learning_starts=20, steps=500
    )
    loop.advance(500)
    # The reference's rule: more than 20 stored, and the step is a multiple. C need not be one of F.
    assert steps_of(recorder.log, "update") == [k for k in range(1, 501) if k > 20 and k % f == 0]
    assert steps_of(recorder.log, "sync") == [k for k in range(1, 501) if k > 20 and k % c == 0]
    assert (loop.updates, loop.syncs) == (
        len(steps_of(recorder.log, "update")),
        len(steps_of(recorder.log, "sync")),
    )
    assert loop.step == recorder.stored == 500


def test_within_a_step_the_order_is_store_update_sync_act(monkeypatch):
    recorder = Recorder()
    loop = loop_of(recorder, monkeypatch, update_period=2, sync_period=4, learning_starts=1)
    loop.advance(5)
    kinds = [kind for kind, _ in recorder.log]
    assert kinds == [
        *("act", "store"),
        *("act", "store", "update"),
        *("act", "store"),
        *("act", "store", "update", "sync"),
        *("act", "store"),
    ]


def test_paper_counts_over_fifty_thousand_steps(monkeypatch):
    from momentum_rl.runs.presets import preset_fields

    recorder = Recorder()
    fields = {k: v for k, v in preset_fields("paper").items() if k not in ("num_envs",)}
    loop = loop_of(recorder, monkeypatch, **fields)
    loop.advance(50_000)
    assert loop.updates == (50_000 - 20_000) // 4  # the first at step 20,004
    assert steps_of(recorder.log, "sync") == [24_000, 32_000, 40_000, 48_000]


def test_an_update_draws_one_minibatch_per_network_by_the_updates_number(monkeypatch):
    recorder = Recorder()
    loop = loop_of(recorder, monkeypatch, learning_starts=1, update_period=1, batch_size=8, seed=3)
    loop.advance(6)
    expected = bits(key_of(3, SAMPLING), loop.updates - 1, (2, 8))
    np.testing.assert_array_equal(recorder.words, expected)
    assert not np.array_equal(recorder.words[0], recorder.words[1])


def test_epsilon_is_one_at_first_and_every_environment_draws_for_itself(monkeypatch):
    recorder = Recorder(4)
    loop = loop_of(recorder, monkeypatch, epsilon_warmup=10**6, learning_starts=40_000)
    loop.advance(20_000)
    actions = np.array(steps_of(recorder.log, "act"))
    assert actions.shape == (5_000, 4)
    counts = np.array([(actions == a).mean(0) for a in range(3)])
    assert np.abs(counts - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 5_000)
    agree = (actions[:, 0] == actions[:, 1]).mean()
    assert abs(agree - 1 / 3) < 5 * np.sqrt(2 / 9 / 5_000)


def test_the_share_of_random_actions_is_epsilon(monkeypatch):
    recorder = Recorder(2)
    loop = loop_of(
        recorder,
        monkeypatch,
        epsilon_warmup=0,
        epsilon_decay=1,
        epsilon_final=0.3,
        learning_starts=40_000,
    )
    loop.advance(20_000)
    actions = np.array(steps_of(recorder.log, "act"))
    # The greedy action is 0; two thirds of the random ones are not.
    assert abs((actions != 0).mean() - 0.2) < 5 * np.sqrt(0.16 / 20_000)


def test_epsilon_at_the_reference_steps_is_the_table():
    config = Config("dqn", "x", epsilon_warmup=20_000, epsilon_decay=250_000, epsilon_final=0.01)
    table = {0: 1.0, 20_000: 1.0, 145_000: 0.505, 270_000: 0.01, 10**9: 0.01}
    for step, epsilon in table.items():
        assert config.epsilon_schedule(step) == pytest.approx(epsilon, abs=1e-12)


def test_beta_is_0_a_half_two_thirds_at_the_papers_kappa_and_a_twentieth_of_shorter_runs():
    paper = Config("momentum-dqn", "x", steps=50_000_000)
    short = paper.replace(steps=1_000)
    for n in range(20):
        assert paper.beta_of(2_500_000 * n + 17) == n / (n + 1)
        assert short.beta_of(50 * n) == n / (n + 1)
    assert short.replace(beta_schedule="constant", beta=0.9).beta_of(123) == 0.9
    assert short.replace(beta_schedule="heuristic", kappa=10).beta_of(45) == 0.4
    assert short.replace(beta_schedule="mean").beta_of(3) == 0.75
    assert [short.replace(beta_max=0.6).beta_of(50 * n) for n in (1, 2, 9)] == [0.5, 0.6, 0.6]


def test_no_random_word_is_drawn_twice_and_seeds_differ():
    draws = Draws(key_of(0, ACTING), (1, 2))
    words = np.concatenate([draws(k).ravel() for k in range(5_000)])
    # 10,000 words of 32 bits: a repetition among them has probability 1 %, ten have none.
    assert len(np.unique(words)) > len(words) - 10
    again = Draws(key_of(0, ACTING), (1, 2))
    np.testing.assert_array_equal(again(4_999), draws(4_999))
    np.testing.assert_array_equal(draws(3), again(3))
    assert not np.array_equal(Draws(key_of(1, ACTING), (1, 2))(0), again(0))
    assert not np.array_equal(Draws(key_of(0, SAMPLING), (1, 2))(0), again(0))


def test_environment_seeds_are_distinct_and_differ_by_purpose():
    seeds = env_seeds(0, 50)
    assert len(set(seeds)) == 50
    assert seeds[:10] == env_seeds(0, 10)
    assert not set(seeds) & set(env_seeds(0, 50, 1))
    assert not set(seeds) & set(env_seeds(1, 50))


@pytest.mark.parametrize("num_envs", [1, 3])
def test_what_is_stored_is_what_happened(num_envs):
    config = Config(
        "dqn",
        "scripted",
        num_envs=num_envs,
        steps=200,
        iteration_steps=50,
        learning_starts=150,
        replay_capacity=1_000,
        gamma=0.5,
    )
    result = train(config, environment=scripted(num_envs))
    loop = result.loop
    assert loop.step == len(loop.replay) == 200
    ring = loop.replay._ring
    kinds = {}
    for k in range(200):
        s, s2 = ring.observation[k], ring.next_observation[k]
        assert s[0] == s2[0]
        assert s[1] == s2[1]
        assert s[2] + 1 == s2[2]
        env = Scripted(int(s[0]))
        env.episode = int(s[1]) - 1
        env.reset()
        end = s2[2] == env.length
        kinds[bool(end), env.kind] = True
        assert abs(ring.discount[k]) == (0.0 if end and env.kind in ("end", "both") else 0.5)
        assert ring.reward[k] == 10 ** s[2]
    assert len(kinds) == 6
    # Scores are raw sums over whole episodes: 1, 11, 111, …, never two of them together.
    assert sum(row["episodes"] for row in result.metrics) == loop.scores.episodes > 30


@pytest.mark.parametrize("num_envs", [1, 3])
def test_n_steps_are_of_one_episode(num_envs):
    """Rewards are 10ᵗ, episodes of one to five steps: a sum says which steps it is of."""
    config = Config(
        "dqn",
        "scripted",
        num_envs=num_envs,
        steps=200,
        iteration_steps=50,
        learning_starts=150,
        replay_capacity=1_000,
        gamma=0.5,
        n_step=3,
    )
    loop = train(config, environment=scripted(num_envs)).loop
    held = 200 - 2 * num_envs
    assert (loop.step, len(loop.replay)) == (200, held)
    batch = loop.replay.sample(np.arange(held, dtype=np.uint32))
    lengths = set()
    for s, s2, reward, discount in zip(
        batch.observation, batch.next_observation, batch.reward, batch.discount
    ):
        env = Scripted(int(s[0]))
        env.episode = int(s[1]) - 1
        env.reset()
        m = min(3, env.length - s[2])
        assert s2.tolist() == [s[0], s[1], s[2] + m]
        assert reward == sum(0.5**i * 10.0 ** (s[2] + i) for i in range(m))
        terminal = s2[2] == env.length and env.kind in ("end", "both")
        assert discount == (0.0 if terminal else 0.5**m)
        lengths.add((m, terminal))
    assert lengths == {(m, terminal) for m in (1, 2, 3) for terminal in (False, True)}


def test_scores_are_of_whole_episodes_that_ended_in_the_iteration():
    config = Config(
        "dqn",
        "one",
        steps=40,
        iteration_steps=10,
        learning_starts=30,
        replay_capacity=1_000,
        final_episodes=0,
    )
    result = train(config, environment=vector([lambda: OneState(12, truncate=True)]))
    assert [row["episodes"] for row in result.metrics] == [0, 1, 1, 1]
    assert [row["score"] for row in result.metrics] == [None, 12, 12, 12]


def test_timeouts_can_be_made_terminal():
    def stored(flag):
        config = Config(
            "dqn", "x", steps=6, learning_starts=5, timeouts_are_terminal=flag, gamma=0.5
        )
        result = train(config, environment=vector([lambda: OneState(3, truncate=True)]))
        return result.loop.replay._ring.discount[:6].tolist()

    assert stored(False) == [0.5, 0.5, -0.5] * 2  # negative: the episode was cut
    assert stored(True) == [0.5, 0.5, 0.0] * 2


def test_while_it_explores_the_update_under_way_does_not_hold_up_the_environments(monkeypatch):
    """No random action depends on the update before it: the learner is not asked to act."""
    recorder = Recorder()
    recorder.act = None
    loop = loop_of(
        recorder, monkeypatch, update_period=2, sync_period=100, learning_starts=1, epsilon_warmup=9
    )
    loop.advance(4)
    kinds = [kind for kind, _ in recorder.log]
    assert kinds == [
        *("act", "store"),
        *("act", "store", "update"),
        *("act", "store"),
        *("act", "store", "update"),
    ]
