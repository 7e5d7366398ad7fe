"""What all messages between processes, and all documents on disk, have in common."""

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """Strict, immutable base of everything that crosses a process boundary or is read from a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
