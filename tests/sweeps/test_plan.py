"""What a sweep takes, and what does not fit."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.plumbing.sizes import require
from momentum_rl.runs.matrix import Variant, cross
from momentum_rl.sweeps.jobs import jobs_of
from momentum_rl.sweeps.needs import Footprint, computed
from momentum_rl.sweeps.plan import PROCESS, fitted, grouped, shares
from momentum_rl.sweeps.ray_cluster import planned

MB = 10**6
SWEEP = cross("mine", ["CartPole-v1"], [Variant("dqn"), Variant("deep-sql")], range(5))


def needs(replay, fused=True):
    return (Footprint(replay, replay, 2 * replay, MB, fused),) * 2


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
    one, other, three, fused = computed(replace(SWEEP, cells=games))
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
    (found,) = computed(replace(SWEEP, cells=(evaluated,)))
    assert found.results == other.results + 2 * network
    assert found.disk == other.disk + 4 * 2 * network


def test_an_environment_that_does_not_exist_is_the_users_error():
    with pytest.raises(UserError, match="NoSuchThing-v3"):
        computed(cross("x", ["NoSuchThing-v3"], [Variant("dqn")], [0]))
    with pytest.raises(UserError, match="'sarsa'"):
        computed(cross("x", ["CartPole-v1"], [Variant("sarsa")], [0]))


def test_seeds_go_together_only_where_they_are_compiled_together():
    assert [cell.together for cell in grouped(SWEEP, needs(MB)).cells] == [5, 5]
    assert [cell.together for cell in grouped(SWEEP, needs(MB, fused=False)).cells] == [1, 1]


@pytest.mark.parametrize(
    ("share", "together"), [(5 * 100, 5), (499, 4), (250, 2), (199, 1), (100, 1)]
)
def test_as_many_seeds_go_together_as_fit_into_a_workers_memory(share, together):
    memory = 2 * (PROCESS + share * MB)
    plan = fitted(grouped(SWEEP, needs(100 * MB)), needs(100 * MB), 2, memory=memory)
    assert [cell.together for cell in plan.sweep.cells] == [together, together]
    assert plan.workers == 2
    for job in jobs_of(plan.sweep):
        assert plan.memory(job) == PROCESS + len(job.seeds) * 100 * MB


def test_more_workers_than_memory_is_refused_and_the_right_number_named():
    memory = 3 * (PROCESS + 7_000 * MB)
    with pytest.raises(UserError, match=r"workers: 4, .* 8\.1 GB .*; at most --workers 3"):
        fitted(SWEEP, needs(7_000 * MB, fused=False), 4, memory=memory)
    with pytest.raises(UserError, match=r"24\.3 GB of memory, 24\.3 GB are available$") as error:
        fitted(SWEEP, needs(23_200 * MB + 1), 1, memory=memory)
    assert "--workers" not in str(error.value)


def test_without_a_number_there_are_as_many_workers_as_fit(monkeypatch):
    monkeypatch.setattr("momentum_rl.sweeps.plan.available_cores", lambda: list(range(8)))
    memory = 3 * (PROCESS + 7_000 * MB)
    assert fitted(SWEEP, needs(7_000 * MB, fused=False), None, memory=memory).workers == 3
    assert fitted(SWEEP, needs(MB, fused=False), None, memory=10**12).workers == 8


def test_a_replay_in_files_may_be_larger_than_the_memory():
    mapped = (Footprint(7_000 * MB, 0, 8_000 * MB, MB, False),) * 2
    memory = 3 * (PROCESS + 1_000 * MB)
    assert fitted(SWEEP, mapped, 3, memory=memory).workers == 3
    assert fitted(SWEEP, mapped, None, memory=memory).workers == 1


def test_a_sweep_that_has_begun_keeps_its_groups():
    begun = grouped(SWEEP, needs(100 * MB))
    jobs = list(jobs_of(begun))
    plan = fitted(begun, needs(100 * MB), None, jobs=jobs, memory=PROCESS + 500 * MB)
    assert (plan.sweep, plan.workers) == (begun, 1)
    with pytest.raises(UserError, match=r"needs 1\.6 GB of memory, 1\.6 GB are available"):
        fitted(begun, needs(100 * MB), None, jobs=jobs, memory=PROCESS + 499 * MB)


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
    sweep, need = grouped(SWEEP, needs(100 * MB)), needs(100 * MB)
    plan = planned(sweep, need, nodes, 2.0, 0.0, None)
    assert plan.workers == 2  # 6 tasks at once would go, there are two
    plan = planned(sweep, need, nodes, 1.0, 0.0, None)
    assert [cell.together for cell in plan.sweep.cells] == [3, 3]  # on the first node
    assert plan.workers == 4
    plan = planned(sweep, need, nodes, 1.0, 0.5, None)
    assert [cell.together for cell in plan.sweep.cells] == [5, 5]
    assert plan.workers == 2
    with pytest.raises(UserError, match="gpus: 2, no node"):
        planned(sweep, need, nodes, 1.0, 2.0, None)
    with pytest.raises(UserError, match="largest node that can take it has 64 GB"):
        planned(SWEEP, needs(10**11), nodes, 1.0, 0.0, None)
