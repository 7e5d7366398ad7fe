import re
from io import StringIO
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import Phase
from docvqa_site.evaluation.models import Evaluation, StepReport
from docvqa_site.submissions.models import Artifact, Run, RunState, RunToken, Submission, SubmissionState
from docvqa_site.uploads.models import UploadState
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import ArtifactKind, Outcome, Step
from tests.docvqa_site import admin_actions
from tests.docvqa_site.factories import (
    make_artifact,
    make_key,
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_token,
    make_track,
    make_upload,
    make_user,
    owner_of,
)
from tests.docvqa_site.submissions.drafts import fill, make_complete_draft, make_private_track
from tests.docvqa_site.submissions.pages import page, post
from tests.docvqa_site.submissions.records import record_of

pytestmark = pytest.mark.django_db


class TestList:
    def test_it_shows_only_submissions_of_the_team(self, member, team):
        make_run(make_submission(team, title="Ours"))
        make_submission(title="Theirs")
        html = page(member, "list")
        assert "Ours" in html
        assert "Theirs" not in html

    def test_it_asks_few_queries_however_many_there_are(self, member, team, django_assert_max_num_queries):
        track = make_track()
        for _ in range(20):
            make_run(make_submission(team, track))
        with django_assert_max_num_queries(13):
            page(member, "list")

    def test_it_shows_score_rank_and_review(self, member, team):
        submission = make_submission(team, make_private_track(), state=SubmissionState.SUBMITTED)
        make_run(submission, budget=4.0, state=RunState.SCORED, anls=0.75, epsilon=3.9)
        html = page(member, "list")
        assert "ANLS 0.7500" in html
        assert "<strong>#1</strong>" in html
        assert "proof accepted by 0 of 2 reviewers" in html

    def test_it_is_paged(self, member, team):
        track = make_track()
        for _ in range(26):
            make_submission(team, track)
        assert "Page 1 of 2" in page(member, "list")
        assert "Page 2 of 2" in page(member, "list", page=2)

    def test_it_is_filtered_by_state_and_drafts_are_discarded_together(self, member, team):
        drafts = [make_submission(team, title=f"Try {number}") for number in range(3)]
        foreign = make_submission(title="Foreign")
        make_submission(team, state=SubmissionState.SUBMITTED, title="Done")
        page = member.get("/submissions/?state=submitted").text
        assert "Done" in page
        assert f'href="{drafts[0].get_absolute_url()}"' not in page
        chosen = [str(draft.pk) for draft in [*drafts[:2], foreign]]
        page = member.post("/submissions/discard/", {"draft": chosen}, follow=True).text
        assert "“Try 0” is discarded." in page
        states = [Submission.objects.get(pk=one.pk).state for one in [*drafts, foreign]]
        assert states == ["withdrawn", "withdrawn", "draft", "draft"]

    def test_it_says_what_to_do_when_it_is_empty(self, member):
        assert "Nothing submitted yet" in page(member, "list")

    def test_without_a_team_it_leads_to_one(self, client):
        client.force_login(make_user())
        assert reverse("teams:create") in page(client, "list")
        assert reverse("teams:create") in page(client, "create")


class TestCreate:
    def test_it_opens_a_draft(self, member, team):
        track = make_track()
        response = post(member, "create", track=track.pk, title="FedAvg", code_url="https://example.org/code")
        submission = Submission.objects.get()
        assert response["Location"] == submission.get_absolute_url()
        assert (submission.team, submission.track, submission.state) == (team, track, SubmissionState.DRAFT)
        assert "The draft is created." in page(member, "detail", submission.pk)

    def test_it_has_the_track_chosen_that_the_address_names(self, member):
        track = make_track()
        assert f'value="{track.pk}" selected' in page(member, "create", track=track.slug)

    @pytest.mark.parametrize(
        "data", [{"title": ""}, {"title": "x" * 121}, {"code_url": "javascript:alert(1)"}, {"track": 10**6}]
    )
    def test_it_rejects_what_is_not_valid(self, member, data):
        response = post(member, "create", **{"track": make_track().pk, "title": "FedAvg", **data})
        assert response.status_code == 200
        assert "errorlist" in response.content.decode()
        assert not Submission.objects.exists()


