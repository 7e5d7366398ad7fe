"""The table of error codes: the meaning and the next step of each. One for workers, site, command line and docs."""

import re
from dataclasses import dataclass
from enum import StrEnum

# In the texts; the table links to it.
DOCUMENT = re.compile(r"\bdocs/([\w-]+\.md)")


class ErrorCode(StrEnum):
    """Every reason for which an artifact, a run or an upload is rejected, or an evaluation fails."""

    ARTIFACT_SIZE = "E_ARTIFACT_SIZE"
    ARTIFACT_HASH = "E_ARTIFACT_HASH"
    ARTIFACT_MISSING = "E_ARTIFACT_MISSING"
    ARTIFACT_KIND = "E_ARTIFACT_KIND"

    CHECKPOINT_FORMAT = "E_CHECKPOINT_FORMAT"
    CHECKPOINT_HEADER = "E_CHECKPOINT_HEADER"
    CHECKPOINT_OFFSETS = "E_CHECKPOINT_OFFSETS"
    CHECKPOINT_MISSING_TENSOR = "E_CHECKPOINT_MISSING_TENSOR"
    CHECKPOINT_EXTRA_TENSOR = "E_CHECKPOINT_EXTRA_TENSOR"
    CHECKPOINT_DTYPE = "E_CHECKPOINT_DTYPE"
    CHECKPOINT_SHAPE = "E_CHECKPOINT_SHAPE"
    CHECKPOINT_NOT_FINITE = "E_CHECKPOINT_NOT_FINITE"
    CHECKPOINT_FROZEN_TENSOR = "E_CHECKPOINT_FROZEN_TENSOR"
    CHECKPOINT_INDEX = "E_CHECKPOINT_INDEX"
    CHECKPOINT_SHARD = "E_CHECKPOINT_SHARD"
    CHECKPOINT_PICKLE = "E_CHECKPOINT_PICKLE"
    CHECKPOINT_NETWORK = "E_CHECKPOINT_NETWORK"

    LOG_ENCODING = "E_LOG_ENCODING"
    LOG_COLUMNS = "E_LOG_COLUMNS"
    LOG_ROW = "E_LOG_ROW"
    LOG_ROUND = "E_LOG_ROUND"
    LOG_PARTY = "E_LOG_PARTY"
    LOG_BYTES = "E_LOG_BYTES"
    LOG_TOO_LONG = "E_LOG_TOO_LONG"

    TRANSCRIPT_FORMAT = "E_TRANSCRIPT_FORMAT"
    TRANSCRIPT_LOG = "E_TRANSCRIPT_LOG"
    TRANSCRIPT_MESSAGE = "E_TRANSCRIPT_MESSAGE"
    TRANSCRIPT_FOLD = "E_TRANSCRIPT_FOLD"
    TRANSCRIPT_CODEC = "E_TRANSCRIPT_CODEC"

    RECORD_FORMAT = "E_RECORD_FORMAT"
    RECORD_ROUNDS = "E_RECORD_ROUNDS"
    RECORD_CHECKPOINT = "E_RECORD_CHECKPOINT"
    RECORD_RULES = "E_RECORD_RULES"
    RECORD_CLAIM = "E_RECORD_CLAIM"
    RECORD_CHAIN = "E_RECORD_CHAIN"
    RECORD_SIGNATURE = "E_RECORD_SIGNATURE"
    RECORD_KEY = "E_RECORD_KEY"
    RECORD_TOKEN = "E_RECORD_TOKEN"  # noqa: S105  (a code)
    RECORD_BYTES = "E_RECORD_BYTES"
    RECORD_TENSORS = "E_RECORD_TENSORS"
    RECORD_MODELS = "E_RECORD_MODELS"
    RECORD_ANNEX = "E_RECORD_ANNEX"
    RECORD_CHALLENGE = "E_RECORD_CHALLENGE"
    RECORD_DATA = "E_RECORD_DATA"

    PROOF_FORMAT = "E_PROOF_FORMAT"
    PROOF_PAGES = "E_PROOF_PAGES"

    ACCOUNTING_UNSUPPORTED = "E_ACCOUNTING_UNSUPPORTED"

    DATASET_FORMAT = "E_DATASET_FORMAT"
    DATASET_FOLDER = "E_DATASET_FOLDER"
    REFERENCE_FORMAT = "E_REFERENCE_FORMAT"
    REFERENCE_ARCHITECTURE = "E_REFERENCE_ARCHITECTURE"

    CONFIGURATION = "E_CONFIGURATION"
    PRIVACY_BUDGET = "E_PRIVACY_BUDGET"
    CLIENTS_LOST = "E_CLIENTS_LOST"
    SECURE_AGGREGATION = "E_SECURE_AGGREGATION"
    SIGNING_KEY = "E_SIGNING_KEY"
    RUN_FOLDER = "E_RUN_FOLDER"
    DISK_FULL = "E_DISK_FULL"
    TRACK_RULES = "E_TRACK_RULES"
    SITE_UNREACHABLE = "E_SITE_UNREACHABLE"

    CONFORMANCE_IMPORT = "E_CONFORMANCE_IMPORT"
    CONFORMANCE_UNSUPPORTED = "E_CONFORMANCE_UNSUPPORTED"
    CONFORMANCE_FAILED = "E_CONFORMANCE_FAILED"
    CONFORMANCE_VALUES = "E_CONFORMANCE_VALUES"
    CONFORMANCE_TIMEOUT = "E_CONFORMANCE_TIMEOUT"
    CONFORMANCE_CRASHED = "E_CONFORMANCE_CRASHED"
    EXAMINATION_ACTIVE = "E_EXAMINATION_ACTIVE"
    EXAMINATION_PENDING = "E_EXAMINATION_PENDING"
    RERUN_TRAINING = "E_RERUN_TRAINING"

    REPLAY_UNSUPPORTED = "E_REPLAY_UNSUPPORTED"
    REPLAY_OPENING = "E_REPLAY_OPENING"
    REPLAY_ROUND = "E_REPLAY_ROUND"
    REPLAY_KEY = "E_REPLAY_KEY"
    REPLAY_WEIGHTS = "E_REPLAY_WEIGHTS"
    REPLAY_CODE = "E_REPLAY_CODE"
    REPLAY_DATA = "E_REPLAY_DATA"
    REPLAY_CLIP = "E_REPLAY_CLIP"
    REPLAY_COUNT = "E_REPLAY_COUNT"
    REPLAY_NOISE = "E_REPLAY_NOISE"
    REPLAY_STEP = "E_REPLAY_STEP"
    REPLAY_MISMATCH = "E_REPLAY_MISMATCH"
    REPLAY_TRAINING = "E_REPLAY_TRAINING"

    LEAKAGE_PROVIDERS = "E_LEAKAGE_PROVIDERS"
    LEAKAGE_LABELS = "E_LEAKAGE_LABELS"
    LEAKAGE_EXTRA = "E_LEAKAGE_EXTRA"
    AUDIT_CANARIES = "E_AUDIT_CANARIES"
    AUDIT_ESCROW = "E_AUDIT_ESCROW"

    UPLOAD_PART = "E_UPLOAD_PART"
    UPLOAD_STATE = "E_UPLOAD_STATE"
    UPLOAD_INCOMPLETE = "E_UPLOAD_INCOMPLETE"
    UPLOAD_URL = "E_UPLOAD_URL"
    UPLOAD_LIMIT = "E_UPLOAD_LIMIT"
    STORAGE_QUOTA = "E_STORAGE_QUOTA"
    STORE_FULL = "E_STORE_FULL"
    STORE_UNAVAILABLE = "E_STORE_UNAVAILABLE"

    SUBMISSION_INCOMPLETE = "E_SUBMISSION_INCOMPLETE"
    SUBMISSION_STATE = "E_SUBMISSION_STATE"
    SUBMISSION_QUOTA = "E_SUBMISSION_QUOTA"
    SUBMISSION_DUPLICATE = "E_SUBMISSION_DUPLICATE"
    SUBMISSION_BUDGET = "E_SUBMISSION_BUDGET"
    SUBMISSION_VISIBILITY = "E_SUBMISSION_VISIBILITY"
    SUBMISSION_LICENSE = "E_SUBMISSION_LICENSE"
    TRACK_CLOSED = "E_TRACK_CLOSED"
    ACCOUNT_LAST_SUPERUSER = "E_ACCOUNT_LAST_SUPERUSER"
    TEAM_KEY = "E_TEAM_KEY"
    TEAM_NAME = "E_TEAM_NAME"
    TEAM_FOUNDING = "E_TEAM_FOUNDING"
    TEAM_MEMBER = "E_TEAM_MEMBER"
    TEAM_OWNER = "E_TEAM_OWNER"
    TEAM_INVITATION = "E_TEAM_INVITATION"
    TEAM_REGISTRATION = "E_TEAM_REGISTRATION"
    RUN_TOKEN = "E_RUN_TOKEN"  # noqa: S105  (a code)
    CHALLENGE_LIMIT = "E_CHALLENGE_LIMIT"

    REQUEST_INVALID = "E_REQUEST_INVALID"
    REQUEST_SIGN_IN = "E_REQUEST_SIGN_IN"
    REQUEST_TOKEN_EXPIRED = "E_REQUEST_TOKEN_EXPIRED"  # noqa: S105  (a code)
    REQUEST_SCOPE = "E_REQUEST_SCOPE"
    REQUEST_REAUTHENTICATE = "E_REQUEST_REAUTHENTICATE"
    REQUEST_TEAM = "E_REQUEST_TEAM"
    REQUEST_NOT_FOUND = "E_REQUEST_NOT_FOUND"
    REQUEST_LIMIT = "E_REQUEST_LIMIT"
    TOKEN_LIMIT = "E_TOKEN_LIMIT"  # noqa: S105  (a code)

    ARTIFACT_URL = "E_ARTIFACT_URL"
    PLATFORM_FAULT = "E_PLATFORM_FAULT"
    WORKER_LOST = "E_WORKER_LOST"
    WORKERS_LOST = "E_WORKERS_LOST"


