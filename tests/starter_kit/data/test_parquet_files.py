"""Data folders to Parquet files and back, and what else is found in such files."""

import io
import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from evaluator.docvqa.dataset import Dataset, read_info
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.main import app
from starter_kit.data import parquet_files
from starter_kit.data.parquet_files import export_parquet, import_parquet


def pfl_data(*arguments: object, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["data", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == status, result.output
    return result


def rewrite(path: Path, **changes: object) -> None:
    """Write the file's rows again, each changed, without the metadata, as another program would."""
    rows = [row | changes for row in pq.read_table(path).to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.fixture
def exported(data: Path, tmp_path: Path) -> Path:
    export_parquet(data, tmp_path / "parquet")
    return tmp_path / "parquet"


@pytest.fixture
def train(exported: Path) -> Path:
    return exported / "data" / "train-00000-of-00001.parquet"


def test_a_data_folder_comes_back_as_it_was(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "PAGES_IN_A_FILE", 4)
    pfl_data("export", data, tmp_path / "parquet", "--format", "parquet")
    assert {path.name for path in (tmp_path / "parquet" / "data").iterdir()} == {
        f"{split}-0000{part}-of-00002.parquet" for split in ("train", "validation") for part in (0, 1)
    }
    pfl_data("parquet", tmp_path / "parquet", tmp_path / "back")
    back = tmp_path / "back" / "public"
    assert read_info(back) == read_info(data)
    for split in ("train", "valid"):
        assert Dataset(back, split).sha256() == Dataset(data, split).sha256()
    for path in (data / "images").iterdir():
        assert (back / "images" / path.name).read_bytes() == path.read_bytes()
    assert not (tmp_path / "back" / "secret").exists()


def test_splits_for_attacks_come_back_into_the_secret_folder(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "secret"
    shutil.copytree(data, folder)
    (folder / "valid").rename(folder / "red-of-mine")
    pfl_data("export", folder, tmp_path / "parquet", "--format", "parquet")
    # A split's name has no hyphens in `datasets`.
    assert "split: red.of.mine" in (tmp_path / "parquet" / "README.md").read_text()
    pfl_data("parquet", tmp_path / "parquet", tmp_path / "back")
    back = tmp_path / "back" / "secret"
    assert Dataset(back, "red-of-mine").sha256() == Dataset(folder, "red-of-mine").sha256()
    assert not (tmp_path / "back" / "public" / "red-of-mine").exists()


def test_files_name_the_features_that_datasets_makes_of_them(exported: Path, train: Path) -> None:
    stored = pq.read_schema(train)
    features = json.loads(stored.metadata[b"huggingface"])["info"]["features"]
    assert list(features) == stored.names
    assert features["image"] == {"_type": "Image"}
    assert "path: data/validation-*.parquet" in (exported / "README.md").read_text()


def test_without_the_description_clients_follow_from_the_column(train: Path, tmp_path: Path) -> None:
    rewrite(train)
    for other in train.parent.glob("validation*"):
        other.unlink()
    import_parquet(tmp_path / "parquet", tmp_path / "public", tmp_path / "secret")
    assert read_info(tmp_path / "public").clients == {
        0: ["Ash", "Birch"],
        1: ["Cedar", "Dogwood"],
        2: ["Elm", "Fir"],
    }


def test_images_are_encoded_again_where_they_are_large_or_say_more_than_their_picture(
    train: Path, tmp_path: Path
) -> None:
    large = io.BytesIO()
    Image.new("RGB", (3000, 20)).save(large, "PNG")
    rewrite(train, image={"bytes": large.getvalue(), "path": "x.png"})
    import_parquet(tmp_path / "parquet", tmp_path / "public", tmp_path / "secret")
    with Image.open(tmp_path / "public" / "images" / "train0_0.jpg") as image:
        assert (image.format, image.size[0]) == ("JPEG", 1000)

    commented = io.BytesIO()
    Image.new("RGB", (20, 20)).save(commented, "JPEG", comment=b"who wrote it")
    rewrite(train, image={"bytes": commented.getvalue(), "path": "x.jpg"})
    import_parquet(tmp_path / "parquet", tmp_path / "again", tmp_path / "secret")
    assert b"who wrote it" not in (tmp_path / "again" / "images" / "train0_0.jpg").read_bytes()


@pytest.mark.parametrize(
    ("image", "counted"),
    [
        ({"bytes": b"broken", "path": "x.jpg"}, "Image can't be read"),
        ({"bytes": None, "path": "x.jpg"}, "Image is missing"),
        (None, "Image is missing"),
    ],
)
def test_a_page_without_a_readable_image_is_left_out_and_counted(
    train: Path, tmp_path: Path, image: dict[str, object] | None, counted: str
) -> None:
    rewrite(train, image=image)
    result = pfl_data("parquet", tmp_path / "parquet", tmp_path / "back")
    assert counted in result.stdout


@pytest.mark.parametrize("described", [True, False])
def test_a_provider_with_two_clients_is_rejected(train: Path, tmp_path: Path, described: bool) -> None:
    table = pq.read_table(train)
    rows = table.to_pylist()
    rows[-1] |= {"provider": "Ash", "client": 2}
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema if described else None), train)
    with pytest.raises(ProblemError, match="the client of Ash elsewhere") as error:
        import_parquet(tmp_path / "parquet", tmp_path / "public", tmp_path / "secret")
    assert error.value.problem.found == "2"


def test_files_with_different_descriptions_are_rejected(exported: Path, train: Path, tmp_path: Path) -> None:
    table = pq.read_table(train)
    info = json.loads(table.schema.metadata[b"pfl_docvqa"]) | {"clients": {}}
    changed = table.replace_schema_metadata(
        table.schema.metadata | {b"pfl_docvqa": json.dumps(info).encode()}
    )
    pq.write_table(changed, train)
    with pytest.raises(ProblemError, match="the same pfl_docvqa as in the other files"):
        import_parquet(exported, tmp_path / "public", tmp_path / "secret")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"page": "../../escaped"}, "page"),
        ({"boxes": [[0.0, 0.0, 7.0, 1.0]]}, "boxes"),
        ({"client": None}, "none"),
        ({"rotation": 90}, "rotation"),
        ({"image": {"bytes": None, "path": None, "crop": [0, 0, 5, 5]}}, "image.crop"),
        (
            {"questions": [{"question_id": "1", "question": "?", "answers": ["x"], "unit": "EUR"}]},
            "questions.0.unit",
        ),
    ],
)
def test_a_row_that_is_none_of_a_data_folder_is_rejected(
    train: Path, tmp_path: Path, changes: dict[str, object], found: str
) -> None:
    rewrite(train, **changes)
    with pytest.raises(ProblemError) as error:
        import_parquet(tmp_path / "parquet", tmp_path / "public", tmp_path / "secret")
    assert error.value.problem.code is ErrorCode.DATASET_FORMAT
    assert found in error.value.problem.found


def test_other_files_are_rejected(train: Path, tmp_path: Path) -> None:
    train.write_bytes(b"nothing")
    assert "a Parquet file" in pfl_data("parquet", tmp_path / "parquet", tmp_path / "out", status=2).output
    pq.write_table(pa.table({"question": ["?"]}), train)
    assert "found: no boxes" in pfl_data("parquet", tmp_path / "parquet", tmp_path / "out", status=2).output
    assert "found: none" in pfl_data("parquet", tmp_path / "nowhere", tmp_path / "out", status=2).output
    assert not (tmp_path / "out").exists()


def test_without_pyarrow_the_message_says_how_to_install_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ProblemError) as error:
        export_parquet(data, tmp_path / "parquet")
    assert ".[kit,parquet]" in error.value.problem.next_step
