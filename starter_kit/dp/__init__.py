"""Provider-level differential privacy: who is sampled, how an update is bounded, what noise is added.

Everything random here comes from the operating system's entropy; nothing accepts a seed.
"""
