"""The REST API, version 1: thin endpoints over the services of the other apps, with the messages of `evaluator.api`."""
