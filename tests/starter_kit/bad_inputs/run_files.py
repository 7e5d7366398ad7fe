"""Base weights, run folders, checkpoints, logs, records."""

import json

import torch
from safetensors.torch import load_file, save_file

from tests.starter_kit.bad_inputs.case import (
    Bad,
    all_of,
    cut,
    json_changed,
    line_changed,
    made,
    removed,
    written,
)

TRAIN = "train fedavg --data data --base base --out out"
CHECK = "check private --base base --track track-2 --clients 3"
ONE = "check adapters --base base --clients 3"


def tensors(name, change):
    def spoil(f):
        t = load_file(f / name)
        t = change(t) or t
        save_file(t, f / name)

    return spoil


def first(t):
    return sorted(t)[0]


def nan(t):
    t[first(t)].view(-1)[0] = float("nan")


def record(n, change):
    return line_changed("private/training_record.jsonl", n, change)


def annex(n, change):
    return line_changed("private/training_annex.jsonl", n, change)


def js(**kw):
    return lambda line: json.dumps(json.loads(line) | kw)


R = "E_REFERENCE_FORMAT"
LOGS: list[tuple[str, str, str, str | bytes]] = [
    ("empty", "E_LOG_COLUMNS", "line 1", ""),
    (
        "latin",
        "E_LOG_ENCODING",
        "line 2",
        b"federated_round,sender,receiver,amount_of_bytes\n1,-1,0,\xe4\n",
    ),
    ("semicolons", "E_LOG_COLUMNS", "line 1", "federated_round;sender;receiver;amount_of_bytes\n"),
    ("float", "E_LOG_ROW", "line 2", "federated_round,sender,receiver,amount_of_bytes\n1,-1,0,1.5\n"),
    (
        "round0",
        "E_LOG_ROUND",
        "line 2",
        "federated_round,sender,receiver,amount_of_bytes\n0,-1,0,15\n",
    ),
    (
        "back",
        "E_LOG_ROUND",
        "line 3",
        "federated_round,sender,receiver,amount_of_bytes\n2,-1,0,15\n1,-1,0,15\n",
    ),
    (
        "party",
        "E_LOG_PARTY",
        "line 2",
        "federated_round,sender,receiver,amount_of_bytes\n1,-1,7,15\n",
    ),
    ("peers", "E_LOG_PARTY", "line 2", "federated_round,sender,receiver,amount_of_bytes\n1,1,0,15\n"),
    ("neg", "E_LOG_BYTES", "line 2", "federated_round,sender,receiver,amount_of_bytes\n1,-1,0,-15\n"),
    (
        "huge",
        "E_LOG_BYTES",
        "line 2",
        "federated_round,sender,receiver,amount_of_bytes\n1,-1,0," + "9" * 40 + "\n",
    ),
    (
        "digits",
        "E_LOG_ROW",
        "line 2",
        "federated_round,sender,receiver,amount_of_bytes\n1,-1,0," + "9" * 5000 + "\n",
    ),
    (
        "arabic",
        "E_LOG_ROW",
        "line 2",
        "federated_round,sender,receiver,amount_of_bytes\n1,-1,0,\u0663\n",
    ),
    ("nul", "E_LOG_ROW", "line 2", "federated_round,sender,receiver,amount_of_bytes\n1,-1,0,\x003\n"),
]

