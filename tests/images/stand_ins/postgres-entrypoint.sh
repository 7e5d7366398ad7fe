#!/bin/sh
# As the official image does: make the database that the environment names at the first start, then run the server.
set -eu
run() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }
install -d -o postgres -g postgres /var/run/postgresql
if [ ! -e "$PGDATA/PG_VERSION" ]; then
  chown postgres:postgres "$PGDATA"
  chmod 0700 "$PGDATA"
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  chown postgres /tmp/password
  run initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 > /dev/null
  rm /tmp/password
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  if [ "$POSTGRES_DB" != postgres ]; then
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | run postgres --single postgres > /dev/null
  fi
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
