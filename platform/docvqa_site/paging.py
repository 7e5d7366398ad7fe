"""The parameters of lists that are sent in parts."""

from typing import Annotated

from ninja import Query

DEFAULT_LIMIT = 50

ListLimit = Annotated[int, Query(ge=1, le=200)]
# More than any list has, and still a number that the database takes.
ListOffset = Annotated[int, Query(ge=0, le=10**9)]