CASES = [
    Bad("base nowhere", TRAIN.replace("base base", "base nowhere"), R, "nowhere"),
    Bad("base file", TRAIN.replace("base base", "base file"), R, "file", written("file", "x")),
    Bad("base no config", TRAIN, R, "config.json", removed("base/config.json")),
    Bad(
        "base config {}",
        TRAIN,
        "E_REFERENCE_ARCHITECTURE",
        "config.json",
        written("base/config.json", "{}"),
    ),
    Bad("base config cut", TRAIN, R, "config.json", cut("base/config.json", 50)),
    Bad("base config list", TRAIN, R, "config.json", written("base/config.json", "[]")),
    Bad(
        "base config d_model",
        TRAIN,
        "E_CHECKPOINT_SHAPE",
        "base/model.safetensors",
        json_changed("base/config.json", lambda c: c | {"d_model": 48}),
    ),
    Bad(
        "base config d_model text",
        TRAIN,
        R,
        "",
        json_changed("base/config.json", lambda c: c | {"d_model": "many"}),
    ),
    Bad(
        "base config d_model -1",
        TRAIN,
        R,
        "",
        json_changed("base/config.json", lambda c: c | {"d_model": -1}),
    ),
    Bad(
        "base visual config gone",
        TRAIN,
        "E_CHECKPOINT_MISSING_TENSOR",
        "base/model.safetensors",
        removed("base/visual_config.json"),
    ),
    Bad("base visual config cut", TRAIN, R, "base/", cut("base/visual_config.json", 20)),
    Bad("base tokenizer gone", TRAIN, R, "tokenizer", removed("base/tokenizer.json")),
    Bad("base tokenizer cut", TRAIN, R, "tokenizer", cut("base/tokenizer.json", 500)),
    Bad("base tokenizer {}", TRAIN, R, "tokenizer", written("base/tokenizer.json", "{}")),
    Bad(
        "base weights gone",
        TRAIN,
        "E_ARTIFACT_MISSING",
        "base/model.safetensors",
        removed("base/model.safetensors"),
    ),
    Bad(
        "base weights cut",
        TRAIN,
        "E_CHECKPOINT_FORMAT",
        "base/model.safetensors",
        cut("base/model.safetensors", -100),
    ),
    Bad(
        "base weights empty",
        TRAIN,
        "E_CHECKPOINT_FORMAT",
        "base/model.safetensors",
        written("base/model.safetensors", ""),
    ),
    Bad(
        "base weights header huge",
        TRAIN,
        "E_CHECKPOINT_FORMAT",
        "base/model.safetensors",
        written("base/model.safetensors", b"\xff" * 64),
    ),
    Bad(
        "base weights lack",
        TRAIN,
        "E_CHECKPOINT_MISSING_TENSOR",
        "base/model.safetensors",
        tensors("base/model.safetensors", lambda t: t.pop(first(t)) is None),
    ),
    Bad(
        "base weights extra",
        TRAIN,
        "E_CHECKPOINT_EXTRA_TENSOR",
        "base/model.safetensors, tensor more",
        tensors("base/model.safetensors", lambda t: t.update(more=torch.zeros(2))),
    ),
    Bad(
        "base weights nan",
        TRAIN,
        "E_CHECKPOINT_NOT_FINITE",
        "base/model.safetensors",
        tensors("base/model.safetensors", nan),
    ),
    Bad(
        "base pickle text",
        TRAIN,
        "E_CHECKPOINT_FORMAT",
        "pytorch_model.bin",
        all_of(removed("base/model.safetensors"), written("base/pytorch_model.bin", "no pickle")),
    ),
    Bad("run nowhere", CHECK.replace("private", "nowhere"), "E_RUN_FOLDER", "nowhere"),
    Bad("run a file", CHECK.replace("private", "file"), "E_RUN_FOLDER", "file", written("file", "x")),
    Bad(
        "run lacks model",
        ONE,
        "E_ARTIFACT_MISSING",
        "model.safetensors",
        removed("adapters/model.safetensors"),
    ),
    Bad(
        "run lacks log",
        ONE,
        "E_ARTIFACT_MISSING",
        "communication_log",
        removed("adapters/communication_log.csv"),
    ),
    Bad("checkpoint cut", ONE, "E_CHECKPOINT_OFFSETS", "end of file", cut("adapters/model.safetensors", -8)),
    Bad(
        "checkpoint empty",
        ONE,
        "E_CHECKPOINT_FORMAT",
        "start of file",
        written("adapters/model.safetensors", ""),
    ),
    Bad(
        "checkpoint zip",
        ONE,
        "E_CHECKPOINT_FORMAT",
        "start of file",
        written("adapters/model.safetensors", b"PK\x03\x04" + b"0" * 100),
    ),
    Bad(
        "checkpoint dir",
        ONE,
        "E_ARTIFACT_MISSING",
        "model.safetensors",
        all_of(removed("adapters/model.safetensors"), made("adapters/model.safetensors")),
    ),
    Bad(
        "checkpoint lacks",
        ONE,
        "E_CHECKPOINT_MISSING_TENSOR",
        "tensor",
        tensors("adapters/model.safetensors", lambda t: t.pop(first(t)) is None),
    ),
    Bad(
        "checkpoint extra",
        ONE,
        "E_CHECKPOINT_EXTRA_TENSOR",
        "more",
        tensors("adapters/model.safetensors", lambda t: t.update(more=torch.zeros(2))),
    ),
    Bad(
        "checkpoint half",
        ONE,
        "E_CHECKPOINT_DTYPE",
        "tensor",
        tensors("adapters/model.safetensors", lambda t: {k: v.half() for k, v in t.items()}),
    ),
    Bad(
        "checkpoint shape",
        ONE,
        "E_CHECKPOINT_SHAPE",
        "tensor",
        tensors("adapters/model.safetensors", lambda t: t.update({first(t): t[first(t)][:1].contiguous()})),
    ),
    Bad(
        "checkpoint nan", ONE, "E_CHECKPOINT_NOT_FINITE", "tensor", tensors("adapters/model.safetensors", nan)
    ),
    Bad(
        "checkpoint cut evaluate",
        "evaluate adapters --data data --base base",
        "E_CHECKPOINT_FORMAT",
        "model.safetensors",
        cut("adapters/model.safetensors", -8),
    ),
    Bad(
        "checkpoint nan evaluate",
        "evaluate adapters --data data --base base",
        "E_CHECKPOINT_NOT_FINITE",
        "adapters/model.safetensors, tensor",
        tensors("adapters/model.safetensors", nan),
    ),
    Bad(
        "checkpoint shape evaluate",
        "evaluate adapters --data data --base base",
        "E_CHECKPOINT_SHAPE",
        "",
        tensors("adapters/model.safetensors", lambda t: t.update({first(t): t[first(t)][:1].contiguous()})),
    ),
    Bad(
        "evaluate a text file",
        "evaluate file --data data --base base",
        "E_CHECKPOINT_FORMAT",
        "file",
        written("file", "x"),
    ),
    *(
        Bad(f"log {name}", ONE, code, where, written("adapters/communication_log.csv", text))
        for name, code, where, text in LOGS
    ),
    Bad(
        "record gone",
        CHECK,
        "E_ARTIFACT_MISSING",
        "training_record",
        removed("private/training_record.jsonl"),
    ),
    Bad("record empty", CHECK, "E_RECORD_FORMAT", "line 1", written("private/training_record.jsonl", "")),
    Bad(
        "record text", CHECK, "E_RECORD_FORMAT", "line 1", written("private/training_record.jsonl", "hello\n")
    ),
    Bad("record cut", CHECK, "E_RECORD_FORMAT", "line", cut("private/training_record.jsonl", -20)),
    Bad("record nest", CHECK, "E_RECORD_FORMAT", "line 1", record(0, lambda line: "[" * 100000)),
    Bad("record first gone", CHECK, "E_RECORD_FORMAT", "line 1", record(0, lambda line: "{}")),
    Bad("record changed", CHECK, "E_RECORD_CHAIN", "line", record(1, lambda line: line.replace("1", "2", 1))),
    Bad(
        "record signature",
        CHECK,
        "E_RECORD_SIGNATURE",
        "line",
        record(-1, lambda line: line.replace('"signature":"', '"signature":"0', 1)),
    ),
    Bad("record extra", CHECK, "E_RECORD_FORMAT", "line 4", record(-1, lambda line: line + "\n{}")),
    Bad(
        "record huge int",
        CHECK,
        "E_RECORD_FORMAT",
        "line 1",
        record(0, lambda line: line.replace('"rounds":', '"rounds":' + "9" * 5000, 1)),
    ),
    Bad(
        "record utf",
        CHECK,
        "E_RECORD_FORMAT",
        "line",
        lambda f: (f / "private/training_record.jsonl").write_bytes(
            b"\xff\xfe" + (f / "private/training_record.jsonl").read_bytes()
        ),
    ),
    Bad("annex gone", CHECK, "E_ARTIFACT_MISSING", "annex", removed("private/training_annex.jsonl")),
    Bad("annex cut", CHECK, "E_RECORD_ANNEX", "line 1", cut("private/training_annex.jsonl", -20)),
    Bad("annex empty", CHECK, "E_RECORD_ANNEX", "line 1", written("private/training_annex.jsonl", "")),
    Bad("annex line", CHECK, "E_RECORD_ANNEX", "line 1", annex(0, lambda line: "{}")),
    Bad(
        "privacy eps of broken",
        "privacy epsilon private/training_record.jsonl",
        "E_RECORD_FORMAT",
        "line",
        cut("private/training_record.jsonl", -20),
    ),
    Bad("privacy eps nowhere", "privacy epsilon nowhere", "E_ARTIFACT_MISSING", "nowhere"),
    Bad("privacy eps folder", "privacy epsilon private", "E_ARTIFACT_MISSING", "private"),
    Bad(
        "privacy explain budget",
        "privacy explain private/training_record.jsonl --budget nan",
        "E_CONFIGURATION",
        "--budget",
    ),
    Bad("privacy annex challenge", "privacy annex private --challenge xyz", "E_CONFIGURATION", "--challenge"),
    Bad(
        "privacy annex no vectors",
        "privacy annex private --challenge " + "a" * 64,
        "E_RECORD_CHALLENGE",
        "private/vectors",
        removed("private/vectors"),
    ),
    Bad(
        "privacy annex public",
        "privacy annex adapters --challenge " + "a" * 64,
        "E_ARTIFACT_MISSING",
        "record",
    ),
    Bad(
        "replay open notreplayable",
        "replay open private --challenge " + "a" * 64,
        "E_REPLAY_UNSUPPORTED",
        "training record",
    ),
    Bad("replay open challenge", "replay open private --challenge xyz", "E_CONFIGURATION", "--challenge"),
    Bad(
        "replay run",
        "replay run private --data data --base base --challenge " + "a" * 64,
        "E_ARTIFACT_MISSING",
        "round_opening.bin",
    ),
]
