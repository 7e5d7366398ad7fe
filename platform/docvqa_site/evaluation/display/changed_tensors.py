"""The tensors of a run's checkpoint that differ from the base weights, as its page lists them.

A full-size model has hundreds of tensors, most of them alike in every layer: they are grouped by the part of the name
before the layer's number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# On a page, which the browser requests repeatedly; the API names them all.
MAX_SHOWN = 2000
# A list of at most so many names needs no groups.
SHORT = 12


@dataclass(frozen=True)
class TensorGroup:
    """Tensors whose names begin alike with `name`, which is empty where the list is too short for groups."""

    name: str
    tensors: list[str]


@dataclass(frozen=True)
class ChangedTensors:
    """The names of the tensors that differ, in the order of the base weights' file, out of `tensors`."""

    names: list[str]
    tensors: int

    @classmethod
    def of(cls, validation: Mapping[str, Any]) -> "ChangedTensors | None":
        """Return what a validation's stored result says; None where there is none."""
        if "changed" not in validation:
            return None
        return cls(validation["changed"], validation["tensors"])

    @property
    def sentence(self) -> str:
        """A sentence such as "216 of 480 tensors differ from the base weights"."""
        if not self.names:
            return f"None of the {self.tensors} tensors differ from the base weights"
        verb = "differs" if len(self.names) == 1 else "differ"
        return f"{len(self.names)} of {self.tensors} tensors {verb} from the base weights"

    @property
    def groups(self) -> list[TensorGroup]:
        return grouped(self.names[:MAX_SHOWN])

    @property
    def not_shown(self) -> int:
        """The number of names that a page leaves out."""
        return max(0, len(self.names) - MAX_SHOWN)


def grouped(names: Sequence[str]) -> list[TensorGroup]:
    """Group the names by their part before the layer's number, or before the first dot where a name has none.

    Groups come in the order of their first tensors; a short list is a single one.
    """
    if len(names) <= SHORT:
        return [TensorGroup("", list(names))] if names else []
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_stem(name), []).append(name)
    return [TensorGroup(stem, tensors) for stem, tensors in groups.items()]


def _stem(name: str) -> str:
    parts = name.split(".")
    number = next((position for position, part in enumerate(parts) if part.isdecimal()), 1)
    return ".".join(parts[: max(1, number)])
