"""Writing files: where that is allowed, and so that each is complete or absent.

There are two kinds of paths. Those that the user names (``--out``): a link there is followed, and
what is replaced is a regular file or nothing. And names of ours in a directory that may come from
somebody else: nothing is written outside it. A link there is replaced itself; it is refused where a
file is written in place, and so is a directory that is a link.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from momentum_rl.errors import Unwritable, UserError


def file_to_write(
    path: str | os.PathLike[str], name: str = "out", *, new_directory: bool = False
) -> Path:
    """The regular file, there or not yet, that a user's path means; or one line. Writes nothing."""
    try:
        file = Path(os.path.realpath(path))
        kind = _kind(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{name}: {_why(path, error)}") from None
    if kind not in ("", "a file"):
        raise UserError(f"{name}: {path} is {kind}, expected a file or a new name")
    directory_to_write(file.parent, name)
    if not new_directory and not file.parent.is_dir():
        raise UserError(f"{name}: {file.parent} is not a directory")
    if kind and not os.access(file, os.W_OK):
        raise UserError(f"{name}: {path} is read-only")
    return file


def directory_to_write(path: Path, name: str = "out") -> None:
    """Raises at once if files could not be written there later; the directory may be new."""
    for here in (path, *path.absolute().parents):
        try:
            kind = _kind(here)
        except (OSError, ValueError) as error:
            raise UserError(f"{name}: {_why(path, error)}") from None
        if not kind:
            continue
        if kind != "a directory":
            raise UserError(f"{name}: {here} is {kind}, expected a directory")
        if not os.access(here, os.W_OK | os.X_OK):
            raise UserError(f"{name}: {path} cannot be written: no permission in {here}")
        return


def check_replaceable(path: Path) -> None:
    """Raises if a name of ours is taken by anything but a file or a link, which is replaced."""
    kind = _kind(path, follow=False)
    if kind not in ("", "a file", "a link"):
        raise Unwritable(f"{path}: is {kind}, expected a file")


def check_own_directory(path: Path, within: Path) -> None:
    """Raises if a directory of ours, or one on the way there, is a link or a file."""
    for here in (*reversed(path.relative_to(within).parents), path.relative_to(within)):
        kind = _kind(within / here, follow=here == Path())
        if kind not in ("", "a directory"):
            raise Unwritable(f"{within / here}: is {kind}, expected a directory")


def open_own(path: Path, flags: int) -> int:
    """Opens a name of ours, to be written in place: follows no link and waits for no pipe."""
    number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if stat.S_ISREG(os.fstat(number).st_mode):
        return number
    os.close(number)
    raise OSError(errno.EINVAL, "is not a file", str(path))


_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def _kind(path: Path, *, follow: bool = True) -> str:
    """What is at a path, in words; "" for nothing."""
    try:
        mode = path.stat(follow_symlinks=follow).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return _KINDS.get(stat.S_IFMT(mode), "a device")


def _why(path: str | os.PathLike[str], error: OSError | ValueError) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return f"{os.fspath(path)!r} cannot be used: {reason}"


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """A file beside the path: flushed and renamed into place, or removed on an error."""
    check_replaceable(path)
    aside = beside(path)
    try:
        with aside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    flush_directory(path.parent)


def beside(path: Path, suffix: str = ".part") -> Path:
    """A name beside a path that nothing has, of a length that file systems allow."""
    aside = path.with_name(f".{path.name[:40]}.{os.getpid()}{suffix}")
    aside.unlink(missing_ok=True)
    return aside


def write_aside(path: Path, content: bytes | str) -> None:
    """Writes beside the path, flushes to the disk, and renames into place."""
    with written_aside(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def flush_directory(path: Path) -> None:
    """Makes the names in a directory durable."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says against writing (a full disk, no permission) becomes one clear line."""
    try:
        yield
    except OSError as error:
        name = error.filename or path
        raise Unwritable(f"{name}: cannot be written: {error.strerror or error}") from None
