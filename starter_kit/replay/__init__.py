"""The replay of one round of a private run: opened by its team, trained again by the organizers, and compared.

`opening` writes what the team shows of the drawn round; `examination` compares that with the record, trains the round
again and says what differs; `comparison` and `diagnosis` are the two halves of the last step. What a replay shows and
what it costs is in docs/replay.md.
"""
