"""Which step of which run is sent to the workers next."""
