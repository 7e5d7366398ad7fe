"""What other apps learn of accounts. This app lies below them and must not import them."""

from django.dispatch import Signal

# Sent with `user`, `subject` and `text` when somebody has a new API token, or an organizer has changed how they log in.
# Received by `docvqa_site.notifications.security`.
security_changed = Signal()
