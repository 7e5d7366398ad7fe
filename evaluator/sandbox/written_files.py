"""Files that an untrusted process wrote, before a process with other rights reads them."""

from pathlib import Path
from stat import S_ISREG


def is_own_file(path: Path) -> bool:
    """Return whether there is a regular file with no other name: no link to what its writer couldn't read."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return S_ISREG(found.st_mode) and found.st_nlink == 1
