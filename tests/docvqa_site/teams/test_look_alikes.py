from collections.abc import Callable

import pytest
from django.core.exceptions import ValidationError

from docvqa_site.accounts.models import User
from docvqa_site.teams import services
from docvqa_site.teams.look_alikes import skeleton
from docvqa_site.teams.models import Team
from evaluator.errors import ProblemError
from tests.docvqa_site.factories import make_user
from tests.docvqa_site.submissions.test_submission_races import at_once


@pytest.mark.parametrize(
    "other",
    [
        "team alpha",
        "TEAM ALPHA",
        "TeamAlpha",
        "Team-Alpha",
        "Team Αlpha",  # a Greek capital alpha
        "Tеаm Alpha",  # Cyrillic
        "Team A1pha",
        "Team AIpha",  # a capital i
        "Tearn Alpha",
        "Team Álpha",
        "Tᴇᴀᴍ Aʟᴘʜᴀ",
        "𝕋𝕖𝕒𝕞 𝔸𝕝𝕡𝕙𝕒",
        "Ｔｅａｍ Ａｌｐｈａ",
    ],
)
def test_names_that_look_alike_have_one_skeleton(other: str) -> None:
    assert skeleton(other) == skeleton("Team Alpha")


def test_names_that_do_not_look_alike_have_two() -> None:
    names = ["Team Alpha", "Team Alpha 2", "Team Beta", "Alpha", "队", "團", "Ψ", *map(str, range(100))]
    assert len({skeleton(name) for name in names}) == len(names)


@pytest.mark.django_db
class TestTeams:
    def test_a_look_alike_is_rejected_with_an_explanation(self) -> None:
        services.create_team(make_user(), "Team Alpha")
        with pytest.raises(ProblemError, match="too similar") as error:
            services.create_team(make_user(), "Team Αlpha")
        assert error.value.problem.code == "E_TEAM_NAME"

    @pytest.mark.parametrize(
        "hidden", ["\u200b", "\u202e", "\u2066", "\x1b", "\u1160", "\ufeff", "\U000e0041"]
    )
    def test_what_can_not_be_seen_is_rejected(self, hidden: str) -> None:
        with pytest.raises(ProblemError, match=f"U\\+{ord(hidden):04X}"):
            services.create_team(make_user(), f"Team {hidden}Alpha")

    def test_the_administration_accepts_no_look_alike_either(self) -> None:
        services.create_team(make_user(), "Team Alpha")
        with pytest.raises(ValidationError, match="too similar"):
            Team(name="Team Αlpha", slug="other").full_clean()


@pytest.mark.django_db(transaction=True)
def test_of_four_who_found_one_name_at_once_one_gets_it_and_the_others_are_told() -> None:
    people = [make_user() for _ in range(4)]

    def founding(person: User) -> Callable[[], object]:
        return lambda: services.create_team(person, "Team Alpha")

    assert at_once(*map(founding, people)) == ["E_TEAM_NAME"] * 3
    assert Team.objects.count() == 1
