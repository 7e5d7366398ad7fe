"""The commands: `manage.py <name>`."""
