"""JSON from strangers: read without the leniencies of the standard library.

The caller caps the length. Beyond what `json` rejects, this rejects duplicate keys, NaN and infinities, numbers of
thousands of digits and deep nesting, all with one kind of exception.
"""

import json
import re

import numpy as np

MAX_DEPTH = 32

# Matches from every quote on, also to the end of a text that ends within a string: the scan stays linear.
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)


class UntrustedJSONError(ValueError):
    """The text is not acceptable JSON; the message says why in a few words."""


def parse(text: bytes) -> object:
    """Return the value of a UTF-8 JSON text. Raises `UntrustedJSONError`."""
    # No deeper than there are brackets, and most texts have few.
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise UntrustedJSONError(f"nested more than {MAX_DEPTH} deep")
    try:
        return json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_reject_constant)
    except UntrustedJSONError:
        raise
    except UnicodeDecodeError as error:
        raise UntrustedJSONError("not UTF-8") from error
    except json.JSONDecodeError as error:
        raise UntrustedJSONError(f"{error.msg} at character {error.pos + 1}") from error
    except ValueError as error:
        # The text has an integer that is longer than the interpreter converts.
        raise UntrustedJSONError("a number with too many digits") from error


def _depth(text: bytes) -> int:
    characters = np.frombuffer(_STRING.sub(b"", text), np.uint8)
    opened = (characters == ord("[")) | (characters == ord("{"))
    closed = (characters == ord("]")) | (characters == ord("}"))
    return int(np.cumsum(opened.astype(np.int32) - closed).max(initial=0))


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise UntrustedJSONError(f"duplicate key {key[:100]!r}")
        result[key] = value
    return result


def _reject_constant(name: str) -> object:
    raise UntrustedJSONError(f"{name} is not a JSON number")
