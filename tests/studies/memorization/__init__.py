"""What a small model memorizes of providers, and what privacy prevents: docs/memorization.md."""
