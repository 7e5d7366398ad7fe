"""The calculator: its numbers are the library's, its address is the question, and no visitor can hurt the site."""

import math
import re
import subprocess
import sys
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.core.cache import caches
from django.test import Client

from docvqa_site.calculator import answers, curves, views
from docvqa_site.calculator.noise_search import NoiseSearch
from docvqa_site.calculator.results import Row
from docvqa_site.calculator.scenario import Scenario
from docvqa_site.limits import Limit
from evaluator.accounting import pld, rdp
from evaluator.accounting.calibration import noise_multiplier_for
from evaluator.accounting.comparison import Bound
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Full, Poisson
from tests.docvqa_site.ui.test_pages import check

PATH = "/privacy/calculator/"
WINNER = {
    "find": "epsilon",
    "sampling": "two_stages",
    "client_rate": "0.2",
    "provider_rate": "0.1125",
    "noise_multiplier": "1.21",
    "rounds": "30",
    "budget": "1",
    "delta": "1e-5",
    "adjacency": "add_remove",
    "placement": "server",
    "secure_aggregation": "simulated",
    "clients": "10",
    "colluding_clients": "0",
}
SCENARIO = Scenario(
    Mechanism(
        sampling=Poisson(client_rate=0.2, provider_rate=0.1125), noise=Noise(multiplier=1.21), clients=10
    ),
    rounds=30,
)

pytestmark = pytest.mark.usefixtures("db")


def test_a_result_is_named_in_the_title_and_comes_before_its_address(client: Client) -> None:
    assert "<title>Privacy calculator ·" in client.get(PATH).text
    page = client.get(PATH, WINNER).text
    assert "<title>ε for 30 rounds: privacy calculator ·" in page
    assert page.index('<h2 id="result" tabindex="-1">') < page.index("Link to this result")


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("client_rate", "1.5", "Client rate C must be a number from 0.0001 to 1."),
        ("rounds", "many", "Rounds must be a number from 1 to 10000."),
        ("delta", "", "δ must be a number from 1e-12 to 0.01."),
    ],
)
def test_a_value_out_of_range_is_named_with_its_range(
    client: Client, field: str, value: str, text: str
) -> None:
    html = client.get(PATH, WINNER | {field: value}).text
    assert text in html
    assert "Ensure this value" not in html


@pytest.fixture(autouse=True)
def nothing_remembered():
    for cache in caches.all():
        cache.clear()


HALVINGS = curves.HALVINGS


@pytest.fixture(autouse=True)
def ends_of_curves_only(monkeypatch):
    """A curve's ends are its corners; what is drawn between them is tested with the plots."""
    monkeypatch.setattr(curves, "HALVINGS", 0)


@pytest.fixture
def computed(monkeypatch):
    """The questions that were computed rather than remembered."""
    questions = []
    compute = answers.answer
    monkeypatch.setattr(answers, "answer", lambda question: questions.append(question) or compute(question))
    return questions


def ask(client: Client, **changes: Any) -> str:
    response = client.get(PATH, WINNER | changes)
    assert response.status_code == 200
    return response.content.decode()


def shown(html: str) -> list[float]:
    """The numbers in the first table of the page, with all of their digits."""
    return [float(value) for value in re.findall(r'<data value="([^"]+)"', html.partition("</table>")[0])]


def test_anyone_finds_the_form_with_values_to_start_from(client):
    html = client.get(PATH).content.decode()
    assert 'value="0.1125"' in html
    assert "<table" not in html
    assert f'href="{PATH}" aria-current="page"' in html


def test_the_numbers_are_those_of_the_library(client):
    numbers = shown(ask(client))
    for rule in SamplingRule:
        for accountant in (pld, rdp):
            assert accountant.epsilon(SCENARIO.releases()[rule], 1e-5) in numbers
    assert numbers[0] == pytest.approx(1.909, abs=1e-3)


