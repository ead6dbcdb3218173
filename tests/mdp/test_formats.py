"""Files of other tools: there and back, against `umbi`, published values, and hostile archives."""

import gzip
import io
import json
import tarfile
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import umbi

import movi.mdp.archives
import movi.mdp.umb
from movi.mdp import FiniteMDP, garnet, load_mdp, optimum, save_mdp, total_reward
from movi.mdp.families import Inventory, Queue
from movi.planning import solve
from tests.oracles import random_mdp, refusal

MODELS = {
    "garnet": garnet(6, 3, 2, seed=1),
    "ragged": Inventory(size=6, discount=0.9).mdp(),
    "masked": Queue(size=4, discount=0.9).mdp(),
}


def same(left, right):
    """The same values at every pair, and the same best actions."""
    a, b = optimum(left), optimum(right)
    np.testing.assert_allclose(left.best(a.q), right.best(b.q), rtol=0, atol=1e-9)


@pytest.mark.parametrize("suffix", ["npz", "umb", "tra", "petsc"])
@pytest.mark.parametrize("name", MODELS)
def test_an_mdp_comes_back_from_every_format_that_can_hold_it(tmp_path, name, suffix):
    mdp, path = MODELS[name], tmp_path / f"m.{suffix}"
    if suffix == "petsc" and name != "garnet":
        assert "every action in every state" in refusal(save_mdp, mdp, path)
        assert list(tmp_path.iterdir()) == []
        return
    save_mdp(mdp, path)
    again = load_mdp(path, discount=None if suffix in ("npz", "umb") else 0.9)
    assert again.pairs == mdp.pairs
    same(again, mdp)
    assert float(again.discount) == 0.9
    if suffix == "umb":
        np.testing.assert_array_equal(optimum(again).policy, optimum(mdp).policy)
        if mdp.action_names is not None:
            assert list(again.action_names) == list(mdp.action_names)


def test_another_discount_and_costs_are_taken_with_any_format(tmp_path):
    mdp = MODELS["ragged"]
    for suffix in ("npz", "umb"):
        save_mdp(mdp, tmp_path / f"m.{suffix}")
        again = load_mdp(tmp_path / f"m.{suffix}", discount=0.5, minimise=True)
        assert float(again.discount) == 0.5
        np.testing.assert_allclose(again.rewards, -mdp.rewards)


# UMB and its own implementation ------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_umbi_reads_what_we_write(tmp_path, name):
    mdp, path = MODELS[name], tmp_path / "m.umb"
    save_mdp(mdp, path)
    ats = umbi.ats.read(path)
    assert (ats.num_states, ats.num_choices) == (mdp.states, mdp.pairs)
    table = mdp.padded()
    rewards = iter(ats.get_reward_annotation("reward").choice_values)
    for s in range(mdp.states):
        actions = np.flatnonzero(~np.isneginf(table.rewards[s]))
        choices = list(ats.get_state_choices(s))
        assert [choice.action for choice in choices] == actions.tolist()
        for a, choice in zip(actions, choices):
            row = np.zeros(mdp.states)
            for branch in choice.branches:
                row[branch.target] += float(branch.prob)
            np.testing.assert_allclose(row, table.dense()[s, a], atol=1e-15)
            assert next(rewards) == table.rewards[s, a]


def ats_of(states, rewards, **annotations):
    """An ATS from lists of choices of (probability, target), with rewards by place."""
    ats = umbi.ats.ExplicitAts()
    ats.time, ats.num_players = umbi.ats.TimeType.DISCRETE, 1
    for _ in states:
        ats.add_state()
    for s, choices in enumerate(states):
        for branches in choices:
            choice = ats.add_state_choice(state=s)
            for p, target in branches:
                choice.add_branch(target=target, prob=p)
    ats.set_initial_states([0])
    for name, places in rewards.items():
        annotation = ats.add_reward_annotation(name=name)
        for place, values in places.items():
            getattr(annotation, f"set_{place}_values")(values)
    return ats


