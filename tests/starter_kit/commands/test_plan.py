"""`pfl plan`."""

import json
from pathlib import Path

from docvqa_site.challenge.models import Track
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import QUICK, failing, passing, pfl, run_pfl


def test_a_plan_says_what_a_run_takes_and_what_to_change_for_a_rank(base: Path, data: Path) -> None:
    where = ["--data", data, "--base", base, "--no-measure", *QUICK]
    weak = ["--set", "noise_multiplier=0.4", "--set", "target_epsilon=null"]
    printed = pfl("plan", "fl-provider-dp", *where, *weak).stdout
    assert "none in track 2" in printed
    assert printed.split()[0] == "fl-provider-dp"
    assert "--set target_epsilon=8" in printed
    values = json.loads(pfl("plan", "fl-provider-dp", *where, *weak, "--json").stdout)
    assert values["forecast"]["privacy"]["epsilon"] > 8
    assert values["changes"][0] in printed
    assert values["bytes_expected"] == values["forecast"]["traffic"]["down_bytes"] * 2 * 3


def test_a_plan_for_another_budget_names_the_server_learning_rate_that_suits_it(
    base: Path, data: Path
) -> None:
    where = ["fl-provider-dp", "--data", data, "--base", base, "--no-measure", *QUICK]
    smaller = [*where, "--set", "target_epsilon=1"]
    assert "add --set server_learning_rate=0.35" in passing("plan", *smaller)
    assert "No changes needed." in passing("plan", *smaller, "--set", "server_learning_rate=0.35")


def test_a_plan_for_a_track_names_it_and_lists_where_the_run_differs(
    base: Path, data: Path, site: LiveSite, token: str
) -> None:
    where = ["fl-provider-dp", "--data", data, "--base", base, "--no-measure", *QUICK]
    assert "track-1, if its ANLS reaches" in passing("plan", *where, "--track", "track-1")
    assert "track-1 or track-2" in failing("plan", *where, "--track", "track-9")
    Track.objects.filter(slug="track-2").update(budgets=[2.0], clients=9)
    access = {"PFL_SITE": site.url, "PFL_TOKEN": token}
    planned = run_pfl("plan", *where, "--track", "track-2", environment=access).stdout
    assert "--set target_epsilon=2" in planned
    assert "track-2 demands 9 clients (--data" in planned