def test_an_example_protects_a_client_with_all_its_data(client):
    (address,) = re.findall('href="([^"]+)#result">one client as', client.get(PATH).content.decode())
    html = client.get(unescape(address)).content.decode()
    # The kit's config of client-dp, by the official accountant: docs/proofs/client-dp.md.
    assert shown(html)[0] == pytest.approx(7.919, abs=1e-3)


def test_an_epsilon_and_its_difference_from_the_budget_add_up(client):
    (row, *_) = re.findall(
        r">([\d.]+)</data></td>.*?(over|within)</span> (?:by )?([\d.]+)", ask(client), re.S
    )
    assert row == ("1.9093", "over", "0.9093")
    (row, *_) = re.findall(
        r">([\d.]+)</data></td>.*?(over|within)</span> (?:by )?([\d.]+)", ask(client, budget="2"), re.S
    )
    assert row == ("1.9093", "within", "0.0907")


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [(1.0, "1.0000"), (0.999900001, "0.99991"), (11.11173, "11.1118"), (0.00123, "0.00123")],
)
def test_an_epsilon_has_the_decimals_of_a_page_of_evidence_or_more_where_it_is_small(epsilon, text):
    assert Row(Bound((SamplingRule.TWO_STAGE,), "PLD", epsilon), 1, decides=True).shown == text


def test_what_an_address_leaves_out_has_the_values_of_the_form(client):
    html = client.get(PATH, {"noise_multiplier": "2"}).text
    assert "This field is required" not in html
    assert "ε compared with the budget of 1" in html
    assert "<table" not in client.get(PATH, {"from": "mail"}).text


def test_the_verdict_follows_the_budget_with_the_margin(client):
    over, within = ask(client, budget=1), ask(client, budget=8)
    assert over.index("over</span>") < over.index("within</span>")
    assert "over</span>" not in within
    assert "6.0907 left" in within


def test_the_noise_for_a_budget_keeps_to_it(client):
    html = ask(client, find="noise", budget=4)
    assert "Noise for 30 rounds" in html
    sigma = shown(html)[0]
    assert sigma == pytest.approx(0.838, abs=2e-3)
    changed = SCENARIO.with_setting("noise_multiplier", sigma)
    assert 3.99 < pld.epsilon(changed.releases()[SamplingRule.TWO_STAGE], 1e-5) <= 4


def test_noise_that_is_sought_makes_the_given_one_irrelevant(client, computed):
    assert shown(ask(client, find="noise", noise_multiplier=2)) == shown(
        ask(client, find="noise", noise_multiplier=3)
    )
    assert len(computed) == 1


def test_an_address_that_is_shared_shows_the_same_page(client):
    address = f"{PATH}?{urlencode(WINNER)}"
    mine, yours = client.get(address), Client().get(address)
    assert mine.content == yours.content


def test_the_address_is_there_to_be_copied(client):
    address = f"{PATH}?{urlencode(WINNER)}"
    html = client.get(address).content.decode()
    assert f"data-copy>{settings.SITE_URL}{address.replace('&', '&amp;')}</code>" in html
    assert "data-copy" not in client.get(PATH).content.decode()


def test_the_second_to_ask_the_same_waits_for_no_computing(client, computed):
    first, second = ask(client), ask(client)
    assert first == second
    assert len(computed) == 1


def test_a_budget_is_no_other_question_where_the_noise_is_given(client, computed):
    ask(client, budget=1)
    ask(client, budget=8)
    assert len(computed) == 1


@pytest.mark.parametrize("sampling", ["two_stages", "one_stage", "fixed_size", "random_allocation", "full"])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_every_kind_of_release_has_an_epsilon_or_a_reason(client, sampling, adjacency):
    html = ask(client, sampling=sampling, adjacency=adjacency)
    assert shown(html) or "No privacy bound can be computed" in html


def test_classical_bounds_stand_beside_where_they_apply(client):
    assert "classical, basic composition" in ask(client, sampling="full", noise_multiplier=100)
    assert "classical" not in ask(client)


