"""The kinds of plug-ins."""

from starter_kit.compression.plugin_codecs import CODECS
from starter_kit.federation.server_optimizers import SERVER_OPTIMIZERS
from starter_kit.learning.plugins import HOOKS, OPTIMIZERS

KINDS = (CODECS, OPTIMIZERS, HOOKS, SERVER_OPTIMIZERS)
