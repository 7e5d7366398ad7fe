"""`pfl leakage`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Column, Table
from rich.text import Text

from starter_kit.commands.options import BaseFolder, DataFolder, require_number, wrong_option
from starter_kit.console import console, print_lines, progress

if TYPE_CHECKING:
    from evaluator.auditing.audit import AuditResult
    from evaluator.leakage.attacks import FeatureSet
    from evaluator.leakage.features import ProviderFeatures
    from evaluator.leakage.results import LeakageResult, Measure

SHOWN = 5
ALL_FIELDS = "all"
SIDES = {"members": "in", "nonmembers": "out"}
# Of the fields with the most documents; leakage.json has all.
SHOWN_FIELDS = 10
TARGET_SETS = (0, 5, 10)  # as in the paper's Table A6


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
        Path | None, typer.Option(help="Folder that `pfl data canaries` wrote, to audit RUN.")
    ] = None,
    claimed_epsilon: Annotated[
        float | None,
        typer.Option(min=0, help="The claimed ε to audit; by default, the claim in RUN's record."),
    ] = None,
    delta: Annotated[float, typer.Option(help="δ of --claimed-epsilon.")] = 1e-5,
    memorization: Annotated[
        bool, typer.Option(help="Also test for memorized answers; this doubles the time.")
    ] = True,
    training_answers: Annotated[
        bool,
        typer.Option(
            "--training-answers",
            help="Also ask for hidden answers that only the train split has: about members, as in the paper's D.1.3.",
        ),
    ] = False,
    absent: Annotated[
        list[str] | None,
        typer.Option(
            help="Also ask for this field, such as tax, where nonmembers' pages don't have it (D.1.4); can be "
            "repeated.",
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option("--search", help="Search for the best settings of the attacks' random forests (slow)."),
    ] = False,
    target_sets: Annotated[
        list[int] | None,
        typer.Option(
            "--s", min=0, help="Attack only providers with at least this many questions; can be repeated."
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="Also attack with these features, such as G1+G4; can be repeated. `all`: as in Table A6."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; RUN by default.")] = None,
) -> None:
    """Attack a checkpoint: which providers was it trained on, and which hidden answers does it reveal?

    Members are the providers that dataset.json assigns to a client. The split must also contain pages of other
    providers. The published attacks are run for s = 0, 5 and 10. Features are ACC (accuracy), G1 (accuracy, NLS), G2
    (loss, confidence), G3 (how much training improved both) and G4 (the memorization test). Everything stays on this
    machine: tables, plots and examples are written to RUN/leakage.
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
    training = Dataset(data, "train") if training_answers or absent else None
    if unknown := set(absent or ()) - {question.key for question in (training.questions if training else ())}:
        raise wrong_option("--absent", "a field that the train split's questions name", min(unknown))
    with progress("questions") as show:
        result = assess_checkpoint(
            checkpoint,
            base,
            Dataset(data, split),
            options=Options(
                memorization=memorization,
                target_sets=target_sets or TARGET_SETS,
                feature_sets=_feature_sets(features or []),
                search=search,
            ),
            references=references,
            training=training,
            reuse=training_answers,
            absent=absent or (),
            on_progress=show,
        )
    target = out or (run if run.is_dir() else None)
    written = write_leakage(target, result) if target else None
    _print(result)
    if audited:
        _print_audit(audited)
    if written:
        print_lines(f"{written}: leakage.json, memorized.jsonl, roc.png, providers.png")


def _feature_sets(options: list[str]) -> "list[FeatureSet]":
    from evaluator.leakage.attacks import ALL_SETS, Features

    found: list[FeatureSet] = []
    for option in options:
        try:
            found += ALL_SETS if option == "all" else [tuple(Features(one) for one in option.split("+"))]
        except ValueError:
            names = ", ".join(Features)
            raise wrong_option("--features", f"some of {names}, joined by +, or all", option) from None
    return found


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
    console.print(_accuracies(result))
    console.print(_rates(result))
    for left_out in result.left_out:
        print_lines(f"Not made, {left_out}.")
    if result.without_loss:
        print_lines(f"Questions without a finite loss: {result.without_loss:,}; they count as the worst.")
    if result.recalls:
        all_fields = {found.field for found in result.recalls} - {ALL_FIELDS}
        fields = _most_frequent(result)
        console.print(_recalls(result, fields, confident=False))
        console.print(_recalls(result, fields, confident=True))
        if len(all_fields) > len(fields):
            print_lines(
                f"leakage.json has {len(all_fields) - len(fields)} more fields, with fewer documents."
            )
        print_lines(
            f"Providers of which a hidden answer was given exactly: {result.recalled_members} members, "
            f"{result.recalled_nonmembers} nonmembers (Fisher's exact test: p = {result.recall_p_value:.2g})."
        )
    if result.disclosed:
        console.print(_disclosed(result))
    for example in result.examples[:SHOWN]:
        kind = "member" if example.is_member else "nonmember"
        print_lines(
            f"  {example.provider} ({kind}), without the {example.hiding}: {example.question} "
            f"{example.answer} ({example.confidence:.2f})"
        )


