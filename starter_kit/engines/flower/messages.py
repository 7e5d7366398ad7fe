"""The messages between server and nodes, as the records of Flower's messages.

A model or an update travels as the very bytes of the request's or reply's payload, in an array record, which Flower
splits into chunks and sends once if several clients get the same. The head beside it takes a few hundred bytes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from starter_kit.engines.flower.agreement import Agreement
from starter_kit.federation.rounds import Reply, Request

# Flower's message types: a category that Flower knows, and the name of the handler.
HANDSHAKE = "query.handshake"
REQUEST = "train.request"
RUN_COMPLETE = "query.run_complete"

MAX_SAMPLED = 2**31  # providers of a client
PAYLOAD, HEAD = "payload", "head"
BYTES = "pfl.bytes"  # Flower's serialization type for an array whose data is no array of its own kinds


@dataclass(frozen=True)
class Handshake:
    """The first message in both directions, with which server and node compare what they must have in common.

    Attributes:
        clients: Those of the node; the server has none.
    """

    clients: list[int]
    agreement: Agreement

    def pack(self) -> RecordDict:
        head = ConfigRecord({"hosted": ",".join(map(str, self.clients))})
        head.update(asdict(self.agreement))
        return RecordDict({HEAD: head})

    @classmethod
    def unpack(cls, content: RecordDict) -> "Handshake":
        """Read a handshake. Raises ValueError where `content` is something else."""
        head = {name: str(value) for name, value in _head(content).items()}
        clients = [int(client) for client in head.pop("hosted", "").split(",") if client]
        try:
            return cls(clients, Agreement(**head))
        except TypeError as error:
            raise ValueError("not a handshake") from error


@dataclass
class RequestPacker:
    """Packs the requests of one leg of a round; payloads that are the same become the same record."""

    _records: dict[bytes, ArrayRecord] = field(default_factory=dict)

    def pack(self, request: Request) -> RecordDict:
        if request.payload not in self._records:
            self._records[request.payload] = pack_bytes(request.payload)
        head = ConfigRecord({"round": request.round, "client": request.client, "clients": request.clients})
        head["leg"] = request.leg
        if request.run_token is not None:
            head["run_token"] = request.run_token
        return RecordDict({PAYLOAD: self._records[request.payload], HEAD: head})


def unpack_request(content: RecordDict) -> Request:
    """Read a request. Raises ValueError where `content` is something else."""
    match head := _head(content):
        case {"round": int(number), "client": int(client), "clients": int(clients), "leg": str(leg)}:
            token = str(head["run_token"]) if "run_token" in head else None
            return Request(number, client, clients, _bytes(content), leg, run_token=token)
    raise ValueError("not a request")


@dataclass(frozen=True)
class NodeReply:
    """A client's reply as its node sends it.

    Attributes:
        keeps_state: Whether the client keeps anything for later rounds.
    """

    reply: Reply
    keeps_state: bool

    def pack(self, *, with_counts: bool) -> RecordDict:
        """Pack the reply; the number of providers that took part, and the loss if there is one, only `with_counts`."""
        reply = self.reply
        head = ConfigRecord({"keeps_state": self.keeps_state})
        if with_counts:
            head["sampled"] = reply.sampled
        if with_counts and reply.loss is not None:
            head["loss"] = reply.loss
        return RecordDict({PAYLOAD: pack_bytes(reply.payload), HEAD: head})

    @classmethod
    def unpack(cls, content: RecordDict, client: int) -> "NodeReply":
        """Read the reply to a request to `client`. Raises ValueError where `content` is something else."""
        head = _head(content)
        loss, sampled = head.get("loss"), head.get("sampled", 0)
        if not (isinstance(loss, float | None) and isinstance(sampled, int) and 0 <= sampled < MAX_SAMPLED):
            raise ValueError("not a reply")
        return cls(Reply(client, _bytes(content), sampled, loss), keeps_state=bool(head.get("keeps_state")))


def pack_bytes(data: bytes) -> ArrayRecord:
    """Return a record of these very bytes, under the name `PAYLOAD`."""
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
