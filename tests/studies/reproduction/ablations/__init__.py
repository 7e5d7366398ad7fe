"""The ablations of track 1's winner, Tables A3 to A5 of the competition's paper, on the reproduction's task."""
