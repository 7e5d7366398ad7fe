"""Ten clients with 400 providers each, as settings are planned for."""

from starter_kit.federation.rounds import Client

FEDERATION = [Client(client, {f"{client}-{number}": [0] for number in range(400)}) for client in range(10)]
