"""`pfl describe`: what it drafts from run folders, and that a draft with gaps goes no further."""

import re
from pathlib import Path
from shutil import copytree

import yaml

from docvqa_site.challenge.models import Track
from docvqa_site.teams.models import Team
from starter_kit.reporting.kit_proofs import kit_proof
from starter_kit.runs.folder import RunFolder
from tests.docvqa_site.factories import make_token
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import QUICK, failing, passing, pfl, run_pfl

GAP = re.compile(r"\[FILL IN: [^\]]+\]")
SUBMIT = ("--track", "track-2", "--title", "x", "--site", "http://127.0.0.1:1", "--token", "pfl_x")


def fill(file: Path) -> None:
    """Answer every question of a draft."""
    file.write_text(GAP.sub("Only made-up data.", file.read_text()))


def with_settings(run: Path, copy: Path, **changes: object) -> Path:
    """A copy of a run whose settings file states something else."""
    file = copytree(run, copy) / "settings.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changes, sort_keys=False))
    return copy


def test_the_drafts_state_what_was_run_and_continue_with_the_kits_proof(run: Path, tmp_path: Path) -> None:
    printed = passing("describe", run, "--out", tmp_path)
    proof, method = (tmp_path / "proof.md").read_text(), (tmp_path / "method.md").read_text()
    record = RunFolder(run).record(max_rounds=10)
    for line in (
        f"| noise multiplier σ | {record.run.noise.multiplier:.7g} |",
        f"| clip norm S | {record.run.clip_norm:.7g} |",
        "| sampling | poisson, client rate 1, provider rate 0.3 |",
        "| rounds T | 1 |",
        "| δ | 1e-05 |",
    ):
        assert line in proof
    kit = kit_proof("fl-provider-dp")
    assert kit is not None
    claim, _, sections = kit.text.partition("\n## ")
    assert claim in proof
    assert proof.endswith(f"## {sections}\n")
    assert proof.index("## Runs") < proof.index("## Unit")
    assert "the hash of the code in the training records is that of this version" in proof
    # What the site compares with its own kit.
    assert proof.startswith(f"---\nmethod: fl-provider-dp\ncommit: {kit.commit}\ncovers:\n")
    assert all(f"  {path}: {sha256}\n" in proof for path, sha256 in kit.covers.items())
    assert "the starter kit's method `fl-provider-dp`: Federated learning with provider-level" in method
    assert "| `local.max_steps` | `1` |" in method
    assert "| setting | value |" in method
    assert "| private runs before this one, as stated in `tuning.private_runs` | 0 |" in proof
    assert "Earlier private runs" not in proof
    assert "**[" not in proof + method  # or the answer would be bold
    lines = [str(number) for number, line in enumerate(proof.splitlines(), 1) if "[FILL IN:" in line]
    assert f"--track {record.run.track} --title TITLE" in printed.replace("\n", " ")
    assert (
        f"Created {tmp_path / 'proof.md'}: fill in {'lines' if lines[1:] else 'line'} {', '.join(lines)}\n"
        in printed
    )
    assert f"--description @{tmp_path / 'method.md'} --proof {tmp_path / 'proof.md'}" in printed.replace(
        "\n", " "
    )


def test_a_draft_with_gaps_is_neither_passed_nor_submitted(run: Path, base: Path, tmp_path: Path) -> None:
    passing("describe", run, "--out", tmp_path)
    proof, method = tmp_path / "proof.md", tmp_path / "method.md"
    drafts = ("--proof", proof, "--description", f"@{method}")
    for command in (
        ("check", run, "--base", base, "--track", "track-2", "--clients", 3),
        ("submit", run, *SUBMIT),
    ):
        rejected = failing(*command, *drafts).replace("\n", "")
        assert "E_SUBMISSION_INCOMPLETE" in rejected
        for file in (proof, method):
            (number, *_) = [
                n for n, line in enumerate(file.read_text().splitlines(), 1) if "[FILL IN:" in line
            ]
            assert f"{file}, line {number}" in rejected
    fill(proof)
    fill(method)
    assert "drafts: passed" in passing(
        "check", run, "--base", base, "--track", "track-2", "--clients", 3, *drafts
    )
    assert "E_SITE_UNREACHABLE" in failing("submit", run, *SUBMIT, *drafts)


