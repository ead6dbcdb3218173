"""The checkpoint's file: complete, checked, and nothing in it is believed."""

import json
import pickle
import struct
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import momentum_rl.training.run_directory as module
from momentum_rl.errors import Damaged, UserError
from momentum_rl.plumbing.trees import arrays_of, tree_of
from momentum_rl.training.run_directory import Checkpoints, Saved, encoded, newest, read_checkpoint

SAVED = Saved(
    {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array(7, np.int64),
        "none": np.zeros((0, 4), np.uint8),
        "flags": np.array([True, False]),
        "words": np.array([2**64 - 1], np.uint64),
    },
    {"step": 3, "scores": [0.1, 1e300, None], "name": "é"},
)


def test_what_is_read_is_what_was_written(tmp_path):
    (tmp_path / "f.safetensors").write_bytes(encoded(SAVED))
    content = read_checkpoint(tmp_path / "f.safetensors")
    assert content.state == SAVED.state
    assert content.arrays.keys() == SAVED.arrays.keys()
    for name, array in SAVED.arrays.items():
        assert (content.arrays[name].dtype, content.arrays[name].shape) == (
            array.dtype,
            array.shape,
        )
        np.testing.assert_array_equal(content.arrays[name], array)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_damaged_anywhere_is_recognised_or_reads_the_same(tmp_path, data):
    """Any bytes changed, cut off or added: one line, or (in padding) the same content."""
    content = bytearray(encoded(SAVED))
    kind = data.draw(st.sampled_from(["flip", "cut", "add", "zeros"]))
    at = data.draw(st.integers(0, len(content) - 1))
    if kind == "flip":
        content[at] ^= data.draw(st.integers(1, 255))
    elif kind == "cut":
        del content[at:]
    elif kind == "add":
        content += data.draw(st.binary(min_size=1, max_size=9))
    else:
        content[at : at + 8] = bytes(len(content[at : at + 8]))
    file = tmp_path / "f.safetensors"
    file.write_bytes(content)
    try:
        content = read_checkpoint(file)
    except UserError:
        return
    assert content.state == SAVED.state
    for name, array in SAVED.arrays.items():
        assert content.arrays[name].tobytes() == array.tobytes()


def declared(header, rest=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def huge():
    tensor = {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 2**62]}
    return declared({"a": tensor})


def zipped(tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("../../escape", b"x")
    return (tmp_path / "z.zip").read_bytes()


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


@pytest.mark.parametrize(
    "make",
    [
        lambda _: b"",
        lambda _: pickle.dumps(Bomb()),
        zipped,
        lambda _: huge(),
        lambda _: struct.pack("<Q", 2**63) + b"{}",
        lambda _: declared({"__metadata__": {"movi": "[" * 100_000, "sha256": "x"}}),
        lambda _: declared({"__metadata__": {"movi": '{"format": "1"}', "sha256": 3}}),
        lambda _: declared({"__metadata__": {"movi": '{"format": 1, "state": 5}', "sha256": "x"}}),
        lambda _: declared(
            {"../../x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"x"
        ),
    ],
)
def test_hostile_bytes_are_one_line(make, tmp_path):
    file = tmp_path / "f.safetensors"
    file.write_bytes(make(tmp_path))
    with pytest.raises(Damaged) as error:
        read_checkpoint(file)
    assert "\n" not in str(error.value)


def test_a_directory_or_a_pipe_in_place_of_the_file_is_one_line(tmp_path):
    import os

    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "p")
    for name in ("d", "p", "absent"):
        with pytest.raises(Damaged):
            read_checkpoint(tmp_path / name)


def test_another_format_is_refused_and_not_passed_over(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(1, SAVED)
    with monkeypatch.context() as patch:
        patch.setattr(module, "FORMAT", 3)
        checkpoints.write(2, SAVED)
    with pytest.raises(UserError, match="format 3, this version of movi reads 2"):
        newest(checkpoints, lambda saved: None)
    assert checkpoints.steps() == [1, 2]


def test_the_last_two_are_kept_and_nothing_half_written(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (5, 10, 100_000, 2_000_000):
        checkpoints.write(step, SAVED)
    assert checkpoints.steps() == [100_000, 2_000_000]
    (checkpoints.path / ".000002000001.safetensors.7.part").write_bytes(b"x")
    (checkpoints.path / "other.txt").write_bytes(b"x")
    assert checkpoints.steps() == [100_000, 2_000_000]


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_ones(tmp_path, monkeypatch):
    import os

    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(1, SAVED)
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(UserError, match="cannot be written: full"):
        checkpoints.write(2, SAVED)
    assert [file.name for file in checkpoints.path.iterdir()] == ["000000000001.safetensors"]
    assert checkpoints.read(1).state == SAVED.state


def test_trees_of_any_dtype_and_of_keys_are_restored(tmp_path):
    tree = {
        "key": jax.random.key(3),
        "half": jnp.arange(3, dtype=jnp.bfloat16),
        "pair": (jnp.int8(4), jnp.zeros((0, 2), jnp.uint32)),
    }
    (tmp_path / "f").write_bytes(encoded(Saved(arrays_of(tree, "x"), {})))
    again = tree_of(jax.tree.map(jnp.zeros_like, tree), read_checkpoint(tmp_path / "f").arrays, "x")
    assert jax.random.key_data(again["key"]).tolist() == jax.random.key_data(tree["key"]).tolist()
    assert again["half"].dtype == jnp.bfloat16
    np.testing.assert_array_equal(again["half"].astype(np.float32), tree["half"].astype(np.float32))
    assert int(again["pair"][0]) == 4


def test_arrays_that_do_not_fit_are_one_line():
    tree = {"a": np.zeros(3), "b": np.zeros(2, np.float32)}
    arrays = arrays_of(tree, "x")
    with pytest.raises(UserError, match=r"x\['a'\]: missing"):
        tree_of(tree, {name: arrays[name] for name in arrays if "b" in name}, "x")
    with pytest.raises(UserError, match=r"x\['b'\]: float32\[2\], expected float32\[3\]"):
        tree_of({**tree, "b": np.zeros(3, np.float32)}, arrays, "x")
    with pytest.raises(UserError, match="not expected here"):
        tree_of(tree, {**arrays, "x['c']": np.zeros(1)}, "x")