class TestDraftPage:
    def test_it_has_a_place_for_every_file(self, member, team):
        submission = make_submission(team, make_private_track())
        make_run(submission, budget=1.0)
        html = page(member, "detail", submission.pk)
        assert html.count('id="file-') == 8
        assert html.count("Add a run") == 2
        assert "Accepted: .yaml, .yml, up to" in html
        assert 'accept=".yaml,.yml"' in html
        names = self.names(html)
        assert "Settings at ε = 1 (optional)" in names
        assert "3. Checkpoint at ε = 1" in names

    @staticmethod
    def names(html):
        """The headings of the files, without their endings and sizes."""
        headings = [part.partition("</h4>")[0] for part in html.split("<h4 ")[1:]]
        texts = [strip_tags("<h4 " + heading.partition('<span class="muted')[0]) for heading in headings]
        return [" ".join(text.split()) for text in texts]

    def test_what_may_be_the_required_code_is_optional_once_there_is_code(self, member, team):
        submission = make_submission(team, make_private_track(requires_code=True))
        run, _ = (make_run(submission, budget=budget) for budget in (1.0, 4.0))
        both = ("Settings at ε = {} (optional)", "Method file at ε = {} (optional)")

        def optional():
            names = self.names(page(member, "detail", submission.pk))
            return [name.format(budget) for budget in (1, 4) for name in both if name.format(budget) in names]

        assert optional() == []
        needed = "Settings at ε = 1 (needed unless the description links to the code)"
        assert needed in self.names(page(member, "detail", submission.pk))
        make_artifact(run, ArtifactKind.SETTINGS, b"rounds: 1", "settings.yaml")
        assert optional() == ["Method file at ε = 1 (optional)"]
        submission.code_url = f"https://code.example/method/commit/{'0' * 40}"
        submission.save()
        assert optional() == [both[1].format(1), both[0].format(4), both[1].format(4)]

    def test_the_buttons_of_two_runs_have_different_names(self, member, team):
        submission = make_submission(team, make_private_track())
        for budget in (1.0, 4.0):
            fill(make_run(submission, budget=budget))
        html = " ".join(page(member, "detail", submission.pk).split())
        for tag in ("label", "h4", "summary"):
            parts = [part.partition(f"</{tag}>")[0] for part in html.split(f"<{tag} ")[1:]]
            names = [strip_tags(f"<{tag} {part}") for part in parts]
            assert len(names) == len(set(names)), tag

    def test_what_is_missing_leads_to_its_place(self, member, team):
        submission = make_submission(team, make_private_track(requires_code=True))
        html = page(member, "detail", submission.pk)
        assert '<a href="#files">Add at least one run' in html
        run = make_run(submission, budget=1.0)
        for tried in ({}, {"not-submitted": ""}):
            html = page(member, "detail", submission.pk, **tried)
            for place, message in (
                (f"name-{run.pk}-checkpoint", "The checkpoint is missing."),
                ("name-submission-privacy_proof", "The privacy proof is missing."),
                ("describe", "The description of the method is missing."),
                (f"name-{run.pk}-settings", "The code of the method is missing."),
            ):
                assert f'<a href="#{place}">{message}</a>' in html
                assert f'id="{place}"' in html
        alerts = re.findall(r'role="alert"[^>]*>(.*?)</p>', html)
        assert alerts == (["<strong>Not submitted.</strong> Your quota is unchanged."] if tried else [])
        # Nothing stands between these words and what they announce.
        announced = html.partition("What is missing or wrong:")[2].partition("The checkpoint is missing.")[0]
        assert "submissions used" not in announced
        # Each in a line, with advice where its place doesn't take what is missing.
        assert 'class="problem"' not in html
        assert "under “Edit the description”" in html

    def test_it_names_what_is_missing_and_then_offers_to_submit(self, member, team):
        assert "The checkpoint is missing." in page(
            member, "detail", make_run(make_submission(team)).submission.pk
        )
        assert "The draft is complete." in page(member, "detail", make_complete_draft(team).pk)

    def test_it_names_the_files_that_a_rank_for_counted_bytes_needs(self, member, team):
        needed = "Required for a rank, because this phase ranks only runs with counted bytes: "
        without = "the run will be listed without a rank"
        run = make_complete_draft(team, make_track(requires_counted=True)).runs.get()
        html = page(member, "detail", run.submission.pk)
        assert f"{needed}transcript.jsonl" in html
        assert f"{needed}messages.bin" in html
        assert "The draft is complete." in html
        assert without in html
        for kind in (ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES):
            make_artifact(run, kind, kind.encode())
        assert without not in page(member, "detail", run.submission.pk)

        for track, practice in ((make_track(requires_counted=False), False), (run.submission.track, True)):
            other = make_complete_draft(team, track, practice=practice)
            html = page(member, "detail", other.pk)
            assert "To have the bytes counted: messages.bin" in html
            assert needed not in html
            assert without not in html

    def test_it_shows_what_the_drafts_take_and_how_long_files_stay(self, member, team, settings):
        settings.TEAM_STORAGE_BYTES = 2048
        run = make_run(make_submission(team))
        make_artifact(run, ArtifactKind.CHECKPOINT, b"x" * 512)
        for html in (page(member, "detail", run.submission.pk), page(member, "list")):
            text = strip_tags(html)
            assert "use 512 B of 2.05 kB" in text
            assert "deleted 90 days after the last upload" in text

    def test_it_announces_a_replacement_that_was_interrupted(self, member, team):
        run = make_run(make_submission(team))
        make_artifact(run, ArtifactKind.CHECKPOINT, filename="old.safetensors")
        upload = make_upload(team, b"new", "new.safetensors", state=UploadState.OPEN)
        Artifact.pending.create(submission=run.submission, run=run, kind="checkpoint", upload=upload)
        html = page(member, "detail", run.submission.pk)
        assert "old.safetensors" in html
        assert "<strong>new.safetensors</strong>" in html
        assert "which replaces this file, is incomplete" in html

    def test_it_shows_the_quota(self, member, team):
        track = make_track(submissions_per_day=1)
        draft = make_submission(team, track)
        assert "0 of 1 submissions used" in page(member, "detail", draft.pk)
        make_submission(team, track, state=SubmissionState.SUBMITTED)
        html = page(member, "detail", draft.pk)
        assert "1 of 1 submissions used" in html
        assert html.count("You can submit again at") == 1

    @pytest.mark.parametrize("tried", [{}, {"not-submitted": ""}])
    def test_it_says_once_that_the_quota_is_used_up_or_the_track_is_paused(self, member, team, tried):
        track = make_track(submissions_per_day=1, paused=True)
        draft = make_submission(team, track)
        make_submission(team, track, state=SubmissionState.SUBMITTED)
        html = page(member, "detail", draft.pk, **tried)
        assert html.count("Paused by the organizers.") == 1
        said = ("You can submit again at", "Your team and its members have used all submissions")
        assert sum(html.count(text) for text in said) == 1

    def test_it_escapes_what_people_wrote(self, member, team):
        submission = make_submission(
            team, title="<script>alert(1)</script>", description="<img src=x onerror=a>"
        )
        run = make_run(submission)
        make_artifact(run, ArtifactKind.CHECKPOINT, b"w", "<b>x</b>.safetensors")
        html = page(member, "detail", submission.pk)
        assert "<script>alert" not in html
        assert "<img" not in html.split("</header>")[1]
        assert "<b>x" not in html

    def test_it_says_so_when_submitting_is_rejected(self, member, team):
        submission = make_run(make_submission(team)).submission
        response = post(member, "submit", submission.pk)
        assert response.status_code == 302
        html = member.get(response["Location"]).content.decode()
        assert "<title>Error: " in html
        assert "<title>Error: " not in page(member, "detail", submission.pk)
        assert "Not submitted" in html.partition('id="submit"')[2]
        assert "The checkpoint is missing." in html.partition("Not submitted")[2]

    def test_its_progress_line_says_what_is_next(self, member, team):
        run = make_run(make_submission(team))
        html = page(member, "detail", run.submission.pk)
        line = html.split('id="progress"')[1].split("</ol>")[0]
        assert "0 of 4 files" in line
        assert "no run yet" in page(member, "detail", make_submission(team, make_private_track()).pk)
        # What is needed precedes what isn't.
        places = [
            html.index(f'data-kind="{kind}"') for kind in ("checkpoint", "transcript", "messages", "settings")
        ]
        assert places == sorted(places)
        assert line.split('aria-current="step"')[1].split("</a>")[0].endswith("2. Files")
        assert (
            '1. Description <span aria-hidden="true">✓</span><span class="visually-hidden">(done)</span>'
            in line
        )
        assert "title only; the rest is optional" in line
        line = (
            page(member, "detail", make_complete_draft(team).pk).split('id="progress"')[1].split("</ol>")[0]
        )
        assert "2 of 4 files" in line
        # Where counted bytes rank alone, and the messages are missing.
        assert "would have no rank" in line
        Phase.objects.update(requires_counted=False)
        html = page(member, "detail", Submission.objects.latest("created_at").pk)
        assert "ready to submit" in html
        assert "2 of 2 files" in html

    def test_a_step_with_gaps_is_not_done(self, member, team):
        draft = make_complete_draft(team)
        Submission.objects.filter(pk=draft.pk).update(description="It is **[FILL IN: what is new]**.")
        line = page(member, "detail", draft.pk).split('id="progress"')[1].split("</ol>")[0]
        assert "1 gap to fill in" in line
        assert line.split('aria-current="step"')[1].split("</a>")[0].endswith("1. Description")

    def test_a_record_of_another_submission_is_pointed_out(self, member, team):
        first = make_submission(team, make_private_track(), title="First", state=SubmissionState.SUBMITTED)
        make_artifact(
            make_run(first, budget=1.0, state=RunState.SCORED), ArtifactKind.TRAINING_RECORD, b"record"
        )
        draft = make_submission(team, first.track)
        make_artifact(make_run(draft, budget=4.0), ArtifactKind.TRAINING_RECORD, b"another")
        html = page(member, "detail", draft.pk)
        assert "was submitted before" not in html
        assert "this record's challenge stays unresolved" in html
        make_artifact(make_run(draft, budget=1.0), ArtifactKind.TRAINING_RECORD, b"record")
        html = page(member, "detail", draft.pk)
        assert f'was submitted before, with “<a href="{first.get_absolute_url()}">First</a>”' in html

    def test_a_record_that_claims_more_than_the_budget_is_pointed_out(self, member, team):
        draft = make_submission(team, make_private_track())
        runs = [make_run(draft, budget=budget) for budget in (1.0, 4.0, 8.0)]
        for run in (runs[0], runs[2]):
            # It claims ε = 8.
            record = record_of(make_token(team, draft.track).token)
            make_artifact(run, ArtifactKind.TRAINING_RECORD, record)
        # One that can't be read claims nothing, and neither does one whose file was removed.
        make_artifact(runs[1], ArtifactKind.TRAINING_RECORD, b"record")
        html = page(member, "detail", draft.pk)
        assert html.count("above its budget") == 1
        assert "The training record at ε\xa0=\xa01 claims ε&nbsp;=&nbsp;8, above its budget." in strip_tags(
            html
        )
        for path in settings.STORE_FOLDER.rglob("*-*"):
            path.unlink()
        assert "above its budget" not in page(member, "detail", draft.pk)

    def test_a_missing_key_or_token_is_stated_before_anything_is_uploaded(self, member, team):
        track = make_private_track()
        draft = make_submission(team, track)
        html = page(member, "detail", draft.pk)
        assert "has no registered signing key yet" in html
        assert "has no unused run token for this track" in html
        make_key(team)
        make_token(team, track)
        html = page(member, "detail", draft.pk)
        assert "no registered signing key" not in html
        assert "no unused run token" not in html
        assert "signing key" not in page(member, "detail", make_submission(team).pk)
        # Of a run that was removed, the record has spent the token and is still accepted.
        spent = {"record_sha256": "0" * 64, "challenge": "0" * 64, "challenged_at": timezone.now()}
        RunToken.objects.update(**spent)
        html = page(member, "detail", draft.pk)
        assert "no unused run token" in html
        assert "can be uploaded again" in html

    @pytest.mark.parametrize("address", ["create", "detail"])
    def test_a_track_that_accepts_nothing_says_so_before_the_work(self, member, team, address):
        draft = make_submission(team, make_track(paused=True))
        html = page(member, address, *([draft.pk] if address == "detail" else []))
        assert "is not accepting submissions right now. Paused by the organizers." in html

    def test_runs_are_added_and_removed(self, member, team):
        submission = make_submission(team, make_private_track())
        place = f"{submission.get_absolute_url()}#run-4"
        assert post(member, "add_run", submission.pk, budget="4.0")["Location"] == place
        run = submission.runs.get(budget=4.0)
        # What is said of a run is said at the run, once.
        before, heading, after = page(member, "detail", submission.pk).partition('<h3 id="run-4"')
        assert heading
        assert [part.count("The run at ε\xa0=\xa04 was added.") for part in (before, after)] == [0, 1]
        assert post(member, "remove_run", submission.pk, run.pk)["Location"] == place
        assert "The run at ε\xa0=\xa04 and its files were removed." in page(member, "detail", submission.pk)
        assert not submission.runs.exists()
        for budget in ("", "3", "nan", "x"):
            assert (
                "no board"
                in post(member, "add_run", submission.pk, budget=budget, follow=True).content.decode()
            )

    def test_one_file_is_removed(self, member, team):
        draft = make_complete_draft(team, make_private_track())
        run = draft.runs.get(budget=1.0)
        record = run.artifacts.get(kind=ArtifactKind.TRAINING_RECORD)
        response = post(member, "remove_file", draft.pk, record.pk)
        place = f"name-{run.pk}-training_record"
        assert response["Location"] == f"{draft.get_absolute_url()}#{place}"
        before, heading, after = page(member, "detail", draft.pk).partition(f'id="{place}"')
        assert heading
        assert [part.count(f"{record.upload.filename} was removed.") for part in (before, after)] == [0, 1]
        # Its annex answers a challenge that nothing asks any more.
        kept = set(run.artifacts.values_list("kind", flat=True))
        assert kept == set(draft.track.kind.run_artifacts) - {"training_record", "training_annex"}
        run.refresh_from_db()
        assert run.challenge == ""
        proof = draft.proof()
        post(member, "remove_file", draft.pk, proof.pk)
        assert draft.proof() is None
        # Neither of another submission, nor of what was submitted.
        other = make_complete_draft(team)
        file = other.artifacts.first()
        assert post(member, "remove_file", draft.pk, file.pk).status_code == 404
        post(member, "submit", other.pk)
        assert "was removed" not in post(member, "remove_file", other.pk, file.pk, follow=True).text
        assert "Yes, remove" not in page(member, "detail", other.pk)
        assert other.artifacts.filter(pk=file.pk).exists()

    def test_a_link_needs_no_scheme(self, member, team):
        submission = make_submission(team)
        assert 'type="url"' not in page(member, "edit", submission.pk)
        post(member, "edit", submission.pk, title="FedAvg", code_url="github.com/x/y")
        submission.refresh_from_db()
        assert submission.code_url == "https://github.com/x/y"

    def test_its_description_is_edited(self, member, team):
        submission = make_submission(team)
        html = post(member, "edit", submission.pk, follow=True, title="Better", description="*Much*").text
        assert "<em>Much</em>" in html
        assert "Saved." in html

    def test_its_description_is_previewed_and_nothing_is_saved(self, member, team):
        submission = make_submission(team, title="Before", description="old")
        fields = {"title": "After", "description": r"# Head *x* $\sigma = 1$", "preview": "1"}
        html = post(member, "edit", submission.pk, **fields).content.decode()
        # The address names it, so that it takes the focus.
        assert '<h2 id="preview" tabindex="-1">' in html
        assert "<title>Preview: Edit" in html
        assert "<em>x</em>" in html
        assert "<math" in html
        assert 'value="After"' in html
        submission.refresh_from_db()
        assert (submission.title, submission.description) == ("Before", "old")
        assert 'id="preview"' not in page(member, "edit", submission.pk)

    def test_a_new_one_is_previewed_before_it_exists(self, member, team):
        track = make_track()
        fields = {"track": track.pk, "title": "", "description": "*Much*", "preview": "1"}
        html = member.post(reverse("submissions:create"), fields).content.decode()
        assert "<em>Much</em>" in html
        assert f'<form class="form" method="post" action="{reverse("submissions:create")}"' in html
        html = member.post(reverse("submissions:create"), {**fields, "description": "x" * 10_001}).content
        assert b'id="preview"' not in html
        member.post(reverse("submissions:create"), {**fields, "title": "Valid"})
        assert not team.submissions.exists()


