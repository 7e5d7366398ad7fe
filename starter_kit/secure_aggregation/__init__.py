"""Secure aggregation: a server learns the sum of its clients' vectors modulo 2³², and no single vector.

The protocol is that of Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning"
(CCS 2017), with double masking: every client hides its vector under a mask of its own and under masks that cancel
between pairs of clients, and any `threshold` clients can help to remove what clients that were lost leave behind.
Nothing here knows of models or rounds of training. docs/secure-aggregation.md tells what is guaranteed, against whom,
and what is not.
"""
