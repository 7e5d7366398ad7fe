"""Drafts of what a team writes about its runs: the description of the method, and the proof that it is private.

They state what the files of the runs state, and leave gaps for the rest (`starter_kit.reporting.gaps`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from evaluator.records.lines import TrainingRecord
from starter_kit.reporting.gaps import gap
from starter_kit.reporting.kit_proofs import KitProof
from starter_kit.reporting.rounding import epsilon_text

# Settings that don't change what is trained, or that the proof states.
LEFT_OUT = {
    *(
        "checkpoints",
        "compute",
        "device",
        "evaluate_every",
        "evaluate_questions",
        "experiment",
        "method",
        "seed",
    ),
    *("delta", "replayable", "sampling_rule", "target_epsilon", "tuning", "validation_on_private_data"),
}
SHAMPOO = "local.shampoo"


@dataclass(frozen=True)
class DescribedRun:
    """A run as its folder describes it.

    Attributes:
        settings: As `pfl train` wrote them.
        record: None for a run without privacy.
        earlier_records: How many training records the site has of the team's earlier runs; None if it wasn't asked.
    """

    folder: Path
    settings: Mapping[str, Any]
    record: TrainingRecord | None
    earlier_records: int | None = None

    @property
    def method(self) -> str:
        """The name of the method in the settings: one of the kit's, or a file."""
        return str(self.settings.get("method", ""))

    @property
    def has_unstated_runs(self) -> bool:
        """Whether the site knows of more private runs before this one than the record states."""
        stated = self.record.run.tuning.private_runs if self.record else 0
        return self.earlier_records is not None and self.earlier_records > stated

    @property
    def is_own_method(self) -> bool:
        """Whether the method is a file of the team's own."""
        return self.method.endswith(".py")


@dataclass(frozen=True)
class ProvedCode:
    """The code of the runs, compared with the code that the kit's proof of their method covers.

    Attributes:
        kit_version: The version that is installed here.
        is_of_runs: Whether the records state that exactly this code trained the runs.
        files: The files that the proof covers, each with the SHA-256 of what it executes here.
        changed: Those of them that aren't the ones the proof covers, or are missing.
    """

    kit_version: str
    is_of_runs: bool
    files: Mapping[str, str]
    changed: Sequence[str]


def method_draft(runs: Sequence[DescribedRun], about: str, config: str = "") -> str:
    """Return the draft of the method's description, in Markdown.

    Args:
        about: What the kit says of its own method or config; empty for a method of the team's own.
        config: The kit's config of the runs, if it isn't named after the method.
    """
    method = Path(runs[0].method).name
    names = dict.fromkeys(chain.from_iterable(_settings_of(run) for run in runs))
    rows = [[f"`{name}`", *(_settings_of(run).get(name, "") for run in runs)] for name in names]
    source = (
        f"the starter kit's {_config_of(config)}method `{method}`" if about else f"our own method, `{method}`"
    )
    return "\n\n".join(
        [
            gap("what the method does in two or three sentences, and what is new about it"),
            f"Trained with {source}{f': {about}' if about else '.'}",
            "Settings that aren't listed are 0 or off, or don't change the model:",
            _table(["setting", *(map(_name_of, runs) if len(runs) > 1 else ["value"])], rows) + "\n",
        ]
    )


def _config_of(name: str) -> str:
    return f"config `{name}` of the " if name else ""


def proof_draft(runs: Sequence[DescribedRun], proof: KitProof, code: ProvedCode) -> str:
    """Return the draft of the proof of runs of one of the kit's methods: the kit's proof, with what was run.

    Its front matter names the code, which the site compares with its own kit.
    """
    files = [f"  {path}: {sha256}" for path, sha256 in code.files.items()]
    front = ["---", f"method: {proof.method}", f"commit: {proof.commit}", "covers:", *files, "", "---"]
    return "\n".join([*front, _with_runs(proof.text, runs, _code_of(code))])


def own_proof_draft(runs: Sequence[DescribedRun], outline: str) -> str:
    """Return the draft of the proof of runs of the team's own method: the outline of `pfl new`, with what was run."""
    method = Path(runs[0].method).name
    code = gap(
        f"for each section below, whether it holds for {method}; correct it where it doesn't, and copy what you have "
        "already written in the outline of `pfl new`"
    )
    return _with_runs(outline, runs, code)


def _with_runs(proof: str, runs: Sequence[DescribedRun], code: str) -> str:
    """Return a proof with the section about what was run before its first section."""
    claim, heading, sections = proof.strip().partition("\n## ")
    return "\n".join([claim.rstrip(), "", *_runs_section(runs, code), f"{heading.strip()} {sections}", ""])


def _runs_section(runs: Sequence[DescribedRun], code: str) -> list[str]:
    """The section about what was run, with the gaps that every proof has."""
    facts = [
        [name, *(fact(run.record, run.settings) for run in runs if run.record)]
        for name, fact in FACTS.items()
    ]
    return [
        "## Runs",
        "",
        "`pfl describe` took these values from the settings and the training record of each run:",
        "",
        _table(["", *map(_name_of, runs)], facts),
        "",
        f"**Code.** {code}",
        "",
        "**Choice of settings.** "
        + gap(
            "which data you chose the settings and the final model on; if it was data of the providers that must be "
            "protected, what the choice cost"
        ),
        "",
        *_unstated(runs),
        *(_joint(runs) if len(runs) > 1 else []),
    ]


