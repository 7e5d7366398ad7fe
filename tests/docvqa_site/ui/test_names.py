import pytest
from django.core.exceptions import ValidationError

from docvqa_site.accounts.forms import ProfileForm, SignupForm
from docvqa_site.submissions.forms import SubmissionForm
from docvqa_site.ui.names import clean_name


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("Ada Lovelace", "Ada Lovelace"),
        ("  Ada \t\n Lovelace ", "Ada Lovelace"),
        ("Ｔｅａｍ ①", "Team 1"),
        ("Zoë Nguyễn", "Zoë Nguyễn"),
        ("Αθηνά, 北京, Мария, ไทย", "Αθηνά, 北京, Мария, ไทย"),
        ("Fed-ε (β = 2) 🚀", "Fed-ε (β = 2) 🚀"),
    ],
)
def test_names_of_the_world_are_kept(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned


HIDDEN = ["\u200b", "\u202e", "\x1b", "\u2066", "\u00ad", "\u3164", "\ue000", "\ufe0f"]


@pytest.mark.parametrize(
    "name", [*(f"a{hidden}b" for hidden in HIDDEN), "a" + "\u0330" * 3, "---", "Team ✅ verified"]
)
def test_what_can_not_be_seen_or_read_is_rejected(name: str) -> None:
    with pytest.raises(ValidationError):
        clean_name(name)


@pytest.mark.parametrize(
    ("form", "field"), [(SignupForm, "name"), (ProfileForm, "name"), (SubmissionForm, "title")]
)
def test_every_form_cleans_its_name(form: type, field: str) -> None:
    assert "U+202E" in str(form({field: "Ada\u202e"}).errors[field])
    filled = form({field: " Ada\n Ｌ "})
    filled.is_valid()
    assert filled.cleaned_data[field] == "Ada L"
