"""The connection between a server and its nodes: addresses, keys, Flower's commands and the app that Flower sends."""

import socket
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.flower.address import Address, ServerTLS, server_tls
from starter_kit.engines.flower.app_folder import FILES, write_app
from starter_kit.engines.flower.child_process import LOG, START, reason
from starter_kit.engines.flower.superlink import ServerOptions, public_keys
from starter_kit.engines.flower.supernode import NodeOptions, only_process


@pytest.mark.parametrize(
    ("text", "host", "loopback", "from_here"),
    [
        ("127.0.0.1:9092", "127.0.0.1", True, "127.0.0.1:9092"),
        ("localhost:9092", "localhost", True, "localhost:9092"),
        ("[::1]:9092", "::1", True, "[::1]:9092"),
        ("0.0.0.0:9092", "0.0.0.0", False, "127.0.0.1:9092"),
        ("fl.example.org:9092", "fl.example.org", False, "fl.example.org:9092"),
    ],
)
def test_an_address_is_read_as_it_is_written(text: str, host: str, loopback: bool, from_here: str) -> None:
    address = Address.parse(text)
    assert (address.host, address.is_loopback, str(address), str(address.from_here)) == (
        host,
        loopback,
        text,
        from_here,
    )


@pytest.mark.parametrize("text", ["", "9092", "host:", "host:0", "host:65536", "host:http", ":9092"])
def test_another_text_is_no_address(text: str) -> None:
    with pytest.raises(ProblemError, match="HOST:PORT"):
        Address.parse(text)


def test_a_port_that_is_taken_is_rejected_before_anything_is_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
        assert address.accepts_connections(0.0)
        with pytest.raises(ProblemError, match="free port"):
            address.check_free()
    address.check_free()
    assert not address.accepts_connections(0.0)


def test_only_this_machine_is_served_without_encryption(tmp_path: Path) -> None:
    assert "--insecure" in ServerOptions(Address("127.0.0.1", 9092)).for_superlink
    for address, node_keys in ((Address("0.0.0.0", 9092), None), (Address("127.0.0.1", 9092), tmp_path)):
        with pytest.raises(ProblemError) as rejected:
            ServerOptions(address, None, node_keys)
        assert rejected.value.problems[0].code is ErrorCode.CONFIGURATION
    tls = ServerTLS(tmp_path / "server.pem", tmp_path / "server.key", tmp_path / "ca.pem")
    options = ServerOptions(Address("0.0.0.0", 9092), tls, tmp_path).for_superlink
    assert "--insecure" not in options
    assert "--enable-supernode-auth" in options


def test_a_node_encrypts_the_connection_to_another_machine() -> None:
    assert "--insecure" in NodeOptions(Address("127.0.0.1", 9092)).for_supernode
    assert "--insecure" not in NodeOptions(Address("fl.example.org", 9092)).for_supernode
    assert "--insecure" not in NodeOptions(Address("127.0.0.1", 9092), authority=Path("ca.pem")).for_supernode


def test_the_files_of_a_certificate_come_together(tmp_path: Path) -> None:
    assert server_tls(None, None, None) is None
    file = tmp_path / "server.pem"
    file.write_text("-----BEGIN CERTIFICATE-----")
    with pytest.raises(ProblemError, match="--certificate-key"):
        server_tls(file, None, file)
    assert server_tls(file, file, file) == ServerTLS(file, file, file)


def test_public_keys_of_nodes_are_read_and_others_rejected(tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    lines = [_openssh(ec.generate_private_key(ec.SECP384R1()).public_key()) for _ in range(2)]
    file.write_text(f"{lines[0]} hospital-a\n\n{lines[1]}\n")
    assert [key.splitlines()[0] for key in public_keys(file)] == [b"-----BEGIN PUBLIC KEY-----"] * 2
    file.write_text(_openssh(ed25519.Ed25519PrivateKey.generate().public_key()))
    with pytest.raises(ProblemError, match="ssh-keygen -t ecdsa"):
        public_keys(file)


def exit_of(said: str) -> str:
    """What a SuperNode prints that can't connect, for the reason given."""
    return (
        "INFO :      Starting Flower SuperNode\n\x1b[91mERROR \x1b[0m:     Exit Code: 305\n"
        f"Failed to initialize the connection to the SuperLink.\n{said}\n"
        "The SuperNode could not establish a connection to the SuperLink.\n\n"
        "INFO:     Shutting down\nINFO:     Finished server process [7]\n"
    )


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "signed by this node's --authority"),
        ("[code: 2001] SuperNode authentication is enabled.", "lack the key of this node"),
        ("[code: 2004] Failed to activate SuperNode.", "another node with the same key is connected"),
        ("Something new.", "Failed to initialize the connection to the SuperLink. Something new."),
    ],
)
def test_why_a_command_of_flower_failed_is_said_and_not_how_it_said_good_bye(
    tmp_path: Path, said: str, found: str
) -> None:
    earlier = f"{START}earlier\n[code: 2001] an earlier start\n"
    (tmp_path / LOG).write_text(f"{earlier}{START}flower-supernode\n{exit_of(said)}")
    assert found in reason(tmp_path)
    assert said in reason(tmp_path)


def test_a_command_without_an_exit_code_is_quoted_without_its_colors(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text("first\n\x1b[91mERROR \x1b[0m:  no such key\n\nINFO:   Finished\n")
    assert reason(tmp_path) == "ERROR :  no such key"
    (tmp_path / LOG).write_text("")
    assert reason(tmp_path) == "nothing"


def test_a_second_process_of_the_same_node_is_rejected(tmp_path: Path) -> None:
    home = tmp_path / "homes" / "node-0.flower"
    with only_process(home), pytest.raises(ProblemError) as error, only_process(home):
        pass
    assert error.value.problem.code is ErrorCode.RUN_FOLDER
    assert error.value.problem.where == str(home)
    with only_process(home):
        pass
    assert list(home.parent.iterdir()) == []


def test_the_app_holds_no_code_but_imports_of_the_installed_kit(tmp_path: Path) -> None:
    write_app(tmp_path / "app")
    assert all(len(text.splitlines()) <= 3 for name, text in FILES.items() if name.endswith(".py"))
    components = tomllib.loads(FILES["pyproject.toml"])["tool"]["flwr"]["app"]["components"]
    for component, kind in (("serverapp", ServerApp), ("clientapp", ClientApp)):
        module, _, attribute = components[component].partition(":")
        text = (tmp_path / "app" / f"{module.replace('.', '/')}.py").read_text()
        imported = import_module(text.split()[1])
        assert isinstance(getattr(imported, attribute), kind)
    with pytest.raises(FileExistsError):
        write_app(tmp_path / "app")


def _openssh(key: ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
