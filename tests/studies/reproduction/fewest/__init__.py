"""How few counted bytes reach the threshold on the reproduction's task: docs/fewest-bytes.md."""
