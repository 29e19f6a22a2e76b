#!/bin/sh
# Copies the primary at the first start, and follows it from then on, until it is promoted.
set -eu
if [ ! -e "$PGDATA" ]; then
  # Beside, and put into its place when it is whole.
  copy=$PGDATA.copy
  rm -rf "$copy"
  mkdir -p "$(dirname "$PGDATA")"
  until PGPASSWORD=$POSTGRES_PASSWORD pg_basebackup --host primary --port 5432 --username replicator --pgdata "$copy" \
    --slot "$STANDBY" --checkpoint fast --write-recovery-conf; do
    rm -rf "$copy"
    sleep 1
  done
  mv "$copy" "$PGDATA"
fi
# Its name among those that commits wait for is that of its slot.
exec postgres -D "$PGDATA" -c config_file=/etc/postgresql/postgresql.conf -c cluster_name="$STANDBY"
