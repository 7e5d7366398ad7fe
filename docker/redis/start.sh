#!/bin/sh
# Fill in the access list from the environment, then run a command, such as `redis-server CONFIGURATION`, with this list.
#
#   BROKER_SITE_PASSWORD, BROKER_WORKER_PASSWORD   the passwords of the accounts `site` and `worker`
#   BROKER_ACCESS_LIST                             the file to write (/tmp/users.acl)
set -eu
list=${BROKER_ACCESS_LIST:-/tmp/users.acl}
sha256() { printf %s "$1" | sha256sum | cut -d " " -f 1; }
site=$(sha256 "${BROKER_SITE_PASSWORD:?is empty: set a random password for the account site}")
worker=$(sha256 "${BROKER_WORKER_PASSWORD:?is empty: set a random password for the account worker}")
sed -e "s/SITE_SHA256/$site/" -e "s/WORKER_SHA256/$worker/" "$(dirname "$0")/users.acl" > "$list"
exec "$@" --aclfile "$list"
