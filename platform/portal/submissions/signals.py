"""What other apps may listen to. Handlers run inside the sender's transaction and enqueue work on commit only."""

from django.dispatch import Signal

# Sent with `runs`: runs of one submission that have just become queued.
runs_queued = Signal()