@pytest.mark.parametrize("packing", [None, "gz", "bz2", "xz"])
def test_we_read_what_umbi_writes_rationals_and_packed_archives_too(tmp_path, packing):
    """A corridor of three: on with 2/3, at cost 1; each step takes 3/2 attempts."""
    third = Fraction(1, 3)
    steps = [[[(2 * third, s + 1), (third, s)]] for s in range(3)]
    ats = ats_of([*steps, [[(1, 3)]]], {"steps": {"choice": [1, 1, 1, 0]}})
    encoder = umbi.umb.umb_to_tar.UmbEncoder()
    encoder.encode(umbi.ats.explicit_ats_to_explicit_umb(ats))
    path = tmp_path / "corridor.umb"
    encoder.write(path, compression=packing)
    mdp = load_mdp(path, discount=0.9, minimise=True)
    assert (mdp.states, mdp.pairs) == (4, 4)
    np.testing.assert_allclose(mdp.dense()[0], [1 / 3, 2 / 3, 0, 0], atol=1e-15)
    # v(s) = −1 + γ (v(s)/3 + 2 v(s + 1)/3)
    v = [0.0]
    for _ in range(3):
        v.append((-1 + 0.6 * v[-1]) / 0.7)
    np.testing.assert_allclose(mdp.best(optimum(mdp).q), v[::-1], atol=1e-9)


HALF = Fraction(1, 2)
# Knuth and Yao's die from PRISM's case studies, as an MDP with one choice: s0..s6 flip coins,
# s7..s12 are the results. PRISM's page: the expected number of flips is 11/3.
DIE = [
    [[(HALF, 1), (HALF, 2)]],
    [[(HALF, 3), (HALF, 4)]],
    [[(HALF, 5), (HALF, 6)]],
    [[(HALF, 1), (HALF, 7)]],
    [[(HALF, 8), (HALF, 9)]],
    [[(HALF, 10), (HALF, 11)]],
    [[(HALF, 2), (HALF, 12)]],
    *[[[(1, s)]] for s in range(7, 13)],
]


def test_the_die_of_prisms_case_studies_takes_eleven_thirds_of_flips(tmp_path):
    flips = {"coin_flips": {"state": [1.0] * 7 + [0.0] * 6}}
    umbi.ats.write(ats_of(DIE, flips), tmp_path / "die.umb")
    # Undiscounted; γ next to 1 is as near: v' = Σ (steps) is at most 11/3, off by (1 − γ) E[τ²].
    mdp = load_mdp(tmp_path / "die.umb", discount=1 - 1e-9)
    answer = optimum(mdp, tolerance=1e-4)
    assert mdp.best(answer.q)[0] == pytest.approx(11 / 3, abs=1e-4)


def consensus(bound):
    """Aspnes and Herlihy's shared coin for two processes, consensus.2 of PRISM's benchmark suite.

    A state is (counter, pc1, coin1, pc2, coin2). A process flips (pc 0), writes (1), checks (2) and
    is finished (3); ``bound`` is K. Gives the states, and the choices of each as branches
    (probability, state), in the order of the model's commands.
    """
    left, right, most = 2, 2 * (bound + 1) * 2 - 2, 2 * (bound + 1) * 2

    def commands(counter, pc, coin):
        if pc == 0:
            yield [(HALF, (counter, 1, 0)), (HALF, (counter, 1, 1))]
        if pc == 1 and coin == 0 and counter > 0:
            yield [(1, (counter - 1, 2, 0))]
        if pc == 1 and coin == 1 and counter < most:
            yield [(1, (counter + 1, 2, 0))]
        if pc == 2 and counter <= left:
            yield [(1, (counter, 3, 0))]
        if pc == 2 and counter >= right:
            yield [(1, (counter, 3, 1))]
        if pc == 2 and left < counter < right:
            yield [(1, (counter, 0, coin))]

    def choices(state):
        counter, pc1, coin1, pc2, coin2 = state
        for branches in commands(counter, pc1, coin1):
            yield [(p, (c, pc, coin, pc2, coin2)) for p, (c, pc, coin) in branches]
        for branches in commands(counter, pc2, coin2):
            yield [(p, (c, pc1, coin1, pc, coin)) for p, (c, pc, coin) in branches]
        if pc1 == pc2 == 3:
            yield [(1, state)]

    found = {(2 * (bound + 1), 0, 0, 0, 0): 0}
    model, queue = [], list(found)
    for state in queue:
        model.append(list(choices(state)))
        for _, to in (branch for branches in model[-1] for branch in branches):
            if to not in found:
                found[to] = len(found)
                queue.append(to)
    return queue, [[[(p, found[to]) for p, to in each] for each in own] for own in model]


