-- What is written most are rows with an owner of their own, and half of what their announcement cost writers was to call
-- `announce` for each owner, and to set a search_path under which that is found. The function of their triggers announces by
-- itself now, in the way that `announce_by` writes into both (20261122100000_announce_either_way says what that is). It names
-- everything by its schema, so that no search_path leads it astray.

CREATE OR REPLACE FUNCTION announce_by(feed text) RETURNS void LANGUAGE plpgsql AS $switch$
DECLARE
  -- Where it is already: what comes first in the search_path of a later session may be another schema.
  place CONSTANT text := coalesce((SELECT nspname FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace
                                   WHERE pg_proc.oid = to_regprocedure('announce(text)')), current_schema());
  notifies CONSTANT text := $$pg_catalog.pg_notify('dovetail', said)::pg_catalog.text$$;
  writes CONSTANT text :=
    $$pg_catalog.pg_logical_emit_message(true, 'dovetail', pg_catalog.concat(pg_catalog.pg_current_xact_id(), ' ', said))::pg_catalog.text$$;
  announces CONSTANT text := CASE feed
    WHEN 'notify' THEN notifies
    WHEN 'logical' THEN format('CASE WHEN decodes THEN %s ELSE %s END', writes, notifies)
    ELSE format('CASE WHEN decodes THEN %s END, %s', writes, notifies)
  END;
BEGIN
  IF feed NOT IN ('notify', 'logical', 'both') THEN
    RAISE EXCEPTION 'changes are announced by notify, logical or both, and not by %', feed;
  END IF;
  -- One at a time, gateways included (`switchLock` in src/database/feed/ways.ts): both functions go the same way.
  PERFORM pg_advisory_xact_lock(3497949714);
  EXECUTE format($function$
    CREATE OR REPLACE FUNCTION %I.announce(payload text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
      feed CONSTANT text := CASE current_setting('wal_level') WHEN 'logical' THEN %L ELSE 'notify' END;
    BEGIN
      IF feed <> 'notify' THEN
        PERFORM pg_logical_emit_message(true, 'dovetail', pg_current_xact_id() || ' ' || payload);
      END IF;
      IF feed <> 'logical' THEN
        PERFORM pg_notify('dovetail', payload);
      END IF;
      RETURN feed;
    END $$ $function$, place, feed);
  EXECUTE format($function$
    CREATE OR REPLACE FUNCTION %1$I.announce_owners() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      decodes CONSTANT boolean := pg_catalog.current_setting('wal_level') OPERATOR(pg_catalog.=) 'logical';
    BEGIN
      IF TG_ARGV[0] OPERATOR(pg_catalog.=) 'id' THEN
        IF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
          PERFORM %2$s FROM (SELECT pg_catalog.concat(viewer, ' ', TG_TABLE_NAME)
            FROM (SELECT id FROM old_rows UNION SELECT id FROM new_rows) AS viewers(viewer)) AS announcements(said);
        ELSE
          PERFORM %2$s FROM (SELECT pg_catalog.concat(id, ' ', TG_TABLE_NAME) FROM changed) AS announcements(said);
        END IF;
      ELSIF TG_OP OPERATOR(pg_catalog.=) 'UPDATE' THEN
        PERFORM %2$s FROM (SELECT pg_catalog.concat(viewer, ' ', TG_TABLE_NAME)
          FROM (SELECT "ownerId" FROM old_rows UNION SELECT "ownerId" FROM new_rows) AS viewers(viewer)) AS announcements(said);
      ELSE
        PERFORM %2$s FROM (SELECT pg_catalog.concat(viewer, ' ', TG_TABLE_NAME)
          FROM (SELECT DISTINCT "ownerId" FROM changed) AS viewers(viewer)) AS announcements(said);
      END IF;
      RETURN NULL;
    END $$ $function$, place, announces);
  -- Gateways begin anew, in the way that it is now.
  PERFORM pg_notify('dovetail', 'switched');
END $switch$;

-- In the way that it was.
SELECT announce_by(substring(prosrc FROM 'WHEN ''logical'' THEN ''(\w+)''')) FROM pg_proc WHERE oid = to_regprocedure('announce(text)');