def test_the_noise_that_is_left_depends_on_who_draws_it_and_who_looks(client):
    html = ask(client, placement="client_share", secure_aggregation="none", noise_multiplier=2)
    assert "<strong>0.632456</strong>" in html  # 2/√10


def test_the_noise_of_a_trusted_server_is_the_same_whoever_sees_the_updates(client):
    assert shown(ask(client, placement="server", secure_aggregation="none")) == shown(ask(client))


def test_a_scenario_that_cannot_be_accounted_is_rejected_with_the_reason(client):
    html = ask(client, placement="client_share", secure_aggregation="none", noise_multiplier=0.2)
    assert "No privacy bound can be computed for these settings" in html
    assert "effective noise multiplier" in html


def test_a_fixed_number_of_clients_is_a_whole_one(client):
    assert "must be a whole number of clients" in ask(client, sampling="fixed_size", client_rate="0.25")


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds": 10**9},
        {"rounds": "1e3"},
        {"rounds": "-1"},
        {"noise_multiplier": "nan"},
        {"noise_multiplier": "inf"},
        {"noise_multiplier": "1e308"},
        {"noise_multiplier": "0.01"},
        {"client_rate": "0"},
        {"provider_rate": "1.1"},
        {"delta": "0.5"},
        {"delta": "1e-300"},
        {"budget": "0"},
        {"clients": 10**30},
        {"sampling": "two_stage_poisson' or 1=1"},
        {"placement": "<script>alert(1)</script>"},
        {"find": "x" * 50_000},
        {"clients": "9" * 50_000},
        {"adjacency": ""},
    ],
    ids=lambda changes: f"{next(iter(changes))}={str(next(iter(changes.values())))[:12]!r}",
)
def test_bad_values_are_marked_in_the_form_and_nothing_is_computed(client, computed, changes):
    html = ask(client, **changes)
    assert "Please correct:" in html
    assert 'class="errorlist"' in html
    assert "<script>alert" not in html
    assert not computed


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds": 10_000, "noise_multiplier": 0.1, "client_rate": 1e-4, "provider_rate": 1e-4},
        {"rounds": 10_000, "noise_multiplier": 0.1},
        {"rounds": 1, "noise_multiplier": 1e4, "delta": 1e-2},
        {"find": "noise", "budget": 1e-3, "rounds": 10_000, "delta": 1e-12},
        {"find": "noise", "budget": 1e3},
        {"find": "noise", "sampling": "full", "placement": "client_share", "secure_aggregation": "none",
         "clients": 10_000, "budget": 1e-3, "rounds": 10_000},
        {"colluding_clients": 10_000},
        {"placement": "client_share", "clients": 10_000, "secure_aggregation": "none"},
        {"delta": 1e-12, "noise_multiplier": 0.1, "sampling": "full", "rounds": 10_000},
    ],
    ids=str,
)  # fmt: skip
def test_the_corners_of_what_is_allowed_are_answered(client, changes):
    html = ask(client, **changes)
    assert "Please correct:" not in html
    assert not any(map(math.isnan, shown(html)))
    assert shown(html) or "No privacy bound can be computed" in html


def test_what_an_attack_can_learn_is_said_in_words_and_drawn(client):
    html = ask(client, sampling="full", rounds=1, noise_multiplier=1)
    # Φ(1/2), and Φ(Φ⁻¹(α) + 1) at α = 0.1, 0.01 and 0.001.
    assert "is right at most <strong>69.2%</strong> of the time" in html
    assert all(f"at most {share}%" in html for share in ("39", "9.3", "1.9"))
    assert "of training providers can be identified" in html
    assert "μ = 1.000" in html
    assert "true positive rate vs. false positive rate" in html


def test_computing_stops_adding_points_when_its_time_is_over(client, monkeypatch):
    monkeypatch.setattr(answers, "SECONDS", 0)
    html = ask(client)
    assert shown(html)[0] == pytest.approx(1.909, abs=1e-3)
    # The trade-off's two remain, once in each of its drawings.
    assert html.count("<polyline") == 2 * 2


