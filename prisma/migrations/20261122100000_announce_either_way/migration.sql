-- One function through which everything is announced, in one of two ways: by NOTIFY, or by a message in the write-ahead
-- log, which logical decoding reads. NOTIFY makes commits wait for each other, and a message does not.
--
-- Which way it is stands in the function itself, `notify` as it comes. Its owner changes it, or has a gateway do so
-- (CHANGE_FEED):
--
--   SELECT announce_by('logical');
--
-- It does not stand in a table, since a transaction with a snapshot from before a change would go on reading what stood
-- there. The definition of a function is read anew by every statement that begins to write.
--
-- Who leaves `logical` goes by way of `both`: whoever began to write before may still announce by a message alone, and
-- gateways go on reading messages until nobody does. Coming from `notify` there is no need, since gateways always listen.
--
-- A message begins with the transaction that sends it: it may be read before snapshots see what that has written. Where
-- there is no logical decoding, as in the embedded engine, a database that was switched to messages announces by NOTIFY.

CREATE FUNCTION announce_by(feed text) RETURNS void LANGUAGE plpgsql AS $switch$
DECLARE
  -- Where it is already: what comes first in the search_path of a later session may be another schema.
  place CONSTANT text := coalesce((SELECT nspname FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace
                                   WHERE pg_proc.oid = to_regprocedure('announce(text)')), current_schema());
BEGIN
  IF feed NOT IN ('notify', 'logical', 'both') THEN
    RAISE EXCEPTION 'changes are announced by notify, logical or both, and not by %', feed;
  END IF;
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
  -- Gateways begin anew, in the way that it is now.
  PERFORM pg_notify('dovetail', 'switched');
END $switch$;

SELECT announce_by('notify');
-- Whoever writes announces, with whatever rights: some of the triggers run with those of the writer.
GRANT EXECUTE ON FUNCTION announce(text) TO PUBLIC;

-- The functions of the triggers, as they were but for the way (20261121120000_announce_always says what they rest on).

CREATE OR REPLACE FUNCTION announce_owners() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed CONSTANT text := CASE TG_OP WHEN 'UPDATE' THEN '(TABLE old_rows UNION ALL TABLE new_rows)' ELSE 'changed' END;
BEGIN
  EXECUTE format('SELECT %I.announce(viewer || %L) FROM (SELECT DISTINCT %I FROM %s AS rows) AS viewers(viewer)',
                 TG_TABLE_SCHEMA, ' ' || TG_TABLE_NAME, TG_ARGV[0], changed);
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_imports() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed CONSTANT text := CASE TG_OP WHEN 'UPDATE' THEN '(TABLE old_rows UNION ALL TABLE new_rows)' ELSE 'changed' END;
BEGIN
  EXECUTE format('SELECT %I.announce(viewer || %L)
                  FROM (SELECT DISTINCT "userId" FROM %s AS rows WHERE "importedAt" IS NOT NULL) AS viewers(viewer)',
                 TG_TABLE_SCHEMA, ' ' || TG_TABLE_NAME, changed);
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_templates() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed CONSTANT text := CASE TG_OP WHEN 'UPDATE' THEN '(TABLE old_rows UNION ALL TABLE new_rows)' ELSE 'changed' END;
  ids integer[];
  owners integer[];
BEGIN
  EXECUTE format('SELECT array_agg(DISTINCT id), array_agg(DISTINCT "ownerId") FROM %s AS rows', changed) INTO ids, owners;
  IF ids IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    EXECUTE format('SELECT %I.announce(%L)', TG_TABLE_SCHEMA, '* ' || TG_TABLE_NAME);
    RETURN NULL;
  END IF;
  EXECUTE format('SELECT %I.announce(viewer || %L)
                  FROM (SELECT unnest($2) UNION SELECT "userId" FROM %1$I."DttLibraryEntry" WHERE "templateId" = ANY ($1)) AS viewers(viewer)
                  WHERE viewer IS NOT NULL',
                 TG_TABLE_SCHEMA, ' ' || TG_TABLE_NAME) USING ids, owners;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_segments() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed CONSTANT text := CASE TG_OP WHEN 'UPDATE' THEN '(TABLE old_rows UNION ALL TABLE new_rows)' ELSE 'changed' END;
  wholes integer[];
  owners integer[];
  locked bigint;
  present bigint;
BEGIN
  EXECUTE format('SELECT array_agg(DISTINCT %I) FROM %s AS rows', TG_ARGV[0], changed) INTO wholes;
  IF wholes IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    EXECUTE format('SELECT %I.announce(%L)', TG_TABLE_SCHEMA, '* ' || TG_TABLE_NAME);
    RETURN NULL;
  END IF;
  -- From now to the end of this transaction, nobody else can begin to see these.
  EXECUTE format('SELECT count(*), array_agg(DISTINCT "ownerId")
                  FROM (SELECT "ownerId" FROM %I.%I WHERE id = ANY ($1) FOR %s SKIP LOCKED) AS whole',
                 TG_TABLE_SCHEMA, TG_ARGV[1], CASE TG_ARGV[1] WHEN 'DttTemplate' THEN 'NO KEY UPDATE' ELSE 'KEY SHARE' END)
    INTO locked, owners USING wholes;
  IF locked < cardinality(wholes) THEN
    -- What is gone, as in the middle of a deletion, is seen by nobody. What is there was skipped: somebody is about to
    -- see it, or to delete it, and will not be waited for.
    EXECUTE format('SELECT count(*) FROM %I.%I WHERE id = ANY ($1)', TG_TABLE_SCHEMA, TG_ARGV[1]) INTO present USING wholes;
    IF locked < present THEN
      EXECUTE format('SELECT %I.announce(%L)', TG_TABLE_SCHEMA, '* ' || TG_TABLE_NAME);
      RETURN NULL;
    END IF;
  END IF;
  EXECUTE format('SELECT %I.announce(viewer || %L) FROM unnest($1) AS viewer WHERE viewer IS NOT NULL',
                 TG_TABLE_SCHEMA, ' ' || TG_TABLE_NAME) USING owners;
  IF TG_ARGV[1] = 'DttTemplate' THEN
    EXECUTE format('SELECT %I.announce(viewer || %L)
                    FROM (SELECT DISTINCT "userId" FROM %1$I."DttLibraryEntry" WHERE "templateId" = ANY ($1)) AS viewers(viewer)',
                   TG_TABLE_SCHEMA, ' ' || TG_TABLE_NAME) USING wholes;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_truncation() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('SELECT %I.announce(%L)', TG_TABLE_SCHEMA, '* ' || TG_TABLE_NAME);
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_token() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('SELECT %I.announce(%L)', TG_TABLE_SCHEMA, OLD."userId" || ' ApiToken');
  RETURN NULL;
END $$;
