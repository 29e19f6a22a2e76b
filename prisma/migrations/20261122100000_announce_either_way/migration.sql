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

-- The functions of the triggers, as they were but for the way (20261121120000_announce_always says what they rest on), and
-- with statements that are planned once, for a session and a trigger: to plan them each time took longer than the rest.
-- For that they name tables by a search_path, which has the schema of the table that fired the trigger, until the function
-- ends. What stands in that schema is the owner's; the text of an announcement is made by a function of PostgreSQL's own.

CREATE OR REPLACE FUNCTION announce_owners() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF TG_ARGV[0] = 'id' THEN
    IF TG_OP = 'UPDATE' THEN
      PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
        FROM (SELECT id FROM old_rows UNION SELECT id FROM new_rows) AS viewers(viewer);
    ELSE
      PERFORM announce(pg_catalog.concat(id, ' ', TG_TABLE_NAME)) FROM changed;
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
      FROM (SELECT "ownerId" FROM old_rows UNION SELECT "ownerId" FROM new_rows) AS viewers(viewer);
  ELSE
    PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME)) FROM (SELECT DISTINCT "ownerId" FROM changed) AS viewers(viewer);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_imports() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF TG_OP = 'UPDATE' THEN
    PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
      FROM (SELECT "userId" FROM old_rows WHERE "importedAt" IS NOT NULL
            UNION SELECT "userId" FROM new_rows WHERE "importedAt" IS NOT NULL) AS viewers(viewer);
  ELSE
    PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
      FROM (SELECT DISTINCT "userId" FROM changed WHERE "importedAt" IS NOT NULL) AS viewers(viewer);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_templates() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ids integer[];
  owners integer[];
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF TG_OP = 'UPDATE' THEN
    SELECT array_agg(DISTINCT id), array_agg(DISTINCT owner) INTO ids, owners
      FROM (SELECT id, "ownerId" FROM old_rows UNION ALL SELECT id, "ownerId" FROM new_rows) AS rows(id, owner);
  ELSE
    SELECT array_agg(DISTINCT id), array_agg(DISTINCT "ownerId") INTO ids, owners FROM changed;
  END IF;
  IF ids IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    PERFORM announce(pg_catalog.concat('* ', TG_TABLE_NAME));
    RETURN NULL;
  END IF;
  PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
    FROM (SELECT unnest(owners) UNION SELECT "userId" FROM "DttLibraryEntry" WHERE "templateId" = ANY (ids)) AS viewers(viewer)
    WHERE viewer IS NOT NULL;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_segments() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wholes integer[];
  owners integer[];
  locked bigint;
  present bigint;
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF TG_ARGV[0] = 'templateId' THEN
    IF TG_OP = 'UPDATE' THEN
      SELECT array_agg(DISTINCT id) INTO wholes
        FROM (SELECT "templateId" FROM old_rows UNION ALL SELECT "templateId" FROM new_rows) AS rows(id);
    ELSE
      SELECT array_agg(DISTINCT "templateId") INTO wholes FROM changed;
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    SELECT array_agg(DISTINCT id) INTO wholes
      FROM (SELECT "sessionId" FROM old_rows UNION ALL SELECT "sessionId" FROM new_rows) AS rows(id);
  ELSE
    SELECT array_agg(DISTINCT "sessionId") INTO wholes FROM changed;
  END IF;
  IF wholes IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    PERFORM announce(pg_catalog.concat('* ', TG_TABLE_NAME));
    RETURN NULL;
  END IF;
  -- From now to the end of this transaction, nobody else can begin to see these.
  CASE TG_ARGV[1]
    WHEN 'DttTemplate' THEN
      SELECT count(*), array_agg(DISTINCT "ownerId") INTO locked, owners
        FROM (SELECT "ownerId" FROM "DttTemplate" WHERE id = ANY (wholes) FOR NO KEY UPDATE SKIP LOCKED) AS whole;
    WHEN 'DttSession' THEN
      SELECT count(*), array_agg(DISTINCT "ownerId") INTO locked, owners
        FROM (SELECT "ownerId" FROM "DttSession" WHERE id = ANY (wholes) FOR KEY SHARE SKIP LOCKED) AS whole;
    WHEN 'LockSession' THEN
      SELECT count(*), array_agg(DISTINCT "ownerId") INTO locked, owners
        FROM (SELECT "ownerId" FROM "LockSession" WHERE id = ANY (wholes) FOR KEY SHARE SKIP LOCKED) AS whole;
  END CASE;
  IF locked < cardinality(wholes) THEN
    -- What is gone, as in the middle of a deletion, is seen by nobody. What is there was skipped: somebody is about to
    -- see it, or to delete it, and will not be waited for.
    EXECUTE format('SELECT count(*) FROM %I WHERE id = ANY ($1)', TG_ARGV[1]) INTO present USING wholes;
    IF locked < present THEN
      PERFORM announce(pg_catalog.concat('* ', TG_TABLE_NAME));
      RETURN NULL;
    END IF;
  END IF;
  PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME)) FROM unnest(owners) AS viewer WHERE viewer IS NOT NULL;
  IF TG_ARGV[1] = 'DttTemplate' THEN
    PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
      FROM (SELECT DISTINCT "userId" FROM "DttLibraryEntry" WHERE "templateId" = ANY (wholes)) AS viewers(viewer);
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_truncation() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  PERFORM announce(pg_catalog.concat('* ', TG_TABLE_NAME));
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION announce_token() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  PERFORM announce(pg_catalog.concat(OLD."userId", ' ApiToken'));
  RETURN NULL;
END $$;
