#!/bin/sh
# Run once, when the primary's database is made: the roles, the gateway's database, and a slot for each standby.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" --username postgres --dbname postgres <<'SQL'
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
-- With REPLICATION it may read what is announced, and with a database of its own it may apply the migrations.
CREATE ROLE dovetail LOGIN REPLICATION PASSWORD :'password';
ALTER ROLE dovetail SET statement_timeout = '10s';
-- To see how far a standby is, and which history it follows.
GRANT pg_read_all_stats TO dovetail;
CREATE DATABASE dovetail OWNER dovetail;
-- As this role the balancer asks each server whether it takes writes. It has no password, and may read nothing else.
CREATE ROLE balancer LOGIN;
SELECT pg_create_physical_replication_slot('standby_1');
SELECT pg_create_physical_replication_slot('standby_2');
-- A commit waits for one of the standbys, whichever has it first. So nothing that was acknowledged is lost when the one is
-- promoted that has received more (docs/deployment.md#promoting-a-standby). In effect from the next start.
ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (standby_1, standby_2)';
SQL
cat >> "$PGDATA/pg_hba.conf" <<'HBA'
host replication replicator all scram-sha-256
HBA
# Before the line of the image, which asks everybody for a password.
sed -i '1i host postgres balancer all trust' "$PGDATA/pg_hba.conf"
