"""Names that people give: of themselves, their teams and their methods. One line, with nothing that can't be seen."""

import unicodedata
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from typing_extensions import override

# Control and format characters (which include bidirectional overrides and zero-width ones), surrogates, private use,
# unassigned, and the two separators of lines and paragraphs.
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters, marks and symbols that are drawn as nothing. Variation selectors follow below.
HIDDEN_CHARACTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")
# More marks on one letter than any language writes cover the lines above and below.
MAX_MARKS = 2
# A name that wears one of these seems to be checked or rewarded by the site.
BADGES = frozenset("✓✔☑✅🗸🗹🆗💯⭐★☆🌟🏅🏆🎖🥇🥈🥉👑")


def clean_name(name: str) -> str:
    """Return the name in Unicode's compatibility form (NFKC), with single spaces.

    Raises `ValidationError` for a character that can't be seen, a pile of marks, or a name without letter or digit.
    """
    name = " ".join(unicodedata.normalize("NFKC", name).split())
    for character in name:
        if is_hidden(character):
            raise ValidationError(
                f"The character U+{ord(character):04X} can't be seen. Type the name instead of pasting it."
            )
        if character in BADGES:
            raise ValidationError(f"The character {character} looks like a badge of the site. Leave it out.")
    if _longest_pile(name) > MAX_MARKS:
        raise ValidationError("A letter has too many marks above or below it.")
    if name and not any(character.isalnum() for character in name):
        raise ValidationError("A name needs a letter or a digit.")
    return name


def is_hidden(character: str) -> bool:
    """Return whether a character can't be seen, or changes how others are shown."""
    is_variation = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    return (
        unicodedata.category(character) in HIDDEN_CATEGORIES or character in HIDDEN_CHARACTERS or is_variation
    )


def _longest_pile(name: str) -> int:
    longest = marks = 0
    for character in name:
        marks = marks + 1 if unicodedata.combining(character) else 0
        longest = max(longest, marks)
    return longest


class NameFormField(forms.CharField):
    """A text field for a name; see `clean_name`."""

    @override
    def clean(self, value: Any) -> Any:
        # Characters that Django itself rejects, such as NUL, are named with all the others.
        name = self.to_python(value)
        return super().clean(clean_name(name) if name else name)


class NameField(models.CharField[str, str]):
    """A column for a name, which every form cleans with `clean_name`."""

    @override
    def formfield(self, **options: Any) -> Any:
        return super().formfield(**{"form_class": NameFormField, **options})
