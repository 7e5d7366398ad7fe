"""Files that pass what is checked when they arrive."""

import json

LOG = b"federated_round,sender,receiver,amount_of_bytes\n1,-1,0,5\n"


def checkpoint(data: bytes = b"weights", name: str = "x") -> bytes:
    """A safetensors file of one tensor with these bytes."""
    entry = {name: {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}
    header = json.dumps(entry, separators=(",", ":")).encode()
    return len(header).to_bytes(8, "little") + header + data
