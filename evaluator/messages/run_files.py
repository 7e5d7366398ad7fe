"""The names of a run folder's files, which `pfl submit` and a draft's page sort into their places."""

from evaluator.messages.jobs import ArtifactKind

# As `pfl train` writes them. A method file has the name that the settings give.
RUN_FILES = {
    ArtifactKind.CHECKPOINT: "model.safetensors",
    ArtifactKind.COMMUNICATION_LOG: "communication_log.csv",
    ArtifactKind.TRAINING_RECORD: "training_record.jsonl",
    ArtifactKind.SETTINGS: "settings.yaml",
    ArtifactKind.TRANSCRIPT: "transcript.jsonl",
    ArtifactKind.MESSAGES: "messages.bin",
    ArtifactKind.CODEC_FILE: "transcript_codec.py",
}
# As they are named once they answer the challenge of a record or an index.
ANSWER_FILES = {
    ArtifactKind.TRAINING_ANNEX: "training_annex.jsonl",
    ArtifactKind.ROUND_OPENING: "round_opening.bin",
    ArtifactKind.MESSAGES: "opened_messages.bin",
}
# The file whose challenge each of these answers.
ANSWERED = {
    ArtifactKind.TRAINING_ANNEX: ArtifactKind.TRAINING_RECORD,
    ArtifactKind.ROUND_OPENING: ArtifactKind.TRAINING_RECORD,
    ArtifactKind.MESSAGES: ArtifactKind.TRANSCRIPT,
}
