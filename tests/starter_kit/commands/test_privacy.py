"""`pfl privacy`: the numbers of the library, from options and from records, and the checks in words."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from evaluator.accounting import pld
from evaluator.mechanisms.events import PoissonGaussian, TwoStage
from evaluator.records.check_table import CHECKS, RECORD_CHECKS
from starter_kit.commands.main import app
from starter_kit.published import Source, published
from starter_kit.reporting.rounding import rounded_up
from tests.starter_kit.training_runs import trained

WINNER = ["--client-rate", "0.2", "--provider-rate", "0.1125", "--noise-multiplier", "1.21", "--rounds", "30"]
KIT = ["--client-rate", "0.2", "--provider-rate", "0.125", "--rounds", "5"]


def run_privacy(*arguments: str | Path, status: int = 0, columns: int = 120) -> str:
    """What the command prints, to standard error where it is rejected."""
    result = CliRunner().invoke(app, ["privacy", *map(str, arguments)], env={"COLUMNS": str(columns)})
    assert result.exit_code == status, result.output
    return result.stderr if status else result.stdout


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory, base: Path, data: Path) -> Path:
    return trained("fl-provider-dp", base, data, tmp_path_factory.mktemp("privacy") / "run").path


def test_epsilon_of_two_stages_depends_on_the_rule() -> None:
    assert float(run_privacy("epsilon", *WINNER)) == pytest.approx(1.909, abs=1e-3)
    product = run_privacy("epsilon", *WINNER, "--sampling-rule", "product")
    assert float(product) == pytest.approx(0.665, abs=1e-3)


def test_epsilon_of_one_stage_is_the_official_one() -> None:
    events = [PoissonGaussian(sampling_rate=0.1, effective_noise_multiplier=1, rounds=20)]
    options = ["--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "20"]
    assert run_privacy("epsilon", *options).strip() == rounded_up(pld.epsilon(events, 1e-5), 6)


def test_noise_and_epsilon_are_inverse() -> None:
    sigma = float(run_privacy("noise", "1", *KIT))
    assert sigma == pytest.approx(1.407, abs=1e-3)
    inner = PoissonGaussian(sampling_rate=0.125, effective_noise_multiplier=sigma)
    assert 0.999 < pld.epsilon([TwoStage(client_rate=0.2, within=inner, rounds=5)], 1e-5) <= 1


def test_random_allocation_is_accounted_by_its_cycles() -> None:
    options = ["--rounds-per-cycle", "4", "--rounds", "16"]
    sigma = float(run_privacy("noise", "8", *options))
    assert sigma == pytest.approx(0.830, abs=1e-3)
    assert 7.99 < float(run_privacy("epsilon", *options, "--noise-multiplier", str(sigma))) <= 8
    assert "no Rényi bound" in run_privacy("compare", *options, "--noise-multiplier", "1")


def test_noise_by_rdp_is_that_of_the_published_script() -> None:
    """The competition's script searched for it on a coarse grid, under the product rule."""
    table = published().table(Source.KIT, "configs/models/VT5.yml")
    for row in table.rows:
        target, searched = (table.number(row, name).value for name in ("epsilon", "noise_multiplier"))
        options = [*KIT, "--sampling-rule", "product", "--accountant", "rdp"]
        assert float(run_privacy("noise", f"{target:g}", *options)) == pytest.approx(searched, rel=0.005)


def test_a_client_is_a_unit_whose_providers_all_take_part() -> None:
    """The config of client-dp, against those who read the log and, by the product rule, those who don't."""
    options = ["--client-rate", "0.5", "--provider-rate", "1", "--noise-multiplier", "2", "--rounds", "18"]
    assert float(run_privacy("epsilon", *options)) == pytest.approx(7.919, abs=1e-3)
    hidden = run_privacy("epsilon", *options, "--sampling-rule", "product")
    assert float(hidden) == pytest.approx(5.38, abs=0.005)


def test_laplace_noise_protects_a_question_by_its_scale() -> None:
    # One round of ε̄ = 1/4, and 10 of them at most by adding up.
    assert float(run_privacy("epsilon", "--laplace-scale", "4")) == pytest.approx(0.25, abs=1e-3)
    many = float(run_privacy("epsilon", "--laplace-scale", "4", "--rounds", "10"))
    assert 0.25 < many <= 2.5
    assert f"{many:.6f}" in run_privacy("compare", "--laplace-scale", "4", "--rounds", "10")


