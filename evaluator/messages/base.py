"""What all messages between processes have in common."""

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """Strict, immutable base of everything that crosses a process boundary."""

    model_config = ConfigDict(frozen=True, extra="forbid")
