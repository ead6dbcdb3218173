import dataclasses

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.mdp.arrays import aligned
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.model import FiniteMDP
from tests.oracles import dense_kernel, mdp_arrays, refusal

FIELDS = ("successors", "probabilities", "rewards", "discount")


def leaves(mdp):
    return {name: np.asarray(getattr(mdp, name)) for name in FIELDS}


def assert_same(left, right):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


# What is accepted --------------------------------------------------------------------------------


@given(mdp_arrays(batches=(None, 1, 3)))
def test_any_valid_arrays_are_accepted_and_kept(arrays):
    mdp = FiniteMDP(**arrays)
    shape = arrays["successors"].shape
    assert (mdp.batch, mdp.states) == (shape[0] if len(shape) == 4 else None, shape[-3])
    assert (mdp.actions, mdp.branching) == shape[-2:]
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(mdp, name), arrays[name])
    assert mdp.successors.dtype == np.int32
    assert {x.dtype for x in leaves(mdp).values()} == {np.dtype("int32"), np.dtype("float64")}


@given(mdp_arrays(batches=(None, 2)))
def test_the_dense_kernel_adds_up_what_leads_to_the_same_state(arrays):
    mdp = FiniteMDP(**arrays)
    members = [mdp] if mdp.batch is None else list(mdp)
    expected = np.stack([dense_kernel(member) for member in members])
    kernel = mdp.dense()
    assert kernel.shape == (*mdp.rewards.shape, mdp.states)
    np.testing.assert_allclose(kernel.reshape(expected.shape), expected, rtol=0, atol=1e-15)


@given(mdp_arrays(batches=(None, 2)))
def test_a_dense_kernel_is_accepted_and_comes_back(arrays):
    original = FiniteMDP(**arrays)
    kernel = original.dense()
    mdp = FiniteMDP.from_dense(kernel, arrays["rewards"], arrays["discount"])
    np.testing.assert_allclose(mdp.dense(), kernel, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(mdp.rewards, arrays["rewards"])
    assert mdp.branching == (kernel > 0).sum(-1).max()


@given(mdp_arrays(), st.sampled_from(["csr", "csc", "coo", "lil"]))
def test_sparse_matrices_of_any_format_are_accepted_and_give_the_same_kernel(arrays, layout):
    kernel = FiniteMDP(**arrays).dense()
    matrices = [sparse.coo_array(kernel[:, a]).asformat(layout) for a in range(kernel.shape[1])]
    mdp = FiniteMDP.from_sparse(matrices, arrays["rewards"], arrays["discount"])
    np.testing.assert_allclose(mdp.dense(), kernel, rtol=0, atol=1e-15)
    assert mdp.branching == (kernel > 0).sum(-1).max()


def entries_with_a_zero_and_a_pair():
    """Row 0: half and half on state 1, and an explicit zero; row 1: all on state 0."""
    return sparse.csr_array(
        (np.array([0.5, 0.5, 0.0, 1.0]), np.array([1, 1, 0, 0]), np.array([0, 3, 4])), shape=(2, 2)
    )


def test_repeated_and_zero_sparse_entries_are_summed_and_dropped():
    mdp = FiniteMDP.from_sparse([entries_with_a_zero_and_a_pair()], np.zeros((2, 1)), 0.5)
    np.testing.assert_array_equal(mdp.dense()[:, 0], [[0, 1], [1, 0]])
    assert mdp.branching == 1


def test_the_sparse_matrices_of_the_caller_are_left_alone():
    theirs, before = entries_with_a_zero_and_a_pair(), entries_with_a_zero_and_a_pair()
    FiniteMDP.from_sparse([theirs], np.zeros((2, 1)), 0.5)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(before, name))


def test_rows_with_fewer_successors_are_padded_with_probability_zero():
    kernel = np.array([[[0.2, 0.3, 0.5]], [[0.0, 1.0, 0.0]], [[0.5, 0.0, 0.5]]])
    mdp = FiniteMDP.from_dense(kernel, np.zeros((3, 1)), 0.5)
    np.testing.assert_array_equal(
        mdp.probabilities[:, 0], [[0.2, 0.3, 0.5], [1, 0, 0], [0.5, 0.5, 0]]
    )
    np.testing.assert_array_equal(mdp.successors[:, 0, :2], [[0, 1], [1, 0], [0, 2]])
    np.testing.assert_array_equal(mdp.dense(), kernel)


