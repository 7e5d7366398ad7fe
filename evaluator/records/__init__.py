"""The training record: what a private training run did, round by round, and what can be checked about it.

The public part is a file of JSON lines, hash-chained and signed with the team's key; the annex holds what only
organizers may see. The chain and the signature give order, integrity and non-repudiation. They give no truth: the
trainer and the key are the team's own.
"""
