"""What is asked before a sweep begins, and who trains what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.runs.sweep import Matrix
from momentum_rl.sweeps import ray_cluster
from momentum_rl.sweeps.drive import require_trainable
from momentum_rl.sweeps.local import shares


@given(st.integers(1, 64), st.integers(1, 100))
def test_every_worker_has_a_core_and_no_core_is_idle(count, workers):
    cores = list(range(10, 10 + count))
    parts = shares(cores, workers)
    assert len(parts) == workers
    assert all(parts)
    used = [core for part in parts for core in part]
    assert set(used) <= set(cores)
    if workers <= count:
        assert sorted(used) == cores
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    else:
        assert {len(part) for part in parts} == {1}
        assert set(used) == set(cores)


@pytest.mark.parametrize(
    ("env", "algorithm", "says"),
    [
        ("NoSuchThing-v3", "dqn", "NoSuchThing-v3"),
        ("CartPole-v1", "sarsa", "'sarsa'"),
        ("Pendulum-v1", "dqn", "Pendulum-v1 has Box actions"),
    ],
)
def test_what_cannot_be_trained_is_the_users_error(env, algorithm, says):
    with pytest.raises(UserError, match=says):
        require_trainable(Matrix([env], [algorithm], 1, "x").sweep())


def test_a_task_that_no_node_of_a_cluster_could_take_is_refused():
    nodes = [{"CPU": 4.0}, {"CPU": 8.0, "GPU": 1.0}, {"CPU": 1.0}]
    for cpus, gpus in ((8.0, 0.0), (1.0, 0.5), (8.0, 1.0)):
        ray_cluster.require_node(nodes, cpus, gpus)
    for cpus, gpus in ((9.0, 0.0), (1.0, 2.0)):
        with pytest.raises(UserError, match=f"gpus: {gpus:g}, no node"):
            ray_cluster.require_node(nodes, cpus, gpus)
