"""Runs with plug-ins: the examples train and are accepted, and one's own files are found, known and kept."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from evaluator.communication.log import LogEntry
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import AccountingResult, ArtifactKind, CheckStatus, PrivacyRules, TrackRules
from starter_kit.engines.flower.client_app import ClientHost
from starter_kit.engines.flower.server_app import over_grid
from starter_kit.engines.flower.state_stores import InContext, InMemory
from starter_kit.evaluation.steps import check_run
from starter_kit.plugin import plugins_in
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.config_files import config_names
from starter_kit.settings.configuration import load_settings, snapshot
from starter_kit.settings.own_methods import own_files
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.engines.in_process_grid import InProcessGrid, as_server
from tests.starter_kit.plugins.examples import EXAMPLES, example
from tests.starter_kit.training_runs import accounting, trained

KITS = [name for name in config_names() if name.startswith("plugins/")]
RULES = TrackRules(reference="local", test_set="local", clients=3, max_rounds=10)
OWN_CODEC = """
from starter_kit.plugins.codecs import topk

class Codec(topk.Codec):
    fraction: float = 0.5
"""
SMALL = ["trainable=['language_backbone.shared.weight']"]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "mine" / "my_codec.py"
    path.parent.mkdir()
    path.write_text(OWN_CODEC)
    path.with_name("mine.yaml").write_text(
        "{method: fedavg, experiment: mine, rounds: 2, codec: my_codec.py, local: {learning_rate: 0.01}}"
    )
    return path


def rejected(config: str | Path, *changes: str) -> Problem:
    with pytest.raises(ProblemError) as caught:
        load_settings(str(config), changes)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    return caught.value.problem


@pytest.mark.parametrize("name", [*KITS, *EXAMPLES], ids=lambda name: Path(name).stem)
def test_an_example_trains_and_passes_the_checks_of_its_track(
    base: Path, data: Path, tmp_path: Path, name: str
) -> None:
    run = trained(name, base, data, tmp_path / "run", ["rounds=2" if name.endswith("topk") else "rounds=1"])
    private = (run.path / "training_record.jsonl").exists()
    assert private == (name == "plugins/private-fedadam")
    rules = RULES.model_copy(update={"privacy": PrivacyRules(epsilon=8, delta=1e-5)}) if private else RULES
    outcomes = list(check_run(run, rules, base))
    assert all(outcome.accepted for outcome in outcomes)
    if private:
        # The record states the server optimizer, and the evaluator does its steps again.
        assert run.record(max_rounds=10).run.server.rule == "adam"
        (result,) = (o.result for o in outcomes if isinstance(o.result, AccountingResult))
        assert {check.id: check.status for check in result.checks}["record.linkage"] is CheckStatus.PASSED


@pytest.mark.parametrize(
    "config", ["plugins/topk", example("powersgd"), example("scaffold")], ids=lambda name: Path(name).stem
)
def test_a_run_that_was_interrupted_ends_the_same_to_the_bit(
    base: Path, data: Path, tmp_path: Path, config: str
) -> None:
    changes = [*SMALL, "rounds=3", "clients_per_round=2"]
    whole = trained(config, base, data, tmp_path / "whole", changes)
    with pytest.raises(CutError):
        trained(config, base, data, tmp_path / "run", changes, watcher=CutOff(5))
    resumed = trained(config, base, data, tmp_path / "run", changes, resume=True)
    for kind in (ArtifactKind.CHECKPOINT, ArtifactKind.COMMUNICATION_LOG):
        assert resumed.file(kind).read_bytes() == whole.file(kind).read_bytes()


def test_nodes_keep_what_their_clients_codecs_left_out(
    base: Path, data: Path, tmp_path: Path, own: Path
) -> None:
    changes = [
        *SMALL,
        "rounds=3",
        "clients_per_round=1",
        "max_input_tokens=32",
        "local.max_steps=1",
        "seed=4",
    ]
    config = own.with_name("mine.yaml")
    grid, settings = InProcessGrid(), load_settings(str(config), changes)
    for number, clients, states in ((10, [2, 0], InMemory()), (20, [1], InContext())):
        setup = RunSetup(settings, data=data, base=base)
        grid.add(number, replace(ClientHost.of(setup, clients, Watcher().pages), states=states))
    engine = over_grid(grid, wait_s=5, timeout_s=30)
    with as_server():
        apart = trained(str(config), base, data, tmp_path / "apart", changes, open_engine=engine)
    together = trained(str(config), base, data, tmp_path / "together", changes)
    for kind in (ArtifactKind.CHECKPOINT, ArtifactKind.COMMUNICATION_LOG):
        assert apart.file(kind).read_bytes() == together.file(kind).read_bytes()
    # With one client a round, what travels down is what one client sent so far, and nothing at first.
    log = [LogEntry(*map(int, line.split(","))) for line in _lines(together)]
    numel = RunSetup(settings, data=data, base=base).model.tensors.size
    assert [entry.size_bytes for entry in log if entry.round == 1] == [0, 8 * -(-numel // 2)]


def _lines(run: RunFolder) -> list[str]:
    return run.file(ArtifactKind.COMMUNICATION_LOG).read_text().splitlines()[1:]


def test_an_own_file_is_found_beside_the_config_known_by_its_hash_and_kept(own: Path, tmp_path: Path) -> None:
    settings = load_settings(str(own.with_name("mine.yaml")))
    ((setting, codec),) = plugins_in(settings)
    assert (setting, codec.name) == ("codec", "my_codec.py")
    (file,) = own_files(settings)
    stored = yaml.safe_load(snapshot(settings))["codec"]
    assert stored == {"type": "my_codec.py", "sha256": file.sha256, "fraction": 0.5, "error_feedback": True}
    run = tmp_path / "run"
    run.mkdir()
    (run / "settings.yaml").write_text(snapshot(settings))
    file.keep(run)
    assert snapshot(load_settings(str(run / "settings.yaml"))) == snapshot(settings)
    # The settings of another process, which has the file loaded, and no config.
    assert snapshot(type(settings).model_validate(settings.model_dump())) == snapshot(settings)


def test_another_file_of_the_name_is_not_taken_for_it(own: Path, tmp_path: Path) -> None:
    text = yaml.safe_load(snapshot(load_settings(str(own.with_name("mine.yaml")))))
    text["codec"]["sha256"] = "0" * 64
    own.with_name("settings.yaml").write_text(yaml.safe_dump(text))
    problem = rejected(own.with_name("settings.yaml"))
    assert problem.where == "settings.yaml, codec.sha256"
    assert "has changed" in problem.next_step


def test_two_files_of_one_name_are_rejected_as_a_run_keeps_a_copy_of_each(own: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "my_codec.py"
    other.parent.mkdir()
    other.write_text("from starter_kit.plugins.hooks import fedprox\nclass Hook(fedprox.Hook): pass\n")
    assert "different names" in rejected(own.with_name("mine.yaml"), f"local.hook={other}").expected


def test_no_file_is_run_but_while_a_config_is_read(own: Path) -> None:
    settings = load_settings("fedavg")
    with pytest.raises(ProblemError):
        type(settings).model_validate(settings.model_dump() | {"codec": str(own)})


@pytest.mark.parametrize(
    ("change", "where", "expected"),
    [
        ("codec=zip", "--set codec", "one of float32, nf4, coded-nf4, int8, kseed, topk; a Python"),
        ("codec=nowhere.py", "--set codec", "a Python file"),
        ("codec=5", "--set codec", "one of float32"),
        ("codec={fraction: 0.1}", "--set codec", "a group with its type"),
        ("codec={type: topk, fraction: 2}", "--set codec.fraction", "less than or equal to 1"),
        ("codec={type: topk, share: 0.1}", "--set codec.share", "fraction, error_feedback"),
        ("codec={type: topk, fraction: '0.1'}", "--set codec.fraction", "valid number"),
        ("local.hook=prox", "--set local.hook", "one of fedprox; a Python file"),
        ("server_optimizer=adam", "--set server_optimizer", "one of fedadam, fedavgm; a Python file"),
    ],
)
def test_what_names_no_plugin_is_rejected_at_its_place(change: str, where: str, expected: str) -> None:
    problem = rejected("fedavg", change)
    assert problem.where == where
    assert expected in problem.expected


HEAD = "import torch\nfrom starter_kit.compression.plugin_codecs import CodecPlugin\n"
CODEC = HEAD + "class Codec(CodecPlugin):\n    def encode(self, update, state):\n        {}\n"
CODEC += "    def decode(self, message, size):\n        {}\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no class Codec"),
        ("from starter_kit.plugins.codecs.topk import Codec", "no class Codec"),
        (
            HEAD + "class Codec(CodecPlugin):\n    def encode(self, update, state):\n        return b''",
            "without decode",
        ),
        (CODEC.format("return 'text'", "return torch.zeros(size)"), "bytes, not str"),
        (CODEC.format("return b''", "return torch.zeros(3)"), "shape (1009,)"),
        (CODEC.format("return b''", "return [0.0] * size"), "float32 of shape"),
        (CODEC.format("return {}['x']", "return torch.zeros(size)"), "KeyError"),
        (CODEC.format("state['x'] = update; return b''", "return torch.zeros(size)"), "keeps_state"),
    ],
)
def test_a_codec_that_does_not_work_is_rejected_before_anything_is_read(
    own: Path, text: str, found: str
) -> None:
    own.write_text(text)
    problem = rejected(own.with_name("mine.yaml"))
    assert found in problem.found
    assert "my_codec.py" in problem.where


@pytest.mark.parametrize(
    ("setting", "text", "found"),
    [
        (
            "local.hook",
            "class Hook(HookPlugin):\n    def correct(self, step): step.state['c'] = step.start[0]",
            "keeps_",
        ),
        (
            "local.optimizer",
            "class Optimizer(OptimizerPlugin):\n    def build(self, parameters, rate): pass",
            "build",
        ),
        ("local.optimizer", "class Optimizer(OptimizerPlugin):\n    def build(self): pass", "TypeError"),
        (
            "server_optimizer",
            "class ServerOptimizer(ServerOptimizerPlugin):\n    def step(self, w, m, s): pass",
            "None",
        ),
        # The run still needs the model of before, for its record.
        (
            "server_optimizer",
            "class ServerOptimizer(ServerOptimizerPlugin):\n    def step(self, w, m, s): return w.add_(m)",
            "in place",
        ),
    ],
)
def test_other_plugins_that_do_not_work_are_rejected_too(
    tmp_path: Path, setting: str, text: str, found: str
) -> None:
    (tmp_path / "mine.py").write_text(
        "from starter_kit.learning.plugins import HookPlugin, OptimizerPlugin\n"
        f"from starter_kit.federation.server_optimizers import ServerOptimizerPlugin\n{text}\n"
    )
    problem = rejected("fedavg", f"{setting}={tmp_path / 'mine.py'}")
    assert found in problem.found
    assert "mine.py" in problem.where


@pytest.mark.parametrize(("changed", "line"), [("decode", 4), ("decode_model", 4), ("encode_model", 4)])
def test_a_codec_that_works_for_small_vectors_only_ends_the_run_with_a_message(
    base: Path, data: Path, tmp_path: Path, own: Path, changed: str, line: int
) -> None:
    values = "change" if changed == "encode_model" else "message, size"
    size = "len(change)" if changed == "encode_model" else "size"
    own.write_text(
        "from starter_kit.plugins.codecs import int8\nclass Codec(int8.Codec):\n"
        f"    def {changed}(self, {values}):\n        assert {size} < 2000\n"
        f"        return super().{changed}({values})\n"
    )
    with pytest.raises(ProblemError) as caught:
        trained(str(own.with_name("mine.yaml")), base, data, tmp_path / "run", SMALL)
    problem = caught.value.problem
    assert "AssertionError" in problem.found
    if changed != "decode":
        assert f"my_codec.py, line {line}" in problem.where


# The second one is right about updates, and sends the first model for nothing.
@pytest.mark.parametrize("bits", [4.0, 32.0])
def test_a_codec_that_takes_other_bits_than_it_says_is_rejected_before_a_private_run(
    base: Path, data: Path, own: Path, bits: float
) -> None:
    body = "\n    encode = lambda self, update, state: Float32().encode(update)"
    body += "\n    decode = lambda self, message, size: Float32().decode(message, size)"
    own.write_text(
        "from starter_kit.compression.codecs import Float32\nfrom starter_kit.methods import fl_provider_dp\n"
        "from starter_kit.compression.plugin_codecs import CodecPlugin\nfrom typing import ClassVar\n"
        "class Settings(fl_provider_dp.Settings): pass\n"
        f"class Codec(CodecPlugin):\n    bits_per_parameter: ClassVar[float] = {bits}{body}\n"
    )
    settings = load_settings("fl-provider-dp", [f"method={own}", f"codec={own}", "placement=client_full"])
    with pytest.raises(ProblemError) as caught:
        RunSetup(settings, data=data, base=base)
    assert "record.bytes" in caught.value.problem.next_step


def test_a_codec_that_a_methods_own_settings_name_is_rejected_with_what_to_do(own: Path) -> None:
    own.with_name("method.py").write_text(
        "from typing import Literal\nfrom starter_kit.methods import fedavg\n"
        'class Settings(fedavg.Settings):\n    codec: Literal["zip"] = "zip"\n'
    )
    problem = rejected(own.with_name("mine.yaml"), "method=method.py", "codec=zip")
    assert "codec zip of the method's Settings is none of float32" in problem.expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            ["codec=topk", "placement=client_full"],
            "no codec of topk in a run with a training record: it keeps",
        ),
        (["codec=int8"], "codec int8 with placement server"),
        (["server_optimizer=fedavgm", "server_learning_rate=2"], "a learning rate of its own"),
        (["server_optimizer=fedavgm", "max_weight_noise=1"], "a learning rate of its own"),
    ],
)
def test_what_a_record_can_not_state_is_rejected_by_name(changes: list[str], said: str) -> None:
    assert said in rejected("fl-provider-dp", "server_learning_rate=1", *changes).expected


def test_a_private_run_takes_its_own_plugins_from_the_file_of_its_method_only(own: Path) -> None:
    hook = "from starter_kit.plugins.hooks import fedprox\nclass Hook(fedprox.Hook): pass\n"
    (own.parent / "hook.py").write_text(hook)
    (own.parent / "method.py").write_text(
        hook
        + "from starter_kit.methods import fl_provider_dp\nclass Settings(fl_provider_dp.Settings): pass\n"
    )
    folder = own.parent
    assert (
        "organizers examine the method's file"
        in rejected("fl-provider-dp", f"local.hook={folder / 'hook.py'}").expected
    )
    both = [f"method={folder / 'method.py'}", f"local.hook={folder / 'method.py'}"]
    settings = load_settings("fl-provider-dp", both)
    assert [file.path.name for file in own_files(settings)] == ["method.py"]
    (folder / "method.py").write_text(
        (folder / "method.py")
        .read_text()
        .replace("(fedprox.Hook): pass", "(fedprox.Hook): keeps_state = True")
    )
    assert "from round to round" in rejected("fl-provider-dp", *both).expected


def test_eight_bits_are_recorded_where_clients_draw_the_noise(base: Path, data: Path, tmp_path: Path) -> None:
    changes = [*SMALL, "codec=int8", "placement=client_full", "target_epsilon=8"]
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes)
    line = run.record(max_rounds=10).run
    assert (line.codec.name, line.codec.bits_per_parameter) == ("int8", 8.125)
    found = {check.id: check.status for check in accounting(run.files(), base).checks}
    assert found["record.bytes"] is CheckStatus.PASSED


def test_a_method_with_a_longer_message_is_rejected_for_what_it_is(
    base: Path, data: Path, own: Path, tmp_path: Path
) -> None:
    (own.parent / "longer.py").write_text(
        "from dataclasses import replace\nimport torch\nfrom starter_kit.methods import fl_provider_dp\n"
        "class Longer(fl_provider_dp.ProviderDP):\n"
        "    def client_update(self, task):\n"
        "        update = super().client_update(task)\n"
        "        return replace(update, message=torch.cat([update.message, torch.ones(1)]))\n"
        "class Settings(fl_provider_dp.Settings):\n"
        "    def extend(self, method, clients):\n        return Longer(**vars(method))\n"
    )
    with pytest.raises(ProblemError) as caught:
        trained(
            "fl-provider-dp", base, data, tmp_path / "run", [*SMALL, f"method={own.parent / 'longer.py'}"]
        )
    problem = caught.value.problem
    assert problem.code is ErrorCode.CONFIGURATION
    assert "not as long as the model" in problem.message
    assert "what a record can't state" in problem.next_step


def test_a_method_that_sends_more_beside_its_updates_has_no_record(base: Path, data: Path, own: Path) -> None:
    (own.parent / "beside.py").write_text(
        "from dataclasses import replace\nfrom starter_kit.federation.auxiliary import AuxiliaryVectors\n"
        "from starter_kit.methods import fl_provider_dp\n"
        "class Settings(fl_provider_dp.Settings):\n"
        "    def plan(self, clients):\n"
        "        return replace(super().plan(clients), auxiliary=AuxiliaryVectors(numbers=1))\n"
    )
    settings = load_settings("fl-provider-dp", [f"method={own.parent / 'beside.py'}"])
    with pytest.raises(ProblemError) as caught:
        RunSetup(settings, data=data, base=base)
    assert "as a training record has no place for auxiliary vectors" in caught.value.problem.expected
