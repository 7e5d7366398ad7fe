"""Whether an exception says that a disk is full: that of the database, or one that the site writes to."""

import errno
import sqlite3

FULL = {errno.ENOSPC, errno.EDQUOT}
# Of the file itself, and of the memory that its connections share.
SQLITE_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
# PostgreSQL's disk_full, which psycopg has as `pgcode`.
POSTGRESQL_DISK_FULL = "53100"


def is_full_disk(error: BaseException | None) -> bool:
    """Return whether this exception, or one that it was raised from, says so."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if getattr(error, "sqlite_errorcode", None) in SQLITE_FULL:
            return True
        if getattr(error, "pgcode", None) == POSTGRESQL_DISK_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False
