"""The table of error codes: what each means, and what to do about it. One for workers, site, command line and docs."""

from dataclasses import dataclass
from enum import StrEnum


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

    CONFIGURATION = "E_CONFIGURATION"
    PRIVACY_BUDGET = "E_PRIVACY_BUDGET"
    CLIENTS_LOST = "E_CLIENTS_LOST"
    SECURE_AGGREGATION = "E_SECURE_AGGREGATION"
    SIGNING_KEY = "E_SIGNING_KEY"
    RUN_FOLDER = "E_RUN_FOLDER"
    SITE_UNREACHABLE = "E_SITE_UNREACHABLE"

    CONFORMANCE_IMPORT = "E_CONFORMANCE_IMPORT"
    CONFORMANCE_UNSUPPORTED = "E_CONFORMANCE_UNSUPPORTED"
    CONFORMANCE_FAILED = "E_CONFORMANCE_FAILED"
    CONFORMANCE_VALUES = "E_CONFORMANCE_VALUES"
    CONFORMANCE_TIMEOUT = "E_CONFORMANCE_TIMEOUT"
    CONFORMANCE_CRASHED = "E_CONFORMANCE_CRASHED"
    EXAMINATION_ACTIVE = "E_EXAMINATION_ACTIVE"
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
    TRACK_CLOSED = "E_TRACK_CLOSED"
    TEAM_KEY = "E_TEAM_KEY"
    TEAM_NAME = "E_TEAM_NAME"
    TEAM_FOUNDING = "E_TEAM_FOUNDING"
    TEAM_MEMBER = "E_TEAM_MEMBER"
    TEAM_OWNER = "E_TEAM_OWNER"
    TEAM_INVITATION = "E_TEAM_INVITATION"
    RUN_TOKEN = "E_RUN_TOKEN"  # noqa: S105  (a code)

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
        "The file is larger than the track allows, empty, or not as long as was announced.",
        "Check the file on your disk and upload it again.",
    ),
    ErrorCode.ARTIFACT_HASH: Explanation(
        "The file's SHA-256 is not the one that was announced with it.",
        "The file changed on its way or on your disk: upload it again.",
    ),
    ErrorCode.ARTIFACT_MISSING: Explanation(
        "A file that this step needs is not there.",
        "Upload the file that is named and submit again.",
    ),
    ErrorCode.ARTIFACT_KIND: Explanation(
        "The track requires no file of this kind in this place.",
        "See the track's page for the files that it requires; a privacy proof belongs to the submission, not to a run.",
    ),
    ErrorCode.CHECKPOINT_FORMAT: Explanation(
        "The file is not a safetensors file.",
        "Turn it into one with `pfl convert`, or save the model's state dict with safetensors.torch.save_file; pickles "
        "and archives are never opened here.",
    ),
    ErrorCode.CHECKPOINT_HEADER: Explanation(
        "The safetensors header can't be read: its length, its JSON or one of its entries is not valid.",
        "Save the checkpoint again with the safetensors library and run `pfl check` on it.",
    ),
    ErrorCode.CHECKPOINT_OFFSETS: Explanation(
        "The tensors don't lie end to end in the file: they overlap, leave a hole or end past the file.",
        "Save the checkpoint again with the safetensors library and run `pfl check` on it.",
    ),
    ErrorCode.CHECKPOINT_MISSING_TENSOR: Explanation(
        "A tensor of the track's reference architecture is missing.",
        "Merge adapters into the base model and save every tensor of the reference architecture.",
    ),
    ErrorCode.CHECKPOINT_EXTRA_TENSOR: Explanation(
        "The file has a tensor that the track's reference architecture doesn't have.",
        "Remove it: adapters are merged into the base model before saving, optimizer state is not saved.",
    ),
    ErrorCode.CHECKPOINT_DTYPE: Explanation(
        "A tensor's number format differs from the reference architecture's.",
        "Cast the tensor to the expected format before saving.",
    ),
    ErrorCode.CHECKPOINT_SHAPE: Explanation(
        "A tensor's shape differs from the reference architecture's.",
        "Train from the track's base weights without changing the architecture.",
    ),
    ErrorCode.CHECKPOINT_NOT_FINITE: Explanation(
        "A tensor holds NaN or an infinite value.",
        "Find the round in which training diverged, lower the learning rate or clip, and train again.",
    ),
    ErrorCode.CHECKPOINT_INDEX: Explanation(
        "The index of a sharded checkpoint can't be read, or one of its entries is not valid.",
        "Save the checkpoint again, or give the index that was saved with the shards.",
    ),
    ErrorCode.CHECKPOINT_SHARD: Explanation(
        "The shards of a sharded checkpoint are not those that its index names, or don't hold what it says.",
        "Put the index and all of its shards in one place, as they were saved together.",
    ),
    ErrorCode.CHECKPOINT_PICKLE: Explanation(
        "The pickled file holds more than tensors. Reading it could mean running code from it, so it wasn't read.",
        "Where the model was trained, save its state dict alone, best with safetensors.torch.save_file.",
    ),
    ErrorCode.CHECKPOINT_NETWORK: Explanation(
        "A pickled file is read only in a process without network, which this system can't provide.",
        "Convert it on Linux or macOS or, only if you trust the file, give `--allow-network`.",
    ),
    ErrorCode.CHECKPOINT_FROZEN_TENSOR: Explanation(
        "A tensor that the track holds fixed differs from the base weights.",
        "Train only what the track's page says may change, and save all other tensors as they are in the base weights.",
    ),
    ErrorCode.LOG_ENCODING: Explanation(
        "The communication log is not UTF-8 text.",
        "Write the log as UTF-8 CSV, as the starter kit does.",
    ),
    ErrorCode.LOG_COLUMNS: Explanation(
        "The communication log's first line doesn't name its four columns, separated by commas.",
        "The first line is: federated_round,sender,receiver,amount_of_bytes",
    ),
    ErrorCode.LOG_ROW: Explanation(
        "A line of the communication log is not four whole numbers separated by commas.",
        "Fix the line: round, sender, receiver and bytes, each a plain decimal number.",
    ),
    ErrorCode.LOG_ROUND: Explanation(
        "A round number is out of range or goes backwards.",
        "Rounds count from 1 and never go backwards from one line to the next.",
    ),
    ErrorCode.LOG_PARTY: Explanation(
        "A sender or receiver is not a party of this track, or neither of them is the server.",
        "The server is -1 and the clients count from 0; every message goes between the server and a client.",
    ),
    ErrorCode.LOG_BYTES: Explanation(
        "The number of bytes of a message is negative or impossibly large.",
        "Write the number of bytes that this one message took.",
    ),
    ErrorCode.LOG_TOO_LONG: Explanation(
        "The communication log has more lines than any allowed training run can produce.",
        "Write one line for each message: in each round, at most one each way for each client and payload.",
    ),
    ErrorCode.RECORD_FORMAT: Explanation(
        "The training record is not made of the expected JSON lines.",
        "Write it with the starter kit's recorder, or follow the schema in docs/formats.md line by line.",
    ),
    ErrorCode.RECORD_ROUNDS: Explanation(
        "The training record's rounds don't match what it declares: one is missing, repeated or out of order.",
        "Record every round that touched the data once and in order, including those in which nobody was sampled.",
    ),
    ErrorCode.RECORD_CHECKPOINT: Explanation(
        "The training record belongs to another checkpoint.",
        "Upload the checkpoint and the record of the same run.",
    ),
    ErrorCode.RECORD_RULES: Explanation(
        "The training record declares something that the track's rules don't allow.",
        "Train under the track's rules: its δ, its privacy unit and its adjacency.",
    ),
    ErrorCode.RECORD_CLAIM: Explanation(
        "The ε that the record claims is below the one recomputed from its rounds.",
        "Train again by the track's rule, `--set sampling_rule=two_stage` unless it says otherwise: a signed claim "
        "can't be changed.",
    ),
    ErrorCode.RECORD_CHAIN: Explanation(
        "A line of the training record was changed, dropped, moved or added: its hash doesn't follow from the lines "
        "before it.",
        "Upload the record as the trainer wrote it. A record can't be repaired by hand.",
    ),
    ErrorCode.RECORD_SIGNATURE: Explanation(
        "The signature in the training record's last line doesn't match its key and these lines.",
        "Upload the record as the trainer wrote it, signed with your team's key.",
    ),
    ErrorCode.RECORD_KEY: Explanation(
        "The training record is signed with a key that isn't registered for your team.",
        "Register the key with `pfl key register`, or on your team's page, and submit again.",
    ),
    ErrorCode.RECORD_TOKEN: Explanation(
        "The training record doesn't carry a run token that the site issued to your team for this track and that came "
        "with no other record before.",
        "A token belongs to the first record that is uploaded with it, whatever became of that one: upload this very "
        "record, or train again with a token of its own, which `pfl token` gets before the training.",
    ),
    ErrorCode.RECORD_BYTES: Explanation(
        "The bytes in the training record don't follow from its tensors and codec, or differ from the communication "
        "log's.",
        "Upload the record and the log of the same run; see docs/formats.md for what is counted.",
    ),
    ErrorCode.RECORD_TENSORS: Explanation(
        "The tensors that the training record declares don't fit the checkpoint.",
        "Declare every tensor that leaves a client, with its shape; all others must have their base weights.",
    ),
    ErrorCode.RECORD_MODELS: Explanation(
        "The rounds of the training record don't lead from the base weights to the checkpoint.",
        "Each round starts from the weights that the round before released; upload the checkpoint of the same run.",
    ),
    ErrorCode.RECORD_ANNEX: Explanation(
        "The annex of the training record can't be read, or isn't the one that the record names.",
        "Upload the annex that the trainer wrote beside the record.",
    ),
    ErrorCode.RECORD_CHALLENGE: Explanation(
        "The annex doesn't answer the challenge that the site drew when the training record was uploaded.",
        "Upload the record first; then make the annex with `pfl privacy annex RUN --challenge ...`, as the draft's "
        "page says, and upload it. `pfl submit` does all of that.",
    ),
    ErrorCode.RECORD_DATA: Explanation(
        "The run trained on other data than the organizers gave out: the hash of the data manifest differs.",
        "Compare `pfl data manifest` of your data folder with the hash that came with the data; if they differ, get "
        "the data again, and train on it.",
    ),
    ErrorCode.PROOF_FORMAT: Explanation(
        "The privacy proof can't be shown to the reviewers.",
        "Write it as PDF, as Markdown or as a Jupyter notebook of format 4 with text and PNG outputs only.",
    ),
    ErrorCode.PROOF_PAGES: Explanation(
        "The pages of the PDF can't be shown on the site.",
        "Reviewers can still download the file. Export it again as an unencrypted PDF of at most 60 pages, without huge"
        " pictures, or write the proof as Markdown, and upload it as a revised proof.",
    ),
    ErrorCode.ACCOUNTING_UNSUPPORTED: Explanation(
        "The accountant can't bound this combination of mechanism, sampling and adjacency.",
        "Use a combination that docs/privacy.md lists; nothing is guessed.",
    ),
    ErrorCode.DATASET_FORMAT: Explanation(
        "The data can't be read in the expected layout.",
        "Compare the folder with docs/data.md, or import it again with `pfl data`.",
    ),
    ErrorCode.DATASET_FOLDER: Explanation(
        "The folder can't be written into.",
        "Choose another folder, or give --force to replace data that this command wrote before.",
    ),
    ErrorCode.CONFIGURATION: Explanation(
        "A setting is unknown, missing or out of range.",
        "Correct the setting that is named; docs/settings.md lists all of them.",
    ),
    ErrorCode.PRIVACY_BUDGET: Explanation(
        "A training round would exceed the run's ε.",
        "Train with more noise, a lower sampling rate or fewer rounds: see `pfl privacy noise`.",
    ),
    ErrorCode.CLIENTS_LOST: Explanation(
        "Clients that the round needs didn't answer.",
        "Check that their machines run and can be reached, then resume the run with --resume.",
    ),
    ErrorCode.SECURE_AGGREGATION: Explanation(
        "The clients' masked updates could not be added, and nothing of them was released.",
        "Check that enough clients answer and that all run the same version, then resume the run with --resume.",
    ),
    ErrorCode.SIGNING_KEY: Explanation(
        "The key can't be used: it isn't an Ed25519 key, or its file can't be read.",
        "Make one with `pfl key create`, and keep its file private.",
    ),
    ErrorCode.RUN_FOLDER: Explanation(
        "The folder doesn't hold a finished run, or holds one already where a new one was to be written.",
        "Name the folder that `pfl train` wrote, or another, new one to write to.",
    ),
    ErrorCode.SITE_UNREACHABLE: Explanation(
        "The site doesn't answer as expected.",
        "Check the address, the token and the network, then run the command again; it resumes where it stopped.",
    ),
    ErrorCode.CONFORMANCE_IMPORT: Explanation(
        "The method can't be examined, because its file or its settings can't be loaded.",
        "Correct what is named; `pfl train` needs the same file and settings.",
    ),
    ErrorCode.CONFORMANCE_UNSUPPORTED: Explanation(
        "The method can't be examined: it claims no privacy, releases what isn't known here, or fixes its noise.",
        "Derive its settings from PrivateSettings, with clip_norm and noise_multiplier; see docs/conformance.md.",
    ),
    ErrorCode.CONFORMANCE_FAILED: Explanation(
        "The method failed on the synthetic data of the examination.",
        "Run it on the toy federation of `pfl new` first; it must work with any clients, tensors and clip norm.",
    ),
    ErrorCode.CONFORMANCE_VALUES: Explanation(
        "The method released values that are not finite, or are absurdly large, for updates that are finite.",
        "Clip what leaves the method, and check it for overflow.",
    ),
    ErrorCode.CONFORMANCE_TIMEOUT: Explanation(
        "The examination took too long and was stopped.",
        "Look for a loop that doesn't end, or raise --timeout-s.",
    ),
    ErrorCode.CONFORMANCE_CRASHED: Explanation(
        "The process of the examination ended without a result.",
        "Look for a call that ends the process, or for memory that runs out.",
    ),
    ErrorCode.EXAMINATION_ACTIVE: Explanation(
        "The run is being examined, or waits for its examination.",
        "Wait until the examination has ended, or cancel it, then request another one.",
    ),
    ErrorCode.RERUN_TRAINING: Explanation(
        "The attached files could not be trained again.",
        "Attach settings.yaml and the method file of the run folder, unchanged; they must train without a network.",
    ),
    ErrorCode.REPLAY_UNSUPPORTED: Explanation(
        "The run can't be replayed.",
        "Train with a method that docs/replay.md lists, with clients on one machine; or leave out `replayable`.",
    ),
    ErrorCode.REPLAY_OPENING: Explanation(
        "The opening of a round can't be read, or belongs to another run.",
        "Make it with `pfl replay open` from the run that was submitted.",
    ),
    ErrorCode.REPLAY_ROUND: Explanation(
        "The opening shows another round than the one that was drawn after the record.",
        "Open the round that the site's challenge draws: `pfl replay open` with that challenge.",
    ),
    ErrorCode.REPLAY_KEY: Explanation(
        "The opened key isn't the one that the training record committed to for this round.",
        "Open the round with the run's own secret; a run with another one is another run.",
    ),
    ErrorCode.REPLAY_WEIGHTS: Explanation(
        "The opened vectors aren't those of the training record.",
        "Open the round from the run folder in which `pfl train` wrote the record.",
    ),
    ErrorCode.REPLAY_CODE: Explanation(
        "The kit, the method's file or the settings aren't those that the training record names.",
        "Replay with the kit's version of the record, and with the run's own method and settings.",
    ),
    ErrorCode.REPLAY_DATA: Explanation(
        "The data or the base weights aren't those of the run.",
        "Replay with the track's data and base weights, from which the run has to be trained.",
    ),
    ErrorCode.REPLAY_CLIP: Explanation(
        "The clipped updates of the round are larger than the record allows: another clip norm, or none, was in use.",
        "A run that clips otherwise than it records has another ε; train and submit it again.",
    ),
    ErrorCode.REPLAY_COUNT: Explanation(
        "Other clients or another number of providers took part than the key of the round draws.",
        "A run that samples otherwise than it records has another ε; train and submit it again.",
    ),
    ErrorCode.REPLAY_NOISE: Explanation(
        "The noise of the round isn't the one that its key draws at the recorded scale.",
        "A run whose noise is otherwise than it records has another ε; train and submit it again.",
    ),
    ErrorCode.REPLAY_STEP: Explanation(
        "The round's noised sum agrees, and the weights after it don't follow from it.",
        "The server has to do what the record declares, with its constant divisor.",
    ),
    ErrorCode.REPLAY_TRAINING: Explanation(
        "The round could not be trained again.",
        "Attach settings.yaml and the method file of the run folder, unchanged; they must train without a network.",
    ),
    ErrorCode.REPLAY_MISMATCH: Explanation(
        "The replayed round gives another noised sum, and neither clipping nor noise alone explains it.",
        "Check that data, code and settings are those of the run, and that nothing in the method draws from elsewhere.",
    ),
    ErrorCode.LEAKAGE_PROVIDERS: Explanation(
        "There are too few providers to tell members from nonmembers by.",
        "Use data with more providers of both kinds, or require fewer questions of each.",
    ),
    ErrorCode.LEAKAGE_LABELS: Explanation(
        "The data doesn't say which providers were trained on.",
        "Name the training providers as `clients` in dataset.json, as `pfl data` does.",
    ),
    ErrorCode.LEAKAGE_EXTRA: Explanation(
        "The published attacks need scikit-learn, which is not installed.",
        "Install it: pip install -c constraints.txt -e '.[leakage]'",
    ),
    ErrorCode.AUDIT_CANARIES: Explanation(
        "The canaries can't be made, or are too few to say anything about a run.",
        "Make 400 to 1,000 canaries with `pfl data canaries`, in data whose provider names leave room for them.",
    ),
    ErrorCode.AUDIT_ESCROW: Explanation(
        "The escrow file can't be read, or belongs to other canaries.",
        "Use the file that `pfl data canaries` wrote together with the data that was released.",
    ),
    ErrorCode.REFERENCE_FORMAT: Explanation(
        "The folder is not a VT5 model: its configuration or its tokenizer can't be read.",
        "Download the track's base weights again, or write the folder again with `pfl base`.",
    ),
    ErrorCode.UPLOAD_PART: Explanation(
        "A part of the upload doesn't have the size or the SHA-256 that was announced for it.",
        "Send the part again; the parts already stored remain.",
    ),
    ErrorCode.UPLOAD_STATE: Explanation(
        "The upload is already completed, was abandoned, or its artifact is frozen.",
        "Start a new upload, in a draft submission.",
    ),
    ErrorCode.UPLOAD_INCOMPLETE: Explanation(
        "Parts of the upload are missing.",
        "Request the list of stored parts, send the missing ones and complete the upload again.",
    ),
    ErrorCode.UPLOAD_URL: Explanation(
        "The address is not one that this site signed, or it has expired.",
        "Request a new address and send the request again.",
    ),
    ErrorCode.UPLOAD_LIMIT: Explanation(
        "The team has too many unfinished uploads.",
        "Finish or cancel one of them first; abandoned ones are removed after some days.",
    ),
    ErrorCode.STORAGE_QUOTA: Explanation(
        "The files of the team's drafts, with those that are being uploaded, would take more storage than a team has.",
        "Submit a draft, whose files then no longer count, remove a run with its files, or discard a draft.",
    ),
    ErrorCode.STORE_FULL: Explanation(
        "The site is out of storage.",
        "Nothing is lost: what is stored remains. Try again in a few hours, or contact the organizers.",
    ),
    ErrorCode.STORE_UNAVAILABLE: Explanation(
        "The site's store for files doesn't answer.",
        "Try again in some minutes: what is stored remains, and the upload resumes where it stopped.",
    ),
    ErrorCode.SUBMISSION_INCOMPLETE: Explanation(
        "The submission lacks something that the track requires.",
        "Add what is named and submit again; nothing was counted against your quota.",
    ),
    ErrorCode.SUBMISSION_STATE: Explanation(
        "The submission is not in a state in which this can be done.",
        "Open a new submission; a submitted one is frozen.",
    ),
    ErrorCode.SUBMISSION_QUOTA: Explanation(
        "The team and its members have used their submissions of this track for now.",
        "Wait until the time that is named. Slots lost through no fault of yours are given back.",
    ),
    ErrorCode.SUBMISSION_DUPLICATE: Explanation(
        "This checkpoint has already been submitted in this track.",
        "Submit a checkpoint that your team trained and has not submitted before.",
    ),
    ErrorCode.SUBMISSION_BUDGET: Explanation(
        "The track has no board for this privacy budget.",
        "Choose one of the track's budgets; leave it empty in a track where ε plays no part.",
    ),
    ErrorCode.SUBMISSION_VISIBILITY: Explanation(
        "The track's phase doesn't allow a submission to be private or anonymous.",
        "Edit the draft and leave the choice out, or wait for a phase that allows it; the track's page lists them.",
    ),
    ErrorCode.TRACK_CLOSED: Explanation(
        "The track accepts no submissions at this time.",
        "See the track's page for when it opens.",
    ),
    ErrorCode.TEAM_KEY: Explanation(
        "The signing key can't be registered for your team.",
        "Make a new one with `pfl key create` and register that.",
    ),
    ErrorCode.TEAM_NAME: Explanation(
        "Another team has this name, or one that looks like it.", "Choose another name."
    ),
    ErrorCode.TEAM_FOUNDING: Explanation(
        "You have created too many teams lately.",
        "Wait until the time that is named, or join a team by invitation.",
    ),
    ErrorCode.TEAM_MEMBER: Explanation(
        "The membership in a team doesn't allow this.",
        "A person is in one team at a time; the team's page lists its members.",
    ),
    ErrorCode.TEAM_OWNER: Explanation(
        "Only an owner of the team can do this.", "Ask an owner, whom the team's page names."
    ),
    ErrorCode.TEAM_INVITATION: Explanation(
        "The invitation can't be sent or accepted.", "Ask the team for a new one."
    ),
    ErrorCode.RUN_TOKEN: Explanation(
        "The site can't issue a run token.",
        "Only tracks with a privacy budget have them; use the tokens that your team has before you request more.",
    ),
    ErrorCode.REQUEST_INVALID: Explanation(
        "A field of the request is missing, unknown or not valid.",
        "Correct the field that is named; /api/v1/openapi.json describes every request.",
    ),
    ErrorCode.REQUEST_SIGN_IN: Explanation(
        "The request carries no valid token and no signed-in session.",
        "Create a token on your profile's page and send it as `Authorization: Bearer …`.",
    ),
    ErrorCode.REQUEST_TOKEN_EXPIRED: Explanation(
        "The API token has expired.", "Create a new one on your profile's page."
    ),
    ErrorCode.REQUEST_SCOPE: Explanation(
        "The scope of the API token doesn't cover this.",
        "Create a token with the scope that is expected on your profile's page.",
    ),
    ErrorCode.REQUEST_REAUTHENTICATE: Explanation(
        "This change needs your password once more.",
        "Make it on the site's pages, which ask for it, or with an API token.",
    ),
    ErrorCode.REQUEST_TEAM: Explanation(
        "You are not a member of a team, and only teams can submit.",
        "Create a team on the site, or accept an invitation to one.",
    ),
    ErrorCode.REQUEST_NOT_FOUND: Explanation(
        "There is nothing at this address, or it isn't your team's.",
        "Check the address and that the token belongs to a member of the right team.",
    ),
    ErrorCode.ARTIFACT_URL: Explanation(
        "The store rejected the address of a file: it had expired before a worker fetched the file.",
        "You don't need to do anything: the step is sent to a worker again, with new addresses.",
    ),
    ErrorCode.REQUEST_LIMIT: Explanation(
        "Your account or your network sends more requests than the site answers.",
        "Wait for the seconds that the header Retry-After names, then send the request again.",
    ),
    ErrorCode.TOKEN_LIMIT: Explanation(
        "You have as many API tokens as one person may have.",
        "Revoke one that you no longer use on your tokens page, then create the new one.",
    ),
    ErrorCode.PLATFORM_FAULT: Explanation(
        "The evaluation failed, through no fault of yours.",
        "You don't need to do anything: the submission doesn't count against your quota, and the organizers see why.",
    ),
    ErrorCode.WORKER_LOST: Explanation(
        "The worker stopped answering in the middle of the evaluation.",
        "You don't need to do anything: the evaluation is started again, or no longer counts against your quota.",
    ),
    ErrorCode.WORKERS_LOST: Explanation(
        "One worker after the other stopped in the middle of the evaluation.",
        "You don't need to do anything: the submission doesn't count against your quota, and the organizers see why.",
    ),
}


def catalog() -> str:
    """Return the table as Markdown: docs/errors.md is this text."""
    rows = [f"| `{code}` | {text.meaning} | {text.next_step} |" for code, text in EXPLANATIONS.items()]
    return "\n".join(
        [
            "# Error codes",
            "",
            "Generated by `make docs` from `evaluator/errors/codes.py`. Every error also says where it was found, what",
            "was expected and what was found.",
            "",
            "| code | what it means | what to do |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )
