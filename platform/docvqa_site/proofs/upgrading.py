"""Jupyter notebooks of any format as format 4: what the site has `evaluator.sandbox` run on a privacy proof.

`upgrade` runs in the sandboxed process, and is all that gives a participant's JSON to nbformat. What it returns comes
from a process that a hostile file may have taken over: the caller validates it.
"""

import json
from collections.abc import Callable

from evaluator.sandbox.limits import MIB, Limits

# What `upgrade` imports, for the sandbox to load before it is confined.
LIBRARIES = ("nbformat",)
FORMAT = 4

# The largest proof, of many small cells, takes a quarter of each.
UPGRADING_LIMITS = Limits(
    wall_s=60,
    cpu_s=20,
    memory_bytes=1024 * MIB,
    address_space_bytes=2048 * MIB,
    file_bytes=0,
    open_files=64,
    result_bytes=64 * MIB,
)


def upgrade(text: object, _: Callable[[object], None]) -> object:
    """Return the notebook with this JSON text in format 4; text, why it is none, in place of one."""
    import nbformat

    try:
        values = json.loads(str(text))
    except (ValueError, RecursionError):
        return "text that isn't JSON"
    try:
        # Some programs leave it out, which nbformat rejects.
        for part in (values, *values.get("cells", ())):
            part.setdefault("metadata", {})
        notebook = nbformat.reads(json.dumps(values), as_version=FORMAT)
    except (nbformat.ValidationError, AttributeError, KeyError, TypeError, ValueError):
        # nbformat takes for granted that lists are lists.
        return "JSON that isn't a notebook"
    # As plain values: nbformat has a class for its dictionaries.
    return json.loads(json.dumps(notebook))
