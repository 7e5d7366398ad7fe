"""ORCID iDs: their checksum, who typed one in and who has shown that it is theirs, and where they appear."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from docvqa_site.accounts.orcid import check_character, clean_orcid
from docvqa_site.audit.models import AuditEntry
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.teams.models import Membership
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_user

IDS = ["0000-0002-1825-0097", "0000-0001-5109-3700", "0000-0002-1694-233X"]


@pytest.mark.parametrize("orcid", IDS)
def test_an_id_is_taken_in_each_of_its_forms(orcid: str) -> None:
    forms = (
        orcid,
        orcid.replace("-", ""),
        orcid.lower(),
        f"https://orcid.org/{orcid}",
        f" orcid.org/{orcid}/ ",
    )
    assert {clean_orcid(form) for form in forms} == {orcid}


@pytest.mark.parametrize("orcid", IDS)
def test_any_wrong_digit_is_found(orcid: str) -> None:
    digits = orcid.replace("-", "")
    for place in range(15):
        for digit in "0123456789":
            if digit != digits[place]:
                assert check_character(digits[:place] + digit + digits[place + 1 : 15]) != digits[15]


@pytest.mark.parametrize(
    "text", ["0000-0002-1825-0098", "0000", "x", "https://evil.example/0000-0002-1825-0097", "٠" * 16]
)
def test_what_is_no_id_is_rejected(text: str) -> None:
    with pytest.raises(ValidationError):
        clean_orcid(text)


def test_an_empty_one_is_none() -> None:
    assert clean_orcid("  ") == ""


@pytest.mark.django_db
class TestProfile:
    def test_an_id_that_is_typed_in_is_not_verified(self, client: Client) -> None:
        user = make_user(orcid=IDS[0], orcid_verified=True)
        client.force_login(user)
        client.post("/account/", {"name": "Ada", "orcid": f"https://orcid.org/{IDS[0]}", "shows_orcid": "on"})
        user.refresh_from_db()
        assert (user.orcid, user.orcid_verified, user.shows_orcid) == (IDS[0], True, True)
        client.post("/account/", {"name": "Ada", "orcid": IDS[1]})
        user.refresh_from_db()
        assert (user.orcid, user.orcid_verified, user.shows_orcid) == (IDS[1], False, False)
        entry = AuditEntry.objects.filter(action="user.profile_changed").first()
        assert entry.readable == {"orcid": IDS[1], "shows_orcid": False}

    def test_the_page_offers_to_verify_it_only_where_the_site_can(
        self, client: Client, settings: Any
    ) -> None:
        client.force_login(make_user())
        for offered in ({}, {"orcid": {"APPS": [{"client_id": "id", "secret": "secret"}]}}):
            settings.SOCIALACCOUNT_PROVIDERS = offered
            page = client.get("/account/").text
            assert ("verifies your iD" in page) == bool(offered)
            assert "Link your ORCID account" not in page

    def test_a_wrong_one_changes_nothing(self, client: Client) -> None:
        user = make_user()
        client.force_login(user)
        page = client.post("/account/", {"name": "Ada", "orcid": "0000-0002-1825-0098"}).content.decode()
        assert "Check for typos." in page
        user.refresh_from_db()
        assert user.orcid == ""


@pytest.mark.django_db
class TestPages:
    @pytest.fixture
    def submission(self):
        owner = make_user(name="Ada Lovelace", orcid=IDS[0], orcid_verified=True, shows_orcid=True)
        team = make_team(owner)
        typed_in = make_user(name="Ben", orcid=IDS[1], shows_orcid=True)
        hidden = make_user(name="Cleo", orcid=IDS[2], orcid_verified=True)
        for other in (typed_in, hidden):
            Membership.objects.create(team=team, user=other)
        submission = make_submission(team, state=SubmissionState.SUBMITTED)
        make_run(submission, state=RunState.SCORED)
        return submission

    def test_the_pages_show_those_whose_owners_chose_so(self, client: Client, submission) -> None:
        for path in (submission.team.get_absolute_url(), submission.get_absolute_url()):
            page = client.get(path).content.decode()
            assert f'href="https://orcid.org/{IDS[0]}"' in page
            assert f"{IDS[1]}</a> (not verified)" in page
            assert IDS[2] not in page

    def test_citations_name_verified_ones_alone(self, client: Client, submission) -> None:
        bibtex = client.get(f"{submission.get_absolute_url()}cite.bib").content.decode()
        assert f"ORCID: Ada Lovelace, https://orcid.org/{IDS[0]}}}," in bibtex
        citation = client.get(f"{submission.get_absolute_url()}CITATION.cff").content.decode()
        assert f"orcid: https://orcid.org/{IDS[0]}" in citation
        for text in (bibtex, citation):
            assert IDS[1] not in text
            assert IDS[2] not in text

    def test_a_citation_is_for_those_who_may_see_the_page(self, client: Client) -> None:
        draft = make_submission()
        assert client.get(f"{draft.get_absolute_url()}CITATION.cff").status_code == 404
