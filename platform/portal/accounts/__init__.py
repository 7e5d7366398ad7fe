"""People: their accounts, e-mail addresses and API tokens."""
