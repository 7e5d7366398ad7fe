"""Sources of the importers."""

import os

import numpy as np

from tests.starter_kit.bad_inputs.case import (
    Bad,
    cut,
    json_changed,
    removed,
    written,
)

CODE = "E_DATASET_FORMAT"
IMDB = "data imdb imdb out"
FILE = "imdb/imdb/imdb_train_client_0.npy"


def rows(change, name=FILE):
    def spoil(folder):
        loaded = list(np.load(folder / name, allow_pickle=True))
        loaded = change(loaded) or loaded
        array = np.empty(len(loaded), dtype=object)
        array[:] = loaded
        np.save(folder / name, array, allow_pickle=True)

    return spoil


def row(**values):
    return rows(lambda r: r[1].update(values))


def without(key):
    return rows(lambda r: (r[1].pop(key), None)[1])


def saved(array, name=FILE):
    return lambda f: np.save(f / name, array)


class Evil:
    def __reduce__(self):
        return (os.system, ("touch owned",))


def evil(folder):
    array = np.empty(2, dtype=object)
    array[:] = [{}, Evil()]
    np.save(folder / FILE, array, allow_pickle=True)


def points(change):
    return json_changed("imdb/imdb/data_points.json", change)


DOCILE = "data docile docile out"


def annotation(change):
    return json_changed("docile/annotations/d0.json", change)


def geometry(corners):
    def change(ocr):
        ocr["pages"][0]["blocks"][0]["lines"][0]["words"][0]["geometry"] = corners

    return json_changed("docile/ocr/d0.json", change)


