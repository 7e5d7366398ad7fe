"""Mail servers on the loopback interface: one that takes mails, and one that accepts connections and then hangs."""

import socket
from email.message import EmailMessage as Message
from typing import Self

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import AsyncMessage

from tests.services.ports import free_port


class MailServer(AsyncMessage):
    """Takes mails into `received`; addresses in `rejected` are answered with their code."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__(Message)
        self.received: list[Message] = []
        self.rejected: dict[str, str] = {}
        self.port = free_port()
        self._controller = Controller(self, hostname=host, port=self.port)

    def __enter__(self) -> Self:
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options) -> str:
        if code := self.rejected.get(address):
            return f"{code} no"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_message(self, message) -> None:
        self.received.append(message)


class HangingMailServer:
    """Accepts connections and never says a word, as a server behind a broken firewall does."""

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
