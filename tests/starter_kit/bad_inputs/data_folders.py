"""Data folders that lack a file, or have a broken one."""

import json

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

CODE = "E_DATASET_FORMAT"
TRAIN = "train fedavg --data data --base base --out out"
PLAN = "plan fedavg --data data --base base"
LEAK = "leakage adapters --data data --base base"


def info(change):
    return json_changed("data/dataset.json", change)


def page(change, number=0):
    return line_changed("data/train/pages.jsonl", number, lambda line: json.dumps(json.loads(line) | change))


def question(change, number=0):
    return line_changed(
        "data/train/questions.jsonl", number, lambda line: json.dumps(json.loads(line) | change)
    )


CASES = [
    Bad("a data folder that isn't there", TRAIN.replace("data data", "data nowhere"), CODE, "nowhere"),
    Bad("a file for a folder", TRAIN.replace("data data", "data file"), CODE, "file", written("file", "x")),
    Bad("no dataset.json", TRAIN, CODE, "dataset.json", removed("data/dataset.json")),
    Bad(
        "a folder for dataset.json",
        TRAIN,
        CODE,
        "dataset.json",
        all_of(removed("data/dataset.json"), made("data/dataset.json")),
    ),
    Bad("dataset.json cut short", TRAIN, CODE, "dataset.json", cut("data/dataset.json", 30)),
    Bad(
        "dataset.json in UTF-16 without a mark",
        TRAIN,
        CODE,
        "dataset.json",
        lambda f: (f / "data/dataset.json").write_text((f / "data/dataset.json").read_text(), "utf-16-le"),
    ),
    Bad("another format", TRAIN, CODE, "dataset.json", info(lambda c: c | {"format": "pfl-docvqa/2"})),
    Bad(
        "a client that has no number",
        TRAIN,
        CODE,
        "dataset.json",
        info(lambda c: c | {"clients": {"first": ["Ash"]}}),
    ),
    Bad("a negative client", TRAIN, CODE, "dataset.json", info(lambda c: c | {"clients": {"-1": ["Ash"]}})),
    Bad(
        "a client of number 10^30",
        TRAIN,
        CODE,
        "dataset.json",
        info(lambda c: c | {"clients": {"1" + "0" * 30: ["Ash"]}}),
    ),
    Bad("no clients", TRAIN, CODE, "dataset.json", info(lambda c: c | {"clients": {}})),
    Bad(
        "clients of nobody",
        TRAIN,
        CODE,
        "dataset.json, clients",
        info(lambda c: c | {"clients": {"0": [], "1": []}}),
    ),
    Bad(
        "a provider of two clients",
        TRAIN,
        CODE,
        "dataset.json",
        info(lambda c: c | {"clients": {"0": ["Ash"], "1": ["Ash"]}}),
    ),
    Bad(
        "a provider that a client lists twice",
        TRAIN,
        CODE,
        "dataset.json",
        info(lambda c: c | {"clients": {"0": ["Ash", "Ash"], "1": ["Elm"]}}),
    ),
    Bad("an unknown key", TRAIN, CODE, "dataset.json", info(lambda c: c | {"owner": "me"})),
    Bad("no training split", TRAIN, CODE, "data/train", removed("data/train")),
    Bad("no pages", TRAIN, CODE, "pages.jsonl", removed("data/train/pages.jsonl")),
    Bad("no questions", TRAIN, CODE, "questions.jsonl", removed("data/train/questions.jsonl")),
    Bad("an empty list of questions", TRAIN, CODE, "train", written("data/train/questions.jsonl", "")),
    Bad("an empty list of pages", TRAIN, CODE, "questions.jsonl", written("data/train/pages.jsonl", "")),
    Bad("pages cut inside a line", TRAIN, CODE, "pages.jsonl, line 6", cut("data/train/pages.jsonl", -40)),
    Bad(
        "questions cut inside a line",
        TRAIN,
        CODE,
        "questions.jsonl, line 12",
        cut("data/train/questions.jsonl", -40),
    ),
    Bad(
        "pages in Latin-1",
        TRAIN,
        CODE,
        "pages.jsonl",
        lambda f: (f / "data/train/pages.jsonl").write_bytes(
            (f / "data/train/pages.jsonl").read_bytes().replace(b"Ash", b"\xc4sh")
        ),
    ),
    Bad(
        "questions in Latin-1",
        TRAIN,
        CODE,
        "questions.jsonl",
        lambda f: (f / "data/train/questions.jsonl").write_bytes(
            (f / "data/train/questions.jsonl").read_bytes().replace(b"Ash", b"\xc4sh")
        ),
    ),
    Bad(
        "a byte order mark",
        TRAIN,
        CODE,
        "pages.jsonl, line 1",
        lambda f: (f / "data/train/pages.jsonl").write_bytes(
            b"\xef\xbb\xbf" + (f / "data/train/pages.jsonl").read_bytes()
        ),
    ),
    Bad(
        "a list of pages as one JSON list",
        TRAIN,
        CODE,
        "pages.jsonl, line 1",
        written("data/train/pages.jsonl", "[]\n"),
    ),
    Bad(
        "an empty line",
        TRAIN,
        CODE,
        "pages.jsonl, line 1",
        line_changed("data/train/pages.jsonl", 0, lambda x: "\n" + x),
    ),
    Bad(
        "a page whose name leads elsewhere",
        TRAIN,
        CODE,
        "questions.jsonl, line 1",
        page({"page": "../../secret"}),
    ),
    Bad("more words than boxes", TRAIN, CODE, "pages.jsonl, line 1", page({"words": ["a"] * 5})),
    Bad("a box of three numbers", TRAIN, CODE, "pages.jsonl, line 1", page({"boxes": [[0, 0, 1]] * 3})),
    Bad("boxes in pixels", TRAIN, CODE, "pages.jsonl, line 1", page({"boxes": [[10, 10, 300, 20]] * 3})),
    Bad("a box of NaN", TRAIN, CODE, "pages.jsonl, line 1", page({"boxes": [[float("nan"), 0, 1, 1]] * 3})),
    Bad("a word that is a number", TRAIN, CODE, "pages.jsonl, line 1", page({"words": [1, 2, 3]})),
    Bad("a lone surrogate", TRAIN, CODE, "pages.jsonl, line 1", page({"words": ["\ud800", "b", "c"]})),
    Bad("a question about no page", TRAIN, CODE, "questions.jsonl, line 1", question({"page": "nothing_0"})),
    Bad("answers that are one text", TRAIN, CODE, "questions.jsonl, line 1", question({"answers": "Ash"})),
    Bad("a question without an id", TRAIN, CODE, "questions.jsonl, line 1", question({"question_id": ""})),
    Bad(
        "a question with an unknown key", TRAIN, CODE, "questions.jsonl, line 1", question({"colour": "red"})
    ),
    Bad("an image that isn't there", TRAIN, CODE, "train0_0", removed("data/images/train0_0.jpg")),
    Bad("no images", TRAIN, CODE, "train", removed("data/images")),
    Bad("an empty image", TRAIN, CODE, "train0_0", written("data/images/train0_0.jpg", "")),
    Bad("an image cut short", TRAIN, CODE, "train0_0", cut("data/images/train0_0.jpg", 300)),
    Bad("a text for an image", TRAIN, CODE, "train0_0", written("data/images/train0_0.jpg", "no image")),
    Bad("plan: no clients", PLAN, CODE, "dataset.json", info(lambda c: c | {"clients": {}})),
    Bad("plan: broken question", PLAN, CODE, "questions.jsonl, line 1", question({"answers": 3})),
    Bad(
        "evaluate: no split",
        "evaluate adapters --data data --base base",
        CODE,
        "valid",
        removed("data/valid"),
    ),
    Bad(
        "evaluate: test that isn't there",
        "evaluate adapters --data data --base base --split test",
        CODE,
        "test",
    ),
    Bad(
        "evaluate: empty split",
        "evaluate adapters --data data --base base",
        CODE,
        "valid",
        all_of(written("data/valid/pages.jsonl", ""), written("data/valid/questions.jsonl", "")),
    ),
    Bad("predict: no test set", "predict adapters out --data data --base base", CODE, "test"),
    Bad("leakage: no split", LEAK + " --split nothing", CODE, "nothing"),
    Bad("leakage: no members", LEAK, "E_LEAKAGE_LABELS", "dataset.json", info(lambda c: c | {"clients": {}})),
    Bad("leakage: all members", LEAK, "E_LEAKAGE_PROVIDERS", "the split's providers"),
    Bad("leakage: no reference data", LEAK + " --reference adapters", "E_CONFIGURATION", "--reference-data"),
    Bad("leakage: no claim", LEAK + " --escrow data", "E_CONFIGURATION", "--claimed-epsilon"),
    Bad("leakage: no escrow there", LEAK + " --escrow data --claimed-epsilon 1", "E_AUDIT_ESCROW", "escrow"),
    Bad(
        "leakage: NaN claim",
        LEAK + " --escrow data --claimed-epsilon nan",
        "E_CONFIGURATION",
        "--claimed-epsilon",
    ),
    Bad(
        "leakage: delta", LEAK + " --escrow data --claimed-epsilon 1 --delta 2", "E_CONFIGURATION", "--delta"
    ),
    Bad(
        "leakage: escrow broken",
        LEAK + " --escrow data --claimed-epsilon 1",
        "E_AUDIT_ESCROW",
        "escrow.json",
        written("data/escrow.json", "{"),
    ),
    Bad("inspect: nothing", "data inspect nowhere", CODE, "nowhere"),
    Bad("inspect: broken", "data inspect data", CODE, "pages.jsonl, line 1", page({"words": 3})),
    Bad("manifest: no train", "data manifest data", CODE, "data/train", removed("data/train")),
    Bad(
        "manifest: no questions",
        "data manifest data",
        CODE,
        "questions.jsonl",
        removed("data/train/questions.jsonl"),
    ),
    Bad(
        "canaries: no clients",
        "data canaries data out --count 100",
        CODE,
        "dataset.json",
        info(lambda c: c | {"clients": {}}),
    ),
    Bad("canaries: out inside", "data canaries data data/out --count 100", "E_DATASET_FOLDER", "data"),
    Bad("canaries: out is source", "data canaries data data --count 100 --force", "E_DATASET_FOLDER", "data"),
    Bad("split: none", "data split data --private 0.5", CODE, "test"),
    Bad("split: all private", "data split data --private nan --on valid", "E_CONFIGURATION", "--private"),
    Bad("export: out is source", "data export data data --force", "E_DATASET_FOLDER", "data"),
    Bad("export: inside", "data export data data/images", "E_DATASET_FOLDER", "data"),
    Bad(
        "export parquet: image missing",
        "data export data out --format parquet",
        CODE,
        "train0_0",
        removed("data/images/train0_0.jpg"),
    ),
]
