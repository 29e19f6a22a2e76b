-- The change feed again, so that no announcement is lost: whatever the isolation level, whoever begins to see a record
-- while somebody else is changing it, with whatever search_path, and with session_replication_role = replica.
--
-- A statement announces those who see the changed rows while it runs. Who begins to see a row later, but before the
-- writer commits, would never be told. So the rare side waits: an import locks the template FOR SHARE, a change of owner
-- locks the template or session FOR UPDATE, and so each has to wait for all who are changing it or its segments, and
-- commits after them.
--   - Who changes the row itself holds its lock.
--   - Who changes segments of a template locks it FOR NO KEY UPDATE, which an import waits for.
--   - Who changes segments of a session locks it FOR KEY SHARE, as a foreign key does, which a change of owner waits for.
-- None of these keeps out who refers to the template or session, such as an activation. Writers that come later than an
-- import wait for it where they need the row itself, and see it then. Where they change segments they do not wait, which
-- could be a deadlock with a deletion: they announce everybody.
--
-- All this needs a snapshot that is newer than the lock. READ COMMITTED takes one for each statement of a function;
-- the other levels have one for the whole transaction, so there a writer announces everybody.
--
-- Tables are named with the schema of the table that fired the trigger, so that the functions depend on no search_path
-- and go on working in a database that was restored from a dump, or whose schema was renamed.

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['User', 'DttDevice', 'DttTemplate', 'DttTemplateSegment', 'DttTemplateImport', 'DttSession',
                              'TrainerSegment', 'LkbxDevice', 'LockTemplate', 'LockSession', 'LockSegment', 'OssmDevice'] LOOP
    -- A table that was made anew may have none.
    EXECUTE format('DROP TRIGGER IF EXISTS announce_insert ON %I', name);
    EXECUTE format('DROP TRIGGER IF EXISTS announce_update ON %I', name);
    EXECUTE format('DROP TRIGGER IF EXISTS announce_delete ON %I', name);
  END LOOP;
END $$;
DROP FUNCTION announce_change();

-- Announces the users whom a column of the changed rows names. The argument is the column.
CREATE FUNCTION announce_owners() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed CONSTANT text := CASE TG_OP WHEN 'UPDATE' THEN '(TABLE old_rows UNION ALL TABLE new_rows)' ELSE 'changed' END;
BEGIN
  EXECUTE format('SELECT pg_notify(''dovetail'', viewer || %L) FROM (SELECT DISTINCT %I FROM %s AS rows) AS viewers(viewer)',
                 ' ' || TG_TABLE_NAME, TG_ARGV[0], changed);
  RETURN NULL;
END $$;

-- Announces the owners of the changed templates, and those who imported them. The rows are locked, since they were
-- changed: an import that the look-up does not see waits for this transaction.
CREATE FUNCTION announce_templates() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
    PERFORM pg_notify('dovetail', '* ' || TG_TABLE_NAME);
    RETURN NULL;
  END IF;
  EXECUTE format('SELECT pg_notify(''dovetail'', viewer || %L)
                  FROM (SELECT unnest($2) UNION SELECT "userId" FROM %I."DttTemplateImport" WHERE "templateId" = ANY ($1)) AS viewers(viewer)',
                 ' ' || TG_TABLE_NAME, TG_TABLE_SCHEMA) USING ids, owners;
  RETURN NULL;
END $$;

-- Announces those who see the changed segments: the owners of what they are part of and, for a template, those who
-- imported it. The arguments are the column that names the whole, and the table of the wholes.
CREATE FUNCTION announce_segments() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
    PERFORM pg_notify('dovetail', '* ' || TG_TABLE_NAME);
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
      PERFORM pg_notify('dovetail', '* ' || TG_TABLE_NAME);
      RETURN NULL;
    END IF;
  END IF;
  PERFORM pg_notify('dovetail', viewer || ' ' || TG_TABLE_NAME) FROM unnest(owners) AS viewer;
  IF TG_ARGV[1] = 'DttTemplate' THEN
    EXECUTE format('SELECT pg_notify(''dovetail'', viewer || %L)
                    FROM (SELECT DISTINCT "userId" FROM %I."DttTemplateImport" WHERE "templateId" = ANY ($1)) AS viewers(viewer)',
                   ' ' || TG_TABLE_NAME, TG_TABLE_SCHEMA) USING wholes;
  END IF;
  RETURN NULL;