def test_rows_that_sum_to_one_only_in_float32_are_normalised():
    rows = np.random.default_rng(0).dirichlet(np.ones(7), (5, 2)).astype(np.float32)
    assert np.abs(rows.astype(np.float64).sum(-1) - 1).max() > 1e-9
    mdp = FiniteMDP(np.zeros((5, 2, 7), int), rows, np.zeros((5, 2)), 0.5)
    np.testing.assert_allclose(mdp.probabilities.sum(-1), 1, rtol=0, atol=1e-15)
    np.testing.assert_allclose(mdp.probabilities, rows, rtol=1e-6)


def test_rows_that_already_sum_to_one_keep_their_bits():
    mdp = garnet(20, 3, 5, seed=3)
    np.testing.assert_array_equal(FiniteMDP(**leaves(mdp)).probabilities, mdp.probabilities)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.int64, np.uint64])
def test_successors_of_any_integer_type_are_accepted(dtype):
    successors = np.array([[[0, 1]], [[1, 1]]], dtype)
    mdp = FiniteMDP(successors, np.full((2, 1, 2), 0.5), np.zeros((2, 1)), 0)
    np.testing.assert_array_equal(mdp.successors, successors)
    assert mdp.successors.dtype == np.int32


# What is refused ---------------------------------------------------------------------------------

SPOILED_CELLS = [
    ("probabilities", -0.25, "-0.25"),
    ("probabilities", np.nan, "nan"),
    ("probabilities", 3.0, "they sum to "),
    ("probabilities", np.inf, "they sum to inf"),
    ("successors", -1, "-1"),
    ("successors", 5, "5"),
    ("successors", 2**40, str(2**40)),
    ("rewards", np.nan, "nan"),
    ("rewards", np.inf, "inf"),
    ("rewards", -1e200, "-1e+200, expected at most ±1e+150"),
]


@pytest.mark.parametrize(("field", "value", "found"), SPOILED_CELLS)
@given(mdp_arrays(batches=(None, 2)), st.data())
def test_a_bad_entry_is_refused_by_its_first_state_and_action_and_its_value(
    field, value, found, arrays, data
):
    rows = list(np.ndindex(*arrays["rewards"].shape))
    first, later = sorted(data.draw(st.lists(st.sampled_from(rows), min_size=2, max_size=2)))
    spoiled = arrays[field].copy()
    spoiled[first if field == "rewards" else (*first, -1)] = value
    spoiled[later] = value
    line = refusal(FiniteMDP, **(arrays | {field: spoiled}))
    *member, s, a = first
    place = "".join(f"MDP {m}, " for m in member) + f"state {s}, action {a}"
    assert line.startswith(f"{field}: {place}: {found}")


@given(mdp_arrays(), st.data(), st.sampled_from([1e-3, -1e-3, 2e-6, -1.0]))
def test_a_row_that_does_not_sum_to_one_is_refused_with_its_sum(arrays, data, miss):
    s, a = data.draw(st.sampled_from(list(np.ndindex(*arrays["rewards"].shape))))
    spoiled = arrays["probabilities"].copy()
    spoiled[s, a] *= 1 + miss
    line = refusal(FiniteMDP, **(arrays | {"probabilities": spoiled}))
    place, total = line.split(": they sum to ")
    assert place == f"probabilities: state {s}, action {a}"
    assert float(total.split(",")[0]) == pytest.approx(1 + miss, abs=1e-12)


@pytest.mark.parametrize("discount", [1.0, 1.5, -0.1, np.nan, np.inf])
def test_a_discount_outside_zero_to_one_is_refused(discount):
    arrays = leaves(garnet(3, 2, 2))
    assert refusal(FiniteMDP, **(arrays | {"discount": discount})) == (
        f"discount: {discount}, expected a number in [0, 1)"
    )
    batch = leaves(garnet(3, 2, 2, count=3))
    batch["discount"] = np.array([0.5, discount, discount])
    assert refusal(FiniteMDP, **batch).startswith(f"discount of MDP 1: {discount}, ")


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        ("successors", (3, 2)),
        ("successors", (1, 1, 3, 2, 2)),
        ("successors", (0, 2, 2)),
        ("successors", (3, 2, 0)),
        ("probabilities", (3, 2, 3)),
        ("probabilities", (3, 4)),
        ("rewards", (2,)),
        ("rewards", (2, 3)),
        ("rewards", (3, 2, 4)),
        ("discount", (1,)),
        ("discount", (3,)),
    ],
)
def test_a_wrong_shape_is_refused_by_name_and_shape(field, shape):
    arrays = leaves(garnet(3, 2, 2)) | {field: np.zeros(shape, int)}
    assert refusal(FiniteMDP, **arrays).startswith(f"{field}: shape {shape}, expected ")


