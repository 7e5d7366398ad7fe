"""Server optimizers: see `starter_kit.federation.server_optimizers`."""
