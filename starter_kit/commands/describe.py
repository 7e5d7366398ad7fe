"""`pfl describe`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.options import ApiToken, Site, connect_if_known, wrong_option
from starter_kit.console import log, print_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starter_kit.reporting.drafts import DescribedRun, ProvedCode
    from starter_kit.reporting.kit_proofs import KitProof
    from starter_kit.site.client import SiteClient

METHOD, PROOF = "method.md", "proof.md"


def describe(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of one submission.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")] = Path(),
    site: Site = "",
    token: ApiToken = "",
) -> None:
    """Draft the description of a method and, for private runs, the proof of its privacy. Nothing is overwritten.

    method.md and proof.md state what the run folders show, such as clip norm, noise, sampling and ε. The proof
    of one of the kit's methods is the one that comes with the kit. What only your team knows is marked
    [FILL IN: ...]; `pfl check` and `pfl submit` find what you have left. With --site and --token, the proof also has
    a gap for the team's earlier private runs that the site knows of and the records don't state.
    """
    from starter_kit.reporting.drafts import method_draft
    from starter_kit.reporting.files import write_new_files
    from starter_kit.reporting.gaps import gap_problems

    described = [_described(run) for run in runs]
    if len({run.method for run in described}) > 1:
        raise wrong_option(
            "RUNS",
            "runs of one method, as a submission has one description and one proof",
            ", ".join(sorted({run.method for run in described})),
            next_step="Describe the runs of each method on their own, each with its own --out.",
        )
    texts = {METHOD: method_draft(described, *_about(described[0]))}
    if all(run.record for run in described):
        described = _with_earlier_records(described, connect_if_known(site, token))
        texts[PROOF] = _proof(described)
    where = "" if out.name else " in the current folder"
    for path in write_new_files(out, texts):
        lines = [problem.where.rpartition(" ")[2] for problem in gap_problems(path)]
        gaps = f"{'line' if len(lines) == 1 else 'lines'} {', '.join(lines)}"
        print_lines(f"Created {path}{where}: fill in {gaps}")
    proof = ["--proof", str(out / PROOF)] if PROOF in texts else []
    tracks = {run.record.run.track if run.record else "TRACK" for run in described}
    track = tracks.pop() if len(tracks) == 1 else "TRACK"
    command = ["pfl", "submit", *map(str, runs), "--track", track, "--title", "TITLE"]
    print_lines(f"Next: {shlex.join([*command, '--description', f'@{out / METHOD}', *proof])}")


def _described(run: Path) -> "DescribedRun":
    from evaluator.mechanisms.values import MAX_ROUNDS
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.evaluation.steps import require_run
    from starter_kit.reporting.drafts import DescribedRun
    from starter_kit.runs.folder import FILES, SETTINGS, RunFolder
    from starter_kit.settings.files import read_settings_file

    folder = RunFolder(run)
    require_run(folder)
    if not (run / SETTINGS).is_file():
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message="The run has no settings to describe.",
            where=str(run / SETTINGS),
            expected="the settings that `pfl train` wrote",
            found="no such file",
            next_step="Name a run folder that `pfl train` wrote. For other software, write description and proof "
            "yourself.",
        )
    has_record = (run / FILES[ArtifactKind.TRAINING_RECORD]).is_file()
    record = folder.record(max_rounds=MAX_ROUNDS) if has_record else None
    return DescribedRun(run, read_settings_file(run / SETTINGS), record)


def _with_earlier_records(
    runs: "Sequence[DescribedRun]", client: "SiteClient | None"
) -> "list[DescribedRun]":
    """The runs with how many training records the site has of earlier ones, apart from those that are described.

    Without an answer of the site, the number is stated as the settings have it, and a line says so.
    """
    from dataclasses import replace

    from starter_kit.site.earlier_runs import earlier_records_if_known

    own = {run.record.run.run_token for run in runs if run.record and run.record.run.run_token}
    found = [
        replace(
            run,
            earlier_records=earlier_records_if_known(
                client, run.record.run.track, run.record.run.run_token, *own
            ),
        )
        for run in runs
        if run.record and client
    ]
    if not found or any(run.earlier_records is None for run in found):
        log(
            "The proof states the setting tuning.private_runs as the number of earlier private runs, which wasn't "
            "compared with the site (PFL_SITE and PFL_TOKEN). Correct it if your team had more."
        )
    return found or list(runs)


def _about(run: "DescribedRun") -> tuple[str, str]:
    """What the kit says of its own method or config, and the config's name if it isn't the method's; else nothing."""
    from starter_kit.settings.config_files import METHODS, method_names
    from starter_kit.settings.method_list import first_line, kit_configs

    if run.method not in method_names():
        return "", ""
    name = run.settings.get("experiment", run.method)
    if name != run.method:
        for config in kit_configs():
            if (config.name, config.method) == (name, run.method):
                return config.about, config.name
    return first_line(METHODS / f"{run.method.replace('-', '_')}.py"), ""


def _proof(runs: "Sequence[DescribedRun]") -> str:
    from starter_kit.reporting.drafts import own_proof_draft, proof_draft
    from starter_kit.reporting.kit_proofs import kit_proof
    from starter_kit.scaffolding.writing import proof_outline
    from starter_kit.settings.config_files import method_names

    method = runs[0].method
    proof = kit_proof(method) if method in method_names() else None
    if proof is None:
        return own_proof_draft(runs, proof_outline(Path(method).stem))
    return proof_draft(runs, proof, _code_of(runs, proof))


def _code_of(runs: "Sequence[DescribedRun]", proof: "KitProof") -> "ProvedCode":
    """Compare the kit that is installed here with what trained the runs, and with what the proof covers."""
    from evaluator.messages.jobs import evaluator_version
    from starter_kit.reporting.drafts import ProvedCode
    from starter_kit.runs.executed_code import ROOT, code_sha256, file_sha256
    from starter_kit.runs.folder import SETTINGS

    files = {path: file_sha256(ROOT / path) for path in proof.covers if (ROOT / path).is_file()}
    return ProvedCode(
        kit_version=evaluator_version(),
        is_of_runs=all(
            run.record is not None
            and run.record.run.code_sha256
            == code_sha256(more=(run.folder / SETTINGS).read_text(encoding="utf-8"))
            for run in runs
        ),
        files=files,
        changed=[path for path, sha256 in proof.covers.items() if files.get(path) != sha256],
    )
