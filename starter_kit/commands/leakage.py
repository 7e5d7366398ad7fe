"""`pfl leakage`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.options import BaseFolder, DataFolder, require_number, wrong_option
from starter_kit.console import console, print_lines, progress

if TYPE_CHECKING:
    from evaluator.auditing.audit import AuditResult
    from evaluator.leakage.features import ProviderFeatures
    from evaluator.leakage.results import AttackResult, LeakageResult, Measure

SHOWN = 5
SHOWN_MEASURES = ("balanced_accuracy", "auc", "tpr_at_1_percent_fpr", "tpr_at_10_percent_fpr")


def leakage(
    run: Annotated[
        Path, typer.Argument(help="The folder that `pfl train` wrote, or a safetensors file.", metavar="RUN")
    ],
    base: BaseFolder,
    data: DataFolder,
    split: Annotated[str, typer.Option(help="Split of the data folder to use.")] = "valid",
    reference: Annotated[
        list[Path] | None,
        typer.Option(help="A run for calibration, trained like RUN but on other providers; can be repeated."),
    ] = None,
    reference_data: Annotated[
        list[Path] | None, typer.Option(help="The data folder of each reference, in the same order.")
    ] = None,
    escrow: Annotated[
        Path | None, typer.Option(help="Folder that `pfl data canaries` wrote: audit RUN with it.")
    ] = None,
    claimed_epsilon: Annotated[
        float | None,
        typer.Option(min=0, help="The claimed ε to audit; by default, the claim in RUN's record."),
    ] = None,
    delta: Annotated[float, typer.Option(help="δ of --claimed-epsilon.")] = 1e-5,
    memorization: Annotated[
        bool, typer.Option(help="Also test for memorized answers; this doubles the time.")
    ] = True,
    search: Annotated[
        bool, typer.Option("--search", help="Search for the best settings of the forests (slow).")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; RUN by default.")] = None,
) -> None:
    """Attack a checkpoint: which providers was it trained on, and which hidden answers does it reveal?

    Members are the providers that dataset.json lists with a client; the split needs pages of others as well. Everything
    stays on this machine: table, plots and examples are written to RUN/leakage.
    """
    from evaluator.docvqa.dataset import Dataset
    from evaluator.leakage.assessment import Options
    from evaluator.leakage.models import assess_checkpoint
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.reporting.leakage import write_leakage
    from starter_kit.runs.folder import RunFolder

    if claimed_epsilon != 0:
        require_number("--claimed-epsilon", claimed_epsilon)
    require_number("--delta", delta, below=1)
    checkpoint = RunFolder(run).file(ArtifactKind.CHECKPOINT) if run.is_dir() else run
    audited = _audit(run, checkpoint, base, escrow, claimed_epsilon, delta) if escrow else None
    references = _references(reference or [], reference_data or [], base, split)
    with progress("questions") as show:
        result = assess_checkpoint(
            checkpoint,
            base,
            Dataset(data, split),
            options=Options(memorization=memorization, search=search),
            references=references,
            on_progress=show,
        )
    target = out or (run if run.is_dir() else None)
    written = write_leakage(target, result) if target else None
    _print(result)
    if audited:
        _print_audit(audited)
    if written:
        print_lines(f"{written}: leakage.json, memorized.jsonl, roc.png, providers.png")


def _references(runs: list[Path], folders: list[Path], base: Path, split: str) -> "list[ProviderFeatures]":
    from evaluator.docvqa.dataset import Dataset
    from evaluator.leakage.models import reference_features
    from evaluator.messages.jobs import ArtifactKind
    from starter_kit.runs.folder import RunFolder

    if len(runs) != len(folders):
        raise wrong_option(
            "--reference-data", f"a data folder for each of the {len(runs)} references", len(folders)
        )
    return [
        reference_features(RunFolder(path).file(ArtifactKind.CHECKPOINT), base, Dataset(folder, split))
        for path, folder in zip(runs, folders, strict=True)
    ]


def _audit(
    run: Path, checkpoint: Path, base: Path, escrow: Path, claimed_epsilon: float | None, delta: float
) -> "AuditResult":
    from evaluator.auditing.audit import Claim
    from starter_kit.evaluation.leakage import audit_run, claim_of

    claim = Claim(claimed_epsilon, delta) if claimed_epsilon is not None else claim_of(run)
    if claim is None:
        raise wrong_option(
            "--claimed-epsilon", "the claim to audit, or a run with a training record", "neither"
        )
    with progress("canaries' questions") as show:
        return audit_run(checkpoint, base, escrow, claim, show)


def _print(result: "LeakageResult") -> None:
    members = sum(provider.is_member for provider in result.providers)
    print_lines(
        f"{result.questions:,} questions about {members:,} members and {len(result.providers) - members:,} "
        "nonmembers; 95% intervals are over providers."
    )
    console.print(_attacks(result))
    for left_out in result.left_out:
        print_lines(f"Not made, {left_out}.")
    if result.without_loss:
        print_lines(f"Questions without a finite loss: {result.without_loss:,}; they count as the worst.")
    if result.recalls:
        console.print(_recalls(result))
        print_lines(
            f"Providers of which a hidden answer was given exactly: {result.recalled_members} members, "
            f"{result.recalled_nonmembers} nonmembers (Fisher's exact test: p = {result.recall_p_value:.2g})."
        )
    for example in result.examples[:SHOWN]:
        kind = "member" if example.is_member else "nonmember"
        print_lines(
            f"  {example.provider} ({kind}), without the {example.hiding}: {example.question} "
            f"{example.answer} ({example.confidence:.2f})"
        )


def _attacks(result: "LeakageResult") -> Table:
    table = Table(
        "attack",
        *(
            Column(name, justify="right")
            for name in ("questions", "accuracy", "balanced", "AUC", "TPR, 1%", "TPR, 10%", "AUC − base")
        ),
        title="Which providers was it trained on?",
    )
    for attack in result.attacks:
        measures = {name.value: measure for name, measure in attack.measures.items()}
        above = measures["auc"].above_base
        difference = "n.s." if above.covers_zero else f"{above.value:+.2f}"
        table.add_row(
            attack.attack,
            f"≥ {attack.target_set}" if attack.target_set else "all",
            _accuracy(attack),
            *(_interval(measures[name]) for name in SHOWN_MEASURES),
            difference,
        )
    return table


def _accuracy(attack: "AttackResult") -> str:
    if attack.accuracy is None:
        return "–"
    return f"{attack.accuracy:.1%} ± {100 * (attack.accuracy_spread or 0):.1f} (chance {attack.chance:.1%})"


def _interval(measure: "Measure") -> str:
    return f"{measure.value:.2f} ({measure.low:.2f}–{measure.high:.2f})"


def _recalls(result: "LeakageResult") -> Table:
    table = Table(
        "hidden",
        "field",
        "of",
        "model",
        *(
            Column(name, justify="right")
            for name in ("documents", "accuracy", "ANLS", "confident", "accuracy", "ANLS")
        ),
        title="Which hidden answers does it know?",
    )
    for found in result.recalls:
        # All fields of both models, and the published test of each field; leakage.json has the rest.
        if found.field != "all" and (found.model, found.hiding) != ("submitted", "evidence"):
            continue
        shares = (found.accuracy, found.anls, found.confident_accuracy, found.confident_anls)
        accuracy, anls, sure_accuracy, sure_anls = (
            "–" if share is None else f"{share:.1%}" for share in shares
        )
        table.add_row(
            found.hiding,
            Text(found.field),
            found.kind,
            found.model,
            f"{found.documents:,}",
            accuracy,
            anls,
            f"{found.confident:,}",
            sure_accuracy,
            sure_anls,
        )
    return table


def _print_audit(found: "AuditResult") -> None:
    print_lines(
        f"Audit with {found.canaries} canaries: {found.right} of {found.guesses} guesses right, so ε is at least "
        f"{found.epsilon_low:.2f} ({found.gaussian_epsilon_low:.2f} for a Gaussian mechanism); {found.in_words}."
    )
    if found.not_a_number:
        print_lines(f"Canaries without a finite score: {found.not_a_number}; they count as the lowest.")