# The results of Storm with exact arithmetic in the Quantitative Verification Benchmark Set
# (benchmarks/mdp/consensus/results/Storm.exact.2-2.2018-10-17.json and …2-4…), by K; PRISM's log of
# the same model also has 272 states, 400 choices and 492 transitions.
PUBLISHED = {
    2: {"sizes": (272, 400, 492), "c2": 49 / 128, "disagree": 13 / 120, "min": 48, "max": 75},
    4: {
        "sizes": (528, 784, 972),
        "c2": 1793 / 4096,
        "disagree": 251 / 4080,
        "min": 192,
        "max": 243,
    },
}


@pytest.mark.parametrize("bound", PUBLISHED)
def test_the_shared_coin_has_the_values_that_storm_published(tmp_path, bound):
    expected = PUBLISHED[bound]
    states, model = consensus(bound)
    branches = [(s, to) for s, own in enumerate(model) for each in own for _, to in each]
    assert (len(states), sum(map(len, model)), len(branches)) == expected["sizes"]
    finished = [pc1 == pc2 == 3 for _, pc1, _, pc2, _ in states]
    ones = [done and state[2] == state[4] == 1 for done, state in zip(finished, states)]
    differ = [done and state[2] != state[4] for done, state in zip(finished, states)]
    rewards = {
        "steps": {"state": [float(not done) for done in finished]},
        # What is reached is worth 1 on the way in.
        "c2": {"branch": [float(not finished[s] and ones[to]) for s, to in branches]},
        "disagree": {"branch": [float(not finished[s] and differ[to]) for s, to in branches]},
    }
    path = tmp_path / "consensus.umb"
    umbi.ats.write(ats_of(model, rewards), path)

    def value(name, *, minimise, discount=1 - 1e-8):
        mdp = load_mdp(path, discount=discount, reward=name, minimise=minimise)
        answer = optimum(mdp, tolerance=1e-4)
        assert answer.converged
        return (-1 if minimise else 1) * mdp.best(answer.q)[0]

    # Undiscounted; γ so close to 1 takes less than (1 − γ) E[τ²] of a number of steps τ, and less
    # than (1 − γ) E[τ] of a probability.
    assert value("c2", minimise=True) == pytest.approx(expected["c2"], abs=1e-4)
    assert value("disagree", minimise=False) == pytest.approx(expected["disagree"], abs=1e-4)
    assert value("steps", minimise=True) == pytest.approx(expected["min"], abs=5e-3)
    assert value("steps", minimise=False) == pytest.approx(expected["max"], abs=5e-3)
    # Where every step costs, γ = 1 itself.
    costs = load_mdp(path, discount=0.5, reward="steps", minimise=True)
    assert total_reward(costs).v[0] == pytest.approx(-expected["min"], abs=1e-6)


def test_rewards_of_states_choices_and_branches_are_added_up(tmp_path):
    states = [
        [[(HALF, 1), (HALF, 2)], [(1, 2)]],
        [[(1, 1)]],
        [[(1, 2)]],
    ]
    rewards = {
        "cost": {
            "state": [10.0, 0.0, 0.0],
            "choice": [1.0, 2.0, 0.0, 0.0],
            "branch": [4.0, 8.0, 16.0, 0.0, 0.0],
        },
        "other": {"state": [1.0, 1.0, 1.0]},
    }
    path = tmp_path / "m.umb"
    umbi.ats.write(ats_of(states, rewards), path)
    assert refusal(load_mdp, path, discount=0.9) == (
        f"{path}: rewards: cost, other: say which (--reward NAME)"
    )
    mdp = load_mdp(path, discount=0.9, reward="cost")
    np.testing.assert_array_equal(mdp.rewards, [10 + 1 + 6, 10 + 2 + 16, 0, 0])
    assert refusal(load_mdp, path, discount=0.9, reward="x").endswith("one of cost, other")
    assert refusal(load_mdp, path, reward="cost").endswith("say which (--discount X)")


def test_a_plain_archive_of_a_million_branches_is_mapped_and_not_read_twice(tmp_path):
    mdp = garnet(60_000, 4, 4, seed=0)
    save_mdp(mdp, tmp_path / "m.umb")
    tracemalloc.start()
    again = load_mdp(tmp_path / "m.umb")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    held = sum(x.nbytes for x in (again.successors, again.probabilities, again.rewards))
    assert peak <= 4 * held