END $$;

-- An import waits for all who are changing the template or its segments, before it has locked anything itself. Imports
-- are not in each other's way.
CREATE FUNCTION await_template_writers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- Until the function ends. A query that is made for each row anew would take longer than the rest.
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  PERFORM FROM "DttTemplate" WHERE id = NEW."templateId" FOR SHARE;
  RETURN NEW;
END $$;

-- A change of owner waits for all who are changing segments, as the new owner is about to see those.
CREATE FUNCTION await_segment_writers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('SELECT FROM %I.%I WHERE id = $1 FOR UPDATE', TG_TABLE_SCHEMA, TG_TABLE_NAME) USING OLD.id;
  RETURN NEW;
END $$;

-- Who may make tables of their own must not have these functions run on them with the rights of this schema's owner.
REVOKE EXECUTE ON FUNCTION announce_templates(), announce_segments(), await_template_writers(), await_segment_writers() FROM PUBLIC;

ALTER FUNCTION announce_truncation() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION announce_token() SET search_path = pg_catalog, pg_temp;

DO $$
DECLARE
  -- The table, and what tells whose data a row is.
  whose CONSTANT text[][] := ARRAY[
    ['User', 'announce_owners(id)'],
    ['DttDevice', 'announce_owners("ownerId")'],
    ['DttTemplate', 'announce_templates()'],
    ['DttTemplateSegment', 'announce_segments("templateId", "DttTemplate")'],
    ['DttTemplateImport', 'announce_owners("userId")'],
    ['DttSession', 'announce_owners("ownerId")'],
    ['TrainerSegment', 'announce_segments("sessionId", "DttSession")'],
    ['LkbxDevice', 'announce_owners("ownerId")'],
    ['LockTemplate', 'announce_owners("ownerId")'],
    ['LockSession', 'announce_owners("ownerId")'],
    ['LockSegment', 'announce_segments("sessionId", "LockSession")'],
    ['OssmDevice', 'announce_owners("ownerId")']
  ];
  entry text[];
BEGIN
  FOREACH entry SLICE 1 IN ARRAY whose LOOP
    EXECUTE format('CREATE TRIGGER announce_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed
                    FOR EACH STATEMENT EXECUTE FUNCTION %s', entry[1], entry[2]);
    EXECUTE format('CREATE TRIGGER announce_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed
                    FOR EACH STATEMENT EXECUTE FUNCTION %s', entry[1], entry[2]);
    EXECUTE format('CREATE TRIGGER announce_update AFTER UPDATE ON %I REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION %s', entry[1], entry[2]);
  END LOOP;
END $$;

CREATE TRIGGER await_writers BEFORE INSERT OR UPDATE OF "userId", "templateId" ON "DttTemplateImport"
  FOR EACH ROW EXECUTE FUNCTION await_template_writers();
CREATE TRIGGER await_writers BEFORE UPDATE OF "ownerId" ON "DttTemplate"
  FOR EACH ROW WHEN (OLD."ownerId" <> NEW."ownerId") EXECUTE FUNCTION await_segment_writers();
CREATE TRIGGER await_writers BEFORE UPDATE OF "ownerId" ON "DttSession"
  FOR EACH ROW WHEN (OLD."ownerId" <> NEW."ownerId") EXECUTE FUNCTION await_segment_writers();
CREATE TRIGGER await_writers BEFORE UPDATE OF "ownerId" ON "LockSession"
  FOR EACH ROW WHEN (OLD."ownerId" <> NEW."ownerId") EXECUTE FUNCTION await_segment_writers();

-- Also where session_replication_role = replica says that triggers need not fire.
DO $$
DECLARE
  entry record;
BEGIN
  FOR entry IN SELECT tgrelid::regclass AS name, tgname FROM pg_trigger
               JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
               WHERE nspname = current_schema() AND (tgname LIKE 'announce\_%' OR tgname = 'await_writers') LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', entry.name, entry.tgname);
  END LOOP;
END $$;
