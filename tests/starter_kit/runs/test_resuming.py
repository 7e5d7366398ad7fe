import stat
from pathlib import Path

import torch

from starter_kit.federation.client_state import AtNode, Kept
from starter_kit.runs.resuming import ResumeFolder, RunState

STATE = RunState(
    round=3,
    weights=torch.arange(5.0),
    server={"duals": torch.ones(2, 3), "client/3": torch.tensor(3.0)},
    clients={
        0: Kept({"left": torch.zeros(2)}),
        3: AtNode(),
        11: Kept({"left": torch.ones(2), "0.step": torch.tensor(7)}, b"of a round"),
    },
    breaks=2,
)


def folder(tmp_path: Path) -> ResumeFolder:
    made = ResumeFolder(tmp_path)
    made.create()
    return made


def test_a_state_reads_back_the_same(tmp_path: Path) -> None:
    resume = folder(tmp_path)
    for number in (1, 2, 2, 3):
        resume.begin(number)
    resume.save(STATE)
    found = ResumeFolder(tmp_path).load()
    assert found is not None
    assert (found.round, found.breaks, found.interrupted_rounds) == (3, 2, 1)
    assert torch.equal(found.weights, STATE.weights)
    assert torch.equal(found.server["duals"], STATE.server["duals"])
    assert torch.equal(found.server["client/3"], torch.tensor(3.0))
    assert found.clients.keys() == {0, 3, 11}
    assert found.clients[3] == AtNode()
    client = found.clients[11]
    assert isinstance(client, Kept)
    assert torch.equal(client.tensors["0.step"], torch.tensor(7))
    assert client.secrets == b""  # a round that was interrupted never resumes


def test_a_later_state_replaces_an_earlier_one(tmp_path: Path) -> None:
    resume = folder(tmp_path)
    resume.save(STATE)
    resume.save(RunState(4, torch.zeros(5)))
    found = resume.load()
    assert found is not None
    assert (found.round, found.server, dict(found.clients)) == (4, {}, {})
    assert {path.name for path in resume.path.iterdir()} == {"inputs", "state.safetensors"}


def test_before_the_first_state_there_is_none(tmp_path: Path) -> None:
    resume = folder(tmp_path)
    assert resume.load() is None
    assert resume.begun == 0


def test_rounds_that_began_are_counted_whatever_became_of_them(tmp_path: Path) -> None:
    resume = folder(tmp_path)
    for number in (1, 2, 2, 3, 3):
        resume.begin(number)
    assert ResumeFolder(tmp_path).begun == 5
    resume.save(RunState(2, torch.zeros(1)))
    for _ in range(3):  # a process that never begins a round leaves the count as it was
        found = ResumeFolder(tmp_path).load()
        assert found is not None
        assert found.interrupted_rounds == 3


def test_what_clients_keep_is_for_the_owner_only(tmp_path: Path) -> None:
    assert stat.S_IMODE(folder(tmp_path).path.stat().st_mode) == 0o700


def test_tensors_that_share_memory_are_kept_each_by_itself(tmp_path: Path) -> None:
    resume, whole = folder(tmp_path), torch.arange(6.0)
    resume.save(RunState(1, whole, server={"same": whole, "part": whole[::2]}))
    found = resume.load()
    assert found is not None
    assert found.server["same"].tolist() == whole.tolist()
    assert found.server["part"].tolist() == [0, 2, 4]