class TestAfterSubmitting:
    """What the team reads and does on the page of its own submission."""

    def submitted(self, team, state=RunState.QUEUED, **fields):
        submission = make_submission(team, state=SubmissionState.SUBMITTED, **fields)
        run = make_run(submission, state=state)
        make_artifact(run, ArtifactKind.CHECKPOINT)
        return submission

    def test_it_says_what_happens_now(self, member, team):
        html = page(member, "detail", self.submitted(team).pk)
        assert "validation, communication and scoring" in html
        private = make_submission(team, make_private_track(), state=SubmissionState.SUBMITTED)
        make_run(private, budget=1.0, state=RunState.SCORED)
        html = page(member, "detail", private.pk)
        assert "until two reviewers have accepted" in html
        assert reverse("leaderboard:track", args=[private.track.slug]) in html

    def test_its_title_begins_with_what_still_changes(self, member, team):
        waiting, scored = self.submitted(team), self.submitted(team, RunState.SCORED, title="FedAvg")
        assert "<title>Run: queued · " in page(member, "detail", waiting.pk)
        assert "<title>FedAvg, " in page(member, "detail", scored.pk)

    def test_nobody_else_reads_it(self, client, team):
        submission = self.submitted(team, RunState.SCORED)
        assert "For your team" not in page(client, "detail", submission.pk)

    def test_description_and_links_are_edited_with_a_date(self, member, team):
        submission = self.submitted(team, RunState.SCORED, title="FedAvg")
        assert 'name="title"' not in page(member, "edit", submission.pk)
        post(member, "edit", submission.pk, paper_url="arxiv.org/abs/1", title="Else")
        html = page(member, "detail", submission.pk)
        assert "https://arxiv.org/abs/1" in html
        assert "Edited on" in html
        assert "Else" not in html

    def test_it_is_canceled_while_it_waits(self, member, team):
        submission = make_complete_draft(team)
        post(member, "submit", submission.pk)
        html = page(member, "detail", submission.pk)
        assert "Cancel this submission" in html
        assert "Withdraw this submission" not in html
        html = post(member, "cancel", submission.pk, follow=True).content.decode()
        assert "is a draft again" in html
        assert "3. Submission" in html

    def test_a_run_that_has_begun_is_not_canceled(self, member, team):
        submission = self.submitted(team, RunState.RUNNING)
        html = page(member, "detail", submission.pk)
        assert "Cancel this submission" not in html
        assert "Withdraw this submission" in html
        assert "can&#x27;t be canceled" in post(member, "cancel", submission.pk, follow=True).content.decode()

    def test_a_rejected_one_is_tried_again_with_the_same_files(self, member, team):
        submission = self.submitted(team, RunState.REJECTED, description="*Much*")
        assert "Try again with these files" in page(member, "detail", submission.pk)
        html = post(member, "copy", submission.pk, follow=True).content.decode()
        assert "checkpoint.bin" in html
        assert "<em>Much</em>" in html

    def test_its_copy_says_why_it_was_rejected_until_a_file_is_replaced(self, member, team):
        submission = self.submitted(team, RunState.REJECTED, title="Earlier")
        evaluation = Evaluation.objects.create(run=submission.runs.get(), attempt=1, state="rejected")
        problem = Problem.of(ErrorCode.CHECKPOINT_FORMAT, where="checkpoint.bin")
        StepReport.objects.create(
            evaluation=evaluation,
            step=Step.VALIDATE,
            outcome=Outcome.REJECTED,
            problems=[problem.model_dump(mode="json")],
        )
        html = post(member, "copy", submission.pk, follow=True).text
        assert f'These files were rejected in “<a href="{submission.get_absolute_url()}">Earlier</a>”' in html
        assert "E_CHECKPOINT_FORMAT" in html
        assert "were rejected before</a>. Submitted unchanged" in html
        run = Run.objects.get(submission__state=SubmissionState.DRAFT)
        run.artifacts.all().delete()
        make_artifact(run, ArtifactKind.CHECKPOINT)
        assert "rejected" not in strip_tags(page(member, "detail", run.submission.pk))

    def test_a_revised_proof_has_a_place(self, member, team):
        submission = make_complete_draft(team, make_private_track())
        post(member, "submit", submission.pk)
        html = page(member, "detail", submission.pk)
        assert "Upload a revised proof" in html
        assert html.count('type="file"') == 1


