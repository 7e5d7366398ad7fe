"""The tensors that training changed: the sentence, the groups, the page and the API."""

import pytest
from django.test import Client

from docvqa_site.evaluation.display.changed_tensors import (
    MAX_SHOWN,
    SHORT,
    ChangedTensors,
    TensorGroup,
    grouped,
)
from docvqa_site.submissions.models import RunState
from evaluator.messages.jobs import Step
from tests.docvqa_site.api.caller import Caller
from tests.docvqa_site.evaluation.display.test_run_status import evaluate, report
from tests.docvqa_site.factories import make_organizer, make_run, make_submission, make_user
from tests.docvqa_site.submissions.drafts import make_private_track

ENCODER = [f"language_backbone.encoder.block.{layer}.layer.0.SelfAttention.q.weight" for layer in range(12)]
VISUAL = [f"visual.layers.{layer}.weight" for layer in range(12)]
SINGLE = ["language_backbone.shared.weight", "language_backbone.encoder.final_layer_norm.weight"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ([], "None of the 480 tensors differ from the base weights"),
        (["a"], "1 of 480 tensors differs from the base weights"),
        (["a"] * 216, "216 of 480 tensors differ from the base weights"),
    ],
)
def test_a_sentence_says_how_many_changed(names, sentence):
    assert ChangedTensors(names, 480).sentence == sentence


def test_a_long_list_is_grouped_by_the_part_before_the_layer():
    assert grouped([SINGLE[0], *ENCODER, *VISUAL, SINGLE[1]]) == [
        TensorGroup("language_backbone", SINGLE),
        TensorGroup("language_backbone.encoder.block", ENCODER),
        TensorGroup("visual.layers", VISUAL),
    ]


def test_a_short_list_is_not_grouped():
    assert grouped([]) == []
    assert grouped(ENCODER[:SHORT]) == [TensorGroup("", ENCODER[:SHORT])]


def test_names_of_another_shape_have_groups_too():
    odd = ["0", "1.weight", "", ".", "a", "a.b", "..1", *ENCODER]
    assert sorted(name for group in grouped(odd) for name in group.tensors) == sorted(odd)


def test_a_page_names_so_many_and_says_how_many_it_leaves_out():
    changed = ChangedTensors([f"block.{number}" for number in range(MAX_SHOWN + 5)], 9000)
    assert sum(len(group.tensors) for group in changed.groups) == MAX_SHOWN
    assert changed.not_shown == 5
    assert ChangedTensors(["a"], 1).not_shown == 0


def validated(names, *, state=RunState.SCORED, track=None):
    budget = 4.0 if track else None
    submission = make_submission(state="submitted", **({"track": track} if track else {}))
    run = make_run(submission, state=state, budget=budget)
    result = {"kind": "validate", "tensors": 480, "parameters": 1, "sha256": "0" * 64, "changed": names}
    report(evaluate(run), Step.VALIDATE, result=result)
    return run


def page(run, user=None):
    client = Client()
    if user:
        client.force_login(user)
    return client.get(f"{run.submission.get_absolute_url()}runs/{run.pk}/").content.decode()


@pytest.mark.django_db
class TestPage:
    def test_everyone_who_sees_a_scored_run_reads_what_changed(self):
        for track in (None, make_private_track()):
            run = validated([*ENCODER, *VISUAL], track=track)
            for user in (None, run.submission.team.memberships.get().user, make_user(is_staff=True)):
                html = page(run, user)
                assert "<summary>24 of 480 tensors differ from the base weights</summary>" in html
                assert "<code>visual.layers</code>" in html
                assert f"<li>{ENCODER[3]}</li>" in html

    def test_before_a_score_only_the_team_and_the_organizers_do(self):
        run = validated(VISUAL, state=RunState.RUNNING)
        assert "12 of 480 tensors" in page(run, run.submission.team.memberships.get().user)
        assert "12 of 480 tensors" in page(run, make_organizer())
        assert "12 of 480 tensors" not in page(run)

    def test_the_base_weights_themselves_are_called_so(self):
        html = page(validated([]))
        assert "<p>None of the 480 tensors differ from the base weights.</p>" in html
        assert "changed-" not in html

    def test_names_are_escaped(self):
        html = page(validated(["<script>alert(1)</script>", *(f"<b>.{layer}" for layer in range(20))]))
        assert "<script>alert" not in html
        assert "<b>" not in html
        assert "<code>&lt;b&gt;</code>" in html

    def test_a_run_that_was_not_validated_says_nothing(self):
        assert "base weights" not in page(make_run(state=RunState.SCORED))


@pytest.mark.django_db
def test_the_api_names_every_changed_tensor(client):
    names = [f"block.{number}" for number in range(MAX_SHOWN + 5)]
    submission = validated(names).submission
    make_run(submission, budget=1.0)
    api = Caller(client, submission.team.memberships.get().user)
    first, second = sorted(
        api.get(f"submissions/{submission.pk}")["runs"], key=lambda run: run["budget"] or 0
    )
    assert (first["tensors"], first["changed_tensors"]) == (480, names)
    assert (second["tensors"], second["changed_tensors"]) == (None, None)