# Hostile archives --------------------------------------------------------------------------------


@pytest.fixture
def members(tmp_path):
    path = tmp_path / "m.umb"
    save_mdp(MODELS["garnet"], path)
    with tarfile.open(path) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive.getmembers()}


def pack(path, members, change=None):
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if change is not None:
                change(info)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("index.json", None, "no index.json"),
        ("index.json", b"[]", "index.json: [], expected an object"),
        ("index.json", b"[" * 100_000, "index.json: cannot be read as JSON"),
        ("index.json", b"\xff\xfe", "index.json: not a text in UTF-8"),
        ("branch-to-target.bin", None, "branch-to-target.bin: not in the archive"),
        ("branch-to-target.bin", b"\xff" * 288, "expected below 6"),
        ("branch-to-target.bin", b"", "branch-to-target.bin: 0 bytes, expected 288"),
        ("state-to-choices.bin", b"\xff" * 56, "not from 0 to 18 without going back"),
        ("branch-to-probability.bin", b"\xff" * 288, "probabilities: state 0, action 0: nan"),
        ("actions/choices/values.bin", b"\xff" * 72, "expected below 3"),
    ],
)
def test_a_damaged_archive_is_refused_by_member_and_fault(tmp_path, members, name, content, says):
    members = {k: v for k, v in members.items() if k != name}
    if content is not None:
        members[name] = content
    line = refusal(load_mdp, pack(tmp_path / "bad.umb", members))
    assert line.startswith(f"{tmp_path / 'bad.umb'}: ")
    assert says in line


def test_sizes_that_the_index_claims_are_checked_before_anything_is_allocated(tmp_path, members):
    index = json.loads(members["index.json"])
    for name, count in (("#states", 2**40), ("#choices", 2**40), ("#branches", 2**50)):
        changed = json.loads(json.dumps(index))
        changed["transition-system"][name] = count
        path = pack(tmp_path / "bad.umb", members | {"index.json": json.dumps(changed).encode()})
        tracemalloc.start()
        refusal(load_mdp, path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**22


@pytest.mark.parametrize(
    "change",
    [
        lambda info: setattr(info, "name", f"../{info.name}"),
        lambda info: setattr(info, "name", f"/{info.name}"),
        lambda info: setattr(info, "name", "index.json"),
        lambda info: (setattr(info, "type", tarfile.SYMTYPE), setattr(info, "linkname", "/etc")),
        lambda info: setattr(info, "type", tarfile.LNKTYPE),
        lambda info: setattr(info, "type", tarfile.CHRTYPE),
    ],
)
def test_members_outside_twice_or_no_plain_files_are_refused_and_nothing_is_written(
    tmp_path, members, change
):
    path = pack(tmp_path / "bad.umb", members, change)
    before = sorted(tmp_path.rglob("*"))
    assert refusal(load_mdp, path).startswith(f"{path}: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bomb_is_refused_when_memory_ends_and_not_before_it_is_unpacked(
    tmp_path, members, monkeypatch
):
    monkeypatch.setattr(movi.mdp.archives, "available_memory", lambda: 2**23)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo("state-to-choices.bin")
        info.size = 2**26
        archive.addfile(info, io.BytesIO(bytes(2**26)))
    path = tmp_path / "bomb.umb"
    path.write_bytes(gzip.compress(packed.getvalue()))
    assert path.stat().st_size < 2**18
    tracemalloc.start()
    line = refusal(load_mdp, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "67108864 bytes, more than memory allows" in line
    assert peak < 2**22


# PRISM and PETSc ---------------------------------------------------------------------------------


def test_prisms_own_files_are_read_with_labels_states_and_both_rewards(tmp_path):
    """As `prism model.nm -exporttrans m.tra -exportstaterewards m.srew …` writes them."""
    (tmp_path / "m.tra").write_text(
        "3 4 5\n0 0 1 0.5 go\n0 0 2 0.5 go\n0 1 0 1 stay\n1 0 1 1 go\n2 0 0 1 go\n"
    )
    (tmp_path / "m.srew").write_text("# Reward structure 1\n3 1\n2 7\n")
    (tmp_path / "m.trew").write_text("3 4 2\n0 0 1 4\n0 1 0 1\n")
    (tmp_path / "m.sta").write_text("(x)\n0:(0)\n1:(1)\n2:(2)\n")
    mdp = load_mdp(tmp_path / "m.tra", discount=0.5)
    np.testing.assert_array_equal(mdp.rewards, [2, 1, 0, 7])
    assert list(mdp.state_names) == ["(0)", "(1)", "(2)"]
    assert list(mdp.action_names) == ["go", "stay"]
    # v(1) = 0, v(2) = 7 + v(0)/2, v(0) = max(2 + v(2)/4, 1 + v(0)/2): 2 + 7/4 = 7/8 · v(0).
    solution = solve(mdp)
    assert solution.at("(0)")["go"] == pytest.approx(3.75 / (1 - 1 / 8), abs=1e-6)
    assert solution.action("(0)") == "go"


def test_a_chain_of_prism_is_an_mdp_with_one_action(tmp_path):
    (tmp_path / "c.tra").write_text("2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n")
    (tmp_path / "c.srew").write_text("2 1\n0 1\n")
    mdp = load_mdp(tmp_path / "c.tra", discount=0.5)
    assert mdp.pairs == 2
    assert optimum(mdp).q[0] == pytest.approx(1 / (1 - 0.25))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty, expected an explicit file of PRISM"),
        ("a b c\n", "line 1: 'a b c', expected numbers"),
        ("2 2 9\n0 0 1 1\n1 0 1 1\n", "2 transitions, expected 9"),
        ("2 9 2\n0 0 1 1\n1 0 1 1\n", "2 choices, expected 9"),
        ("2 2 2\n0 0 5 1\n1 0 1 1\n", "5, expected a number in 0..1"),
        ("2 2 2\n0 0 1 x\n1 0 1 1\n", "a line without numbers"),
        ("3 2 2\n0 0 1 1\n1 0 1 1\n", "state 2 has no actions"),
        ("2 2 2\n0 0 1 0.5\n1 0 1 1\n", "they sum to 0.5"),
        ("9999999999999 2 2\n0 0 1 1\n1 0 1 1\n", "expected some"),
    ],
)
def test_a_malformed_file_of_prism_is_refused(tmp_path, text, says):
    path = tmp_path / "m.tra"
    path.write_text(text)
    line = refusal(load_mdp, path, discount=0.9)
    assert line.startswith(f"{path}: ")
    assert says in line
    assert refusal(load_mdp, path).endswith("say which (--discount X)")


