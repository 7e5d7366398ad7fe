"""What server and nodes say to each other, as the records of Flower's messages.

A model or an update travels as the very bytes of the request's or reply's payload, in an array record, which Flower
cuts into chunks and sends once where several clients get the same. What stands beside it takes a few hundred bytes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from starter_kit.engines.flower.agreement import Agreement
from starter_kit.federation.rounds import Reply, Request

HELLO = "query.hello"  # who are you?
ASK = "train.ask"  # a leg of a round
BYE = "query.bye"  # the run is complete

MAX_SAMPLED = 2**31  # providers of a client
PAYLOAD, HEAD = "payload", "head"
BYTES = "pfl.bytes"  # how Flower is told that an array's data is no array of its kinds


@dataclass(frozen=True)
class Hello:
    """What a node tells of itself, and the server when it asks: it has no clients."""

    clients: list[int]
    agreement: Agreement

    def pack(self) -> RecordDict:
        head = ConfigRecord({"here": ",".join(map(str, self.clients))})
        head.update(asdict(self.agreement))
        return RecordDict({HEAD: head})

    @classmethod
    def unpack(cls, content: RecordDict) -> "Hello":
        """Raises ValueError where `content` is something else."""
        head = {name: str(value) for name, value in _head(content).items()}
        clients = [int(client) for client in head.pop("here", "").split(",") if client]
        try:
            return cls(clients, Agreement(**head))
        except TypeError as error:
            raise ValueError("no agreement") from error


@dataclass
class Requests:
    """Packs the requests of one leg: payloads that are the same become the same record."""

    _records: dict[bytes, ArrayRecord] = field(default_factory=dict)

    def pack(self, request: Request) -> RecordDict:
        if request.payload not in self._records:
            self._records[request.payload] = _payload(request.payload)
        head = ConfigRecord({"round": request.round, "client": request.client, "clients": request.clients})
        head["leg"] = request.leg
        return RecordDict({PAYLOAD: self._records[request.payload], HEAD: head})


def unpack_request(content: RecordDict) -> Request:
    """Raises ValueError where `content` is no request."""
    match _head(content):
        case {"round": int(number), "client": int(client), "clients": int(clients), "leg": str(leg)}:
            return Request(number, client, clients, _bytes(content), leg)
    raise ValueError("not a request")


@dataclass(frozen=True)
class Answer:
    """A client's reply.

    Attributes:
        keeps: Whether the client keeps anything for later rounds.
    """

    reply: Reply
    keeps: bool

    def pack(self, *, counts: bool) -> RecordDict:
        """With how many providers took part, and the loss where the method tells one, only if `counts`."""
        reply = self.reply
        head = ConfigRecord({"keeps": self.keeps})
        if counts:
            head["sampled"] = reply.sampled
        if counts and reply.loss is not None:
            head["loss"] = reply.loss
        return RecordDict({PAYLOAD: _payload(reply.payload), HEAD: head})

    @classmethod
    def unpack(cls, content: RecordDict, client: int) -> "Answer":
        """The answer to a request to `client`. Raises ValueError where `content` is none."""
        head = _head(content)
        loss, sampled = head.get("loss"), head.get("sampled", 0)
        if not (isinstance(loss, float | None) and isinstance(sampled, int) and 0 <= sampled < MAX_SAMPLED):
            raise ValueError("not an answer")
        return cls(Reply(client, _bytes(content), sampled, loss), keeps=bool(head.get("keeps")))


def _payload(data: bytes) -> ArrayRecord:
    return ArrayRecord({PAYLOAD: Array(dtype="uint8", shape=(len(data),), stype=BYTES, data=data)})


def _bytes(content: RecordDict) -> bytes:
    record = content.array_records.get(PAYLOAD)
    if record is None or PAYLOAD not in record:
        raise ValueError("no payload")
    return record[PAYLOAD].data


def _head(content: RecordDict) -> dict[str, object]:
    record: Mapping[str, object] | None = content.config_records.get(HEAD)
    if record is None:
        raise ValueError("no head")
    return dict(record)
