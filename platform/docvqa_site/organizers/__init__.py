"""The organizers' desk: what needs them, and what they may change, each change with its effect shown first."""
