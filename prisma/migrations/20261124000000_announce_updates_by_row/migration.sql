-- What is written most are single rows with an owner of their own. Nearly all that announcing an update of one cost was to
-- make tables of the changed rows, and to run a query that found the owners in them. Such updates are announced row by row
-- now, by one expression without a query. A statement that updates many rows sends a message for each, which costs it some
-- microseconds a row; of equal messages in a transaction, NOTIFY delivers one, and gateways heed one.
--
-- A message in the log no longer begins with its transaction, since those who read the log are told whose it is.

CREATE OR REPLACE FUNCTION announce_by(feed text) RETURNS void LANGUAGE plpgsql AS $switch$
DECLARE
  -- Where it is already: what comes first in the search_path of a later session may be another schema.
  place CONSTANT text := coalesce((SELECT nspname FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace
                                   WHERE pg_proc.oid = to_regprocedure('announce(text)')), current_schema());
  -- An expression, for which `said` stands for what is announced. It names everything by its schema, so that no search_path
  -- leads it astray.
  notifies CONSTANT text := $$pg_catalog.pg_notify('dovetail', said)::pg_catalog.text$$;
  writes CONSTANT text := $$pg_catalog.pg_logical_emit_message(true, 'dovetail', said)::pg_catalog.text$$;
  decodes CONSTANT text := $$pg_catalog.current_setting('wal_level') OPERATOR(pg_catalog.=) 'logical'$$;
  announces CONSTANT text := CASE feed
    WHEN 'notify' THEN notifies
    WHEN 'logical' THEN format('CASE WHEN %s THEN %s ELSE %s END', decodes, writes, notifies)
    ELSE format('pg_catalog.concat(CASE WHEN %s THEN %s END, %s)', decodes, writes, notifies)
  END;
  -- Whose a row is that was updated, and whose it was, if that is another.
  owners CONSTANT text := $$pg_catalog.concat(NEW.%1$I, CASE WHEN OLD.%1$I OPERATOR(pg_catalog.<>) NEW.%1$I
                            THEN pg_catalog.concat(',', OLD.%1$I) END, ' ', TG_TABLE_NAME)$$;
BEGIN
  IF feed NOT IN ('notify', 'logical', 'both') THEN
    RAISE EXCEPTION 'changes are announced by notify, logical or both, and not by %', feed;
  END IF;
  -- One at a time, gateways included (`switchLock` in src/database/feed/announceMode.ts): all functions go the same way.
  PERFORM pg_advisory_xact_lock(3497949714);
  EXECUTE format($function$
    CREATE OR REPLACE FUNCTION %I.announce(payload text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      feed CONSTANT text := CASE current_setting('wal_level') WHEN 'logical' THEN %L ELSE 'notify' END;
    BEGIN
      IF feed <> 'notify' THEN
        PERFORM pg_logical_emit_message(true, 'dovetail', payload);
      END IF;
      IF feed <> 'logical' THEN
        PERFORM pg_notify('dovetail', payload);
      END IF;
      RETURN feed;
    END $$ $function$, place, feed);
  EXECUTE format($function$
    CREATE OR REPLACE FUNCTION %1$I.announce_owners() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'id' THEN
        PERFORM %2$s FROM (SELECT pg_catalog.concat(id, ' ', TG_TABLE_NAME) FROM changed) AS announcements(said);
      ELSE
        PERFORM %2$s FROM (SELECT pg_catalog.concat(viewer, ' ', TG_TABLE_NAME)
          FROM (SELECT DISTINCT "ownerId" FROM changed) AS viewers(viewer)) AS announcements(said);
      END IF;
      RETURN NULL;
    END $$ $function$, place, announces);
  EXECUTE format($function$
    CREATE OR REPLACE FUNCTION %1$I.announce_updated_user() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      announced pg_catalog.text;
    BEGIN
      announced := %2$s;
      RETURN NULL;
    END $$;
    CREATE OR REPLACE FUNCTION %1$I.announce_updated_row() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      announced pg_catalog.text;
    BEGIN
      announced := %3$s;
      RETURN NULL;
    END $$ $function$, place,
    replace(announces, 'said', format(owners, 'id')), replace(announces, 'said', format(owners, 'ownerId')));
  -- Gateways begin anew, in the way that it is now.
  PERFORM pg_notify('dovetail', 'switched');
END $switch$;

-- In the way that it was.
SELECT announce_by(substring(prosrc FROM 'WHEN ''logical'' THEN ''(\w+)''')) FROM pg_proc WHERE oid = to_regprocedure('announce(text)');

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['User', 'DttDevice', 'DttSession', 'LkbxDevice', 'LockTemplate', 'LockSession', 'OssmDevice'] LOOP
    -- Without DROP, which would wait for those who read the table, and have others wait.
    EXECUTE format('CREATE OR REPLACE TRIGGER announce_update AFTER UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION %I()', name,
                   CASE name WHEN 'User' THEN 'announce_updated_user' ELSE 'announce_updated_row' END);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER announce_update', name);
  END LOOP;
END $$;
