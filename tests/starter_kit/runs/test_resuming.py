import stat
from pathlib import Path

import pytest
import torch

from starter_kit.federation.client_state import LocalState, RemoteState
from starter_kit.runs.resuming import ResumeFolder, TrainingState

STATE = TrainingState(
    round=3,
    weights=torch.arange(5.0),
    server={"duals": torch.ones(2, 3), "client/3": torch.tensor(3.0)},
    clients={
        0: LocalState({"left": torch.zeros(2)}),
        3: RemoteState(),
        11: LocalState({"left": torch.ones(2), "0.step": torch.tensor(7)}, b"of a round"),
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
    assert found.clients[3] == RemoteState()
    client = found.clients[11]
    assert isinstance(client, LocalState)
    assert torch.equal(client.tensors["0.step"], torch.tensor(7))
    assert client.secrets == b""  # a round that was interrupted never resumes


def test_a_later_state_replaces_an_earlier_one(tmp_path: Path) -> None:
    resume = folder(tmp_path)
    resume.save(STATE)
    resume.save(TrainingState(4, torch.zeros(5)))
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
    resume.save(TrainingState(2, torch.zeros(1)))
    for _ in range(3):  # a process that never begins a round leaves the count as it was
        found = ResumeFolder(tmp_path).load()
        assert found is not None
        assert found.interrupted_rounds == 3


def test_what_clients_keep_is_for_the_owner_only(tmp_path: Path) -> None:
    assert stat.S_IMODE(folder(tmp_path).path.stat().st_mode) == 0o700


def test_tensors_that_share_memory_are_kept_each_by_itself(tmp_path: Path) -> None:
    resume, whole = folder(tmp_path), torch.arange(6.0)
    resume.save(TrainingState(1, whole, server={"same": whole, "part": whole[::2]}))
    found = resume.load()
    assert found is not None
    assert found.server["same"].tolist() == whole.tolist()
    assert found.server["part"].tolist() == [0, 2, 4]


def kept(**tensors: torch.Tensor) -> TrainingState:
    return TrainingState(
        1, torch.zeros(1), clients={3: LocalState(dict(tensors)), 4: LocalState({"same": torch.ones(2)})}
    )


def files(resume: ResumeFolder) -> dict[int, str]:
    """The names of the clients' files, by client."""
    found = [path.name for path in resume.path.glob("client-*")]
    return {int(name.split("-")[1]): name for name in found}


def test_what_a_client_keeps_is_written_when_it_has_changed(tmp_path: Path) -> None:
    resume, state = folder(tmp_path), kept(dual=torch.ones(3))
    resume.save(state)
    first = files(resume)
    resume.save(state)
    assert files(resume) == first
    client = state.clients[3]
    assert isinstance(client, LocalState)
    for change in (
        lambda: client.tensors.update(dual=torch.zeros(3)),
        lambda: client.tensors["dual"].add_(1),
        lambda: client.tensors.update(more=torch.zeros(1)),
        lambda: client.tensors.pop("more"),
    ):
        before = files(resume)
        change()
        resume.save(state)
        after = files(resume)
        assert after[3] != before[3]
        assert after[4] == before[4]
        found = ResumeFolder(tmp_path).load()
        assert found is not None
        again = found.clients[3]
        assert isinstance(again, LocalState)
        assert again.tensors.keys() == client.tensors.keys()
        assert all(torch.equal(again.tensors[name], tensor) for name, tensor in client.tensors.items())


def test_what_a_client_keeps_is_in_its_file_and_not_in_memory(tmp_path: Path) -> None:
    resume, state = folder(tmp_path), kept(dual=torch.ones(5_000))
    resume.save(state)
    client = state.clients[3]
    assert isinstance(client, LocalState)
    maps = Path("/proc/self/maps").read_text()
    address = client.tensors["dual"].untyped_storage().data_ptr()
    (line,) = [
        line
        for line in maps.splitlines()
        if int(line.split("-")[0], 16) <= address < int(line.split("-")[1].split()[0], 16)
    ]
    assert line.endswith(str(resume.path / files(resume)[3]))
    client.tensors["dual"].zero_()
    found = ResumeFolder(tmp_path).load()
    assert found is not None
    stored = found.clients[3]
    assert isinstance(stored, LocalState)
    assert stored.tensors["dual"].eq(1).all()


def test_a_kill_before_the_state_is_replaced_leaves_the_one_before(tmp_path: Path) -> None:
    resume, state = folder(tmp_path), kept(dual=torch.ones(3))
    resume.save(state)
    before = files(resume)
    # What such a process leaves: a client's file that no state names, and one that isn't whole.
    left = resume.path / "client-3-90.safetensors"
    left.write_bytes((resume.path / before[3]).read_bytes())
    (resume.path / "client-4-91.safetensors.new").write_bytes(b"half")
    found = ResumeFolder(tmp_path).load()
    assert found is not None
    stored = found.clients[3]
    assert isinstance(stored, LocalState)
    assert stored.tensors["dual"].eq(1).all()
    later = ResumeFolder(tmp_path)
    later.save(found)
    assert not left.exists()
    assert set(files(later)) == {3, 4}


def test_the_file_of_a_client_that_is_gone_is_reported(tmp_path: Path) -> None:
    resume = folder(tmp_path)
    resume.save(kept(dual=torch.ones(3)))
    (resume.path / files(resume)[3]).unlink()
    with pytest.raises(FileNotFoundError):
        ResumeFolder(tmp_path).load()
