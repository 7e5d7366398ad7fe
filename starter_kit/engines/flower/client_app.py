"""The clients' side under Flower: a ClientApp that passes requests to the kit's `Participant`.

Guarantees that a node sends nothing about its data but the bytes of its clients' replies; how many providers took part,
with the mean loss if the method tells one, where nothing is private or masked, or the server is trusted; whether a
client keeps anything for later; and if something goes wrong, the kind of the error and not its text.
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
from flwr.common.constant import ErrorCode as FlowerErrorCode

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.console import complain
from starter_kit.engines.flower.agreement import Agreement, reject_untold, tells_counts
from starter_kit.engines.flower.keeping import InContext, InMemory, Keeping
from starter_kit.engines.flower.messages import (
    ASK,
    BYE,
    HELLO,
    Answer,
    Hello,
    unpack_request,
)
from starter_kit.federation.rounds import Participant
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.configuration import load_settings

Handler = Callable[[Message, Context], Message]


@dataclass(frozen=True)
class Host:
    """The clients of this process.

    Attributes:
        counts: Whether the server may know how many providers took part, and what the loss was.
    """

    participant: Participant
    agreement: Agreement
    counts: bool
    keeping: Keeping = field(default_factory=InMemory)

    @classmethod
    def of(cls, setup: RunSetup, only: Sequence[int], on_page: Callable[[int, int], None]) -> "Host":
        """The clients `only` of a run.

        Raises:
            ProblemError: (`E_CONFIGURATION`) The run doesn't have one of them; or no server may lead it, see
                `reject_untold`, and none that does all the same is answered.
        """
        reject_untold(setup)
        known = [client.id for client in setup.clients]
        for client in only:
            if client not in known:
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    where="clients of the node",
                    expected=f"some of {', '.join(map(str, known))}",
                    found=client,
                )
        return cls(setup.participant(on_page, only), Agreement.of(setup), tells_counts(setup))


app = ClientApp()
dismissed = Event()  # whether the server has said that the run is complete
_hosts: list[Host] = []  # none until the first message, or `host`; then one


def host(clients: Host) -> None:
    """Let `clients` answer all messages to this process."""
    _hosts[:] = [clients]
    dismissed.clear()


def _host(context: Context) -> Host:
    """The clients of this process, else those of the node's configuration, which are set up at the first message."""
    if not _hosts:
        given = {name: str(value) for name, value in context.node_config.items()}
        changes = [change for change in given.get("set", "").split(";") if change]
        settings = load_settings(given["config"], changes)
        setup = RunSetup(settings, data=Path(given["data"]), base=Path(given["base"]))
        only = [int(client) for client in given["clients"].split(",")]
        _hosts.append(replace(Host.of(setup, only, Watcher().pages), keeping=InContext()))
    return _hosts[0]


def _only_its_kind(handler: Callable[[Message, Context], RecordDict]) -> Handler:
    """The handler's content as a reply; an error by its code or the name of its class, and at the node in full."""

    @wraps(handler)
    def handled(message: Message, context: Context) -> Message:
        try:
            return Message(handler(message, context), reply_to=message)
        except Exception as error:  # noqa: BLE001 - whatever it is, its text may tell of the data
            traceback.print_exc(file=sys.stderr)
            kind = error.problems[0].code if isinstance(error, ProblemError) else type(error).__name__
            return Message(Error(FlowerErrorCode.CLIENT_APP_RAISED_EXCEPTION, kind), reply_to=message)

    return handled


@app.query(HELLO.partition(".")[2])
@_only_its_kind
def hello(message: Message, context: Context) -> RecordDict:
    """Who is here. The server compares what must be alike, and so does the node, for its own operator."""
    clients = _host(context)
    try:
        Hello.unpack(message.content).agreement.check(clients.agreement, "this node")
    except ProblemError as error:
        complain(error.problems)
    return Hello(clients.participant.clients, clients.agreement).pack()


@app.train(ASK.partition(".")[2])
@_only_its_kind
def ask(message: Message, context: Context) -> RecordDict:
    """A client's part of one leg of a round."""
    clients = _host(context)
    request = unpack_request(message.content)
    kept = clients.keeping.state(context, request.client)
    reply = clients.participant.answer(request, kept)
    clients.keeping.keep(context, request.client, kept)
    return Answer(reply, keeps=bool(kept.tensors)).pack(counts=clients.counts)


@app.query(BYE.partition(".")[2])
@_only_its_kind
def bye(_message: Message, _context: Context) -> RecordDict:
    """The last message of a run."""
    dismissed.set()
    return RecordDict()
