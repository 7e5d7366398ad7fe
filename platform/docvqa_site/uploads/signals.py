"""Signals for the apps above."""

from django.dispatch import Signal

# Sent by `uploads.services` with `upload` when its file is removed from the store, outside a transaction, so that what
# was made of the file is removed too. It is sent again after a receiver has raised an exception. Received by
# `docvqa_site.proofs.pages.forget_pages`.
file_deleted = Signal()
