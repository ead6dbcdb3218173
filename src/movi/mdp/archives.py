"""Archives from elsewhere: the members of a tar, packed or not, as buffers in memory.

Nothing is unpacked to a disk and nothing is taken at its word: a member is a regular file of a
plain name, and its size is checked against the file's own and the machine's memory before anything
is allocated. A plain tar is mapped into memory; a packed one is read once, as a stream, and no
further than memory goes.
"""

import bz2
import gzip
import io
import lzma
import mmap
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from movi.errors import UserError
from movi.sizes import available_memory, require

Buffers = Mapping[str, Any]  # the members of an archive by name, as buffers
_MEMBERS = 10_000  # of an archive at most
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


@contextmanager
def members_of(path: Path) -> Iterator[Buffers]:
    """The members of an archive; arrays of them keep the file open for as long as they need it."""
    if path.exists() and not path.is_file():
        raise UserError("not a file, expected an archive")
    with path.open("rb") as file:
        opener = _OPENERS.get(file.read(2))
        file.seek(0)
        if opener is not None:
            with opener(file) as unpacked:
                yield _streamed(unpacked)
            return
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise UserError("empty, expected an archive")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        members: dict[str, Any] = {}
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in _listed(archive):
                end = member.offset_data + member.size
                if end > size:
                    raise UserError(f"{member.name}: {member.size} bytes, more than the file has")
                members[member.name] = memoryview(mapped)[member.offset_data : end]
        yield members


def _listed(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members, each a regular file whose name says where in the archive it is, once."""
    seen: set[str] = set()
    for member in archive:
        name = member.name
        if member.isdir():
            continue
        if not member.isreg() or member.issparse():
            raise UserError(f"{name!r}: a link or a device, expected plain files")
        if name.startswith("/") or ".." in name.split("/") or name in seen:
            raise UserError(f"{name!r}: a member of this name, expected each once and inside")
        seen.add(name)
        if len(seen) > _MEMBERS:
            raise UserError(f"more than {_MEMBERS} members, expected an archive of fewer")
        yield member


def _streamed(unpacked: Any) -> Buffers:
    """What a packed archive holds: as far as it goes and memory allows, whatever it claims."""
    left = available_memory() // 2
    members = {}
    with tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in _listed(archive):
            if member.size > left:
                require(f"{member.name}", memory=member.size + available_memory() // 2)
                raise UserError(f"{member.name}: {member.size} bytes, more than memory allows")
            left -= member.size
            content = archive.extractfile(member)
            assert content is not None
            copied = io.BytesIO()
            shutil.copyfileobj(content, copied, 1 << 20)
            if copied.tell() != member.size:
                raise UserError(f"{member.name}: it ends early")
            members[member.name] = copied.getbuffer()
    return members
