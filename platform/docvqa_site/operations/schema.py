"""The database's schema: the migrations that make it, and whether its columns are those of the models.

Names of migrations alone don't suffice: they stay the same if a migration is edited after a site has applied it.
"""

from django.apps import apps
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.migrations.exceptions import InvalidBasesError, NodeNotFoundError
from django.db.migrations.executor import MigrationExecutor


class SchemaError(Exception):
    """The database was made by migrations that this version doesn't have; the message says what to do."""


def last_migrations() -> list[str]:
    """Return each app's last migration of this version, such as `teams.0004_motto`."""
    return sorted(f"{app}.{name}" for app, name in _executor().loader.graph.leaf_nodes())


def missing_migrations() -> list[str]:
    """Return the migrations that haven't been applied, in their order.

    Raises:
        SchemaError: The database is of a version from which there is no way to this one.
    """
    executor = _executor()
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def different_columns() -> list[str]:
    """Return the columns, as `table.column`, that the database lacks, or has and no model knows."""
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        different = set()
        for model in apps.get_models(include_auto_created=True):
            if not model._meta.managed or model._meta.proxy:
                continue
            table = model._meta.db_table
            modeled = {field.column for field in model._meta.local_concrete_fields}
            real = _columns(cursor, table) if table in tables else set()
            different |= {f"{table}.{column}" for column in modeled ^ real}
    return sorted(different)


def _columns(cursor: CursorWrapper, table: str) -> set[str]:
    cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} LIMIT 0")  # noqa: S608
    return {column[0] for column in cursor.description}


def _executor() -> MigrationExecutor:
    try:
        return MigrationExecutor(connection)
    except (NodeNotFoundError, InvalidBasesError) as error:
        raise SchemaError(
            "The database was made by a version before 0.1.0 that was never released. Migrate it with the last "
            "commit that has the migrations it lacks, and then with this version."
        ) from error
