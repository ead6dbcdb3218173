"""What a sweep takes, and what does not fit."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.plumbing.sizes import Footprint, require
from momentum_rl.runs.sweep import Variant, cross
from momentum_rl.sweeps import ray_cluster
from momentum_rl.sweeps.local import fitted, shares
from momentum_rl.sweeps.plan import PROCESS, Plan, grouped, jobs_of, needs_of

MB = 10**6
SWEEP = cross("mine", ["CartPole-v1"], [Variant("dqn"), Variant("deep-sql")], range(5))


def needs(replay, fused=True):
    return (Footprint(replay, replay, 2 * replay, MB, fused),) * 2


def plan_of(needs):
    return Plan(tuple(jobs_of(grouped(SWEEP, needs))), needs)


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


def test_the_replay_of_a_run_is_what_it_is_known_to_be():
    pytest.importorskip("ale_py")
    pytest.importorskip("gymnax")
    atari, minatar = Variant("dqn", preset="paper"), Variant("momentum-dqn", preset="minatar")
    games = cross("x", ["ALE/Pong-v5"], [atari], [0]).cells
    games += cross("x", ["MinAtar/Breakout"], [minatar], [0]).cells
    games += tuple(
        replace(c, label=f"{c.label}-3", config=replace(c.config, n_step=3)) for c in games
    )
    one, other, three, fused = needs_of(replace(SWEEP, cells=games))
    # Frames link n steps by 4 bytes in memory for each slot; a compiled loop has no more to keep.
    slots = 10**6 + 2 * games[0].config.checkpoint_every
    assert (three.replay, fused) == (one.replay + 4 * slots, other)
    assert 7_167_099_160 < one.replay < 7.5e9  # and the slack of two checkpoints, in whole pages
    assert one.memory == 0  # it is in files
    assert other.replay == other.memory == 100_000 * 116
    assert (one.fused, other.fused) == (False, True)
    dense, action_values = 8 * 8 * 16 * 128 + 128, 128 * 6 + 6
    network = 4 * (3 * 3 * 4 * 16 + 16 + dense + action_values)
    assert other.results == 2 * network
    # Online, lagged and two moments of RMSProp, of both networks, three times; the ring; the agent.
    rings = 200_000 * (116 + 4)  # slack of two checkpoints; a checksum for each transition
    assert other.disk == pytest.approx(3 * 4 * 2 * network + rings + 2 * network, abs=100)
    # The best agent of a run that is evaluated: a file, and one in each of three checkpoints.
    evaluated = replace(games[1], config=replace(games[1].config, evaluate_every=1000))
    (found,) = needs_of(replace(SWEEP, cells=(evaluated,)))
    assert found.results == other.results + 2 * network
    assert found.disk == other.disk + 4 * 2 * network


def test_an_environment_that_does_not_exist_is_the_users_error():
    with pytest.raises(UserError, match="NoSuchThing-v3"):
        needs_of(cross("x", ["NoSuchThing-v3"], [Variant("dqn")], [0]))
    with pytest.raises(UserError, match="'sarsa'"):
        needs_of(cross("x", ["CartPole-v1"], [Variant("sarsa")], [0]))


def test_seeds_go_together_only_where_they_are_compiled_together():
    assert [cell.together for cell in grouped(SWEEP, needs(MB)).cells] == [5, 5]
    assert [cell.together for cell in grouped(SWEEP, needs(MB, fused=False)).cells] == [1, 1]


def test_a_job_takes_what_its_seeds_take():
    plan = plan_of(needs(100 * MB))
    for job in plan.jobs:
        assert len(job.seeds) == 5
        assert plan.memory(job) == PROCESS + 5 * 100 * MB
    assert plan.disk() == (5 * 200 * MB, 2 * 5 * MB)


def test_more_workers_than_memory_is_refused_and_the_right_number_named():
    memory = 3 * (PROCESS + 7_000 * MB)
    with pytest.raises(UserError, match=r"workers: 4, .* 8\.1 GB .*; at most --workers 3"):
        fitted(plan_of(needs(7_000 * MB, fused=False)), 4, memory)
    with pytest.raises(UserError, match=r"24\.3 GB of memory, 24\.3 GB are available$") as error:
        fitted(plan_of(needs(23_200 * MB // 5 + 1)), 1, memory)
    assert "--workers" not in str(error.value)


def test_without_a_number_there_are_as_many_workers_as_fit(monkeypatch):
    monkeypatch.setattr("momentum_rl.sweeps.local.available_cores", lambda: list(range(8)))
    memory = 3 * (PROCESS + 7_000 * MB)
    assert fitted(plan_of(needs(7_000 * MB, fused=False)), None, memory).workers == 3
    assert fitted(plan_of(needs(MB, fused=False)), None, 10**12).workers == 8


def test_a_replay_in_files_may_be_larger_than_the_memory():
    mapped = (Footprint(7_000 * MB, 0, 8_000 * MB, MB, False),) * 2
    memory = 3 * (PROCESS + 1_000 * MB)
    assert fitted(plan_of(mapped), 3, memory).workers == 3
    assert fitted(plan_of(mapped), None, memory).workers == 1


def test_what_cannot_fit_on_the_disk_is_refused(tmp_path):
    require("out: the runs", disk=1, directory=tmp_path / "new" / "place")
    with pytest.raises(UserError, match=r"out: the runs: needs 1e\+06 TB, only"):
        require("out: the runs", disk=10**18, directory=tmp_path / "new" / "place")
    assert list(Path(tmp_path).iterdir()) == []


def test_a_cluster_takes_as_many_tasks_as_its_nodes_have_room_for():
    nodes = [
        {"CPU": 4.0, "memory": 4.0 * (PROCESS + 300 * MB)},
        {"CPU": 8.0, "GPU": 1.0, "memory": 64e9},
        {"CPU": 1.0, "memory": 64e9},
    ]
    groups, runs = plan_of(needs(100 * MB)), plan_of(needs(100 * MB, fused=False))
    assert ray_cluster.fitted(groups, nodes, 2.0, 0.0).workers == 2  # there are two jobs
    assert ray_cluster.fitted(runs, nodes, 2.0, 0.0).workers == 6
    assert ray_cluster.fitted(runs, nodes, 1.0, 0.5).workers == 2
    with pytest.raises(UserError, match="gpus: 2, no node"):
        ray_cluster.fitted(runs, nodes, 1.0, 2.0)
    with pytest.raises(UserError, match="largest node that can take it has 64 GB"):
        ray_cluster.fitted(plan_of(needs(10**11)), nodes, 1.0, 0.0)