def test_comparing_lists_every_rule_and_accountant() -> None:
    table = run_privacy("compare", *WINNER)
    rows = [line for line in table.splitlines() if "LD" in line or "RDP" in line]
    assert len(rows) == 4
    for known in ("1.909", "2.342", "0.664", "0.997"):
        assert known in table


def test_published_runs_are_listed_with_their_claims_and_ours_at_the_width_of_a_terminal() -> None:
    table = run_privacy("published", columns=80)
    rows = [[cell.strip() for cell in line.split("│")[2:-1]] for line in table.splitlines() if "│" in line]
    assert ["0.7715", "8", "7.985", "9.206", "14.461", "16.283"] in rows
    assert ["1.145", "1", "0.527", "1.006", "1.528", "1.985"] in rows
    assert "…" not in table


def test_what_an_attack_can_learn_is_listed() -> None:
    listed = run_privacy("membership", "--noise-multiplier", "1")
    # Φ(1/2), and Φ(Φ⁻¹(0.01) + 1).
    assert re.search(r"balanced accuracy.*69\.2%", listed)
    assert re.search(r"at 1% false positives.*9\.3%", listed)
    assert re.search(r"Gaussian.*1\.000", listed)


def test_the_best_of_several_two_stage_runs_is_bounded() -> None:
    listed = run_privacy("compare", *WINNER, "--tuning-runs", "10")
    assert len(re.findall(r"best of about 10 runs\D+\d", listed)) == 2


def test_classical_bounds_stand_where_they_apply() -> None:
    assert "classical, basic composition" in run_privacy("compare", "--noise-multiplier", "20")
    assert "classical" not in run_privacy("compare", *WINNER)


