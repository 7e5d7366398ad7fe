"""docs/settings.md names every setting of every method, and says what each is for."""

import re

import pytest
from pydantic import BaseModel, Field

from starter_kit.settings.config_files import method_names
from starter_kit.settings.configuration import method_module
from starter_kit.settings.official_keys import FLAGS, KEYS
from starter_kit.settings.words import dotted_names, groups_of, kind
from tests.studies.settings_page import meaning, page

PAGE = page()


@pytest.mark.parametrize("method", method_names())
def test_every_setting_of_every_method_is_there(method: str) -> None:
    assert re.search(rf"^## .*`{method}`", PAGE, re.MULTILINE)
    for name in dotted_names(method_module(method).Settings):
        assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize("method", method_names())
def test_the_meaning_of_every_setting_is_a_whole_sentence(method: str) -> None:
    def without(settings: type[BaseModel]) -> list[str]:
        names = [name for name in settings.model_fields if not meaning(settings, name).endswith(".")]
        groups = [group for field in settings.model_fields.values() for group in groups_of(field.annotation)]
        return names + [name for group in groups for name in without(group)]

    assert without(method_module(method).Settings) == []


def test_nothing_is_listed_twice() -> None:
    titles = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert len(titles) == len(set(titles))


def test_every_official_key_and_flag_is_there() -> None:
    assert all(f"| `{key}` |" in PAGE for key in KEYS)
    assert all(f"| `{flag}` |" in PAGE for flag in FLAGS)


class Above(BaseModel):
    """Of the one above.

    Attributes:
        first, second: Both of them,
            explained over two lines.
        third: Explained above.
    """

    first: int = Field(ge=1, lt=2**40)
    second: float | None = None
    third: list[str] = []


class Below(Above):
    """Of the one below.

    Attributes:
        third: Explained below.
    """

    third: list[str] = Field(default=[], min_length=1)


def test_a_meaning_is_read_from_the_docstring_of_the_class_or_of_one_above() -> None:
    assert meaning(Above, "second") == "Both of them, explained over two lines."
    assert meaning(Below, "first") == "Both of them, explained over two lines."
    assert meaning(Below, "third") == "Explained below."
    assert meaning(Below, "fourth") == ""


def test_types_and_ranges_are_words() -> None:
    fields = Below.model_fields
    assert kind(fields["first"]) == "whole number, at least 1, below 2^40"
    assert kind(fields["second"]) == "number, or null"
    assert kind(fields["third"]) == "list of texts, not empty"
