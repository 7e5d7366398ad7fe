"""What operators need: probes, metrics, logs, backup and restore."""
