"""What a track's page says about its rules and files, in the order of the track's kind."""

from collections.abc import Callable, Collection, Iterator

from django.utils import timezone

from docvqa_site.challenge.models import Track
from docvqa_site.challenge.rankings import threshold_text
from docvqa_site.ui.budgets import IN_ONE_PIECE, plain
from docvqa_site.ui.rounding import power_of_ten
from evaluator.messages.jobs import ArtifactKind

FACTS: dict[str, tuple[str, Callable[[Track], str]]] = {
    "anls_threshold": ("Threshold", lambda track: f"ANLS of at least {threshold_text(track.anls_threshold)}"),
    "first_download": ("First download", lambda track: track.get_first_download_display()),
    "budgets": ("Budgets", lambda track: IN_ONE_PIECE + ", ".join(map(plain, track.budgets))),
    "delta": ("δ", lambda track: power_of_ten(track.delta)),
    "sampling_rule": ("Sampling rule", lambda track: track.get_sampling_rule_display()),
    "accountant": ("Accountant", lambda track: track.get_accountant_display()),
    "adjacency": ("Adjacency", lambda track: track.get_adjacency_display()),
    "unbound_level": (
        "Unbound runs",
        lambda track: (
            f"{track.get_unbound_level_display()}. A run is unbound if the checks can't tie its checkpoint to the "
            "noised sums (each round's sum of updates plus noise) recorded for it."
        ),
    ),
    "drawn_rounds": (
        "Rounds recomputed",
        lambda track: (
            f"the last round, and at least {track.drawn_rounds} others that the site picks at random"
        ),
    ),
    "challenges_per_day": (
        "Challenges",
        lambda track: f"{track.challenges_per_day} per team in any 24 hours. {track.kind.challenged}",
    ),
    "required_reviews": ("Required reviewers", lambda track: str(track.required_reviews)),
}
# Those that decide nothing before a team looks for them.
DETAILS = ("delta", "accountant", "adjacency", "drawn_rounds", "challenges_per_day", "required_reviews")
FILES = {
    ArtifactKind.CHECKPOINT: "All tensors of the reference architecture, in one `.safetensors` file or in shards with "
    "an index; frozen tensors keep the values of the base weights",
    ArtifactKind.COMMUNICATION_LOG: "A `.csv` file with one row per message: "
    "`federated_round,sender,receiver,amount_of_bytes`; the server is -1",
    ArtifactKind.TRAINING_RECORD: "A signed `.jsonl` log of how each round used the data, written by the starter kit; "
    "ε is recomputed from it",
    ArtifactKind.TRAINING_ANNEX: "A `.jsonl` file used to check the record, for the organizers only; the starter kit "
    "creates it once the site has received the record and picked the parts to show",
    ArtifactKind.TRANSCRIPT: "A `.jsonl` index of all messages, written by `pfl train`",
    ArtifactKind.MESSAGES: "The messages of all rounds in one `.bin` file, written by `pfl train`; for a large "
    "run, only the messages of the rounds that the site selects",
    ArtifactKind.PRIVACY_PROOF: "The privacy argument for the method, as `.pdf`, `.md` or `.ipynb`",
}
CODE = "Required: a description, plus either a link to a commit or, for each run, the settings or method file"

LEAKAGE = (
    "Measured on each run that gets a rank: an attack on its checkpoint tries to distinguish providers used in "
    "training from others. The result is published and doesn't affect ranks."
)


def facts_of(track: Track) -> list[tuple[str, str]]:
    """Return the rules of the track that only its kind has, each with its name, without the details."""
    found = _found(track, FACTS.keys() - DETAILS)
    if track.requires_code:
        found.append(("Description and code", CODE))
    if track.submission_license:
        found.append(("License of submissions", track.submission_license))
    return found


def details_of(track: Track) -> list[tuple[str, str]]:
    """Return the rest of these rules."""
    found = _found(track, DETAILS)
    if track.leakage_set:
        found.append(("Leakage", LEAKAGE))
    return found


def _found(track: Track, fields: Collection[str]) -> list[tuple[str, str]]:
    return [(FACTS[field][0], FACTS[field][1](track)) for field in track.kind.fields if field in fields]


def files_of(track: Track) -> Iterator[tuple[str, str, str]]:
    """Yield the files that a submission needs: the name, the contents, and how many there are."""
    # From these, bytes are counted.
    messages = [kind for kind in track.kind.optional_artifacts if kind in FILES]
    are_needed = track.ranks_counted_alone(timezone.now())
    for kinds, number in (
        (track.kind.run_artifacts, "one per run"),
        (messages, f"one per run, {'required for ranking' if are_needed else 'optional'}"),
        (track.kind.submission_artifacts, "one"),
    ):
        for kind in kinds:
            yield kind.replace("_", " ").capitalize(), FILES[kind], number
