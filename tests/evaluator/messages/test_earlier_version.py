"""A site and its workers of the previous version and of this one read each other's messages.

`earlier.json` has the previous version's names of queues and tasks, and its schemas of messages. A field may be added
with a default, which isn't sent, and a kind to a union; no field, default, kind or value of an enumeration may go or
change. Regenerate
`earlier.json` with each release: `python -m tests.evaluator.messages.test_earlier_version`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, create_model
from pydantic.json_schema import models_json_schema

from evaluator.messages import inventories, jobs
from evaluator.messages.inventories import Inventory
from evaluator.messages.jobs import EvaluationJob, Progress, WorkerReport
from evaluator.messages.signed import SignedMessage

EARLIER = Path(__file__).parent / "earlier.json"
MESSAGES = (EvaluationJob, Inventory, Progress, SignedMessage, WorkerReport)
# By which they find each other at the broker.
NAMES = {
    name: value
    for module in (jobs, inventories)
    for name, value in vars(module).items()
    if name.endswith(("_QUEUE", "_TASK"))
}
# What only says something to people.
WORDS = {"description", "title"}


def schemas(*messages: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of each message and of each model in it, without words for people."""
    _, found = models_json_schema([(message, "validation") for message in messages])
    return {name: _without_words(schema) for name, schema in found["$defs"].items()}


def _without_words(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_words(part) for part in value]
    if not isinstance(value, dict):
        return value
    properties = {name: _without_words(part) for name, part in value.get("properties", {}).items()}
    kept = {name: _without_words(part) for name, part in value.items() if name not in WORDS}
    return {**kept, "properties": properties} if properties else kept


def differences(earlier: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Yield what one of two versions couldn't read of the other."""
    for name, before in earlier.items():
        if name not in now:
            yield f"{name} is gone"
            continue
        after = now[name]
        yield from (f"{name} has no value {value!r}" for value in _missing(before, after, "enum"))
        yield from (f"{name}.{field} is required" for field in _missing(after, before, "required"))
        fields = after.get("properties", {})
        for field, schema in before.get("properties", {}).items():
            if _without_new_kinds(fields.get(field), schema) != schema:
                yield f"{name}.{field} is {fields.get(field)}, and was {schema}"


def _without_new_kinds(now: Any, before: Any) -> Any:
    """Return a field's schema without the members of its unions that the earlier one doesn't have."""
    if not isinstance(now, dict) or not isinstance(before, dict):
        return now
    kept = {name: _without_new_kinds(part, before.get(name)) for name, part in now.items()}
    if "oneOf" in now and "oneOf" in before:
        kept["oneOf"] = [member for member in now["oneOf"] if member in before["oneOf"]]
    if "mapping" in now and "mapping" in before:
        kept["mapping"] = {name: kind for name, kind in now["mapping"].items() if name in before["mapping"]}
    return kept


def _missing(having: dict[str, Any], lacking: dict[str, Any], part: str) -> list[Any]:
    return [value for value in having.get(part, []) if value not in lacking.get(part, [])]


def test_messages_of_the_previous_version_can_be_read_and_its_workers_read_ours() -> None:
    earlier = json.loads(EARLIER.read_text())
    assert earlier["names"] == NAMES
    assert list(differences(earlier["schemas"], schemas(*MESSAGES))) == []


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, []),
        ({"unit": (str, "pages")}, []),
        ({"unit": (str, ...)}, ["M.unit is required"]),
        ({"limit": (int, 4)}, ["M.limit is {'default': 4, 'type': 'integer'}"]),
        ({"limit": (str, "3")}, ["M.limit is {'default': '3', 'type': 'string'}"]),
    ],
)
def test_a_change_that_one_version_can_t_read_of_the_other_is_found(
    fields: dict[str, Any], found: list[str]
) -> None:
    before = schemas(create_model("M", step=(str, ...), limit=(int, 3)))
    after = schemas(create_model("M", **{"step": (str, ...), "limit": (int, 3), **fields}))
    assert [text.split(", and was")[0] for text in differences(before, after)] == found


def test_a_union_may_get_another_kind_and_lose_none() -> None:
    def with_kinds(*kinds: str) -> dict[str, Any]:
        union = {"oneOf": list(kinds), "discriminator": {"mapping": {kind: kind for kind in kinds}}}
        return {"M": {"properties": {"events": {"items": union, "type": "array"}}}}

    assert list(differences(with_kinds("a"), with_kinds("a", "b"))) == []
    assert len(list(differences(with_kinds("a", "b"), with_kinds("b")))) == 1


if __name__ == "__main__":
    found = {"names": NAMES, "schemas": schemas(*MESSAGES)}
    EARLIER.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
