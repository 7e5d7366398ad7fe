"""Throw-away services that tests use: PostgreSQL, Redis, RabbitMQ, a browser and free ports."""
