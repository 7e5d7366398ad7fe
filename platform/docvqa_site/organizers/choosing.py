"""Fields of the organizers' forms: choices among what workers have, and lists of numbers as people write them."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from typing_extensions import override

from docvqa_site.challenge.models import Track, patterns_in
from docvqa_site.challenge.references import tensors_matching
from docvqa_site.evaluation.inventories import Holding, stock
from docvqa_site.sizes import bytes_of, exact_size


def offered(holdings: Mapping[str, Holding], chosen: str, none: str = "Choose …") -> list[tuple[str, str]]:
    """Return what can be chosen; what was, though no worker has it any more, is shown too."""
    rows = [(name, _described(holding)) for name, holding in holdings.items()]
    if chosen and chosen not in holdings:
        rows.append((chosen, f"{chosen}: on no worker"))
    return [("", none), *rows]


class LeakageField(forms.ChoiceField):
    """Which leakage set a track has, among what workers report: a folder and its split, or none."""

    def offer(self, track: Track) -> None:
        """Offer what workers have, with the choice of the track."""
        chosen = track.measured_leakage_set()
        self.initial = f"{chosen.folder}/{chosen.split}" if chosen else ""
        self.choices = offered(stock().leakage_sets, self.initial, "none: leakage is not measured")

    @staticmethod
    def fields_of(choice: str) -> dict[str, str]:
        """Return the fields of a track that a choice sets; without a leakage set, its split stays what it is."""
        folder, _, split = choice.partition("/")
        return {"leakage_set": folder, **({"leakage_split": split} if split else {})}


def reject_unmatched(form: forms.BaseForm, values: Mapping[str, Any]) -> None:
    """Add an error where a pattern of trainable tensors matches none of the base weights, if the site has these."""
    reference, patterns = values.get("reference", ""), patterns_in(values.get("trainable", ""))
    matched = tensors_matching(reference, patterns) or {}
    if unmatched := [pattern for pattern, tensors in matched.items() if not tensors]:
        form.add_error("trainable", f"No tensor of {reference} matches {' or '.join(unmatched)}.")


class SizeField(forms.IntegerField):
    """A number of bytes as people write it: "2 GB", "500 MB" or "1.5 GiB"; a number without a unit is of bytes."""

    widget = forms.TextInput
    default_error_messages = {"invalid": "Enter a size with its unit, such as 2 GB or 500 MB."}

    @override
    def prepare_value(self, value: Any) -> Any:
        return exact_size(value) if isinstance(value, int) else value

    @override
    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        size = bytes_of(str(value))
        if size is None:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return size


def _described(holding: Holding) -> str:
    same = f"SHA-256 {holding.sha256[:12]}…" if holding.sha256 else "contents differ between workers"
    return f"{holding.name}: {holding.where}, {same}"


class NumbersInput(forms.TextInput):
    """A list of numbers as "1, 4, 8"; what a JSON field has of it is written as its JSON would be."""

    @override
    def format_value(self, value: Any) -> str | None:
        text = super().format_value(value)
        return re.sub(r"\.0\b", "", text.strip("[] ")) if text else text

    @override
    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        written = super().value_from_datadict(data, files, name)
        # Commas, spaces or both separate numbers.
        if not isinstance(written, str):
            return written
        numbers = re.findall(r"[^][,\s]+", written)
        return f"[{', '.join(numbers)}]"


class NumbersField(forms.JSONField):
    """A list of numbers as people write it."""

    widget = NumbersInput
    default_error_messages = {"invalid": "Enter numbers separated by commas, such as 1, 4, 8."}
