"""Lower bounds for ε from one training: an audit with canaries, which refutes gross faults and verifies nothing."""
