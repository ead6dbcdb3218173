import errno
import io
import os
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from momentum_rl.errors import UserError
from momentum_rl.mdp.families import garnet
from momentum_rl.mdp.files import load_mdp, save_mdp
from momentum_rl.mdp.model import FiniteMDP
from tests.oracles import mdp_arrays, refusal

FIELDS = ("successors", "probabilities", "rewards", "discount")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "mdp.npz"
    save_mdp(garnet(5, 2, 3, seed=1), path)
    return path


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def with_member(path, name, content):
    """The same file with other bytes for one of its arrays."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for n, bytes_ in (members | {f"{name}.npy": content}).items():
            archive.writestr(n, bytes_)
    return path


def with_header(path, header, version=b"\x01\x00"):
    size = len(header).to_bytes(2, "little")
    return with_member(path, "rewards", b"\x93NUMPY" + version + size + header)


@given(mdp_arrays(batches=(None, 2)))
def test_a_saved_mdp_comes_back_bit_for_bit(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("files") / "mdp.npz"
    mdp = FiniteMDP(**arrays)
    save_mdp(mdp, path)
    again = load_mdp(path)
    for name in FIELDS:
        left, right = np.asarray(getattr(mdp, name)), np.asarray(getattr(again, name))
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert left.tobytes() == right.tobytes()


def test_a_member_of_a_batch_can_be_saved(tmp_path):
    mdps = garnet(5, 2, 3, seed=1, count=2)
    save_mdp(mdps[1], tmp_path / "mdp.npz")
    again = load_mdp(tmp_path / "mdp.npz")
    assert again.batch is None
    np.testing.assert_array_equal(again.probabilities, mdps.probabilities[1])


def test_a_file_holds_four_plain_arrays(saved):
    with np.load(saved, allow_pickle=False) as archive:
        assert set(archive.files) == set(FIELDS)
        assert archive["successors"].shape == (5, 2, 3)
        assert archive["discount"].shape == ()
        assert float(archive["discount"]) == 0.9


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_written_by_numpy_are_read(tmp_path, save):
    path = tmp_path / "mine.npz"
    save(
        path,
        successors=np.array([[[0, 1]], [[1, 1]]], np.uint8),
        probabilities=np.asfortranarray(np.full((2, 1, 2), 0.5, np.float32)),
        rewards=np.array([[1], [2]]),
        discount=0.5,
        notes=np.array("ours to ignore"),
    )
    mdp = load_mdp(path)
    np.testing.assert_array_equal(mdp.dense()[:, 0], [[0.5, 0.5], [0, 1]])
    np.testing.assert_array_equal(mdp.rewards, [[1.0], [2.0]])


def test_python_objects_are_refused_and_never_unpickled(saved):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(saved.parent / "exploded"),))

    buffer = io.BytesIO()
    np.save(buffer, np.full((5, 2), Bomb()), allow_pickle=True)
    line = refusal(load_mdp, with_member(saved, "rewards", buffer.getvalue()))
    assert "rewards" in line
    assert not (saved.parent / "exploded").exists()


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_array_is_refused_by_name(saved, field):
    with np.load(saved) as archive:
        arrays = {name: archive[name] for name in FIELDS if name != field}
    np.savez(saved, **arrays)
    assert refusal(load_mdp, saved).startswith(f"{saved}: no array '{field}', expected ")


@pytest.mark.parametrize(
    ("field", "array", "complaint"),
    [
        ("successors", np.zeros((5, 2, 3)), "successors: dtype float64"),
        ("probabilities", np.full((5, 2, 3), "x"), "probabilities: dtype <U1"),
        ("rewards", np.zeros((2, 5)), "rewards: shape (2, 5)"),
        ("rewards", np.full((5, 2), np.nan), "rewards: state 0, action 0: nan"),
        ("discount", np.array(1.0), "discount: 1.0"),
        ("discount", np.array([(1,)], [("x", "i4")]), "discount: dtype"),
    ],
)
def test_a_file_with_a_malformed_mdp_is_refused_by_file_and_fault(saved, field, array, complaint):
    line = refusal(load_mdp, with_member(saved, field, npy(array)))
    assert line.startswith(f"{saved}: {complaint}")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused(saved, share):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(len(whole) * share)])
    assert refusal(load_mdp, saved).startswith(f"{saved}: ")


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_harmless(tmp_path_factory, place, mask):
    path = tmp_path_factory.getbasetemp() / "flipped.npz"
    mdp = garnet(3, 2, 2, seed=1)
    save_mdp(mdp, path)
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= mask
    path.write_bytes(content)
    try:
        again = load_mdp(path)
    except UserError:
        assert refusal(load_mdp, path).startswith(f"{path}: ")
    else:
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(again, name), getattr(mdp, name))


@pytest.mark.parametrize("content", [b"", b"not a zip", b"\x93NUMPY\x01\x00", b"PK\x03\x04" * 9])
def test_what_is_not_an_npz_is_refused(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    assert refusal(load_mdp, path) == f"{path}: not a readable .npz file"


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    assert refusal(load_mdp, tmp_path / "none.npz").endswith("none.npz: No such file or directory")
    assert refusal(load_mdp, tmp_path).endswith("not a file, expected an .npz")


GOOD_HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2), }"


def test_a_short_array_is_refused(saved):
    assert refusal(load_mdp, with_header(saved, GOOD_HEADER)).startswith(f"{saved}: rewards.npy: ")


@pytest.mark.parametrize(
    "shape", [b"(10000000000,)", b"(100000, 100000, 100)", b"(1" + b"0" * 30 + b",)"]
)
def test_a_header_that_claims_more_than_the_file_holds_is_refused_unread(saved, shape):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + b"}"
    line = refusal(load_mdp, with_header(saved, header))
    assert "needs" in line
    assert "the file holds" in line


def test_an_archive_that_lies_about_a_size_as_well_is_refused(saved):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (400000000,)}"
    path = with_header(saved, header)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02", 0, content.rindex(b"rewards.npy"))
    struct.pack_into("<I", content, entry + 24, 3_200_000_200)  # the uncompressed size
    path.write_bytes(content)
    assert refusal(load_mdp, path).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\x00",
        b"{'descr': (",
        b"'''",
        b"{[]: 1}",
        b"{1: 2, 'descr': 3}",
        b"[" * 300,
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L,",
        b"{'descr': '<f8', 'fortran_order': False}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}",
        b"{'descr': '<f8', 'fortran_order': 3, 'shape': (5, 2)}",
        b"{'descr': 'what', 'fortran_order': False, 'shape': (5, 2)}",
        b"{'descr': '|V0', 'fortran_order': False, 'shape': (10000000000,)}",
        b"{'descr': '|S0', 'fortran_order': False, 'shape': (10000000000000000000000,)}",
        b"\xff\xfe",
        b" " * 60_000,
    ],
)
def test_a_nonsensical_header_is_refused(saved, header):
    assert refusal(load_mdp, with_header(saved, header)).startswith(f"{saved}: ")


def test_an_unknown_npy_version_is_refused(saved):
    line = refusal(load_mdp, with_header(saved, GOOD_HEADER, b"\x09\x00"))
    assert line.startswith(f"{saved}: ")


# Writing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(saved, monkeypatch, failing):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr(
        *{"fsync": (os, "fsync"), "replace": ("pathlib.Path.replace",)}[failing], full
    )
    line = refusal(save_mdp, garnet(9, 2, 2), saved)
    assert line == f"{saved}: cannot be written: No space left on device"
    assert saved.read_bytes() == before
    assert names(saved.parent) == [saved.name]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    def interrupted(file, **_):
        file.write(b"half")
        raise KeyboardInterrupt

    before = saved.read_bytes()
    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_mdp(garnet(9, 2, 2), saved)
    assert saved.read_bytes() == before
    assert names(saved.parent) == [saved.name]


def test_a_second_save_replaces_the_first(saved):
    save_mdp(garnet(9, 2, 2), saved)
    assert load_mdp(saved).states == 9
    assert names(saved.parent) == [saved.name]


@pytest.mark.parametrize("name", ["none/mdp.npz", "file/mdp.npz", "directory", "", "n" * 300])
def test_a_place_that_cannot_be_written_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file")
    (tmp_path / "directory").mkdir()
    refusal(save_mdp, garnet(3, 2, 2), name)
    assert names(tmp_path) == ["directory", "file"]
