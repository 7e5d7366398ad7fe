"""The REST API, version 1: thin endpoints over other apps' services, with the messages of `evaluator.messages.api`."""
