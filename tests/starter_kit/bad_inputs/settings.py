"""Settings: of the wrong kind, out of range, at odds with each other, or with the data and the model."""

from tests.starter_kit.bad_inputs.case import Bad, Spoil, removed, written

CODE = "E_CONFIGURATION"
TRAIN = "--data data --base base --out out"


def config(*lines: str) -> Spoil:
    return written("own.yaml", "\n".join(["method: fedavg", "experiment: own", *lines]) + "\n")


def changed(name: str, *changes: str, method: str = "fedavg", where: str, code: str = CODE) -> Bad:
    words = " ".join(f"--set {change}" for change in changes)
    return Bad(name, f"train {method} {TRAIN} {words}", code, where)


CASES = [
    Bad("a config that is a folder", f"train own {TRAIN}", CODE, "own", lambda f: (f / "own").mkdir()),
    Bad(
        "a config in Latin-1",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml",
        written("own.yaml", b"experiment: \xe4"),
    ),
    Bad(
        "a config with a NUL",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml",
        written("own.yaml", b"experiment: a\x00b"),
    ),
    Bad(
        "a config of JSON text", f"train own.yaml {TRAIN}", CODE, "own.yaml", written("own.yaml", '"fedavg"')
    ),
    Bad(
        "a config of two documents",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml",
        written("own.yaml", "method: fedavg\n---\nmethod: fedavg\n"),
    ),
    Bad(
        "a config with a tab",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml, line 2",
        written("own.yaml", "method: fedavg\n\trounds: 2\n"),
    ),
    Bad(
        "a config without a method",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml, method",
        written("own.yaml", "rounds: 2"),
    ),
    Bad(
        "a method that is a list",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml, method",
        written("own.yaml", "method: [fedavg]"),
    ),
    Bad(
        "a method that is a module",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml, method",
        written("own.yaml", "method: __init__"),
    ),
    Bad("no config at all", f"train {TRAIN}", CODE, "CONFIG"),
    Bad(
        "a line of the config twice over",
        f"train own.yaml {TRAIN}",
        CODE,
        "own.yaml, line 4",
        config("rounds: 2", "rounds: 2"),
    ),
    changed("a pattern that no tensor has", "trainable=['nothing.*']", where="trainable"),
    changed("nothing left to train", "frozen=['*']", where="trainable"),
    changed(
        "a LoRA target that no layer has", "lora.targets=['nothing']", method="lora", where="lora.targets"
    ),
    changed(
        "a LoRA rank above a layer's sides",
        "lora.rank=1000",
        method="lora",
        where="lora.rank",
    ),
    changed("LoRA on an embedding", "lora.targets=['language_backbone.shared']", method="lora", where="lora"),
    changed("a negative seed", "seed=-1", where="seed"),
    changed("a seed of 40 digits", "seed=" + "9" * 40, where="seed"),
    changed("a learning rate of text", "local.learning_rate=fast", where="local.learning_rate"),
    changed("an experiment with a slash", "experiment=../up", where="experiment"),
    changed("an empty experiment", "experiment=''", where="experiment"),
    changed("more clients in a round than there are", "clients_per_round=4", where="clients_per_round"),
    changed("no client in a round", "clients_per_round=0", where="clients_per_round"),
    changed("no token of a page", "max_input_tokens=0", where="max_input_tokens"),
    changed("a GPU that isn't there", "device=cuda", where="device"),
    changed("an Apple GPU that isn't there", "device=mps", where="device"),
    changed("codec of a list", "codec=[nf4]", where="codec"),
    changed("a codec file that isn't there", "codec=nothing.py", where="codec"),
    changed("a plug-in's option that it doesn't have", "codec={type:topk,size:3}", where="codec"),
    changed("a share of more than all", "codec={type:topk,share:2}", where="codec"),
    changed("a hook that isn't there", "local.hook=nothing", where="local.hook"),
    changed("a server optimizer that isn't there", "server_optimizer=nothing", where="server_optimizer"),
    changed(
        "secure aggregation with a bound of zero",
        "secure_aggregation.bound=0",
        method="secure-aggregation",
        where="secure_aggregation.bound",
    ),
    changed(
        "more losses than clients",
        "secure_aggregation.tolerated_losses=5",
        method="secure-aggregation",
        where="secure_aggregation.tolerated_losses",
    ),
    changed("secure aggregation with a codec", "codec=nf4", method="secure-aggregation", where="codec"),
    changed("validation every minus one round", "evaluate_every=-1", where="evaluate_every"),
    Bad(
        "validation without a split",
        f"train fedavg {TRAIN} --set evaluate_every=1",
        "E_DATASET_FORMAT",
        "valid",
        removed("data/valid"),
    ),
    changed(
        "questions of a validation that isn't asked for", "evaluate_questions=4", where="evaluate_questions"
    ),
    changed("the best model without validation", "checkpoints.best=true", where="checkpoints"),
    changed("checkpoints every minus one", "checkpoints.every=-1", where="checkpoints.every"),
    changed(
        "a private run that keeps its best",
        "checkpoints.best=true",
        "evaluate_every=1",
        method="fl-provider-dp",
        where="checkpoints",
    ),
    changed(
        "no noise",
        "noise_multiplier=0",
        "target_epsilon=null",
        method="fl-provider-dp",
        where="noise_multiplier",
    ),
    changed("a delta of nothing", "delta=0", method="fl-provider-dp", where="delta"),
    changed(
        "an ε that no noise reaches",
        "target_epsilon=1e-9",
        method="fl-provider-dp",
        where="the privacy settings",
    ),
    changed(
        "a fixed number of more providers than there are",
        "sampling={type: fixed_size, clients_per_round: 2, providers_per_client: 50}".replace(" ", ""),
        method="fl-provider-dp",
        where="sampling",
    ),
    changed("a clip norm of text", "clip_norm=half", method="fl-provider-dp", where="clip_norm"),
    changed("a placement that doesn't exist", "placement=cloud", method="fl-provider-dp", where="placement"),
    changed(
        "stages of sampling by an unknown rule",
        "sampling_rule=sum",
        method="fl-provider-dp",
        where="sampling_rule",
    ),
    changed("a tuning that is text", "tuning=lots", method="fl-provider-dp", where="tuning"),
    changed("an adam epsilon of zero", "local.adam_epsilon=0", where="local.adam_epsilon"),
    changed("momentum of two", "local.optimizer=sgd", "local.momentum=2", where="local.momentum"),
    changed("no steps and no epochs", "local.epochs=0", where="local.epochs"),
    changed("minus one step", "local.max_steps=-1", where="local.max_steps"),
    changed("a schedule that doesn't exist", "local.schedule=cosmic", where="local"),
    changed("warm-up longer than training", "local.warmup_steps=-1", where="local"),
    changed("a precision that doesn't exist", "compute.precision=int3", where="compute"),
    changed("features that don't exist", "compute.features=tape", where="compute.features"),
    changed(
        "a budget that two rounds exceed",
        "noise_multiplier=0.3",
        "target_epsilon=1",
        method="fl-provider-dp",
        where="round 1",
        code="E_PRIVACY_BUDGET",
    ),
]
