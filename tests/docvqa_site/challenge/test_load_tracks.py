import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET, FEWEST_BYTES
from tests.docvqa_site.factories import make_submission

pytestmark = pytest.mark.django_db


def load(*arguments: str) -> str:
    output = io.StringIO()
    call_command("load_tracks", "--publish", *arguments, stdout=output)
    return output.getvalue()


def write(folder: Path, *entries: object) -> str:
    path = folder / "tracks.json"
    path.write_text(json.dumps(entries))
    return str(path)


def entry(**fields: object) -> dict[str, object]:
    named = {"slug": "own", "name": "Own", "summary": "S", "description": "D", "ranking": "bytes"}
    return {**named, "reference": "vt5-tiny", "test_set": "demo", **fields}


def test_the_tracks_of_the_competition_follow_its_rules() -> None:
    load()
    first, second = Track.objects.all()
    assert (first.slug, first.name, first.kind) == ("track-1", "Communication-efficient FL", FEWEST_BYTES)
    assert (first.anls_threshold, first.reference, first.test_set) == (0.8242, "vt5-base", "pfl-docvqa")
    assert (second.slug, second.kind) == ("track-2", BEST_ANLS_AT_BUDGET)
    assert (second.name, second.budgets, second.delta) == (
        "Provider-level differential privacy",
        [1, 4, 8],
        1e-5,
    )
    assert "## Rules" in first.description
    assert "privacy proof" in second.description


def test_loading_again_changes_nothing_and_records_nothing() -> None:
    load()
    recorded = AuditEntry.objects.count()
    assert load().count("nothing to change") == 2
    assert AuditEntry.objects.count() == recorded == 2


def test_new_tracks_are_drafts_unless_they_are_published() -> None:
    printed = io.StringIO()
    call_command("load_tracks", stdout=printed)
    assert not Track.objects.exists()
    assert Track.with_drafts.filter(is_draft=True).count() == 2
    assert "track-1 is a draft" in printed.getvalue()
    assert "/organize/tracks/track-1/setup/" in printed.getvalue()


def test_tracks_that_exist_stay_as_public_as_they_are() -> None:
    load()
    call_command("load_tracks", stdout=io.StringIO())
    assert Track.objects.count() == 2
    Track.objects.filter(slug="track-2").update(is_draft=True)
    load()
    assert Track.objects.count() == 1


def test_overrides_reach_the_tracks_that_match() -> None:
    load(
        "--set",
        "track-1.anls_threshold=0.1",
        "--set",
        "*.reference=vt5-tiny",
        "--set",
        '*.phases=[{"submissions_per_day": 20}]',
    )
    first, second = Track.objects.all()
    assert (first.anls_threshold, first.reference) == (0.1, "vt5-tiny")
    assert (second.anls_threshold, second.reference) == (0.8242, "vt5-tiny")
    assert list(Phase.objects.values_list("submissions_per_day", flat=True)) == [20, 20]


def test_a_track_without_phases_has_one_that_never_ends() -> None:
    load()
    assert list(Phase.objects.order_by("track__slug").values_list("track__slug", "starts_at", "ends_at")) == [
        ("track-1", None, None),
        ("track-2", None, None),
    ]


PHASES: list[dict[str, object]] = [
    {"name": "Development", "ends_at": "2030-01-31T12:00:00Z", "allows_private": True},
    {"name": "Final", "starts_at": "2030-01-31T12:00:00Z", "results": "after_end"},
]


def test_phases_are_added_changed_and_removed_by_name(tmp_path: Path) -> None:
    load(write(tmp_path, entry()))
    load(write(tmp_path, entry(phases=PHASES)))
    assert [phase.name for phase in Track.objects.get().phases.all()] == ["Development", "Final"]
    kept = Phase.objects.get(name="Final").pk
    load(write(tmp_path, entry(phases=[{**PHASES[1], "submissions_per_day": 1}])))
    assert list(Phase.objects.values_list("pk", "submissions_per_day")) == [(kept, 1)]


def test_a_phase_in_which_something_was_submitted_stays(tmp_path: Path) -> None:
    load(write(tmp_path, entry(phases=PHASES)))
    make_submission(track=Track.objects.get(), state="submitted")
    with pytest.raises(CommandError, match="in which nothing was submitted"):
        load(write(tmp_path, entry(phases=PHASES[1:])))
    assert Phase.objects.count() == 2


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([], "a list of objects"),
        ("soon", "a list of objects"),
        ([{}, {"name": "Final"}], "overlap"),
        ([{"results": "never"}], "phases\\[0\\].results"),
        ([{"color": "red"}], "submissions_per_day"),
        ([{"starts_at": "2030-02-01T00:00:00Z", "ends_at": "2030-01-01T00:00:00Z"}], "ends before it starts"),
        ([{"starts_at": "2030-01-01"}], "a time with its zone"),
        ([{"ends_at": "soon"}], "a time with its zone"),
    ],
)
def test_phases_that_are_not_valid_are_explained_and_nothing_is_saved(
    tmp_path: Path, phases: object, expected: str
) -> None:
    with pytest.raises(CommandError, match=expected):
        load(write(tmp_path, entry(phases=phases)))
    assert not Track.objects.exists()


