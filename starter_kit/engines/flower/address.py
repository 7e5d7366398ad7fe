"""The address that a server listens at, and the files that encrypt the connections to it."""

import ipaddress
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError

# For each address that stands for all interfaces, that at which this machine reaches itself.
ALL_INTERFACES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read from the user's options, never a default


@dataclass(frozen=True)
class Address:
    """A host name or IP address, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `HOST:PORT`, with an IPv6 address in brackets. Raises `ProblemError` (`E_CONFIGURATION`)."""
        host, _, port = text.rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 2**16):
            raise ProblemError.of(ErrorCode.CONFIGURATION, where="address", expected="HOST:PORT", found=text)
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether nothing that is sent there leaves this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def from_here(self) -> "Address":
        """The address at which the machine that listens there reaches itself."""
        return Address(ALL_INTERFACES.get(self.host, self.host), self.port)

    def check_free(self) -> None:
        """Raise `ProblemError` (`E_CONFIGURATION`) where this machine can't listen there."""
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            socket.create_server((self.host, self.port), family=family).close()
        except OSError as error:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where=str(self),
                expected="an address of this machine, with a free port",
                found=error.strerror,
            ) from error

    def accepts_connections(self, timeout_s: float) -> bool:
        """Return whether a connection is accepted there, at once or within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                socket.create_connection((self.host, self.port), 5.0).close()
            except OSError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.2)
            else:
                return True


@dataclass(frozen=True)
class ServerTLS:
    """PEM files of a server: its certificate, the certificate's private key, and the authority that signed it."""

    certificate: Path
    key: Path
    authority: Path


def server_tls(certificate: Path | None, key: Path | None, authority: Path | None) -> ServerTLS | None:
    """Return the files if all are given, and None if none is.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Some are given and others aren't, or a file isn't PEM.
    """
    files = {"--certificate": certificate, "--certificate-key": key, "--authority": authority}
    if not any(files.values()):
        return None
    for option, path in files.items():
        if path is None:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION, where=option, expected="a PEM file", found="nothing"
            )
        require_pem(option, path)
    return ServerTLS(*(path for path in files.values() if path))


def require_pem(option: str, path: Path | None) -> None:
    """Raise `ProblemError` (`E_CONFIGURATION`) where the file of an option, if it is given, is no PEM file."""
    if path is None or (path.is_file() and b"-----BEGIN " in path.read_bytes()):
        return
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where=option,
        expected="a PEM file",
        found=f"{path}, {'which is none' if path.is_file() else 'and no such file'}",
    )


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