@pytest.mark.parametrize(
    ("field", "value", "dtype"),
    [
        ("successors", np.zeros((3, 2, 2)), "float64"),
        ("successors", np.zeros((3, 2, 2), bool), "bool"),
        ("probabilities", np.full((3, 2, 2), "half"), "<U4"),
        ("rewards", np.zeros((3, 2), complex), "complex128"),
        ("rewards", np.full((3, 2), None), "object"),
        ("discount", "0.9", "<U3"),
        ("discount", None, "object"),
    ],
)
def test_a_wrong_type_is_refused_by_name_and_type(field, value, dtype):
    arrays = leaves(garnet(3, 2, 2)) | {field: value}
    assert refusal(FiniteMDP, **arrays).startswith(f"{field}: dtype {dtype}, expected ")


@pytest.mark.parametrize(
    ("field", "ragged"),
    [
        ("successors", [[[0], [0, 1]], [[0], [1]]]),
        ("probabilities", [[[1], [0.5, 0.5]], [[1], [1]]]),
        ("rewards", [[0, 1], [0]]),
    ],
)
def test_ragged_lists_are_refused_by_name(field, ragged):
    arrays = {
        "successors": np.zeros((2, 2, 1), int),
        "probabilities": np.ones((2, 2, 1)),
        "rewards": np.zeros((2, 2)),
        "discount": 0.5,
    }
    assert refusal(FiniteMDP, **(arrays | {field: ragged})).startswith(f"{field}: ")


@pytest.mark.parametrize("value", [-0.25, np.nan, 0.75])
def test_a_bad_dense_kernel_is_refused_by_state_and_action(value):
    kernel = np.full((2, 2, 2), 0.5)
    kernel[1, 0, 1] = value
    line = refusal(FiniteMDP.from_dense, kernel, np.zeros((2, 2)), 0.5)
    assert line.startswith("probabilities: state 1, action 0: ")
    assert ("they sum to 1.25" if value == 0.75 else str(value)) in line


def test_a_dense_kernel_with_an_empty_row_is_refused():
    kernel = np.zeros((2, 1, 2))
    kernel[0, 0, 0] = 1
    line = refusal(FiniteMDP.from_dense, kernel, np.zeros((2, 1)), 0.5)
    assert line == "probabilities: state 1, action 0: they sum to 0.0, expected 1"


@pytest.mark.parametrize("shape", [(2, 2), (2, 1, 3), (0, 1, 0), (2, 0, 2)])
def test_a_dense_kernel_of_a_wrong_shape_is_refused(shape):
    line = refusal(FiniteMDP.from_dense, np.zeros(shape), np.zeros(shape[:2]), 0.5)
    assert line.startswith(f"kernel: shape {shape}, expected ")


@pytest.mark.parametrize("value", [-0.25, np.nan, 0.75])
def test_a_bad_sparse_matrix_is_refused_by_state_and_action(value):
    good, bad = np.eye(3), np.eye(3)
    bad[2, 0] = value
    kernels = [sparse.csr_array(good), sparse.csr_array(bad)]
    line = refusal(FiniteMDP.from_sparse, kernels, np.zeros((3, 2)), 0.5)
    assert line.startswith("probabilities: state 2, action 1: ")
    assert ("they sum to 1.75" if value == 0.75 else str(value)) in line


def test_sparse_matrices_of_different_shapes_are_refused_by_action():
    kernels = [sparse.eye_array(3).tocsr(), sparse.eye_array(4).tocsr()]
    line = refusal(FiniteMDP.from_sparse, kernels, np.zeros((3, 2)), 0.5)
    assert line == "kernels: the matrix of action 1 has shape (4, 4), expected (3, 3)"
    assert refusal(FiniteMDP.from_sparse, [], np.zeros((3, 0)), 0.5).startswith("kernels: empty")


# The order of axes -------------------------------------------------------------------------------

TURNED = np.array([[[0.9, 0.1], [0.0, 1.0]], [[0.2, 0.8], [1.0, 0.0]]])  # P[a, s, s']


def test_a_kernel_with_as_many_actions_as_states_is_taken_with_a_warning():
    with pytest.warns(UserWarning, match=r"kernel: 2 states and as many actions, taken as P\[s, a"):
        mdp = FiniteMDP.from_dense(TURNED, np.zeros((2, 2)), 0.5)
    np.testing.assert_array_equal(mdp.dense(), TURNED)


