"""The frame of all studies: run what is missing, keep the outcomes in docs/NAME.json, write docs/NAME.md.

A study is a value, and `tests.studies.catalog` has all of them. `python -m tests.studies NAME` writes the files of one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from starter_kit.reporting.files import replace_file

DOCS = Path(__file__).parents[2] / "docs"

Outcomes = TypeVar("Outcomes")
Key = TypeVar("Key")
Outcome = TypeVar("Outcome")


def _forget_all(earlier: object) -> None:
    """Keep no outcome."""


def _no_faults(outcomes: object) -> Sequence[str]:
    return []


@dataclass(frozen=True)
class Study(Generic[Outcomes]):
    """A study and its two files.

    Attributes:
        name: The name of both files.
        outcomes: The type of all outcomes, as in the JSON file.
        run: Runs what `earlier` outcomes lack and yields all outcomes each time that they are worth saving, at least
            once. Its argument is None where there are no earlier outcomes.
        page: The page in Markdown.
        forget: Returns the earlier outcomes that remain where a study runs again, and deletes whatever else would be
            reused, such as trained models.
        faults: Outcomes that must not occur, a line each. They fail the command.
    """

    name: str
    outcomes: type[Outcomes]
    run: Callable[[Outcomes | None], Iterator[Outcomes]]
    page: Callable[[Outcomes], str]
    forget: Callable[[Outcomes | None], Outcomes | None] = _forget_all
    faults: Callable[[Outcomes], Sequence[str]] = _no_faults

    def read(self, docs: Path = DOCS) -> Outcomes:
        """Return the outcomes in `docs`. Raises `FileNotFoundError` if there are none."""
        return TypeAdapter(self.outcomes).validate_json(self._numbers(docs).read_bytes())

    def write(self, docs: Path = DOCS, *, again: bool = False) -> Outcomes:
        """Run what is missing, or everything `again`; save the outcomes as they come, write the page, return them."""
        earlier = self.read(docs) if self._numbers(docs).exists() else None
        if again:
            earlier = self.forget(earlier)
        for outcomes in self.run(earlier):
            self._save(docs, outcomes)
        return self.write_page(docs)

    def write_page(self, docs: Path = DOCS) -> Outcomes:
        """Write the page of the saved outcomes, and return them."""
        outcomes = self.read(docs)
        replace_file(docs / f"{self.name}.md", self.page(outcomes))
        return outcomes

    def _save(self, docs: Path, outcomes: Outcomes) -> None:
        content = TypeAdapter(self.outcomes).dump_json(outcomes, indent=1)
        replace_file(self._numbers(docs), content + b"\n")

    def _numbers(self, docs: Path) -> Path:
        return docs / f"{self.name}.json"


def completed(
    wanted: Iterable[Key], kept: Mapping[Key, Outcome], measure: Callable[[Key], Outcome]
) -> Iterator[list[Outcome]]:
    """Yield the outcomes of the `wanted` keys in their order: those `kept`, and again after each one measured."""
    order = list(wanted)
    known = {key: kept[key] for key in order if key in kept}
    yield list(known.values())
    for key in order:
        if key not in known:
            known[key] = measure(key)
            yield [known[each] for each in order if each in known]