def test_a_later_override_wins() -> None:
    load("--set", "*.clients=3", "--set", "track-2.clients=4")
    assert list(Track.objects.values_list("clients", flat=True)) == [3, 4]


def test_patterns_are_given_as_a_list_or_as_lines() -> None:
    load("--set", 'track-1.trainable=["*.bias", "visual.*"]', "--set", "track-2.trainable=*.weight")
    first, second = Track.objects.all()
    assert first.trainable_patterns() == ["*.bias", "visual.*"]
    assert second.trainable_patterns() == ["*.weight"]


def test_a_change_is_recorded_with_old_and_new() -> None:
    load()
    load("--set", "track-1.anls_threshold=0.5")
    change = AuditEntry.objects.get(action="track.changed")
    assert change.details == {"changes": {"anls_threshold": ["0.8242", "0.5"]}}


def test_a_column_that_the_file_omits_keeps_its_value(tmp_path: Path) -> None:
    load(write(tmp_path, entry()))
    Track.objects.update(paused=True)
    load(write(tmp_path, entry(name="Renamed")))
    track = Track.objects.get()
    assert (track.name, track.paused) == ("Renamed", True)


def test_times_are_compared_as_moments(tmp_path: Path) -> None:
    load(write(tmp_path, entry(phases=[{"ends_at": "2030-01-31T12:00:00Z"}])))
    again = entry(phases=[{"ends_at": "2030-01-31T13:00:00+01:00"}])
    assert "nothing to change" in load(write(tmp_path, again))


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("track-1.anls_threshold=1.5", "1.5"),
        ("track-1.anls_threshold=0.82425", "0.82425"),
        ("track-1.anls_threshold=NaN", "nan"),
        ("track-1.delta=0", "0"),
        ("track-2.budgets=[]", "[]"),
        ("track-2.budgets=[1, 1]", "[1, 1]"),
        ("track-2.budgets=[true]", "[True]"),
        ("track-2.budgets=[-4]", "[-4]"),
        ("track-2.providers_per_client=[1.5]", "[1.5]"),
        ("track-2.providers_per_client=[420]", "[420]"),
        ("track-1.clients=0", "0"),
        ("track-1.clients=many", "many"),
        ("track-1.reference=../etc", "../etc"),
        ("track-1.ranking=luck", "luck"),
        ("track-1.max_checkpoint_bytes=0", "0"),
        ("track-1.trainable=two words", "two words"),
        ("track-1.trainable=[1]", "[1]"),
        ("track-1.color=red", "color"),
        ("track-1.id=7", "id"),
        ("track-1.slug=other", "slug"),
        ("track-9.clients=2", "track-9"),
    ],
)
def test_a_value_that_is_not_valid_is_named_and_nothing_is_saved(override: str, found: str) -> None:
    with pytest.raises(CommandError, match="E_CONFIGURATION") as rejection:
        load("--set", override)
    assert f"found: {found}" in str(rejection.value)
    assert not Track.objects.exists()


@pytest.mark.parametrize("override", ["track-1", "clients=3", ".clients=3", "=", "track-1.clients"])
def test_an_override_of_another_shape_is_explained(override: str) -> None:
    with pytest.raises(CommandError, match=r"TRACK\.FIELD=VALUE"):
        load("--set", override)


def test_one_bad_track_keeps_all_of_them_out(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"second\.clients"):
        load(write(tmp_path, entry(), entry(slug="second", clients=0)))
    assert not Track.objects.exists()


@pytest.mark.parametrize(
    "content", ["{", "{}", "[1]", '[{"name": "no slug"}]', '[{"slug": "x", "color": "red"}]']
)
def test_a_file_of_another_shape_is_rejected(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tracks.json"
    path.write_text(content)
    with pytest.raises(CommandError, match="E_CONFIGURATION"):
        load(str(path))


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"absent\.json"):
        load(str(tmp_path / "absent.json"))
    with pytest.raises(CommandError, match=r"absent\.md"):
        load(write(tmp_path, entry(description_file="absent.md")))