def test_several_runs_are_described_together(run: Path, tmp_path: Path) -> None:
    second = copytree(run, tmp_path / "second")
    passing("describe", run, second, "--out", tmp_path)
    proof = (tmp_path / "proof.md").read_text()
    assert f"| `{run.name}` | `second` |" in proof
    assert "the 2 runs are together (" in proof
    assert ", 2e-05)-differentially private. [FILL IN: whether a run used anything of another one" in proof


def test_earlier_private_runs_that_the_site_knows_of_leave_a_gap(
    run: Path, base: Path, team: Team, site: LiveSite, token: str, tmp_path: Path
) -> None:
    make_token(team, Track.objects.get(slug="track-2"), record_sha256="5" * 64)
    access = {"PFL_SITE": site.url, "PFL_TOKEN": token}
    run_pfl("describe", run, "--out", tmp_path, environment=access)
    proof = (tmp_path / "proof.md").read_text()
    assert (
        f"more training records of the team than these runs state: 1 before `{run.name}`. [FILL IN:" in proof
    )
    checked = run_pfl("check", run, "--base", base, "--track", "track-2", environment=access)
    assert "The site has 1 earlier training record of your team in track-2" in checked.stdout


def test_without_the_site_the_stated_number_of_earlier_runs_is_to_be_confirmed(
    run: Path, tmp_path: Path
) -> None:
    assert "Correct it if your team had more." in pfl("describe", run, "--out", tmp_path).stderr


def test_a_config_that_is_not_named_after_its_method_is_named(run: Path, tmp_path: Path) -> None:
    lora = with_settings(run, tmp_path / "lora", experiment="dp-lora")
    passing("describe", lora, "--out", tmp_path)
    method = (tmp_path / "method.md").read_text()
    assert (
        "the starter kit's config `dp-lora` of the method `fl-provider-dp`: The winner of track 2" in method
    )
    assert "baseline of track 2" not in method


def test_a_description_that_is_the_name_of_a_file_is_no_text(run: Path, base: Path, tmp_path: Path) -> None:
    (file := tmp_path / "method.md").write_text("It adds noise.")
    for command in (("check", run, "--base", base), ("submit", run, *SUBMIT)):
        assert f"@{file}" in failing(*command, "--description", file).replace("\n", "")


def test_settings_that_other_code_trained_with_leave_a_gap(run: Path, tmp_path: Path) -> None:
    other = with_settings(run, tmp_path / "other", dropout=True)
    passing("describe", other, "--out", tmp_path)
    assert "[FILL IN: which code trained the runs" in (tmp_path / "proof.md").read_text()


def test_the_proof_of_an_own_method_continues_with_the_outline(run: Path, tmp_path: Path) -> None:
    own = with_settings(run, tmp_path / "own", method="clever_idea.py")
    passing("describe", own, "--out", tmp_path)
    proof = (tmp_path / "proof.md").read_text()
    assert "whether it holds for clever_idea.py" in proof
    assert "*Whose data does it protect?*" in proof
    assert "Trained with our own method, `clever_idea.py`." in (tmp_path / "method.md").read_text()


def test_runs_of_different_methods_have_no_draft_in_common(run: Path, tmp_path: Path) -> None:
    other = with_settings(run, tmp_path / "other", method="dp-clgecl")
    assert "dp-clgecl, fl-provider-dp" in failing("describe", run, other, "--out", tmp_path / "drafts")
    assert not (tmp_path / "drafts").exists()


def test_a_run_without_privacy_needs_no_proof(base: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    pfl("train", "fedavg", "--data", data, "--base", base, "--out", out, *QUICK)
    printed = passing("describe", out, "--out", tmp_path)
    assert "--proof" not in printed
    assert not (tmp_path / "proof.md").exists()
    assert "| `rounds` | `1` |" in (tmp_path / "method.md").read_text()