class TestWhoMaySee:
    """Nothing of a team's is seen by others before it has a score, and its files never."""

    @pytest.fixture(params=["draft", "queued", "running", "rejected", "failed", "withdrawn"])
    def private(self, request):
        if request.param == "draft":
            return make_run().submission
        if request.param == "withdrawn":
            return make_run(
                make_submission(state=SubmissionState.WITHDRAWN), state=RunState.SCORED
            ).submission
        return make_run(state=request.param).submission

    @pytest.mark.parametrize("address", ["detail", "status"])
    def test_the_public_finds_nothing(self, client, private, address):
        page(client, address, private.pk, status=404)
        client.force_login(make_team().memberships.get().user)
        page(client, address, private.pk, status=404)

    @pytest.mark.parametrize("address", ["detail", "status"])
    def test_the_team_and_the_organizers_see_it(self, client, private, address):
        client.force_login(private.created_by)
        page(client, address, private.pk)
        client.force_login(make_organizer())
        page(client, address, private.pk)
        client.force_login(make_user(is_staff=True))
        page(client, address, private.pk, status=404)

    def test_a_scored_run_is_public_but_not_its_files_and_not_the_other_runs(self, client):
        submission = make_submission(
            track=make_private_track(), state=SubmissionState.SUBMITTED, title="Open"
        )
        scored = make_run(submission, budget=1.0, state=RunState.SCORED)
        make_run(submission, budget=8.0, state=RunState.REJECTED)
        make_artifact(scored, ArtifactKind.CHECKPOINT, b"w", "secret-name.safetensors")
        html = page(client, "detail", submission.pk)
        assert "Evidence at ε\xa0=\xa01" in html
        assert "ε\xa0=\xa08" not in html
        assert "secret-name" not in html
        assert "Withdraw" not in html

    @pytest.mark.parametrize("address", ["edit"])
    def test_only_the_team_edits(self, client, address):
        submission = make_submission()
        page(client, address, submission.pk, status=302)
        for outsider in (make_team().memberships.get().user, make_user(), make_user(is_staff=True)):
            client.force_login(outsider)
            page(client, address, submission.pk, status=404)

    @pytest.mark.parametrize("address", ["add_run", "submit", "withdraw", "edit", "copy", "cancel"])
    def test_only_the_team_changes_anything(self, client, address):
        submission = make_complete_draft()
        assert post(client, address, submission.pk).status_code == 302
        for outsider in (make_team().memberships.get().user, make_user(), make_user(is_staff=True)):
            client.force_login(outsider)
            assert post(client, address, submission.pk, title="Mine now").status_code == 404
        before = submission.title
        submission.refresh_from_db()
        assert (submission.state, submission.title) == (SubmissionState.DRAFT, before)

    def test_a_run_of_another_submission_is_not_removed(self, member, team):
        own, other = make_submission(team), make_run()
        assert post(member, "remove_run", own.pk, other.pk).status_code == 404
        assert post(member, "remove_run", other.submission.pk, other.pk).status_code == 404
        other.refresh_from_db()

    @pytest.mark.parametrize("address", ["detail", "status", "edit"])
    def test_what_is_not_there_is_not_found(self, member, address):
        page(member, address, uuid4(), status=404)

    @pytest.mark.parametrize("address", ["add_run", "submit", "withdraw", "copy", "cancel"])
    def test_changes_are_made_by_post_only(self, member, team, address):
        draft = make_submission(team)
        html = page(member, address, draft.pk, status=405)
        assert f'href="{draft.get_absolute_url()}"' in html

    @pytest.mark.parametrize("address", ["list", "create"])
    def test_anonymous_people_log_in_first(self, client, address):
        response = client.get(reverse(f"submissions:{address}"))
        assert response["Location"].startswith(reverse("account_login"))


