#!/bin/sh
# Fill in the accounts from the environment, then run a command, such as `rabbitmq-server`.
#
#   BROKER_SITE_PASSWORD, BROKER_WORKER_PASSWORD   the passwords of the accounts `site` and `worker`
#   BROKER_DEFINITIONS                             the file to write (/tmp/definitions.json)
set -eu
umask 077
file=${BROKER_DEFINITIONS:-/tmp/definitions.json}
plain() {
  case $2 in
    "") echo "$1 is empty: set a random password" >&2; exit 1 ;;
    *[!A-Za-z0-9_-]*) echo "$1 has other characters than letters, digits, _ and -: set another one" >&2; exit 1 ;;
  esac
}
plain BROKER_SITE_PASSWORD "${BROKER_SITE_PASSWORD:-}"
plain BROKER_WORKER_PASSWORD "${BROKER_WORKER_PASSWORD:-}"
sed -e "s/SITE_PASSWORD/$BROKER_SITE_PASSWORD/" -e "s/WORKER_PASSWORD/$BROKER_WORKER_PASSWORD/" \
  "$(dirname "$0")/definitions.json" > "$file"
# The server runs under an account of its own.
[ "$(id -u)" != 0 ] || chown rabbitmq "$file" 2> /dev/null || true
exec "$@"
