"""What a message, or a call out of turn, is rejected with."""


class ProtocolError(ValueError):
    """The protocol can't go on with this input. Whoever raises it has sent nothing and is in the state it was in."""