def _accuracies(result: "LeakageResult") -> Table:
    """The paper's figure of each attack, and how much better than on the base weights it tells providers apart."""
    columns = ("s", "accuracy", "chance", "balanced", "AUC − base")
    table = Table(
        "attack",
        *(Column(name, justify="right") for name in columns),
        title="Which providers was it trained on?",
    )
    for attack in result.attacks:
        measures = {name.value: measure for name, measure in attack.measures.items()}
        above = measures["auc"].above_base
        table.add_row(
            attack.attack,
            str(attack.target_set),
            "–"
            if attack.accuracy is None
            else f"{attack.accuracy:.1%} ± {100 * (attack.accuracy_spread or 0):.1f}",
            f"{attack.chance:.1%}",
            _percent(measures["balanced_accuracy"]),
            "n.s." if above.covers_zero else f"{above.value:+.2f}",
        )
    return table


def _rates(result: "LeakageResult") -> Table:
    """The members that each attack finds, with intervals over providers."""
    columns = ("s", "AUC", "TPR at 1% FPR", "TPR at 10% FPR")
    table = Table(
        "attack", *(Column(name, justify="right") for name in columns), title="How many does it find?"
    )
    for attack in result.attacks:
        measures = {name.value: measure for name, measure in attack.measures.items()}
        auc = measures["auc"]
        table.add_row(
            attack.attack,
            str(attack.target_set),
            f"{auc.value:.2f} ({auc.low:.2f}–{auc.high:.2f})",
            *(_percent(measures[f"tpr_at_{share}_percent_fpr"]) for share in (1, 10)),
        )
    return table


def _percent(measure: "Measure") -> str:
    return f"{measure.value:.0%} ({100 * measure.low:.0f}–{100 * measure.high:.0f})"


def _most_frequent(result: "LeakageResult") -> list[str]:
    """Return the fields with the most documents."""
    documents: dict[str, int] = {}
    for found in result.recalls:
        if found.field != ALL_FIELDS:
            documents[found.field] = max(documents.get(found.field, 0), found.documents)
    return sorted(documents, key=lambda field: -documents[field])[:SHOWN_FIELDS]


def _recalls(result: "LeakageResult", fields: "list[str]", *, confident: bool) -> Table:
    """What each model answers about members and about nonmembers, of all fields and of some.

    For single fields, it is the published test: the submitted model, with the evidence hidden.
    """
    found = {(one.hiding, one.field, one.model, one.kind): one for one in result.recalls}
    kinds = list(dict.fromkeys(one.kind for one in result.recalls))
    rows = list(dict.fromkeys((hiding, field, model) for hiding, field, model, _ in found))
    shown = [row for row in rows if row[1] == ALL_FIELDS]
    shown += [row for row in rows if row[1] in fields and (row[2], row[0]) == ("submitted", "evidence")]
    columns = [f"{name}\n{SIDES.get(kind, kind)}" for name in ("docs", "ACC", "ANLS") for kind in kinds]
    table = Table(
        "hidden",
        "field",
        "model",
        *(Column(name, justify="right") for name in columns),
        title="With a confidence of at least 0.9"
        if confident
        else "Which hidden answers does it know? (in: members, out: nonmembers)",
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
    )
    for hiding, field, model in shown:
        cells = [found.get((hiding, field, model, kind)) for kind in kinds]
        counts = [(one.confident if confident else one.documents) if one else 0 for one in cells]
        shares = [
            getattr(one, f"confident_{name}" if confident else name) if one else None
            for name in ("accuracy", "anls")
            for one in cells
        ]
        numbers = [f"{count:,}" for count in counts]
        numbers += ["–" if share is None else f"{share:.1%}" for share in shares]
        table.add_row(hiding, Text(field), model, *numbers)
    return table


def _disclosed(result: "LeakageResult") -> Table:
    """The most frequent answers about fields that nonmembers' pages don't have, and whose they are in training."""
    columns = ("times", "base", "members", "other field")
    table = Table(
        "field",
        Column("answer", overflow="fold"),
        *(Column(name, justify="right") for name in columns),
        title="What does it answer where nonmembers' pages lack the field?",
        caption="members: whose answer it is in training; other field: it answers another training question",
    )
    for found in result.disclosed:
        table.add_row(
            Text(found.field),
            Text(found.answer),
            f"{found.times:,}",
            f"{found.by_base:,}",
            f"{found.providers:,}",
            "yes" if found.elsewhere else "no",
        )
    return table


def _print_audit(found: "AuditResult") -> None:
    print_lines(
        f"Audit with {found.canaries} canaries: {found.right} of {found.guesses} guesses right, so ε is at least "
        f"{found.epsilon_low:.2f} ({found.gaussian_epsilon_low:.2f} for a Gaussian mechanism); {found.in_words}."
    )
    if found.not_a_number:
        print_lines(f"Canaries without a finite score: {found.not_a_number}; they count as the lowest.")
