"""Codecs in a file of one's own: the evaluator runs them in a sandbox, with what decoding needs."""

import re
from pathlib import Path

import pytest

from evaluator.errors import ErrorCode
from evaluator.folding import decoding
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import Step
from evaluator.sandbox.confinement import Protection
from evaluator.sandbox.sandbox import Sandbox
from starter_kit import scaffolding
from starter_kit.compression.plugin_codecs import CODECS
from starter_kit.data import forms
from starter_kit.evaluation.steps import check_run
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.transcript import CODEC_FILE, INDEX
from tests.starter_kit.plugins.examples import example
from tests.starter_kit.runs.test_transcript import RULES, counted, rejection
from tests.starter_kit.training_runs import trained


@pytest.fixture(scope="module")
def own_codec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The codec that `pfl new` writes."""
    path = tmp_path_factory.mktemp("codec") / "my_codec.py"
    path.write_bytes((Path(scaffolding.__file__).parent / "codecs" / "my_plugin.py").read_bytes())
    return path


@pytest.fixture
def with_own_codec(base: Path, data: Path, tmp_path: Path, own_codec: Path) -> RunFolder:
    return trained("lora", base, data, tmp_path / "run", [f"codec={own_codec}"])


def test_a_codec_of_one_s_own_is_run_in_the_sandbox_and_its_size_counts(
    with_own_codec: RunFolder, base: Path, own_codec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = counted(with_own_codec, base)
    assert (result.counting, result.not_counted_because) == ("counted", "")
    # The file, and its setting as JSON.
    assert result.decoder_bytes == own_codec.stat().st_size + len('{"gain":1024}')
    assert result.bytes_sent is not None
    assert result.first_download_bytes is not None
    assert result.bytes_total == result.bytes_sent - result.first_download_bytes + result.decoder_bytes
    # Also where the run is named by a relative path.
    monkeypatch.chdir(with_own_codec.path.parent)
    named = RunFolder(Path(with_own_codec.path.name))
    communication = [one for one in check_run(named, RULES, base) if one.step is Step.COMMUNICATION]
    assert [one.result for one in communication] == [result]


def test_without_its_file_a_run_is_declared(with_own_codec: RunFolder, base: Path) -> None:
    (with_own_codec.path / CODEC_FILE).unlink()
    result = counted(with_own_codec, base)
    assert (result.counting, result.decoder_bytes) == ("declared", 0)
    assert "file of the codec isn't attached" in result.not_counted_because


def rewritten(run: RunFolder, source: str) -> None:
    """Give the run another codec file, and the index its hash."""
    path = run.path / CODEC_FILE
    old, size = sha256_of(path), path.stat().st_size
    path.write_text(source)
    index = (run.path / INDEX).read_text()
    index = index.replace(old, sha256_of(path)).replace(
        f'"size_bytes":{size}', f'"size_bytes":{path.stat().st_size}'
    )
    (run.path / INDEX).write_text(index)


def decode_with(run: RunFolder, statements: str) -> None:
    """Have these statements decode updates, and models be decoded as before."""
    source = (run.path / CODEC_FILE).read_text()
    head, signature, tail = source.partition("    def decode(self, message: bytes, size: int) -> Tensor:\n")
    rest = tail[tail.index("    def encode_model") :].replace("self.decode(", "self.whole(")
    whole = (
        "    def whole(self, message, size):\n"
        "        return torch.from_numpy(np.frombuffer(message, '<f2').astype(np.float32)) / self.gain\n\n"
    )
    rewritten(run, f"{head}{signature}        {statements}\n\n{whole}{rest}")


def test_another_codec_file_than_the_index_names_is_rejected(with_own_codec: RunFolder, base: Path) -> None:
    with (with_own_codec.path / CODEC_FILE).open("a") as file:
        file.write("\n# shorter in the index\n")
    assert rejection(with_own_codec, base).code is ErrorCode.TRANSCRIPT_CODEC


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ("raise ValueError('not today')", ErrorCode.TRANSCRIPT_CODEC),
        ("raise SystemExit(0)", ErrorCode.TRANSCRIPT_CODEC),
        ("return torch.zeros(size + 1)", ErrorCode.TRANSCRIPT_CODEC),
        ("return torch.zeros(size)", ErrorCode.TRANSCRIPT_FOLD),
        ("import urllib.request as r; r.urlopen('http://127.0.0.1:1')", ErrorCode.TRANSCRIPT_CODEC),
    ],
    ids=["fails", "exits", "another length", "another update", "the network"],
)
def test_a_codec_that_does_not_decode_the_messages_is_rejected(
    with_own_codec: RunFolder, base: Path, statements: str, code: ErrorCode
) -> None:
    decode_with(with_own_codec, statements)
    assert rejection(with_own_codec, base).code is code


def test_a_model_that_no_client_can_decode_is_rejected(with_own_codec: RunFolder, base: Path) -> None:
    """Downloads without content would cost nothing."""
    source = (with_own_codec.path / CODEC_FILE).read_text()
    rewritten(
        with_own_codec,
        source.replace("        return self.decode(message, size)", "        return torch.zeros(size)"),
    )
    problem = rejection(with_own_codec, base)
    assert problem.code is ErrorCode.TRANSCRIPT_FOLD
    assert problem.where.startswith("round 2, message to client")


@pytest.mark.parametrize(
    ("statements", "module"),
    [
        ("from starter_kit.data.forms import generate; import starter_kit.runs.training", "starter_kit.data"),
        ("import starter_kit.runs", "starter_kit.runs"),
        ("import starter_kit.learning", "starter_kit.learning"),
        ("import starter_kit.weights", "starter_kit.weights"),
        ("import starter_kit.compression.lora", "starter_kit.compression.lora"),
        ("import evaluator.docvqa", "evaluator.docvqa"),
        ("import transformers", "transformers"),
        (
            f"import sys; sys.meta_path.clear(); exec(open({forms.__file__!r}).read())",
            "starter_kit.data.forms",
        ),
    ],
)
def test_a_decoder_that_could_train_the_model_itself_is_rejected(
    with_own_codec: RunFolder, base: Path, statements: str, module: str
) -> None:
    decode_with(with_own_codec, statements)
    problem = rejection(with_own_codec, base)
    assert (problem.code, problem.found) == (ErrorCode.TRANSCRIPT_CODEC, f"it imports {module}")
    assert "imports only the standard library, numpy, torch" in problem.expected


def test_a_decoder_that_leaves_a_link_in_place_of_its_vectors_is_rejected(
    with_own_codec: RunFolder, base: Path
) -> None:
    """The process that folds may read what a decoder can't, such as the first download, which can be free."""
    decode_with(
        with_own_codec,
        "import inspect, pathlib; "
        "asked = next(one.frame.f_locals['inputs'] for one in inspect.stack(0) if 'inputs' in one.frame.f_locals); "
        "out = pathlib.Path(asked['out']); out.unlink(); out.symlink_to('../down/messages.bin'); "
        "self.__class__.decode = self.__class__.whole; return self.whole(message, size)",
    )
    problem = rejection(with_own_codec, base)
    assert (problem.code, problem.found) == (ErrorCode.TRANSCRIPT_CODEC, "a link, or no file")