def _unstated(runs: Sequence[DescribedRun]) -> list[str]:
    """What the site knows of earlier private runs and the records don't state."""
    found = [run for run in runs if run.has_unstated_runs]
    if not found:
        return []
    known = ", ".join(f"{run.earlier_records} before {_name_of(run)}" for run in found)
    return [
        f"**Earlier private runs.** The site has more training records of the team than these runs state: {known}. "
        + gap(
            "which of the earlier runs trained on the same private data, whether their results influenced these runs, "
            "and what all of them cost together"
        ),
        "",
    ]


def _joint(runs: Sequence[DescribedRun]) -> list[str]:
    """What several runs cost together, by basic composition."""
    records = [run.record for run in runs if run.record]
    epsilon = epsilon_text(sum(record.claimed_epsilon for record in records))
    delta = sum(record.run.delta for record in records)
    return [
        f"**All runs together.** Each run has its own noise and samples. By basic composition, the {len(records)} runs "
        f"are together ({epsilon}, {delta:.3g})-differentially private. "
        + gap("whether a run used anything of another one, such as its model or its score"),
        "",
    ]


def _code_of(code: ProvedCode) -> str:
    count = f"{len(code.files)} files named at the top"
    if not code.is_of_runs:
        return (
            f"The {count} are those of version {code.kit_version} of the starter kit, but other code trained the runs, "
            "as the hash in the training records shows. "
            + gap("which code trained the runs, and why the proof holds for it")
        )
    if code.changed:
        return f"These files aren't those for which the proof was written: {', '.join(code.changed)}. " + gap(
            "what changed in each of them, and why the proof still holds"
        )
    return (
        f"Version {code.kit_version} of the starter kit, whose proof of the method this is. The {count} are unchanged, "
        "and the hash of the code in the training records is that of this version."
    )


def _name_of(run: DescribedRun) -> str:
    return f"`{run.folder.name}`"


def _settings_of(run: DescribedRun) -> dict[str, str]:
    """The settings that matter for the model and aren't 0 or off, by their dotted names."""
    values = dict(_flat(run.settings))
    if values.get("local.optimizer") != "shampoo":
        values = {name: value for name, value in values.items() if not name.startswith(f"{SHAMPOO}.")}
    return {name: value for name, value in values.items() if name.partition(".")[0] not in LEFT_OUT}


def _flat(values: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif value:
            text = ", ".join(map(str, value)) if isinstance(value, list) else _number(value)
            yield f"{before}{name}", _cell(text)


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    """The text as code in a table's cell."""
    return f"`{text}`".replace("|", "\\|")


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _each(values: Iterable[float]) -> str:
    """A number that a record states for every round: one, or from which to which it goes."""
    different = sorted(set(values))
    if not different:
        return "none"
    least, most = different[0], different[-1]
    if least == most:
        return f"{least:.7g}"
    return f"from {least:.7g} to {most:.7g}, as the record states for each round"


def _fields(values: Mapping[str, object], first: str) -> str:
    """The kind of a part of the record, then its fields."""
    rest = (f"{name} {_number(value)}" for name, value in values.items() if name != first)
    text = " ".join(", ".join([str(values[first]), *rest]).split())
    return text.replace("_", " ").replace("|", "\\|")


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


Fact = Callable[[TrainingRecord, Mapping[str, Any]], str]
FACTS: dict[str, Fact] = {
    "claimed ε": lambda record, _: epsilon_text(record.claimed_epsilon),
    "δ": lambda record, _: f"{record.run.delta:g}",
    "amplification rule": lambda _, settings: str(settings.get("sampling_rule", "two_stage")).replace(
        "_", " "
    ),
    "clip norm S": lambda record, _: _each(line.clip_norm for line in record.rounds),
    "noise multiplier σ": lambda record, _: _each(line.noise_multiplier for line in record.rounds),
    "placement of the noise": lambda record, _: f"`{record.run.noise.placement}`",
    "secure aggregation": lambda record, _: record.run.noise.secure_aggregation,
    "sampling": lambda record, _: _fields(record.run.sampling.model_dump(mode="json"), "type"),
    "rounds T": lambda record, _: f"{len(record.rounds)}",
    "interrupted rounds": lambda record, _: f"{sum(line.begun for line in record.resumes)}",
    "divisor of the sum": lambda record, _: f"{record.run.normalizer:.7g}",
    "server's step": lambda record, _: _fields(record.run.server.model_dump(mode="json"), "rule"),
    "codec of messages": lambda record, _: record.run.codec.name,
    "private runs before this one, as stated in `tuning.private_runs`": lambda record, _: (
        f"{record.run.tuning.private_runs}"
    ),
    "a choice was made on private data": lambda record, _: _yes(record.run.validation_on_private_data),
}
