"""Keys as text in queries of thousands of rows: to make a `UUID` of each takes longer than to read it."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, Func
from django.db.models.sql.compiler import SQLCompiler

# SQLite keeps keys without hyphens: where each group of their digits starts, and how many it has.
GROUPS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


class KeyAsText(Func):
    """A key as `str(uuid)` writes it."""

    output_field = CharField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        return self.as_sql(compiler, connection, template="(%(expressions)s)::text")

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Any:
        groups = (f"substr(%(expressions)s, {start}, {length})" for start, length in GROUPS)
        joined = "||'-'||".join(groups)
        return self.as_sql(compiler, connection, template=f"({joined})")
