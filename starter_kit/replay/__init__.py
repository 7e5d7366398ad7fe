"""The replay of rounds of a private run: opened by its team, trained again by the organizers, and compared.

`opening` writes what the team shows of the drawn rounds; `examination` compares that with the record, trains the rounds
again and says what differs; `comparison` and `diagnosis` are the two halves of the last step. What a replay shows and
what it costs is in docs/replay.md.
"""
