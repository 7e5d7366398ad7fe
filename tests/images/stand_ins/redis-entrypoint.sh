#!/bin/sh
# As the official image does: the server runs under an account of its own, which owns the folder of data.
set -eu
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
  chown -R redis:redis .
  exec setpriv --reuid=redis --regid=redis --init-groups -- "$@"
fi
exec "$@"
