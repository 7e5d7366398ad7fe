"""A rehearsal of training at full size, without the competition's data: what it takes on this machine, measured."""