@pytest.mark.parametrize("states", [1, 10**8])
def test_a_small_file_of_prism_takes_little_memory_whatever_it_claims(tmp_path, states):
    path = tmp_path / "m.tra"
    path.write_text(f"{states} 1 1\n0 0 0 1\n")
    tracemalloc.start()
    if states == 1:
        assert load_mdp(path, discount=0.9).pairs == 1
    else:
        assert "state 1 has no actions" in refusal(load_mdp, path, discount=0.9)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**23


def test_petscs_matrices_are_those_that_its_own_reader_expects(tmp_path):
    """Byte for byte, from the format's description: big-endian, rows, columns, values."""
    mdp = FiniteMDP([[[1, 0]], [[1, 1]]], [[[0.25, 0.75]], [[1, 0]]], [[2.0], [-1.0]], 0.9)
    save_mdp(mdp, tmp_path / "m.petsc")
    head = np.array([1211216, 2, 2, 3, 2, 1, 1, 0, 1], ">i4").tobytes()
    assert (tmp_path / "m.petsc").read_bytes() == head + np.array([0.25, 0.75, 1], ">f8").tobytes()
    head = np.array([1211216, 2, 1, 2, 1, 1, 0, 0], ">i4").tobytes()
    rewards = (tmp_path / "m.rewards.petsc").read_bytes()
    assert rewards == head + np.array([2.0, -1.0], ">f8").tobytes()


def test_a_matrix_that_claims_more_than_its_file_is_refused_unread(tmp_path):
    save_mdp(random_mdp(0, 4, 2, 2), tmp_path / "m.petsc")
    content = bytearray((tmp_path / "m.petsc").read_bytes())
    content[12:16] = (2**31 - 1).to_bytes(4, "big")
    (tmp_path / "m.petsc").write_bytes(content)
    assert "the file has" in refusal(load_mdp, tmp_path / "m.petsc", discount=0.9)
    (tmp_path / "m.petsc").write_bytes(b"short")
    assert "not a binary matrix" in refusal(load_mdp, tmp_path / "m.petsc", discount=0.9)