@pytest.mark.parametrize(("axes", "row"), [("SA", [0.0, 1.0]), ("AS", [0.2, 0.8])])
def test_axes_say_what_comes_first_in_a_kernel(recwarn, axes, row):
    mdp = FiniteMDP.from_dense(TURNED, np.zeros((2, 2)), 0.5, axes=axes)
    np.testing.assert_array_equal(mdp.dense()[0, 1], row)  # state 0, action 1
    assert len(recwarn) == 0


def test_a_kernel_with_actions_first_is_accepted_when_told_and_pointed_out_when_not(recwarn):
    kernel = np.stack([np.eye(3), np.roll(np.eye(3), 1, 1)])  # stay, go on: [2, 3, 3]
    mdp = FiniteMDP.from_dense(kernel, np.zeros((3, 2)), 0.5, axes="AS")
    np.testing.assert_array_equal(mdp.dense()[:, 1], np.roll(np.eye(3), 1, 1))
    batch = FiniteMDP.from_dense(kernel[None], np.zeros((1, 3, 2)), [0.5], axes="AS")
    np.testing.assert_array_equal(batch.dense()[0], mdp.dense())
    line = refusal(FiniteMDP.from_dense, kernel, np.zeros((3, 2)), 0.5)
    assert line.startswith("kernel: shape (2, 3, 3), expected [S, A, S]")
    assert line.endswith('axes="AS" takes [A, S, S]')
    assert len(recwarn) == 0


def test_axes_that_do_not_fit_are_refused():
    kernel = np.full((2, 1, 2), 0.5)
    line = refusal(FiniteMDP.from_dense, kernel, np.zeros((2, 1)), 0.5, axes="AS")
    assert line == "kernel: shape (2, 1, 2), expected [A, S, S] or [M, A, S, S]"
    line = refusal(FiniteMDP.from_dense, kernel, np.zeros((2, 1)), 0.5, axes="ASS")
    assert line.startswith("axes: 'ASS', expected one of SA, AS")


# Immutability ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mdp", [garnet(3, 2, 2), garnet(3, 2, 2, count=2)[1]], ids=["one", "member"]
)
@pytest.mark.parametrize("field", FIELDS[:3])
def test_no_array_of_an_mdp_can_be_written(mdp, field):
    with pytest.raises(ValueError, match="read-only"):
        getattr(mdp, field)[0] = 0


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_an_mdp_can_be_replaced(field):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(garnet(3, 2, 2), field, 0)


@pytest.mark.parametrize("field", FIELDS)
def test_writing_to_the_arrays_it_was_built_from_does_not_change_an_mdp(field):
    theirs = {name: np.array(x) for name, x in leaves(garnet(3, 2, 2)).items()}
    mdp = FiniteMDP(**theirs)
    before = np.array(getattr(mdp, field))
    theirs[field][...] = 0
    np.testing.assert_array_equal(getattr(mdp, field), before)
    assert before.any()


def test_a_read_only_view_of_a_writable_array_does_not_open_a_back_door():
    rewards = aligned((3, 2), np.float64)
    rewards[...] = 1
    view = rewards.view()
    view.flags.writeable = False
    mdp = FiniteMDP(**(leaves(garnet(3, 2, 2)) | {"rewards": view}))
    rewards[...] = np.nan
    np.testing.assert_array_equal(mdp.rewards, np.ones((3, 2)))


# The batch ---------------------------------------------------------------------------------------


def test_a_batch_is_indexed_sliced_and_iterated():
    mdps = garnet(5, 2, 3, seed=4, count=3)
    assert (len(mdps), mdps.batch, mdps[1:].batch, mdps[1].batch) == (3, 3, 2, None)
    for i, member in enumerate(mdps):
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(member, name), getattr(mdps, name)[i])
        assert_same(mdps[i : i + 1][0], member)
    assert_same(mdps[-1], mdps[2])
    with pytest.raises(IndexError):
        mdps[3]


def test_a_single_mdp_has_nothing_to_index():
    mdp = garnet(3, 2, 2)
    with pytest.raises(UserError, match="no batch axis"):
        mdp[0]
    with pytest.raises(TypeError, match="no batch axis"):
        len(mdp)


def test_an_mdp_says_its_sizes():
    assert repr(garnet(3, 2, 1, discount=0.25)) == (
        "FiniteMDP(3 states, 2 actions, 1 successors, discount 0.25)"
    )
    assert repr(garnet(3, 2, 1, count=7)).startswith("FiniteMDP(7 × 3 states")
