"""The proxy before a public site: it has a certificate, and tells the site by which way a request came."""

import ipaddress
import re
import socket
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# Of this machine, and of none of the names by which a site knows that it is its owner's alone.
HOST = "127.0.0.2"
CHUNK_BYTES = 64 * 1024
# What clients may not say of themselves, and what would keep a connection open.
REPLACED = re.compile(rb"\r\n(?:x-forwarded-[a-z]+|connection):[^\r]*", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
ADDED = f"X-Forwarded-For: {HOST}\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n".encode()


class TlsProxy:
    """Passes requests on to a port of this machine, one a connection; use as a context manager.

    Attributes:
        certificate: A file that clients trust it by.
    """

    def __init__(self, folder: Path, upstream_port: int) -> None:
        self.certificate = folder / "certificate.pem"
        key = folder / "certificate_key.pem"
        _write_certificate(self.certificate, key)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, key)
        self._upstream_port = upstream_port
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.url = f"https://{HOST}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that waits in accept() keeps a socket open that is only closed.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as client:
            head = b""
            while b"\r\n\r\n" not in head:
                chunk = client.recv(CHUNK_BYTES)
                if not chunk:
                    return
                head += chunk
            head, _, body = head.partition(b"\r\n\r\n")
            with socket.create_connection(("127.0.0.1", self._upstream_port)) as server:
                server.sendall(REPLACED.sub(b"", head) + b"\r\n" + ADDED + body)
                # The whole request, then the answer: two threads must not use one TLS connection at once.
                announced = LENGTH.search(head)
                left = int(announced[1]) - len(body) if announced else 0
                while left > 0 and (chunk := client.recv(CHUNK_BYTES)):
                    server.sendall(chunk)
                    left -= len(chunk)
                while chunk := server.recv(CHUNK_BYTES):
                    client.sendall(chunk)


def _write_certificate(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
