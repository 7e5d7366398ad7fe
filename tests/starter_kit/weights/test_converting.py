"""`pfl convert`: what frameworks save becomes a checkpoint, and hostile files do nothing. The reader is real."""

import contextlib
import json
import os
import pickle  # noqa: TID251 - to make a hostile file
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file

from evaluator.errors import Problem, ProblemError
from starter_kit.commands.main import app
from starter_kit.weights import isolation, state_dicts
from tests.evaluator.checkpoints.sharded import save_shards, split
from tests.services.forked import Forked

SHARED = "language_backbone.shared.weight"
ALIASES = [
    f"language_backbone.{part}.weight" for part in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")
]
PFL = [sys.executable, "-c", "from starter_kit.commands.main import main; main()"]

State = dict[str, torch.Tensor]


class RunsCode:
    """Unpickled, it makes a file named `ran` in the working directory."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch ran",)


@pytest.fixture
def weights(base: Path) -> State:
    return load_file(base / "model.safetensors")


def convert(source: Path, out: Path, *options: str | Path, status: int = 0) -> str:
    """Output and errors of `pfl convert`, run in the folder of `out`; its reader is a process of its own.

    The reader is forked from a process that has loaded torch; `convert_in_a_shell` starts it as users do.
    """
    arguments = [str(argument) for argument in ("convert", source, out, *options)]
    with contextlib.chdir(out.parent), patch.object(isolation, "_run", run_forked):
        result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "OMP_NUM_THREADS": "1"})
    assert result.exit_code == status, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert_clean(out, status)
    return result.output


def run_forked(command: Sequence[str], text: str) -> isolation.Ended:
    """Run `python -P -m MODULE ...` with `text` as its standard input, in a forked process."""
    words = command[command.index("-m") + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        stdin, stderr = Path(folder, "stdin"), Path(folder, "stderr")
        stdin.write_text(text)
        environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        reader = Forked(
            partial(become, words[0], stdin), words, environment=environment, stdout=stderr, stderr=stderr
        )
        status = reader.wait(600)
        return isolation.Ended(status, ["", *stderr.read_text().strip().splitlines()][-1])


def become(module: str, stdin: Path) -> None:
    with stdin.open() as sys.stdin:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def convert_in_a_shell(
    source: Path, out: Path, *options: str | Path, status: int = 0, wrapper: tuple[str, ...] = ()
) -> str:
    """As `convert`, with the command in a process of its own, which `wrapper` starts."""
    result = subprocess.run(
        [*wrapper, *PFL, "convert", *map(str, (source, out, *options))],
        capture_output=True, text=True, timeout=600, check=False, cwd=out.parent,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert_clean(out, status)
    return result.stdout + result.stderr


def assert_clean(out: Path, status: int) -> None:
    """Nothing is left but what was asked for, and nothing of a hostile file has run."""
    assert status == 0 or not out.exists()
    assert not list(out.parent.glob(".pfl-convert-*"))
    assert not (out.parent / "ran").exists()


def rejection(path: Path) -> Problem:
    """Why the reader rejects a file, asked in this process."""
    with pytest.raises(ProblemError) as rejected:
        state_dicts.rewritten(state_dicts.read([path], None, []), [])
    return rejected.value.problem


def assert_same(path: Path, weights: State) -> None:
    converted = load_file(path)
    assert converted.keys() == weights.keys()
    assert all(converted[name].dtype == torch.float32 for name in converted)
    assert all(torch.equal(converted[name], tensor) for name, tensor in weights.items())


def save_pickled_shards(folder: Path, shards: list[State]) -> Path:
    folder.mkdir()
    weight_map: dict[str, str] = {}
    for number, tensors in enumerate(shards, 1):
        name = f"pytorch_model-{number:05}-of-{len(shards):05}.bin"
        torch.save(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    return folder


def test_a_pickled_state_dict_becomes_the_checkpoint_without_tied_copies(
    base: Path, weights: State, tmp_path: Path
) -> None:
    tied = OrderedDict(weights) | dict.fromkeys(ALIASES, weights[SHARED])
    torch.save(tied, tmp_path / "pytorch_model.bin")
    output = convert_in_a_shell(tmp_path / "pytorch_model.bin", tmp_path / "run", "--base", base)
    assert_same(tmp_path / "run" / "model.safetensors", weights)
    assert f"dropped 3 copies of {SHARED}" in output
    assert "no network" in output
    assert f"{len(weights)} tensors" in output


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_both_formats_of_torch_are_read(weights: State, tmp_path: Path, zipped: bool) -> None:
    torch.save(weights, tmp_path / "w.pt", _use_new_zipfile_serialization=zipped)
    convert(tmp_path / "w.pt", tmp_path / "new.safetensors")
    assert_same(tmp_path / "new.safetensors", weights)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_rejected_before_anything_is_written(
    base: Path, weights: State, tmp_path: Path, value: float
) -> None:
    name = next(iter(weights))
    weights[name].view(-1)[1] = value
    torch.save(weights, tmp_path / "last.ckpt")
    output = convert(tmp_path / "last.ckpt", tmp_path / "run", "--base", base, status=2)
    assert "E_CHECKPOINT_NOT_FINITE" in output
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_nesting_and_prefixes_are_taken_off_and_reported(base: Path, weights: State, tmp_path: Path) -> None:
    wrapped = {f"module.{name}": tensor for name, tensor in weights.items()}
    torch.save({"epoch": 3, "state_dict": {"model": wrapped}}, tmp_path / "last.ckpt")
    output = convert(tmp_path / "last.ckpt", tmp_path / "run", "--base", base)
    assert_same(tmp_path / "run" / "model.safetensors", weights)
    assert 'under "state_dict", leaving out 1 other' in output
    assert 'under "model"' in output
    assert f'took "module." off all {len(weights)} names' in output


def test_other_number_formats_become_float32(weights: State, tmp_path: Path) -> None:
    dtypes = (torch.float16, torch.bfloat16, torch.float64)
    cast = {name: tensor.to(dtypes[place % 3]) for place, (name, tensor) in enumerate(weights.items())}
    torch.save(cast, tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run")
    assert_same(
        tmp_path / "run" / "model.safetensors", {name: tensor.float() for name, tensor in cast.items()}
    )
    for place, name in enumerate(("float16", "bfloat16", "float64")):
        assert f"wrote {len(list(weights)[place::3])} tensors of {name} as float32" in output


def test_views_and_empty_tensors_keep_their_numbers(tmp_path: Path) -> None:
    grid = torch.arange(12.0).reshape(3, 4)
    tensors = {"t": grid.T, "part": grid[:, 1:3], "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.0)}
    torch.save(tensors, tmp_path / "w.bin")
    convert(tmp_path / "w.bin", tmp_path / "run")
    assert_same(tmp_path / "run" / "model.safetensors", tensors)


def test_a_published_folder_named_like_a_file_is_converted(
    base: Path, weights: State, tmp_path: Path
) -> None:
    old, new = tmp_path / "best.ckpt", tmp_path / "newer.ckpt"
    old.mkdir()
    torch.save(weights, old / "pytorch_model.bin")
    (old / "config.json").write_text("{}")
    convert(old, tmp_path / "a", "--base", base)
    assert_same(tmp_path / "a" / "model.safetensors", weights)
    new.mkdir()
    save_file({name: tensor.half() for name, tensor in weights.items()}, new / "model.safetensors")
    convert(new, tmp_path / "b", "--base", base)
    assert_same(tmp_path / "b" / "model.safetensors", {name: t.half().float() for name, t in weights.items()})


def test_shards_of_both_kinds_are_converted(base: Path, weights: State, tmp_path: Path) -> None:
    convert(
        save_pickled_shards(tmp_path / "old", split(weights, 3)), tmp_path / "a.safetensors", "--base", base
    )
    assert_same(tmp_path / "a.safetensors", weights)
    save_shards(tmp_path / "new", split(weights, 3))
    convert(tmp_path / "new", tmp_path / "b.safetensors", "--base", base)
    assert_same(tmp_path / "b.safetensors", weights)


def test_a_pickled_shard_that_the_index_does_not_describe_is_rejected(weights: State, tmp_path: Path) -> None:
    folder = save_pickled_shards(tmp_path / "old", split(weights, 2))
    second = folder / "pytorch_model-00002-of-00002.bin"
    torch.save(split(weights, 2)[0], second)
    assert "E_CHECKPOINT_SHARD" in convert(folder, tmp_path / "run", status=2)
    second.unlink()
    assert second.name in convert(folder, tmp_path / "run", status=2)


def test_a_run_folder_gets_its_checkpoint_and_keeps_its_files(weights: State, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "communication_log.csv").write_text("log")
    torch.save(weights, tmp_path / "w.bin")
    convert(tmp_path / "w.bin", run)
    assert sorted(path.name for path in run.iterdir()) == ["communication_log.csv", "model.safetensors"]
    again = CliRunner().invoke(app, ["convert", str(tmp_path / "w.bin"), str(run)])
    assert again.exit_code == 2
    assert "E_RUN_FOLDER" in again.output
    assert_same(run / "model.safetensors", weights)


def save_nested(content: object, path: Path) -> None:
    torch.save({"state_dict": {"a": torch.ones(2)}, "more": {"deep": [content]}}, path)


def save_legacy(content: object, path: Path) -> None:
    torch.save({"a": content}, path, _use_new_zipfile_serialization=False)


def save_plain(content: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(content))


@pytest.mark.parametrize("save", [torch.save, save_nested, save_legacy, save_plain])
def test_a_hostile_pickle_is_rejected_and_nothing_of_it_runs(
    tmp_path: Path, save: Callable[[object, Path], None]
) -> None:
    save(RunsCode(), tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run", status=2)
    assert "E_CHECKPOINT_PICKLE" in output
    assert "code" in output


def test_a_hostile_pickle_is_rejected_with_network_too(tmp_path: Path) -> None:
    torch.save(RunsCode(), tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run", "--allow-network", status=2)
    assert "E_CHECKPOINT_PICKLE" in output


def test_a_hostile_shard_is_rejected(weights: State, tmp_path: Path) -> None:
    folder = save_pickled_shards(tmp_path / "old", split(weights, 2))
    torch.save({"x": RunsCode()}, folder / "pytorch_model-00002-of-00002.bin")
    output = convert(folder, tmp_path / "run", status=2)
    assert "E_CHECKPOINT_PICKLE" in output
    assert "system" in output


def huge() -> torch.Tensor:
    return torch.zeros(1).expand(10**12)


def shared() -> State:
    numbers = torch.zeros(1000)
    return {f"tensor {number}": numbers for number in range(1000)}


@pytest.mark.parametrize(
    ("content", "code", "found"),
    [
        ({"state_dict": {"a": torch.ones(1)}, "args": Namespace(x=1)}, "E_CHECKPOINT_PICKLE", "argparse"),
        (torch.nn.Linear(2, 2), "E_CHECKPOINT_PICKLE", "Linear"),
        ({"a": torch.ones(1), "epoch": 3}, "E_CHECKPOINT_FORMAT", "epoch: int"),
        ([torch.ones(1)], "E_CHECKPOINT_FORMAT", "list"),
        ({}, "E_CHECKPOINT_FORMAT", "no tensor"),
        ({3: torch.ones(1)}, "E_CHECKPOINT_FORMAT", "3: Tensor"),
        ({"ids": torch.arange(3)}, "E_CHECKPOINT_DTYPE", "int64"),
        ({"a": huge()}, "E_CHECKPOINT_FORMAT", "1000000000000"),
        ({"a": torch.eye(3).to_sparse()}, "E_CHECKPOINT_FORMAT", "sparse"),
        (shared(), "E_CHECKPOINT_FORMAT", "share their numbers"),
    ],
    ids=["args", "module", "extra", "list", "empty", "key", "integers", "huge", "sparse", "shared"],
)
def test_what_is_no_state_dict_is_named(tmp_path: Path, content: Any, code: str, found: str) -> None:
    torch.save(content, tmp_path / "w.bin")
    problem = rejection(tmp_path / "w.bin")
    assert problem.code == code
    assert found in str(problem)


@pytest.mark.parametrize(
    ("name", "found"), [("\ud800", "surrogates"), ("x" * 300, "256 characters")], ids=["surrogate", "long"]
)
def test_names_that_no_checkpoint_has_are_rejected(tmp_path: Path, name: str, found: str) -> None:
    torch.save({name: torch.ones(1)}, tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run", status=2)
    assert "E_CHECKPOINT_HEADER" in output
    assert found in output


@pytest.mark.parametrize(
    "content",
    [b"", b"hello world" * 100, b"\x1f\x8b\x08gzip", b"\x89HDF\r\n", b"GGUF\x03", b"PK\x03\x04" + bytes(50)],
)
def test_other_files_are_not_taken_for_pickles(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.bin").write_bytes(content)
    assert rejection(tmp_path / "w.bin").code == "E_CHECKPOINT_FORMAT"


def test_a_truncated_file_is_rejected(weights: State, tmp_path: Path) -> None:
    torch.save(weights, tmp_path / "w.bin")
    (tmp_path / "w.bin").write_bytes((tmp_path / "w.bin").read_bytes()[:-1000])
    assert "E_CHECKPOINT_FORMAT" in convert(tmp_path / "w.bin", tmp_path / "run", status=2)


def test_of_two_checkpoints_in_a_folder_none_is_guessed(weights: State, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    save_file(weights, source / "model.safetensors")
    save_file({"other": torch.zeros(2)}, source / "model-00001-of-00001.safetensors")
    index = {"weight_map": {"other": "model-00001-of-00001.safetensors"}}
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    found = convert(source, tmp_path / "out", status=2)
    assert "E_RUN_FOLDER" in found
    assert "it isn't clear which one is meant" in found


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "E_ARTIFACT_MISSING" in convert(tmp_path / "nowhere", tmp_path / "run", status=2)
    (tmp_path / "empty").mkdir()
    assert "pytorch_model.bin" in convert(tmp_path / "empty", tmp_path / "run", status=2)


def test_a_copy_that_differs_from_the_tied_tensor_is_rejected(weights: State, tmp_path: Path) -> None:
    torch.save(weights | {ALIASES[2]: weights[SHARED] + 1}, tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run", status=2)
    assert "E_CHECKPOINT_EXTRA_TENSOR" in output
    assert ALIASES[2] in output


def test_a_checkpoint_that_has_only_a_tied_name_gets_that_of_the_base(
    base: Path, weights: State, tmp_path: Path
) -> None:
    renamed = {ALIASES[2] if name == SHARED else name: tensor for name, tensor in weights.items()}
    torch.save(renamed, tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run", "--base", base)
    assert f"renamed {ALIASES[2]}" in output
    assert_same(tmp_path / "run" / "model.safetensors", weights)


def test_the_result_is_compared_with_the_base_weights(base: Path, weights: State, tmp_path: Path) -> None:
    first, second, *_ = (name for name in weights if name != SHARED)
    changed = {name: tensor for name, tensor in weights.items() if name != first}
    torch.save(changed | {second: torch.ones(1), "more": torch.ones(1)}, tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run", "--base", base, status=2)
    for code in ("E_CHECKPOINT_MISSING_TENSOR", "E_CHECKPOINT_SHAPE", "E_CHECKPOINT_EXTRA_TENSOR"):
        assert code in output
    missing = convert(tmp_path / "w.bin", tmp_path / "run", "--base", tmp_path, status=2)
    assert "E_ARTIFACT_MISSING" in missing


def test_base_weights_that_hold_copies_of_the_embedding_fit_a_checkpoint_without_them(
    weights: State, tmp_path: Path
) -> None:
    (tmp_path / "base").mkdir()
    save_file(weights | {ALIASES[2]: weights[SHARED].clone()}, tmp_path / "base" / "model.safetensors")
    torch.save(weights, tmp_path / "w.bin")
    convert(tmp_path / "w.bin", tmp_path / "run", "--base", tmp_path / "base")
    assert_same(tmp_path / "run" / "model.safetensors", weights)


def test_broken_base_weights_are_not_blamed_on_the_checkpoint(weights: State, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "model.safetensors").write_bytes(b"no tensors")
    torch.save(weights, tmp_path / "w.bin")
    output = convert(tmp_path / "w.bin", tmp_path / "run", "--base", tmp_path / "base", status=2)
    assert "E_REFERENCE_FORMAT: The base weights can't be read" in output


@pytest.mark.skipif(not Path("/proc/self/mem").is_file(), reason="needs a file of Linux that can't be read")
def test_a_file_that_can_not_be_read_is_not_taken_for_one_that_can_not_be_written(tmp_path: Path) -> None:
    output = convert(Path("/proc/self/mem"), tmp_path / "run", status=2)
    assert "E_ARTIFACT_MISSING: The file can't be read" in output
    assert "Input/output error" in output


@pytest.fixture
def no_namespaces() -> tuple[str, ...]:
    """A command that runs another in a place where no further namespace may be made."""
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "$@"'
    command = ("unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh")
    if sys.platform != "linux" or not shutil.which("setpriv"):
        pytest.skip("setpriv and Linux's user namespaces are missing")
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("user namespaces can't be made here")
    return command


def test_where_the_reader_can_not_be_cut_off_a_pickle_is_read_only_on_request(
    weights: State, tmp_path: Path, no_namespaces: tuple[str, ...]
) -> None:
    torch.save(weights, tmp_path / "w.bin")
    output = convert_in_a_shell(tmp_path / "w.bin", tmp_path / "run", status=2, wrapper=no_namespaces)
    assert "E_CHECKPOINT_NETWORK" in output
    assert "If you trust the file" in output
    allowed = convert_in_a_shell(
        tmp_path / "w.bin", tmp_path / "run", "--allow-network", wrapper=no_namespaces
    )
    assert "no network" not in allowed
    assert_same(tmp_path / "run" / "model.safetensors", weights)


def test_safetensors_need_no_isolation(
    weights: State, tmp_path: Path, no_namespaces: tuple[str, ...]
) -> None:
    save_file(weights, tmp_path / "w.safetensors")
    convert_in_a_shell(tmp_path / "w.safetensors", tmp_path / "run", wrapper=no_namespaces)
    assert_same(tmp_path / "run" / "model.safetensors", weights)


PROBE = """
import json, os, socket, sys
job = json.loads(sys.stdin.read())
found = {"environment": sorted(os.environ)}
for name, port in job["ports"].items():
    kind = socket.SOCK_DGRAM if name == "udp" else socket.SOCK_STREAM
    try:
        with socket.socket(socket.AF_INET, kind) as s:
            s.settimeout(2)
            s.connect(("127.0.0.1", port))
            s.send(b"hello")
        found[name] = "sent"
    except OSError as error:
        found[name] = "rejected"
