"""What a track's page says about its rules and files, in the order of the track's kind."""

from collections.abc import Callable, Iterator

from evaluator.messages.jobs import ArtifactKind
from portal.challenge.models import Track
from portal.challenge.rankings import threshold_text
from portal.ui.budgets import IN_ONE_PIECE, plain
from portal.ui.rounding import power_of_ten

FACTS: dict[str, tuple[str, Callable[[Track], str]]] = {
    "anls_threshold": ("Threshold", lambda track: f"ANLS of {threshold_text(track.anls_threshold)} or more"),
    "budgets": ("Budgets", lambda track: IN_ONE_PIECE + ", ".join(map(plain, track.budgets))),
    "delta": ("δ", lambda track: power_of_ten(track.delta)),
    "sampling_rule": ("Sampling rule", lambda track: track.get_sampling_rule_display()),
    "accountant": ("Accountant", lambda track: track.get_accountant_display()),
    "adjacency": ("Adjacency", lambda track: track.get_adjacency_display()),
    "required_reviews": ("Reviewers that must accept the proof", lambda track: str(track.required_reviews)),
}
FILES = {
    ArtifactKind.CHECKPOINT: "Every tensor of the reference architecture, in one `.safetensors` file or in shards with "
    "their index; tensors that may not change keep the values of the base weights",
    ArtifactKind.COMMUNICATION_LOG: "One row per message, as `.csv`: "
    "`federated_round,sender,receiver,amount_of_bytes`; the server is -1",
    ArtifactKind.TRAINING_RECORD: "What each round did to the data, signed, as `.jsonl`; the starter kit writes it, "
    "and ε is recomputed from it",
    ArtifactKind.TRAINING_ANNEX: "What the record is checked against, as `.jsonl`, for the organizers only; the "
    "starter kit makes it when the site has the record and says which parts to show",
    ArtifactKind.PRIVACY_PROOF: "Why the method is private, as `.pdf`, `.md` or `.ipynb`",
}
# What a file asks for before and while it is submitted from a terminal.
NOTES = {
    ArtifactKind.TRAINING_RECORD: "With it, `pfl train` asks the site for a run token and signs the training record; "
    "`pfl key register` registers the key here."
}
OPTIONS = {ArtifactKind.PRIVACY_PROOF: "--proof proof.pdf"}


def facts_of(track: Track) -> list[tuple[str, str]]:
    """Return the rules of the track that only its kind has, each with its name."""
    return [(FACTS[field][0], FACTS[field][1](track)) for field in track.kind.fields if field in FACTS]


def notes_of(track: Track) -> list[str]:
    """Return what to know before a training whose files go to this track."""
    return [NOTES[kind] for kind in track.kind.run_artifacts if kind in NOTES]


def options_of(track: Track) -> list[str]:
    """Return the options of `pfl submit` that the track asks for."""
    return [OPTIONS[kind] for kind in track.kind.submission_artifacts if kind in OPTIONS]


def files_of(track: Track) -> Iterator[tuple[str, str, str]]:
    """Yield the files that a submission needs: the name, the contents, and how many there are."""
    for kinds, number in (
        (track.kind.run_artifacts, "one per run"),
        (track.kind.submission_artifacts, "one"),
    ):
        for kind in kinds:
            yield kind.replace("_", " ").capitalize(), FILES[kind], number
