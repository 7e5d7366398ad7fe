"""People: their accounts, email addresses and API tokens."""