class TestAdmin:
    @pytest.fixture
    def organizer(self, client):
        client.force_login(make_user(is_staff=True, is_superuser=True))
        return client

    def test_a_submission_is_marked_as_baseline(self, organizer):
        submission = make_complete_draft()
        address = reverse("admin:submissions_submission_changelist")
        asked = admin_actions.choose(organizer, address, "mark_as_baseline", submission.pk)
        assert "Baselines keep their ranks" in asked.text
        admin_actions.confirm(organizer, address, asked)
        submission.refresh_from_db()
        assert submission.is_baseline

    def test_nothing_else_is_edited(self, organizer):
        submission = make_complete_draft()
        address = reverse("admin:submissions_submission_change", args=[submission.pk])
        organizer.post(address, {"title": "Another", "state": "submitted"})
        before = submission.title
        submission.refresh_from_db()
        assert (submission.title, submission.state) == (before, SubmissionState.DRAFT)
        page_of_one = organizer.get(address)
        assert page_of_one.status_code == 200
        assert 'name="_save"' not in page_of_one.text

    def test_a_command_marks_what_a_team_has_submitted(self, organizer):
        team = make_team()
        submitted = make_submission(team, state=SubmissionState.SUBMITTED)
        draft, other = make_submission(team), make_submission(state=SubmissionState.SUBMITTED)
        with pytest.raises(CommandError, match="No organizer has the address"):
            call_command("mark_baselines", team.name, by=owner_of(team).email)
        by = User.objects.get(is_superuser=True).email
        call_command("mark_baselines", team.name, by=by, stdout=StringIO())
        for submission, expected in ((submitted, True), (draft, False), (other, False)):
            submission.refresh_from_db()
            assert submission.is_baseline is expected


def test_the_evaluation_of_a_submitted_run_begins(member, team):
    submission = make_complete_draft(team)
    post(member, "submit", submission.pk)
    assert Evaluation.objects.get().run.submission == submission