CASES = [
    Bad("docile: nothing there", "data docile nowhere out", CODE, "nowhere"),
    Bad("docile: another layout", "data docile receipts out", CODE, "receipts"),
    Bad("docile: no JSON", DOCILE, CODE, "d0.json", written("docile/annotations/d0.json", "{")),
    Bad(
        "docile: no page count",
        DOCILE,
        CODE,
        "d0.json",
        annotation(lambda a: a["metadata"].pop("page_count") and None),
    ),
    Bad(
        "docile: a field on no page",
        DOCILE,
        CODE,
        "d0.json",
        annotation(lambda a: a["field_extractions"][0].update(page=1)),
    ),
    Bad(
        "docile: words of another page",
        DOCILE,
        CODE,
        "d0.json",
        written("docile/ocr/d0.json", '{"pages": []}'),
    ),
    Bad("docile: half a box", DOCILE, CODE, "d0.json", geometry([[0, 0]])),
    Bad("docile: a box nowhere", DOCILE, CODE, "d0.json", geometry([[float("nan"), 0], [1, 1]])),
    Bad("docile: no such split", f"{DOCILE} --split none", CODE, "none.json"),
    Bad(
        "docile: a split of other documents",
        f"{DOCILE} --split all",
        CODE,
        "all.json",
        json_changed("docile/all.json", lambda names: names.append("d99")),
    ),
    Bad("docile: no such partition", f"{DOCILE} --partition dirichlet:-1", "E_CONFIGURATION", "--partition"),
    Bad("docile: too many clients", f"{DOCILE} --clients 100", CODE, "--clients"),
    Bad(
        "forms: another seed file",
        "data forms out --seed-file file",
        "E_CONFIGURATION",
        "--seed-file",
        written("file", "7"),
    ),
    Bad("imdb: nothing there", "data imdb nowhere out", CODE, "nowhere"),
    Bad("imdb: a file", "data imdb file out", CODE, "file", written("file", "x")),
    Bad("imdb: no npy", IMDB, CODE, "imdb_train_client_0.npy", written(FILE, "not numpy")),
    Bad("imdb: empty", IMDB, CODE, "imdb_train_client_0.npy", written(FILE, "")),
    Bad("imdb: cut", IMDB, CODE, "imdb_train_client_0.npy", cut(FILE, -50)),
    Bad("imdb: floats", IMDB, CODE, "imdb_train_client_0.npy", saved(np.zeros((3, 4)))),
    Bad("imdb: texts", IMDB, CODE, "imdb_train_client_0.npy", saved(np.array(["a", "b"]))),
    Bad("imdb: 0-d", IMDB, CODE, "imdb_train_client_0.npy", saved(np.array({"a": 1}, dtype=object))),
    Bad(
        "imdb: npz",
        IMDB,
        CODE,
        "imdb_train_client_0.npy",
        lambda f: (np.savez(f / "x.npz", a=np.zeros(3)), os.replace(f / "x.npz", f / FILE)),
    ),
    Bad(
        "imdb: pickle",
        IMDB,
        CODE,
        "imdb_train_client_0.npy",
        lambda f: (f / FILE).write_bytes(b"\x80\x04]\x94}\x94a."),
    ),
    Bad("imdb: code", IMDB, CODE, "imdb_train_client_0.npy", evil),
    Bad("imdb: header only", IMDB, CODE, "data_points.json, Ash", rows(lambda r: r[:1])),
    Bad("imdb: no header", IMDB, CODE, "data_points.json, Birch", rows(lambda r: r[1:])),
    Bad(
        "imdb: row is a list",
        IMDB,
        CODE,
        "imdb_train_client_0.npy, row 1",
        rows(lambda r: [r[0], [1, 2], *r[2:]]),
    ),
    *(
        Bad(f"imdb: no {key}", IMDB, CODE, "imdb_train_client_0.npy, row 1", without(key))
        for key in ("question", "answers", "image_name", "ocr_tokens", "ocr_normalized_boxes")
    ),
    Bad("imdb: question number", IMDB, CODE, "row 1", row(question=3)),
    Bad("imdb: answers None", IMDB, CODE, "row 1", row(answers=None)),
    Bad("imdb: image_name with slash", IMDB, CODE, "row 1", row(image_name="../../x")),
    Bad("imdb: image_name number", IMDB, CODE, "row 1", row(image_name=3)),
    Bad("imdb: tokens is text", IMDB, CODE, "row 1", row(ocr_tokens="abc")),
    Bad("imdb: tokens of numbers", IMDB, CODE, "row 1", row(ocr_tokens=[1, 2, 3])),
    Bad("imdb: fewer boxes", IMDB, CODE, "row 1", row(ocr_normalized_boxes=np.zeros((1, 4)))),
    Bad("imdb: boxes of 3", IMDB, CODE, "row 1", row(ocr_normalized_boxes=np.zeros((3, 3)))),
    Bad("imdb: boxes NaN", IMDB, CODE, "row 1", row(ocr_normalized_boxes=np.full((3, 4), np.nan))),
    Bad("imdb: boxes of text", IMDB, CODE, "row 1", row(ocr_normalized_boxes=[["a"] * 4] * 3)),
    Bad("imdb: boxes ragged", IMDB, CODE, "row 1", row(ocr_normalized_boxes=[[0, 0, 1, 1], [0], [0, 1]])),
    Bad("imdb: points cut", IMDB, CODE, "data_points.json", cut("imdb/imdb/data_points.json", 20)),
    Bad("imdb: points missing", IMDB, CODE, "imdb", removed("imdb/imdb/data_points.json")),
    Bad("imdb: points list", IMDB, CODE, "data_points.json", points(lambda c: [c])),
    Bad(
        "imdb: points text rows",
        IMDB,
        CODE,
        "data_points.json",
        points(lambda c: {"client_0": {"Ash": ["1"]}}),
    ),
    Bad(
        "imdb: points row float",
        IMDB,
        CODE,
        "data_points.json",
        points(lambda c: {"client_0": {"Ash": [1.5]}}),
    ),
    Bad(
        "imdb: points row huge",
        IMDB,
        CODE,
        "data_points.json",
        points(lambda c: {"client_0": {"Ash": [10**30]}}),
    ),
    Bad(
        "imdb: points client name", IMDB, CODE, "data_points.json", points(lambda c: {"first": {"Ash": [1]}})
    ),
    Bad("imdb: points flat", IMDB, CODE, "data_points.json", points(lambda c: {"Ash": [1]})),
    Bad("imdb: images option wrong", IMDB + " --images nowhere", CODE, "nowhere"),
    Bad("imdb: all images missing", IMDB, CODE, "images", removed("imdb/images")),
    Bad("imdb: out exists", IMDB, "E_DATASET_FOLDER", "out", written("out/thesis.tex", "x")),
    Bad("imdb: out file", IMDB, "E_DATASET_FOLDER", "out", written("out", "x")),
    Bad(
        "imdb: out below a file", "data imdb imdb file/out", "E_DATASET_FOLDER", "file", written("file", "x")
    ),
    Bad("imdb: out inside the source", "data imdb imdb imdb/images", "E_DATASET_FOLDER", "imdb/images"),
    Bad("imdb: out is source, force", "data imdb imdb imdb --force", "E_DATASET_FOLDER", "imdb"),
    Bad("parquet: nothing", "data parquet nowhere out", CODE, "nowhere"),
    Bad(
        "parquet: cut",
        "data parquet parquet out",
        CODE,
        "train-00000-of-00001.parquet",
        cut("parquet/data/train-00000-of-00001.parquet", 300),
    ),
    Bad(
        "parquet: text",
        "data parquet parquet out",
        CODE,
        "train-00000-of-00001.parquet",
        written("parquet/data/train-00000-of-00001.parquet", "x" * 500),
    ),
    Bad(
        "parquet: empty",
        "data parquet parquet out",
        CODE,
        "train-00000-of-00001.parquet",
        written("parquet/data/train-00000-of-00001.parquet", ""),
    ),
    Bad("receipts: no box", "data receipts receipts out", CODE, "receipts", removed("receipts/box")),
    Bad("receipts: no key", "data receipts receipts out", CODE, "receipts", removed("receipts/key")),
    Bad("receipts: no img", "data receipts receipts out", CODE, "receipts", removed("receipts/img")),
    Bad(
        "receipts: more clients than companies",
        "data receipts receipts out --clients 900",
        "E_DATASET_FORMAT",
        "--clients",
    ),
    Bad("synthetic: no pages", "data synthetic out --train-pages 0", "E_CONFIGURATION", "--train-pages"),
    Bad("synthetic: few pages", "data synthetic out --train-pages 3", "E_CONFIGURATION", "--train-pages"),
    Bad(
        "synthetic: negative",
        "data synthetic out --train-providers -5",
        "E_CONFIGURATION",
        "--train-providers",
    ),
    Bad(
        "synthetic: many",
        "data synthetic out --train-providers 200000",
        "E_CONFIGURATION",
        "--train-providers",
    ),
    Bad("synthetic: clients", "data synthetic out --clients 500", "E_CONFIGURATION", "--"),
    Bad("synthetic: valid", "data synthetic out --valid-pages -1", "E_CONFIGURATION", "--valid-pages"),
    Bad("forms: none", "data forms out --providers 0", "E_CONFIGURATION", "--providers"),
    Bad("forms: many", "data forms out --providers 2000000000", "E_CONFIGURATION", "--providers"),
    Bad("forms: valid", "data forms out --valid-forms -1", "E_CONFIGURATION", "--valid-forms"),
    Bad("forms: valid more", "data forms out --valid-forms 100000", "E_CONFIGURATION", "--valid-forms"),
    Bad("forms: red", "data forms out --providers 10 --red-providers 11", "E_CONFIGURATION", "--providers"),
    Bad("forms: clients", "data forms out --providers 5", "E_CONFIGURATION", "--"),
    Bad("forms: out file", "data forms out", "E_DATASET_FOLDER", "out", written("out", "x")),
    Bad("forms: out below a file", "data forms file/out", "E_DATASET_FOLDER", "file", written("file", "x")),
]
