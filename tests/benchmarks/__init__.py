"""What `make benchmark` prints: speed and memory as ratios against named references."""
