"""What other apps learn of accounts. This app lies below them and must not import them."""

from django.dispatch import Signal

# Sent with `user`, `subject` and `text` when an organizer has changed how somebody logs in. Received by
# `docvqa_site.notifications.security`.
security_changed = Signal()
