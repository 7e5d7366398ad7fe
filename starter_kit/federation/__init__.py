"""The protocol of federated training: what server and clients do in a round, whatever the method and the engine.

`rounds` has the round itself and the interfaces of its parts. `plain_aggregation` and `secure_aggregation` are the two
ways in which updates reach the server, `wire` packs vectors into bytes, and `client_state` is the state that a client
keeps from one request to the next.
"""
