"""Functions in a sandbox: what they can't do, and how they end. `inmates` has what they try."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from evaluator.sandbox.limits import MIB, Limits, container_memory_bytes
from evaluator.sandbox.sandbox import MAX_OUTPUT_CHARACTERS, Ending, Sandbox, SandboxError

INMATES = "tests.evaluator.sandbox.inmates"
TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def run(sandbox: Sandbox, function: str, inputs: object = None, **options: Any) -> Any:
    return sandbox.run(INMATES, function, inputs, readable=[TESTS, *options.pop("readable", [])], **options)


def ending(sandbox: Sandbox, function: str, inputs: object = None, **options: Any) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        run(sandbox, function, inputs, **options)
    return caught.value


def descendants(before: Sequence[psutil.Process] = ()) -> list[psutil.Process]:
    """Return this process's, those in other process namespaces included, without those that ran before."""
    return [process for process in psutil.Process().children(recursive=True) if process not in before]


def are_gone(processes: list[psutil.Process]) -> bool:
    """Whether they end: those that were killed take a moment."""
    return not psutil.wait_procs(processes, timeout=60)[1]


class TestRunning:
    def test_a_function_gets_its_inputs_sends_messages_and_returns(self, sandbox: Sandbox) -> None:
        messages: list[Any] = []
        output: list[str] = []
        result = run(sandbox, "echo", {"a": [1]}, on_message=messages.append, on_output=output.append)
        assert (result, messages, output) == ({"a": [1]}, [{"done": 1}], ["printed\n"])

    def test_inputs_longer_than_what_a_socket_holds_arrive_whole_in_every_run(self, sandbox: Sandbox) -> None:
        inputs = "x" * 4_000_000
        for _ in range(2):
            assert run(sandbox, "echo", inputs) == inputs

    def test_the_second_is_forked_from_what_the_first_has_started(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "forked_from") == run(sandbox, "forked_from")

    def test_it_sees_no_environment_and_a_folder_of_its_own(
        self, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PFL_BROKER_URL", "redis://secret@host")
        with Sandbox() as fresh:
            seen = run(fresh, "surroundings")
        assert not [name for name in seen["environment"] if name.startswith(("PFL_", "DJANGO"))]
        assert "secret" not in str(seen["environment"])
        assert seen["folder"] == []
        assert seen["environment"]["HOME"] == seen["cwd"]
        assert not Path(seen["cwd"]).exists()
        assert len(seen["descriptors"]) <= 5  # three standard ones, its messages, and the listing itself

    def test_an_exception_is_reported_with_its_trace(self, sandbox: Sandbox) -> None:
        error = ending(sandbox, "raise_error")
        assert error.ending is Ending.RAISED
        assert "not today" in error.output
        assert "not today" not in str(error)

    def test_a_message_that_its_receiver_rejects_ends_it_and_the_next_function_runs(
        self, sandbox: Sandbox
    ) -> None:
        before = descendants()
        running: list[psutil.Process] = []

        def reject(_: int) -> None:
            running.extend(descendants(before))
            raise LookupError("not what was expected")

        with pytest.raises(LookupError):
            run(sandbox, "hang", on_message=reject)
        assert running
        assert are_gone(running)
        assert run(sandbox, "echo", 1) == 1

    def test_after_any_end_the_next_function_runs(self, sandbox: Sandbox) -> None:
        for function, inputs in [("crash", None), ("leave", 3), ("send_garbage", "garbage\n")]:
            ending(sandbox, function, inputs)
            assert run(sandbox, "echo", 1) == 1


class TestNetwork:
    def test_there_is_none(self, sandbox: Sandbox) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            results = run(sandbox, "connect", server.getsockname()[1])
        assert not [name for name, result in results.items() if result.startswith("did")], results


class TestSharedMemory:
    def test_what_is_left_there_nobody_else_finds(self, sandbox: Sandbox) -> None:
        path = Path("/dev/shm") / f"pfl-{os.getpid()}-left"
        written = run(sandbox, "write", str(path))
        assert not path.exists()
        assert run(sandbox, "read", str(path)) in {"FileNotFoundError", "PermissionError"}
        if sandbox.protection is not None and sandbox.protection.shared_memory:
            assert written.startswith("did")

    def test_what_others_left_there_is_not_read_or_changed(self, sandbox: Sandbox) -> None:
        path = Path("/dev/shm") / f"pfl-{os.getpid()}-others"
        path.write_text("secret")
        try:
            assert run(sandbox, "read", str(path)) in {"FileNotFoundError", "PermissionError"}
            run(sandbox, "write", str(path))
            assert path.read_text() == "secret"
        finally:
            path.unlink()

    def test_its_size_is_limited(self, sandbox: Sandbox) -> None:
        if sandbox.probe().shared_memory:
            assert run(sandbox, "fill", "/dev/shm/all") == 64 * MIB


class TestSurroundings:
    def test_it_sees_five_devices_no_other_process_and_little_of_etc(self, sandbox: Sandbox) -> None:
        seen = run(sandbox, "look_around")
        assert set(seen["devices"]) == {"/dev/null", "/dev/urandom"}
        assert (seen["etc"], seen["certificates"]) == ([], Path("/etc/ssl/certs").is_dir())
        others = [command for command in seen["commands"] if "evaluator.sandbox.server" not in command]
        assert not others

    def test_it_never_runs_as_root(self, sandbox: Sandbox) -> None:
        user, group = run(sandbox, "look_around")["account"]
        if sandbox.probe().is_root:
            pytest.skip("root can't change to another account here")
        assert user
        assert group
        if os.geteuid() != 0:
            assert (user, group) == (os.geteuid(), os.getegid())

    @pytest.mark.parametrize("processes", [0, 4096])
    def test_it_makes_no_namespaces_keys_mounts_or_rings(self, sandbox: Sandbox, processes: int) -> None:
        assert run(sandbox, "reach_for_more", limits=Limits(processes=processes)) == {}


class TestFiles:
    def test_what_it_was_given_is_read_and_nothing_else(self, sandbox: Sandbox, tmp_path: Path) -> None:
        given, secret = tmp_path / "given", tmp_path / "secret"
        given.write_text("given")
        secret.write_text("secret")
        assert run(sandbox, "read", str(given), readable=[given]) == "did: given"
        assert run(sandbox, "read", str(secret), readable=[given]) == "PermissionError"

    def test_a_link_leads_nowhere_else(self, sandbox: Sandbox, tmp_path: Path) -> None:
        folder, secret = tmp_path / "folder", tmp_path / "secret"
        folder.mkdir()
        secret.write_text("secret")
        (folder / "link").symlink_to(secret)
        assert run(sandbox, "read", str(folder / "link"), readable=[folder]) == "PermissionError"

    def test_nothing_but_its_folders_is_written(self, sandbox: Sandbox, tmp_path: Path) -> None:
        given, mine = tmp_path / "given", tmp_path / "mine"
        given.write_text("given")
        mine.mkdir()
        options: dict[str, Any] = {"readable": [given], "writable": [mine]}
        for own in ("new", str(mine / "new")):
            assert run(sandbox, "write", own, **options) == "did: 7"
        for forbidden in (given, tmp_path / "new", Path("/etc/new"), Path(sys.prefix) / "new", TESTS / "new"):
            assert run(sandbox, "write", str(forbidden), **options) == "PermissionError"
        assert given.read_text() == "given"

    def test_it_reads_neither_memory_nor_environment_of_other_processes(self, sandbox: Sandbox) -> None:
        others = [os.getpid(), os.getppid()]
        paths = [f"/proc/{pid}/{name}" for pid in others for name in ("environ", "mem", "maps")]
        assert not [result for result in run(sandbox, "read_many", paths) if result.startswith("did")]


class TestProcesses:
    def test_it_has_threads_and_no_processes(self, sandbox: Sandbox) -> None:
        results = run(sandbox, "start_processes")
        assert results == {
            "fork": "PermissionError",
            "program": "PermissionError",
            "shell": "PermissionError",
            "threads": 4,
        }

    def test_it_may_have_some(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "run_program", limits=Limits(processes=10_000)) == "hello\n"

    def test_it_ends_with_its_time(self, sandbox: Sandbox) -> None:
        before = descendants()
        running: list[psutil.Process] = []
        error = ending(
            sandbox,
            "hang",
            limits=Limits(wall_s=2),
            on_message=lambda _: running.extend(descendants(before)),
        )
        assert error.ending is Ending.TIME
        assert running
        assert are_gone(running)

    def test_an_orphan_in_a_session_of_its_own_ends_with_it(self, sandbox: Sandbox) -> None:
        sandbox.probe()
        before = descendants()
        assert run(sandbox, "leave_processes", 0, limits=Limits(processes=4096)) == "left"
        assert not descendants(before)

    def test_it_kills_nobody(self, sandbox: Sandbox) -> None:
        victim = subprocess.Popen(["sleep", "60"])
        try:
            assert run(sandbox, "kill", victim.pid) == "PermissionError"
            assert victim.poll() is None
        finally:
            victim.kill()
            victim.wait()

    def test_it_gains_no_privilege(self, sandbox: Sandbox) -> None:
        results = run(sandbox, "gain_privileges")
        assert results == {"unshare": -1, "mount": -1, "ptrace": -1, "limits": "ValueError"}

    def test_it_dies_with_whoever_started_it(self, tmp_path: Path) -> None:
        script = (
            "from pathlib import Path; from evaluator.sandbox.sandbox import Sandbox;"
            f"Sandbox().run({INMATES!r}, 'hang', None, readable=[Path({str(TESTS)!r})],"
            " on_message=lambda _: print('started', flush=True))"
        )
        starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert starter.stdout is not None
        with starter.stdout:
            assert starter.stdout.readline()
        inmates = psutil.Process(starter.pid).children(recursive=True)
        starter.kill()
        starter.wait()
        assert len(inmates) > 1
        assert are_gone(inmates)


class TestLimits:
    def test_of_time(self, sandbox: Sandbox) -> None:
        assert ending(sandbox, "hang", limits=Limits(wall_s=0.5)).ending is Ending.TIME

    def test_of_cpu_time(self, sandbox: Sandbox) -> None:
        assert ending(sandbox, "spin", limits=Limits(cpu_s=1)).ending is Ending.CPU_TIME

    def test_of_memory(self, sandbox: Sandbox) -> None:
        assert (
            ending(sandbox, "take_memory", 300, limits=Limits(memory_bytes=200 * MIB)).ending is Ending.MEMORY
        )

    def test_of_the_memory_of_what_it_left_behind(self, sandbox: Sandbox) -> None:
        limits = Limits(memory_bytes=200 * MIB, processes=4096)
        assert ending(sandbox, "leave_processes", 300, limits=limits).ending is Ending.MEMORY

    @pytest.mark.parametrize("deleted", [False, True])
    def test_of_all_files_together_also_of_deleted_ones(self, sandbox: Sandbox, deleted: bool) -> None:
        limits = Limits(disk_bytes=50 * MIB)
        assert ending(sandbox, "write_many", {"deleted": deleted}, limits=limits).ending is Ending.DISK

    def test_of_memory_follow_those_of_the_container(self, tmp_path: Path) -> None:
        own = tmp_path / "own"
        for line, name, folder in [
            ("0::/pod/worker", "memory.max", tmp_path / "2"),
            ("4:memory:/pod/worker", "memory.limit_in_bytes", tmp_path / "1" / "memory"),
        ]:
            (folder / "pod" / "worker").mkdir(parents=True)
            (folder / "pod" / "worker" / name).write_text("max" if folder.name == "2" else str(2**63 - 4096))
            (folder / "pod" / name).write_text(f"{1000 * MIB}\n")
            own.write_text(f"7:cpu:/elsewhere\n{line}\n")
            cgroups = tmp_path / "2" if folder.name == "2" else tmp_path / "1"
            assert container_memory_bytes(cgroups, own) == 1000 * MIB
        assert container_memory_bytes(tmp_path / "none", tmp_path / "none") is None
        assert Limits(memory_bytes=900 * MIB).within(1000 * MIB).memory_bytes == 800 * MIB
        assert Limits(memory_bytes=700 * MIB).within(1000 * MIB).memory_bytes == 700 * MIB
        assert Limits(memory_bytes=700 * MIB).within(None).memory_bytes == 700 * MIB

    def test_of_address_space(self, sandbox: Sandbox) -> None:
        limits = Limits(address_space_bytes=2048 * MIB)
        assert ending(sandbox, "take_address_space", 4096, limits=limits).ending is Ending.MEMORY

    def test_of_a_file(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "write_much", 8, limits=Limits(file_bytes=4 * MIB)) == "OSError"

    def test_of_open_files(self, sandbox: Sandbox) -> None:
        assert run(sandbox, "open_many") == "OSError"

    def test_of_what_it_returns(self, sandbox: Sandbox) -> None:
        assert ending(sandbox, "return_much", 8, limits=Limits(result_bytes=4 * MIB)).ending is Ending.OUTPUT

    def test_of_what_it_prints(self, sandbox: Sandbox) -> None:
        output: list[str] = []
        assert run(sandbox, "print_much", on_output=output.append) == "printed"
        assert len(output[0]) == MAX_OUTPUT_CHARACTERS
        assert output[0].endswith("the end\n")


class TestLies:
    @pytest.mark.parametrize(
        "garbage", ["garbage\n", "[1]\n", '{"a": 1, "b": 2}\n', '{"other": 1}\n', "[" * 10**5 + "\n"]
    )
    def test_what_is_no_message_ends_it(self, sandbox: Sandbox, garbage: str) -> None:
        assert ending(sandbox, "send_garbage", garbage).ending is Ending.GARBLED

    def test_a_crash_is_named(self, sandbox: Sandbox) -> None:
        error = ending(sandbox, "crash")
        assert error.ending is Ending.CRASHED
        assert "SIGSEGV" in str(error)

    @pytest.mark.parametrize("status", [0, 3])
    def test_who_leaves_without_a_result_has_crashed(self, sandbox: Sandbox, status: int) -> None:
        assert ending(sandbox, "leave", status).ending is Ending.CRASHED


def test_this_machine_enforces_everything(sandbox: Sandbox) -> None:
    run(sandbox, "echo")
    assert sandbox.protection is not None
    if sandbox.protection.missing:
        pytest.skip(f"this kernel can't enforce: {', '.join(sandbox.protection.missing)}")
    assert str(sandbox.protection)