def test_a_record_is_accounted_round_by_round(run_folder: Path) -> None:
    record = run_folder / "training_record.jsonl"
    epsilon = float(run_privacy("epsilon", record))
    assert 0 < epsilon <= 8
    assert f"{epsilon:.6f}" in run_privacy("compare", record)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["epsilon"], "--noise-multiplier"),
        (["epsilon", "--noise-multiplier", "0.01"], "effective noise multiplier"),
        (["epsilon", "--noise-multiplier", "nan"], "--noise-multiplier"),
        (["epsilon", "--noise-multiplier", "1", "--sampling-rate", "2"], "--sampling-rate"),
        (["epsilon", "--noise-multiplier", "1", "--sampling-rate", "1", "--client-rate", "1"], "both"),
        (["epsilon", "--noise-multiplier", "1", "--sampling-rate", "1", "--rounds-per-cycle", "4"], "both"),
        (["epsilon", "--noise-multiplier", "1", "--rounds-per-cycle", "1"], "--rounds-per-cycle"),
        (["epsilon", "--noise-multiplier", "1", "--delta", "2"], "--delta"),
        (["epsilon", "--noise-multiplier", "1", "--rounds", "0"], "rounds"),
        (["compare", "--noise-multiplier", "1", "--rounds", str(10**9)], "rounds"),
        (["epsilon", "--laplace-scale", "0"], "--laplace-scale"),
        (["epsilon", "--laplace-scale", "4", "--noise-multiplier", "1"], "--laplace-scale"),
        (["noise", "1e-9", "--rounds", "1000000", "--accountant", "rdp"], "no noise multiplier"),
        (["noise", "0"], "positive"),
        (["noise", "nan"], "positive"),
        (["noise", "1e-9", "--rounds", "1000000"], "no noise multiplier"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_cannot_be_accounted_is_reported_with_a_code(arguments: list[str], word: str) -> None:
    rejected = run_privacy(*arguments, status=2)
    assert "E_CONFIGURATION" in rejected
    assert word in rejected


def statuses(explained: str) -> dict[str, str]:
    """Of each check, its status."""
    heads = [line for line in explained.splitlines() if re.match(r"(record|team|log)\.", line)]
    return {head.partition(",")[0]: head.rpartition(": ")[2] for head in heads}


def test_a_run_is_explained_with_what_lies_beside_its_record(run_folder: Path, base: Path) -> None:
    record = run_folder / "training_record.jsonl"
    explained = run_privacy("explain", record, "--base", base, "--clients", "3")
    found = statuses(explained)
    assert list(found) == list(CHECKS)
    assert {name for name, status in found.items() if status == "not made"} == {
        "team.declared_runs",
        "team.drawn_indexes",
        "team.joint_epsilon",
    }
    assert not {"failed", "flagged"} & set(found.values())
    assert all(text.meaning in explained and text.limit in explained for text in CHECKS.values())


def test_an_explanation_begins_with_a_verdict(run_folder: Path, base: Path) -> None:
    arguments: list[str | Path] = [
        "explain",
        run_folder / "training_record.jsonl",
        "--base",
        base,
        "--clients",
        "3",
    ]
    claim, checks, trust = run_privacy(*arguments).splitlines()[:3]
    assert re.match(
        r"The record claims ε = [\d.]+ for one provider; recomputed, ε = \d\.\d{4} at δ = 1e-05", claim
    )
    assert re.match(
        r"Checks: \d+ passed;.* 3 not made \(team\.declared_runs, team\.drawn_indexes, team\.joint_epsilon\)\.",
        checks,
    )
    assert "Nothing here shows that this training took place" in trust


def test_what_needs_reading_is_shown_alone_on_request(run_folder: Path, base: Path, tmp_path: Path) -> None:
    arguments: list[str | Path] = ["--base", base, "--clients", "3", "--flagged"]
    shown = statuses(run_privacy("explain", run_folder / "training_record.jsonl", *arguments))
    assert {"team.declared_runs", "team.joint_epsilon"} <= shown.keys()
    assert "passed" not in shown.values()
    (tmp_path / "other.csv").write_text("federated_round,sender,receiver,amount_of_bytes\n1,-1,0,10\n")
    log: list[str | Path] = ["--log", tmp_path / "other.csv"]
    lines = run_privacy("explain", run_folder / "training_record.jsonl", *arguments, *log).splitlines()
    assert "1 failed (record.bytes)" in lines[1]


def test_checks_whose_files_are_not_given_are_listed_as_not_made(run_folder: Path, tmp_path: Path) -> None:
    alone = shutil.copy(run_folder / "training_record.jsonl", tmp_path)
    explained = run_privacy("explain", alone, "--clients", "3")
    found = statuses(explained)
    assert list(found) == list(CHECKS)
    of_the_record_alone = {"record.budget", *(one.check.id for one in RECORD_CHECKS if not one.needs)}
    assert {name for name, status in found.items() if status != "not made"} == of_the_record_alone
    assert "it requires --base and --checkpoint" in explained


def test_a_file_of_another_run_fails_its_checks_and_leaves_the_others(run_folder: Path, base: Path) -> None:
    record = run_folder / "training_record.jsonl"
    other = base / "model.safetensors"
    found = statuses(run_privacy("explain", record, "--base", base, "--clients", "3", "--checkpoint", other))
    assert found["record.models"] == found["record.checkpoint"] == "failed"
    assert found["record.rounds"] == found["record.bytes"] == found["record.annex"] == "passed"


def test_a_file_that_cannot_be_read_is_why_its_checks_are_not_made(run_folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("round,from,to,bytes\n")
    record = run_folder / "training_record.jsonl"
    explained = run_privacy("explain", record, "--clients", "3", "--log", log)
    assert statuses(explained)["record.bytes"] == "not made"
    assert "E_LOG_COLUMNS" in explained


def test_a_record_that_was_changed_is_rejected(run_folder: Path, tmp_path: Path) -> None:
    changed = tmp_path / "record.jsonl"
    text = (run_folder / "training_record.jsonl").read_text()
    changed.write_text(text.replace('"rounds":2', '"rounds":3', 1))
    assert "E_RECORD_CHAIN" in run_privacy("explain", changed, status=2)


def test_a_folder_without_base_weights_is_reported_with_a_code(run_folder: Path, tmp_path: Path) -> None:
    printed = run_privacy("explain", run_folder / "training_record.jsonl", "--base", tmp_path, status=2)
    assert "E_ARTIFACT_MISSING" in printed
    assert "the base weights" in printed
