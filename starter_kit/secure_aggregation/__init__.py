"""Secure aggregation: a server learns the sum of its clients' vectors modulo 2³², and no single vector.

The protocol is that of Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning"
(CCS 2017), with double masking: every client hides its vector under a mask of its own and under masks that cancel
between pairs of clients, and any `threshold` clients can help to remove the masks of clients that were lost.
Nothing here depends on models or rounds of training. docs/secure-aggregation.md describes what is guaranteed, against
whom, and what is not.

**Not audited.** This implementation is for research and teaching. Public keys are not authenticated, so it protects
against a server that follows the protocol and not against one that forges keys.
"""

NOT_AUDITED = "The implementation of secure aggregation is not audited: see docs/secure-aggregation.md."


class ProtocolError(ValueError):
    """Raised where a message or a call is rejected; nothing was sent then, and the state is unchanged."""
