#!/bin/sh
# PgBouncer reads passwords from a file alone.
set -eu
umask 077
printf '"dovetail" "%s"\n' "$POSTGRES_PASSWORD" > /tmp/userlist.txt
exec pgbouncer /etc/pgbouncer/pgbouncer.ini