def test_the_check_of_a_participant_rejects_what_the_site_rejects(
    with_own_codec: RunFolder, base: Path
) -> None:
    rewritten(with_own_codec, "import starter_kit.data\n" + (with_own_codec.path / CODEC_FILE).read_text())
    communication = [one for one in check_run(with_own_codec, RULES, base) if one.step is Step.COMMUNICATION]
    assert [one.problems for one in communication] == [(rejection(with_own_codec, base),)]
    assert communication[0].problems[0].found == "it imports starter_kit.data"


def test_a_decoder_reads_no_weights_and_has_no_code_that_trains_in_memory(
    with_own_codec: RunFolder, base: Path
) -> None:
    decode_with(with_own_codec, f"open({str(base / 'model.safetensors')!r}, 'rb')")
    assert "Permission denied" in rejection(with_own_codec, base).found
    decode_with(
        with_own_codec,
        "import sys; raise ValueError({'.'.join(name.split('.')[:2]) for name in sys.modules "
        "if name.startswith(('evaluator.', 'starter_kit.', 'transformers'))})",
    )
    loaded = set(re.findall(r"'(\w+\.?\w*)'", rejection(with_own_codec, base).found))
    assert loaded == {
        *("starter_kit.compression", "starter_kit.own_files", "starter_kit.plugin"),
        *("evaluator.communication", "evaluator.errors", "evaluator.sandbox"),
    }


def test_a_kernel_that_keeps_no_files_from_a_decoder_runs_none(
    with_own_codec: RunFolder, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_landlock = Protection(namespaces=True, seccomp=True, landlock=0)
    monkeypatch.setattr(Sandbox, "probe", lambda _: without_landlock)
    decode_with(with_own_codec, "import starter_kit.data")
    result = counted(with_own_codec, base)
    assert result.counting == "declared"
    assert "This kernel doesn't enforce: no files but its own" in result.not_counted_because


def test_a_decoder_has_the_time_that_decoding_may_need(
    with_own_codec: RunFolder, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "START_CPU_S", 1)
    monkeypatch.setattr(decoding, "CPU_S_PER_COORDINATE", 0)
    decode_with(with_own_codec, "while True: pass")
    problem = rejection(with_own_codec, base)
    assert problem.code is ErrorCode.TRANSCRIPT_CODEC
    assert problem.expected == "a decoder that takes at most 1 s of CPU time"
    assert "more CPU time than allowed" in problem.found


@pytest.mark.parametrize(
    ("numel", "messages", "seconds"),
    [(1, 0, 5), (100_000, 10, 35), (1_000_000, 10, 305), (250_000_000, 1, 1800)],
)
def test_the_time_grows_with_the_coordinates_of_all_messages(numel: int, messages: int, seconds: int) -> None:
    assert decoding.decoding_cpu_s(numel, messages) == seconds


@pytest.mark.parametrize("name", CODECS.names)
def test_a_codec_derived_from_one_of_the_kit_is_counted(
    base: Path, data: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "derived.py"
    path.write_text(
        f"from {CODECS.module(name).__name__} import Codec as Base\n\n\nclass Codec(Base):\n    pass\n"
    )
    codec = f"codec={{type: {path}, seeds: 16}}" if name == "kseed" else f"codec={path}"
    run = trained("lora", base, data, tmp_path / "run", [codec, "local.max_steps=1", "rounds=1"])
    assert counted(run, base).counting == "counted"


@pytest.mark.parametrize("name", ["powersgd", "seeds", "sign"])
def test_the_codecs_of_the_documents_are_counted(base: Path, data: Path, tmp_path: Path, name: str) -> None:
    run = trained(example(name), base, data, tmp_path / "run", ["local.max_steps=1"])
    assert counted(run, base).counting == "counted"