def test_an_address_that_asks_too_often_is_slowed_down_kindly(client, monkeypatch):
    monkeypatch.setattr(views, "ANSWERS", Limit("calculator", 2))
    monkeypatch.setattr("docvqa_site.limits.time.time", lambda: 1e9)
    for rounds in (1, 2):
        ask(client, rounds=rounds)
    rejected = client.get(PATH, WINNER | {"rounds": 3})
    assert rejected.status_code == 429
    assert "Wait a moment" in rejected.content.decode()
    assert 'name="rounds" value="3"' in rejected.content.decode()
    assert ask(client, rounds=2), "what was computed before is still there"
    assert client.get(PATH, WINNER | {"rounds": 3}, REMOTE_ADDR="127.0.0.2").status_code == 200
    monkeypatch.setattr("docvqa_site.limits.time.time", lambda: 1e9 + views.ANSWERS.window_s)
    ask(client, rounds=3)


def test_addresses_of_one_ipv6_network_count_as_one(client, monkeypatch):
    monkeypatch.setattr(views, "ANSWERS", Limit("calculator", 1))
    monkeypatch.setattr("docvqa_site.limits.time.time", lambda: 2e9)
    assert client.get(PATH, WINNER | {"rounds": 1}, REMOTE_ADDR="2001:db8::1").status_code == 200
    assert client.get(PATH, WINNER | {"rounds": 2}, REMOTE_ADDR="2001:db8::2").status_code == 429


@pytest.mark.parametrize("query", ["", f"?{urlencode(WINNER)}", f"?{urlencode(WINNER | {'rounds': 'x'})}"])
def test_the_page_keeps_the_rules_of_all_pages(client, query):
    check(client, PATH + query)


def test_the_plots_say_in_words_and_numbers_what_they_draw(client, monkeypatch):
    monkeypatch.setattr(curves, "HALVINGS", HALVINGS)
    html = ask(client)
    assert html.count('role="img"') == html.count("<desc") == 2 * html.count("<details>") == 2 * 3
    assert html.count("<polyline") == 2 * 6
    # And two in keys.
    assert html.count("<circle") == 2 * 3 + 2


def test_the_site_starts_without_loading_the_accountants() -> None:
    code = (
        "import sys, django; django.setup(); import docvqa_site.urls; from django.urls import reverse; "
        "reverse('calculator:calculator'); sys.exit(bool({'dp_accounting', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_it_only_answers_questions(client):
    assert client.post(PATH, WINNER).status_code == 405


def test_no_finite_epsilon_is_said_so_and_is_over_every_budget(client):
    html = ask(client, sampling="full", noise_multiplier=0.1, rounds=10_000, delta=1e-12)
    official = html.partition("PLD")[2].partition("</tr>")[0]
    assert "none finite" in official
    assert "over</span>" in official


@pytest.mark.parametrize("sampling", ["two_stages", "full"])
def test_the_noise_that_is_found_is_the_library_s(client, sampling):
    mechanism = (
        SCENARIO.mechanism
        if sampling == "two_stages"
        else Mechanism(sampling=Full(), noise=Noise(multiplier=1.0), clients=10)
    )
    scenario = Scenario(mechanism, rounds=30)
    for rule in SamplingRule:
        found = NoiseSearch(scenario, rule, 2.0, math.inf).smallest()
        expected = noise_multiplier_for(mechanism, epsilon=2.0, delta=1e-5, rounds=30, rule=rule)
        assert found == pytest.approx(expected, rel=1e-4)
        assert pld.epsilon(scenario.with_setting("noise_multiplier", found).releases()[rule], 1e-5) <= 2


def test_a_search_that_takes_too_long_ends_and_leads_to_the_command(client, monkeypatch):
    monkeypatch.setattr(answers, "SEARCH_SECONDS", 0)
    assert "pfl privacy noise" in ask(client, find="noise")
