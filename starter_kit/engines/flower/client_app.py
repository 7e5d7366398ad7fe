"""The clients' side under Flower: a ClientApp that passes requests to the kit's `Participant`.

Guarantees that a node sends nothing about its data but the bytes of its clients' replies; how many providers took part,
with the mean loss if the method has one, where nothing is private or masked, or the server is trusted; whether a client
keeps anything for later rounds; and if something goes wrong, the kind of the error and not its text.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from threading import Event

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import print_problems
from starter_kit.engines.flower.agreement import (
    Agreement,
    reports_provider_counts,
    require_trusted_server,
)
from starter_kit.engines.flower.messages import (
    HANDSHAKE,
    REQUEST,
    RUN_COMPLETE,
    Handshake,
    NodeReply,
    unpack_request,
)
from starter_kit.engines.flower.state_stores import InContext, InMemory
from starter_kit.federation.rounds import Participant
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings

CLIENT_APP_RAISED = 2  # the code that Flower itself gives to an app that raised an exception

Handler = Callable[[Message, Context], Message]


@dataclass(frozen=True)
class ClientHost:
    """The clients that this process answers for.

    Attributes:
        reports_counts: Whether the server may learn how many providers took part, and the loss.
        states: Where the clients' states are stored between messages.
    """

    participant: Participant
    agreement: Agreement
    reports_counts: bool
    states: InMemory | InContext = field(default_factory=InMemory)

    @classmethod
    def of(cls, setup: RunSetup, only: Sequence[int], on_page: Callable[[int, int], None]) -> "ClientHost":
        """Return a host for the clients `only` of a run.

        Raises:
            ProblemError: (`E_CONFIGURATION`) The run doesn't have one of them; or it needs a server that is trusted,
                see `require_trusted_server`: no server that leads it all the same is answered.
        """
        require_trusted_server(setup)
        known = [client.id for client in setup.clients]
        for client in only:
            if client not in known:
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    where="clients of the node",
                    expected=f"some of {', '.join(map(str, known))}",
                    found=client,
                )
        return cls(setup.participant(on_page, only), Agreement.of(setup), reports_provider_counts(setup))


app = ClientApp()
run_completed = Event()  # whether the server has announced that the run is complete
_hosts: list[ClientHost] = []  # at most one: none until the first message, or until `answer_for`


def answer_for(host: ClientHost) -> None:
    """Let `host` answer all messages to this process."""
    _hosts[:] = [host]
    run_completed.clear()


def _host(context: Context) -> ClientHost:
    """Return this process's host; the first message sets it up from the node's configuration if there is none yet."""
    if not _hosts:
        given = {name: str(value) for name, value in context.node_config.items()}
        changes = [change for change in given.get("set", "").split(";") if change]
        settings = load_settings(given["config"], changes)
        setup = RunSetup(settings, data=Path(given["data"]), base=Path(given["base"]))
        only = [int(client) for client in given["clients"].split(",")]
        _hosts.append(replace(ClientHost.of(setup, only, Watcher().pages), states=InContext()))
    return _hosts[0]


def _hiding_error_texts(handler: Callable[[Message, Context], RecordDict]) -> Handler:
    """Reply with the handler's content, or with an error's code or class; the node prints the error in full."""

    @wraps(handler)
    def handled(message: Message, context: Context) -> Message:
        try:
            return Message(handler(message, context), reply_to=message)
        except Exception as error:  # noqa: BLE001 - whatever it is, its text may reveal data
            traceback.print_exc(file=sys.stderr)
            kind = error.problems[0].code if isinstance(error, ProblemError) else type(error).__name__
            return Message(Error(CLIENT_APP_RAISED, kind), reply_to=message)

    return handled


@app.query(HANDSHAKE.partition(".")[2])
@_hiding_error_texts
def handshake(message: Message, context: Context) -> RecordDict:
    """Reply with this node's clients and agreement; a difference is reported to the node's operator, too."""
    host = _host(context)
    try:
        Handshake.unpack(message.content).agreement.check(host.agreement, "this node")
    except ProblemError as error:
        print_problems(error.problems)
    return Handshake(host.participant.clients, host.agreement).pack()


@app.train(REQUEST.partition(".")[2])
@_hiding_error_texts
def answer_request(message: Message, context: Context) -> RecordDict:
    """Do a client's part of one leg of a round."""
    host = _host(context)
    request = unpack_request(message.content)
    kept = host.states.load(context, request.client)
    reply = host.participant.answer(request, kept)
    host.states.save(context, request.client, kept)
    return NodeReply(reply, keeps_state=bool(kept.tensors)).pack(with_counts=host.reports_counts)


@app.query(RUN_COMPLETE.partition(".")[2])
@_hiding_error_texts
def run_complete(_message: Message, _context: Context) -> RecordDict:
    """Note that the run is complete, which its last message announces."""
    run_completed.set()
    return RecordDict()