@dataclass(frozen=True)
class Explanation:
    """What a code means, and what to do about it unless the problem itself says more."""

    meaning: str
    next_step: str


EXPLANATIONS: dict[ErrorCode, Explanation] = {
    ErrorCode.ARTIFACT_SIZE: Explanation(
        "The file is empty, larger than the track allows, or not of the announced size.",
        "Check the file on your disk and upload it again.",
    ),
    ErrorCode.ARTIFACT_HASH: Explanation(
        "The file's SHA-256 doesn't match the announced one.",
        "The file changed in transit or on your disk. Upload it again.",
    ),
    ErrorCode.ARTIFACT_MISSING: Explanation(
        "A file required by this step is missing.",
        "Add the missing file and try again. `pfl train` writes all files of a run into its folder.",
    ),
    ErrorCode.ARTIFACT_KIND: Explanation(
        "The track doesn't accept this kind of file here.",
        "See the track's page for the required files; a privacy proof belongs to the submission, not to a run.",
    ),
    ErrorCode.CHECKPOINT_FORMAT: Explanation(
        "The file is not a safetensors file.",
        "Convert it with `pfl convert`, or save the model's state dict with safetensors.torch.save_file. Pickles and "
        "archives are never opened here.",
    ),
    ErrorCode.CHECKPOINT_HEADER: Explanation(
        "The safetensors header can't be read: its length, its JSON or one of its entries is invalid.",
        "Save the checkpoint again with the safetensors library and run `pfl check` on it.",
    ),
    ErrorCode.CHECKPOINT_OFFSETS: Explanation(
        "The tensors aren't contiguous in the file: they overlap, leave a gap or extend past the end of the file.",
        "Save the checkpoint again with the safetensors library and run `pfl check` on it.",
    ),
    ErrorCode.CHECKPOINT_MISSING_TENSOR: Explanation(
        "A tensor of the track's reference architecture is missing.",
        "Merge adapters into the base model and save every tensor of the reference architecture.",
    ),
    ErrorCode.CHECKPOINT_EXTRA_TENSOR: Explanation(
        "The file contains a tensor that the track's reference architecture doesn't have.",
        "Remove the tensor. Merge adapters into the base model before saving, and don't save optimizer state.",
    ),
    ErrorCode.CHECKPOINT_DTYPE: Explanation(
        "A tensor's data type differs from the reference architecture's.",
        "Cast the tensor to the expected data type before saving.",
    ),
    ErrorCode.CHECKPOINT_SHAPE: Explanation(
        "A tensor's shape differs from the reference architecture's.",
        "Train from the track's base weights without changing the architecture.",
    ),
    ErrorCode.CHECKPOINT_NOT_FINITE: Explanation(
        "A tensor contains NaN or infinite values.",
        "Find the round in which training diverged, lower the learning rate or clip the updates, and train again.",
    ),
    ErrorCode.CHECKPOINT_INDEX: Explanation(
        "The index of the sharded checkpoint can't be read, or one of its entries is invalid.",
        "Save the checkpoint again, or use the index that was saved with the shards.",
    ),
    ErrorCode.CHECKPOINT_SHARD: Explanation(
        "The shards don't match the checkpoint's index.",
        "Put the index and all its shards, saved together, into one place.",
    ),
    ErrorCode.CHECKPOINT_PICKLE: Explanation(
        "The pickled file contains more than tensors. It wasn't read, because reading it could run code from the file.",
        "On the training machine, save only the model's state dict, preferably with safetensors.torch.save_file.",
    ),
    ErrorCode.CHECKPOINT_NETWORK: Explanation(
        "Pickled files are only read in a process without network access, which this system can't provide.",
        "Convert the file on Linux or macOS. If you trust the file, you can use `--allow-network` instead.",
    ),
    ErrorCode.CHECKPOINT_FROZEN_TENSOR: Explanation(
        "A tensor frozen by the track differs from the base weights.",
        "Train only the tensors listed on the track's page, and keep the base weights for all others.",
    ),
    ErrorCode.LOG_ENCODING: Explanation(
        "The communication log is not UTF-8 text.",
        "Write the log as UTF-8 CSV, as the starter kit does.",
    ),
    ErrorCode.LOG_COLUMNS: Explanation(
        "The first line of the communication log must list the four columns, separated by commas.",
        "Use this first line: federated_round,sender,receiver,amount_of_bytes",
    ),
    ErrorCode.LOG_ROW: Explanation(
        "A line of the communication log doesn't consist of four integers separated by commas.",
        "Fix the line: round, sender, receiver and bytes, each a plain decimal integer.",
    ),
    ErrorCode.LOG_ROUND: Explanation(
        "A round number is out of range or goes backwards.",
        "Number rounds from 1, and keep the lines in order of rounds.",
    ),
    ErrorCode.LOG_PARTY: Explanation(
        "A sender or receiver isn't a party in this track, or neither of them is the server.",
        "Use -1 for the server and numbers from 0 for the clients; every message is between the server and a client.",
    ),
    ErrorCode.LOG_BYTES: Explanation(
        "A message's byte count is negative or impossibly large.",
        "Log the number of bytes sent in this message.",
    ),
    ErrorCode.LOG_TOO_LONG: Explanation(
        "The communication log has more lines than any allowed training run can produce.",
        "Write one line per message: in each round, at most one each way per client and payload.",
    ),
    ErrorCode.TRANSCRIPT_FORMAT: Explanation(
        "The transcript's index isn't in the form that docs/bytes.md describes.",
        "Submit the files of the run folder unchanged; `pfl train` writes them.",
    ),
    ErrorCode.TRANSCRIPT_LOG: Explanation(
        "The transcript and the communication log list different messages.",
        "Submit the log and the transcript of the same run, unchanged.",
    ),
    ErrorCode.TRANSCRIPT_MESSAGE: Explanation(
        "The attached messages aren't those of the transcript's index.",
        "Submit messages.bin of the same run, unchanged. If the site has drawn rounds, submit the file that "
        "`pfl replay open` writes for its challenge; `pfl submit` does so.",
    ),
    ErrorCode.TRANSCRIPT_FOLD: Explanation(
        "The model computed from the messages isn't the one that the run claims.",
        "Submit checkpoint, transcript and messages of the same run. A run whose server knows more than the messages "
        "can't be counted: submit it without them. For `pfl submit`, move transcript.jsonl and messages.bin out of the "
        "run folder.",
    ),
    ErrorCode.TRANSCRIPT_CODEC: Explanation(
        "The run's own codec can't decode its messages on the evaluator's machine.",
        "Keep the codec in one file of at most 64 kB that needs no network and no other files, decodes the same bytes "
        "to the same numbers everywhere, and stays within the imports and the time that docs/bytes.md allows.",
    ),
    ErrorCode.RECORD_FORMAT: Explanation(
        "The training record doesn't consist of the expected JSON lines.",
        "Write the record with the starter kit's recorder, or follow the schema in docs/formats.md line by line.",
    ),
    ErrorCode.RECORD_ROUNDS: Explanation(
        "The training record's rounds don't match its declaration: a round is missing, repeated or out of order.",
        "Record every round that used the data once and in order, including rounds in which nobody was sampled.",
    ),
    ErrorCode.RECORD_CHECKPOINT: Explanation(
        "The training record belongs to another checkpoint.",
        "Upload the checkpoint and the record of the same run.",
    ),
    ErrorCode.RECORD_RULES: Explanation(
        "The training record declares something the track's rules don't allow.",
        "Train under the track's rules: its δ, its privacy unit and its adjacency.",
    ),
    ErrorCode.RECORD_CLAIM: Explanation(
        "The record claims a smaller ε than the one recomputed from its rounds.",
        "Train again under the track's rule (`--set sampling_rule=two_stage` unless the track states otherwise); a "
        "signed claim can't be changed.",
    ),
    ErrorCode.RECORD_CHAIN: Explanation(
        "A line of the training record was changed, removed, moved or added: its hash doesn't follow from the lines "
        "before it.",
        "Upload the record exactly as the trainer wrote it. Records can't be repaired by hand.",
    ),
    ErrorCode.RECORD_SIGNATURE: Explanation(
        "The signature in the training record's last line doesn't match its key and content.",
        "Upload the record exactly as the trainer wrote it, signed with your team's key.",
    ),
    ErrorCode.RECORD_KEY: Explanation(
        "The training record is signed with a key that isn't registered for your team.",
        "Register the key with `pfl key register`, or on your team's page. Then choose the file again, or run the same "
        "command again.",
    ),
    ErrorCode.RECORD_TOKEN: Explanation(
        "The training record doesn't contain a valid, unused run token of your team for this track.",
        "A token can't be reused once a record with it has been uploaded. Upload that record, or train "
        "again with a new token from `pfl token`.",
    ),
    ErrorCode.RECORD_BYTES: Explanation(
        "The byte counts in the training record don't follow from its tensors and codec, or differ from the "
        "communication log's.",
        "Upload the record and the log of the same run; docs/formats.md explains what counts.",
    ),
    ErrorCode.RECORD_TENSORS: Explanation(
        "The tensors declared in the training record don't match the checkpoint.",
        "Declare every tensor that leaves a client, with its shape; all other tensors must keep their base weights.",
    ),
    ErrorCode.RECORD_MODELS: Explanation(
        "The rounds of the training record don't lead from the base weights to the checkpoint.",
        "Each round must start from the weights released by the previous round. Upload the checkpoint of the same run.",
    ),
    ErrorCode.RECORD_ANNEX: Explanation(
        "The annex can't be read, doesn't belong to this training record, or states numbers of providers "
        "that differ from the track's.",
        "Upload the annex that `pfl submit` creates for this run. If the numbers of providers differ, train "
        "on the track's data. With PFL_SITE set, `pfl train` checks this before it starts.",
    ),
    ErrorCode.RECORD_CHALLENGE: Explanation(
        "The annex doesn't answer the challenge that the site drew when the training record was uploaded.",
        "Upload the record first. Then create the annex with `pfl privacy annex RUN --challenge ...`, using the "
        "challenge on the draft's page, and upload it. `pfl submit` does all of this.",
    ),
    ErrorCode.RECORD_DATA: Explanation(
        "The run didn't use the organizers' data: the hash of the data manifest differs.",
        "Compare the output of `pfl data manifest` for your data folder with the hash provided with the data. If they "
        "differ, download the data again and retrain.",
    ),
    ErrorCode.PROOF_FORMAT: Explanation(
        "The privacy proof can't be shown to the reviewers.",
        "Write it as PDF, Markdown or a Jupyter notebook.",
    ),
    ErrorCode.PROOF_PAGES: Explanation(
        "The pages of the PDF can't be shown on the site.",
        "Replace it with an unencrypted PDF of at most 60 pages without huge pictures, or with the proof in Markdown. "
        "Once it is submitted, upload a revised proof instead; until then, reviewers can download the file.",
    ),
    ErrorCode.ACCOUNTING_UNSUPPORTED: Explanation(
        "The accountant can't bound this combination of mechanism, sampling and adjacency.",
        "Use a combination listed in docs/privacy.md. The accountant never guesses.",
    ),
    ErrorCode.DATASET_FORMAT: Explanation(
        "The data folder doesn't have the expected layout.",
        "Compare the folder with docs/data.md, or import the data again with `pfl data`.",
    ),
    ErrorCode.DATASET_FOLDER: Explanation(
        "Cannot write to the folder.",
        "Choose another folder, or use --force to replace data this command wrote earlier.",
    ),
    ErrorCode.CONFIGURATION: Explanation(
        "A setting is unknown, missing or out of range.",
        "Correct the named setting or option. docs/settings.md lists all settings, and --help all options.",
    ),
    ErrorCode.PRIVACY_BUDGET: Explanation(
        "A training round would exceed the run's ε.",
        "Use more noise, a lower sampling rate or fewer rounds; see `pfl privacy noise`.",
    ),
    ErrorCode.CLIENTS_LOST: Explanation(
        "Clients required for this round didn't respond.",
        "Check that their machines are running and reachable, then resume the run with --resume.",
    ),
    ErrorCode.SECURE_AGGREGATION: Explanation(
        "The clients' masked updates could not be summed. Nothing was released.",
        "Check that enough clients respond and that all of them run the same version, then resume the run with "
        "--resume.",
    ),
    ErrorCode.SIGNING_KEY: Explanation(
        "The key can't be used: it isn't an Ed25519 key, or its file can't be read.",
        "Create a key with `pfl key create`, and keep its file private.",
    ),
    ErrorCode.TRACK_RULES: Explanation(
        "The run doesn't match the site's track: its data, base weights or settings differ.",
        "Use the data and base weights of the track's page. For a run that isn't for this site, leave out --site and "
        "PFL_SITE.",
    ),
    ErrorCode.RUN_FOLDER: Explanation(
        "A run folder can't be read or written as the command needs it; the message's headline says why.",
        "Choose a folder written by `pfl train` or, for a new run, a new folder.",
    ),
    ErrorCode.DISK_FULL: Explanation(
        "The disk is full.",
        "Make room or name a folder on another disk, then run the command again.",
    ),
    ErrorCode.SITE_UNREACHABLE: Explanation(
        "The site didn't respond as expected.",
        "Check the address, the token and the network, then run the command again; it resumes where it stopped.",
    ),
    ErrorCode.CONFORMANCE_IMPORT: Explanation(
        "The method can't be examined because its file or settings can't be loaded.",
        "Correct the named problem; `pfl train` needs the same file and settings.",
    ),
    ErrorCode.CONFORMANCE_UNSUPPORTED: Explanation(
        "The method can't be examined: it claims no privacy, releases something unknown here, or hard-codes its noise.",
        "Derive its settings from PrivateSettings, with clip_norm and noise_multiplier; see docs/conformance.md.",
    ),
    ErrorCode.CONFORMANCE_FAILED: Explanation(
        "The method failed on the examination's synthetic data.",
        "Test it on the toy federation of `pfl new` first. The method must work with any clients, tensors and clip "
        "norm.",
    ),
    ErrorCode.CONFORMANCE_VALUES: Explanation(
        "The method released non-finite or absurdly large values for finite updates.",
        "Clip the method's output and check for overflow.",
    ),
    ErrorCode.CONFORMANCE_TIMEOUT: Explanation(
        "The examination took too long and was stopped.",
        "Look for an infinite loop, or increase --timeout-s.",
    ),
    ErrorCode.CONFORMANCE_CRASHED: Explanation(
        "The examination process exited without a result.",
        "Look for a call that exits the process, or for excessive memory use.",
    ),
    ErrorCode.EXAMINATION_ACTIVE: Explanation(
        "The run is being examined or is waiting for its examination.",
        "Wait for the examination to end, or cancel it. Then request another one.",
    ),
    ErrorCode.EXAMINATION_PENDING: Explanation(
        "The rank isn't final: the run hasn't passed the examination that its phase requires.",
        "Wait for the examination. If it failed or was canceled, request it again on the run's page. If the "
        "run can't be examined, disqualify it.",
    ),
    ErrorCode.RERUN_TRAINING: Explanation(
        "Training with the attached files failed.",
        "Attach settings.yaml and the method file of the run folder, unchanged; they must train without a network.",
    ),
    ErrorCode.REPLAY_UNSUPPORTED: Explanation(
        "The run can't be replayed.",
        "Train with a method listed in docs/replay.md and with all clients on one machine, or leave out `replayable`.",
    ),
    ErrorCode.REPLAY_OPENING: Explanation(
        "The round opening can't be read or belongs to another run.",
        "Create it with `pfl replay open` from the submitted run.",
    ),
    ErrorCode.REPLAY_ROUND: Explanation(
        "The opening doesn't cover exactly the last round and the rounds drawn after the upload.",
        "Open the rounds selected by the site's challenge: run `pfl replay open` with that challenge and the track's "
        "number of drawn rounds.",
    ),
    ErrorCode.REPLAY_KEY: Explanation(
        "The opened key doesn't match the training record's commitment for this round.",
        "Open the rounds with the run's own secret; a different secret means a different run.",
    ),
    ErrorCode.REPLAY_WEIGHTS: Explanation(
        "The opened vectors don't match the training record.",
        "Open the rounds from the run folder that contains the original record.",
    ),
    ErrorCode.REPLAY_CODE: Explanation(
        "The starter kit, the method file or the settings don't match the training record.",
        "Replay with the recorded version of the kit and with the run's own method and settings.",
    ),
    ErrorCode.REPLAY_DATA: Explanation(
        "The data or base weights don't match the run's.",
        "Replay with the track's data and base weights; the run must have been trained on them.",
    ),
    ErrorCode.REPLAY_CLIP: Explanation(
        "The round's clipped updates are larger than the record allows: the run used a different clip norm, "
        "or none.",
        "The run clipped differently from what it recorded, so its ε differs. Train again and submit the new run.",
    ),
    ErrorCode.REPLAY_COUNT: Explanation(
        "The participating clients or the number of providers differ from those drawn by the round's key.",
        "The run sampled differently from what it recorded, so its ε differs. Train again and submit the new run.",
    ),
    ErrorCode.REPLAY_NOISE: Explanation(
        "The round's noise differs from the noise drawn by its key at the recorded scale.",
        "The run added different noise from what it recorded, so its ε differs. Train again and submit the new run.",
    ),
    ErrorCode.REPLAY_STEP: Explanation(
        "The round's noised sum matches, but the weights after the round don't follow from it.",
        "The server must apply the recorded update, with its constant divisor.",
    ),
    ErrorCode.REPLAY_TRAINING: Explanation(
        "Training the round again failed.",
        "Attach settings.yaml and the method file of the run folder, unchanged; they must train without a network.",
    ),
    ErrorCode.REPLAY_MISMATCH: Explanation(
        "The replay gives a different noised sum, and neither clipping nor noise alone explains the difference.",
        "Check that the data, code and settings are the run's own, and that the method uses no other source of "
        "randomness.",
    ),
    ErrorCode.LEAKAGE_PROVIDERS: Explanation(
        "There are too few providers to distinguish members from nonmembers.",
        "Use data with more providers of both kinds, or lower the required number of questions per provider.",
    ),
    ErrorCode.LEAKAGE_LABELS: Explanation(
        "The data doesn't state which providers were used for training.",
        "List the training providers as `clients` in dataset.json, as `pfl data` does.",
    ),
    ErrorCode.LEAKAGE_EXTRA: Explanation(
        "The published attacks need scikit-learn, which isn't installed.",
        "Install it, in a clone: pip install -c constraints.txt -e '.[kit,leakage]'; with the wheel: pip install -c "
        'constraints.txt "$(ls pfl_docvqa_benchmark-*.whl)[kit,leakage]"',
    ),
    ErrorCode.AUDIT_CANARIES: Explanation(
        "The canaries can't be created, or there are too few for a meaningful audit.",
        "Create 400 to 1,000 canaries with `pfl data canaries`, in data with enough unused provider names.",
    ),
    ErrorCode.AUDIT_ESCROW: Explanation(
        "The escrow file can't be read or belongs to other canaries.",
        "Use the escrow file that `pfl data canaries` wrote along with the released data.",
    ),
    ErrorCode.REFERENCE_FORMAT: Explanation(
        "The folder doesn't contain a VT5 model: its configuration or tokenizer can't be read.",
        "Download the track's base weights again, or recreate the folder with `pfl base`.",
    ),
    ErrorCode.REFERENCE_ARCHITECTURE: Explanation(
        "The folder contains a model of another architecture: only VT5 can be trained and scored.",
        "Name a folder with a VT5: the track's base weights, or a tiny one by `pfl base create`.",
    ),
    ErrorCode.UPLOAD_PART: Explanation(
        "A part of the upload doesn't match its announced size or SHA-256.",
        "Send the part again; parts already stored are kept.",
    ),
    ErrorCode.UPLOAD_STATE: Explanation(
        "The upload is already complete, was abandoned, or its file is frozen.",
        "Start a new upload, in a draft submission.",
    ),
    ErrorCode.UPLOAD_INCOMPLETE: Explanation(
        "Parts of the upload are missing.",
        "Request the list of stored parts, send the missing parts and complete the upload again.",
    ),
    ErrorCode.UPLOAD_URL: Explanation(
        "This site didn't sign the address, or it has expired.",
        "Request a new address and send the request again.",
    ),
    ErrorCode.UPLOAD_LIMIT: Explanation(
        "The team has too many unfinished uploads.",
        "Finish or cancel one of them first; abandoned uploads are removed after a few days.",
    ),
    ErrorCode.STORAGE_QUOTA: Explanation(
        "The files of the team's drafts, including unfinished uploads, would exceed the team's storage limit.",
        "Submit a draft (submitted files don't count), remove a run with its files, or discard a draft.",
    ),
    ErrorCode.STORE_FULL: Explanation(
        "The site is out of storage.",
        "Nothing is lost; stored files are kept. Try again in a few hours, or contact the organizers.",
    ),
    ErrorCode.STORE_UNAVAILABLE: Explanation(
        "The site's file storage doesn't respond.",
        "Try again in a few minutes. Stored data is kept, and the upload resumes where it stopped.",
    ),
    ErrorCode.SUBMISSION_INCOMPLETE: Explanation(
        "The submission is missing something the track requires.",
        "Add the missing item and submit again; your quota is unchanged.",
    ),
    ErrorCode.SUBMISSION_STATE: Explanation(
        "The submission's current state doesn't allow this.",
        "Start a new submission; submitted ones are frozen.",
    ),
    ErrorCode.SUBMISSION_QUOTA: Explanation(
        "Your team and its members have used all submissions in this track for now.",
        "Wait until the given time. Slots lost through no fault of yours are returned.",
    ),
    ErrorCode.SUBMISSION_DUPLICATE: Explanation(
        "This checkpoint has already been submitted in this track.",
        "Submit a checkpoint that your team trained and has not submitted before.",
    ),
    ErrorCode.SUBMISSION_BUDGET: Explanation(
        "The track has no board for this privacy budget.",
        "Choose one of the track's budgets; leave the field empty in a track without privacy budgets.",
    ),
    ErrorCode.SUBMISSION_VISIBILITY: Explanation(
        "The track's current phase doesn't allow unpublished or anonymous submissions.",
        "Remove this choice from the draft, or wait for a phase that allows it; see the track's page.",
    ),
    ErrorCode.SUBMISSION_LICENSE: Explanation(
        "The track's license of submissions was not accepted.",
        "If your team agrees to the license, name it with `pfl submit --license`, or submit on the draft's page.",
    ),
    ErrorCode.TRACK_CLOSED: Explanation(
        "The track isn't accepting submissions right now.",
        "See the track's page for the opening date.",
    ),
    ErrorCode.ACCOUNT_LAST_SUPERUSER: Explanation(
        "This is the site's last active superuser, whose account can't be deleted.",
        "Make another person a superuser first.",
    ),
    ErrorCode.TEAM_KEY: Explanation(
        "The signing key can't be registered for your team.",
        "Create a new key with `pfl key create` and register it.",
    ),
    ErrorCode.TEAM_NAME: Explanation(
        "Another team already has this name or a similar-looking one.", "Choose another name."
    ),
    ErrorCode.TEAM_FOUNDING: Explanation(
        "You have created too many teams recently.",
        "Wait until the given time, or join a team by invitation.",
    ),
    ErrorCode.TEAM_MEMBER: Explanation(
        "Your team membership doesn't allow this.",
        "You can be in only one team at a time; the team's page lists its members.",
    ),
    ErrorCode.TEAM_OWNER: Explanation(
        "Only an owner of the team can do this.", "Ask an owner; the team's page lists them."
    ),
    ErrorCode.TEAM_INVITATION: Explanation(
        "The invitation can't be sent or accepted.", "Ask the team for a new invitation."
    ),
    ErrorCode.TEAM_REGISTRATION: Explanation(
        "The team isn't registered for the track, or the organizers haven't admitted it.",
        "Register the team on the track's page, or wait for the organizers.",
    ),
    ErrorCode.RUN_TOKEN: Explanation(
        "The site can't issue a run token.",
        "Only tracks with a privacy budget use run tokens. Use your team's unused tokens before requesting more.",
    ),
    ErrorCode.CHALLENGE_LIMIT: Explanation(
        "Your team and its members have used all challenges in this track for now.",
        "Wait until the given time, then upload the file again. Files that have a challenge can be uploaded at any "
        "time.",
    ),
    ErrorCode.REQUEST_INVALID: Explanation(
        "A field of the request is missing, unknown or invalid.",
        "Correct the named field; /api/v1/openapi.json describes every request.",
    ),
    ErrorCode.REQUEST_SIGN_IN: Explanation(
        "The request has no valid token, and you aren't logged in.",
        "Create a token on the API tokens page and send it as `Authorization: Bearer …`.",
    ),
    ErrorCode.REQUEST_TOKEN_EXPIRED: Explanation(
        "The API token has expired.", "Create a new token on the API tokens page."
    ),
    ErrorCode.REQUEST_SCOPE: Explanation(
        "The API token's scope doesn't allow this.",
        "Create a token with the expected scope on the API tokens page.",
    ),
    ErrorCode.REQUEST_REAUTHENTICATE: Explanation(
        "This change requires your password.",
        "Make the change on the site, which will ask for your password, or use an API token.",
    ),
    ErrorCode.REQUEST_TEAM: Explanation(
        "You aren't a member of a team. Only teams can submit.",
        "Create a team on the site or accept an invitation.",
    ),
    ErrorCode.REQUEST_NOT_FOUND: Explanation(
        "Nothing exists at this address, or it belongs to another team.",
        "Check the address, and check that the token belongs to a member of the right team.",
    ),
    ErrorCode.ARTIFACT_URL: Explanation(
        "The storage rejected a file's address because it had expired before a worker fetched the file.",
        "No action needed: the step will be sent to a worker again with new addresses.",
    ),
    ErrorCode.REQUEST_LIMIT: Explanation(
        "Too many requests from your account or network.",
        "Wait for the number of seconds in the Retry-After header, then send the request again.",
    ),
    ErrorCode.TOKEN_LIMIT: Explanation(
        "You have reached the maximum number of API tokens.",
        "Revoke a token you no longer need on your tokens page, then create the new one.",
    ),
    ErrorCode.PLATFORM_FAULT: Explanation(
        "The evaluation failed through no fault of yours.",
        "No action needed: the submission doesn't count against your quota, and the organizers can see the cause.",
    ),
    ErrorCode.WORKER_LOST: Explanation(
        "The worker stopped responding during the evaluation.",
        "No action needed: the evaluation will be restarted, or it won't count against your quota.",
    ),
    ErrorCode.WORKERS_LOST: Explanation(
        "Several workers in a row stopped during the evaluation.",
        "No action needed: the submission doesn't count against your quota, and the organizers can see the cause.",
    ),
}


def catalog() -> str:
    """Return the table as Markdown: docs/errors.md is this text."""
    rows = [
        DOCUMENT.sub(r"[\1](\1)", f"| `{code}` | {text.meaning} | {text.next_step} |")
        for code, text in EXPLANATIONS.items()
    ]
    return "\n".join(
        [
            "# Error codes",
            "",
            "Generated by `make docs` from `evaluator/errors/codes.py`. Every error also gives its location, what was",
            "expected and what was found.",
            "",
            "| code | meaning | next step |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )
