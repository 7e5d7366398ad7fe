"""Throw-away services that tests use: PostgreSQL, Redis, RabbitMQ, an S3 server, a browser and free ports."""
