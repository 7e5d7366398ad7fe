"""The outbox: mails wait in the database, and a process of their own delivers them."""
