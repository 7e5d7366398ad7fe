"""What the index of counted messages states of a run in its first line, where a track has no training records."""

from collections.abc import Sequence
from uuid import UUID

from django.core.cache import caches
from pydantic import ValidationError

from docvqa_site.reviews.declared import CACHED_SECONDS, SettingsTable, adapter_rank, step_in_words
from docvqa_site.submissions.models import Artifact, Run
from docvqa_site.uploads.stores import current_store
from evaluator.folding.lines import TranscriptRun
from evaluator.messages.jobs import ArtifactKind
from evaluator.records.reading import MAX_RUN_LINE_BYTES


def settings_in_index(runs: Sequence[tuple[str, Run]]) -> SettingsTable:
    """Return the settings of these named runs, without rows where no index can be read."""
    indexes = Artifact.objects.filter(kind=ArtifactKind.TRANSCRIPT, run__in=[run for _, run in runs])
    stored = indexes.values_list("run", "upload", "upload__store_key")
    found = {run: _texts(upload, key) for run, upload, key in stored}
    texts = {run.pk: _with_rounds(found.get(run.pk, {}), run) for _, run in runs}
    titles = dict.fromkeys(title for own in texts.values() for title in own)
    rows = [(title, [(name, texts[run.pk].get(title, "")) for name, run in runs]) for title in titles]
    known = [row for row in rows if any(text for _, text in row[1])]
    return SettingsTable([name for name, _ in runs], known, is_whole=False)


def _with_rounds(texts: dict[str, str], run: Run) -> dict[str, str]:
    return texts and {**texts, "Rounds": f"{run.results.log_rounds or ''}"}


def _texts(upload: UUID, store_key: str) -> dict[str, str]:
    """Return the texts of an index by their titles, which are read once; none where it can't be read."""
    cached, key = caches["pages"], f"index-settings:{upload}"
    texts: dict[str, str] | None = cached.get(key)
    if texts is None:
        line = _first_line(store_key)
        texts = _stated(line) if line else {}
        cached.set(key, texts, CACHED_SECONDS)
    return texts


def _first_line(store_key: str) -> TranscriptRun | None:
    try:
        with current_store().open(store_key) as file:
            return TranscriptRun.model_validate_json(file.read(MAX_RUN_LINE_BYTES).partition(b"\n")[0])
    except (FileNotFoundError, ValidationError):
        return None


def _stated(line: TranscriptRun) -> dict[str, str]:
    return {
        "Adapter rank": adapter_rank(line),
        "Clients": f"{line.clients:,}",
        "Codec": line.codec.name if line.codec.kind != "file" else "the team's own file",
        "Server's step": step_in_words(line.server),
    }