open(job["out"], "w").write(json.dumps(found))
"""


def probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: Callable[[str, str], Any]
) -> dict[str, Any]:
    """What a module sees that `runner` runs: the ways to servers of this process, and its environment."""
    (tmp_path / "probe_of_the_network.py").write_text(PROBE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PFL_TOKEN", "secret")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        ports = {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        job = {"ports": ports, "out": str(tmp_path / "found.json")}
        ended = runner("probe_of_the_network", json.dumps(job))
    assert ended.status == 0, ended.last_line
    found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    return found


def test_the_reading_process_reaches_no_server_and_sees_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = probe(tmp_path, monkeypatch, isolation.run_without_network)
    assert found["tcp"] == found["udp"] == "rejected"
    assert not [name for name in found["environment"] if name.startswith("PFL")]
    allowed = probe(tmp_path, monkeypatch, isolation.run_with_network)
    assert allowed["tcp"] == allowed["udp"] == "sent"  # so the test above can fail
    assert not [name for name in allowed["environment"] if name.startswith("PFL")]


def test_a_process_that_still_has_network_is_not_used(tmp_path: Path) -> None:
    """The check alone, in a process that was not cut off: it must notice, and run nothing."""
    (tmp_path / "never.py").write_text("open('ran', 'w')")
    check = "import starter_kit.weights.isolation as i; i.sys.platform = 'elsewhere'; i.main()"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        ended = subprocess.run(
            [sys.executable, "-c", check, port, "never"],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{Path(__file__).parents[3]}{os.pathsep}{tmp_path}"},
        )  # fmt: skip
    assert ended.returncode == isolation.NOT_ISOLATED
    assert "still has network" in ended.stderr
    assert not (tmp_path / "ran").exists()
