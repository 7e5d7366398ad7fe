"""`pfl federate`: see `starter_kit.engines.flower.commands`."""

from starter_kit.engines.flower.commands import flower_app as app

__all__ = ["app"]
