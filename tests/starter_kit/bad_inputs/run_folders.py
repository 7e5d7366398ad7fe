"""Runs as reports, exports, and folders to write into or to resume; files to convert."""

import json

from tests.starter_kit.bad_inputs.case import Bad, cut, made, removed, replaced, written

TRAIN = "train fedavg --data data --base base --out out"

CASES = [
    Bad("report nowhere", "report nowhere", "E_RUN_FOLDER", "nowhere"),
    Bad(
        "report summary gone",
        "report adapters",
        "E_RUN_FOLDER",
        "summary.json",
        removed("adapters/summary.json"),
    ),
    Bad(
        "report summary cut",
        "report adapters",
        "E_RUN_FOLDER",
        "summary.json",
        cut("adapters/summary.json", 50),
    ),
    Bad(
        "report metrics nan",
        "report adapters",
        "E_RUN_FOLDER",
        "metrics.jsonl",
        replaced("adapters/metrics.jsonl", '"round": 1', '"round": "one"'),
    ),
    Bad(
        "report settings gone",
        "report adapters",
        "E_RUN_FOLDER",
        "settings.yaml",
        removed("adapters/settings.yaml"),
    ),
    Bad(
        "compare one broken",
        "compare private adapters",
        "E_RUN_FOLDER",
        "summary.json",
        written("adapters/summary.json", "[]"),
    ),
    Bad("compare a data folder", "compare data", "E_RUN_FOLDER", "data"),
    Bad(
        "tensorboard file",
        "tensorboard adapters --log-dir file",
        "E_RUN_FOLDER",
        "file",
        written("file", "x"),
    ),
    Bad("tensorboard data", "tensorboard data --log-dir logs", "E_RUN_FOLDER", "data"),
    Bad(
        "export hf exists", "export hf adapters out --base base", "E_RUN_FOLDER", "out", written("out/x", "x")
    ),
    Bad(
        "export hf file below",
        "export hf adapters file/out --base base",
        "E_RUN_FOLDER",
        "file",
        written("file", "x"),
    ),
    Bad("export peft none", "export peft private out", "E_ARTIFACT_MISSING", "adapter"),
    Bad(
        "export peft cut",
        "export peft adapters out",
        "E_CHECKPOINT_FORMAT",
        "adapters/adapter/adapter_model.safetensors",
        cut("adapters/adapter/adapter_model.safetensors", 50),
    ),
    Bad("export hf data", "export hf data out --base base", "E_RUN_FOLDER", "data"),
    Bad(
        "export hf model cut",
        "export hf adapters out --base base",
        "E_CHECKPOINT_FORMAT",
        "adapters/model.safetensors",
        cut("adapters/model.safetensors", 50),
    ),
    Bad("resume nothing", TRAIN + " --resume", "E_RUN_FOLDER", "out"),
    Bad("out exists", TRAIN, "E_RUN_FOLDER", "out", made("out")),
    Bad("out file", TRAIN, "E_RUN_FOLDER", "out", written("out", "x")),
    Bad(
        "out below file",
        TRAIN.replace("out out", "out file/out"),
        "E_RUN_FOLDER",
        "file",
        written("file", "x"),
    ),
    Bad("unfinished file", TRAIN, "E_RUN_FOLDER", "out.unfinished", written("out.unfinished", "x")),
    Bad(
        "unfinished stranger",
        TRAIN + " --resume",
        "E_RUN_FOLDER",
        "out.unfinished",
        written("out.unfinished/thesis.tex", "x\n"),
    ),
    Bad(
        "unfinished stranger2",
        TRAIN,
        "E_RUN_FOLDER",
        "out.unfinished",
        written("out.unfinished/thesis.tex", "x\n"),
    ),
    Bad("convert text", "convert file out", "E_ARTIFACT_MISSING", "file", written("file.bin", "x")),
    Bad("convert nowhere", "convert nowhere out", "E_ARTIFACT_MISSING", "nowhere"),
    Bad("convert data", "convert data out", "E_ARTIFACT_MISSING", "data"),
    Bad(
        "convert index",
        "convert shards out",
        "E_CHECKPOINT_INDEX",
        "index",
        written("shards/model.safetensors.index.json", "{"),
    ),
    Bad(
        "convert index out",
        "convert shards out",
        "E_CHECKPOINT_INDEX",
        "index",
        written("shards/model.safetensors.index.json", json.dumps({"weight_map": {"a": "../x.safetensors"}})),
    ),
    Bad(
        "convert index missing",
        "convert shards out",
        "E_CHECKPOINT_SHARD",
        "index.json",
        written("shards/model.safetensors.index.json", json.dumps({"weight_map": {"a": "x.safetensors"}})),
    ),
    Bad(
        "convert out file",
        "convert base/model.safetensors file",
        "E_RUN_FOLDER",
        "file",
        written("file", "x"),
    ),
    Bad("convert adapter no base", "convert adapters/adapter out", "E_ARTIFACT_MISSING", "--base"),
]
