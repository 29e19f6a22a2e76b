-- The functions of the triggers once more, to do what they did (20261121120000_announce_always says what that rests on),
-- with their statements written out. A statement that is put together is parsed and planned each time it runs, which
-- took most of what a small write came to; of one that stands here the plan is remembered, for each trigger by itself.
--
-- While such a function runs, the search_path is the schema of the table that fired the trigger, so that it is right
-- in a database that was restored from a dump, or whose schema was renamed. What PostgreSQL has itself comes before that.

CREATE OR REPLACE FUNCTION announce_owners() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  CASE TG_ARGV[0] || ' ' || TG_OP
    WHEN 'ownerId UPDATE' THEN
      PERFORM announce(viewer || ' ' || TG_TABLE_NAME)
      FROM (SELECT "ownerId" FROM old_rows UNION SELECT "ownerId" FROM new_rows) AS viewers(viewer);
    WHEN 'ownerId INSERT', 'ownerId DELETE' THEN
      PERFORM announce(viewer || ' ' || TG_TABLE_NAME) FROM (SELECT DISTINCT "ownerId" FROM changed) AS viewers(viewer);
    WHEN 'id UPDATE' THEN
      PERFORM announce(viewer || ' ' || TG_TABLE_NAME)
      FROM (SELECT id FROM old_rows UNION SELECT id FROM new_rows) AS viewers(viewer);
    WHEN 'id INSERT', 'id DELETE' THEN
      PERFORM announce(viewer || ' ' || TG_TABLE_NAME) FROM (SELECT DISTINCT id FROM changed) AS viewers(viewer);
    WHEN 'userId UPDATE' THEN
      PERFORM announce(viewer || ' ' || TG_TABLE_NAME)
      FROM (SELECT "userId" FROM old_rows UNION SELECT "userId" FROM new_rows) AS viewers(viewer);
    WHEN 'userId INSERT', 'userId DELETE' THEN
      PERFORM announce(viewer || ' ' || TG_TABLE_NAME) FROM (SELECT DISTINCT "userId" FROM changed) AS viewers(viewer);
  END CASE;
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
  CASE TG_ARGV[0] || ' ' || TG_OP
    WHEN 'templateId UPDATE' THEN
      wholes := ARRAY(SELECT "templateId" FROM old_rows UNION SELECT "templateId" FROM new_rows);
    WHEN 'templateId INSERT', 'templateId DELETE' THEN
      wholes := ARRAY(SELECT DISTINCT "templateId" FROM changed);
    WHEN 'sessionId UPDATE' THEN
      wholes := ARRAY(SELECT "sessionId" FROM old_rows UNION SELECT "sessionId" FROM new_rows);
    WHEN 'sessionId INSERT', 'sessionId DELETE' THEN
      wholes := ARRAY(SELECT DISTINCT "sessionId" FROM changed);
  END CASE;
  IF cardinality(wholes) = 0 THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
    PERFORM announce('* ' || TG_TABLE_NAME);
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
      PERFORM announce('* ' || TG_TABLE_NAME);
      RETURN NULL;
    END IF;
  END IF;
  PERFORM announce(viewer || ' ' || TG_TABLE_NAME) FROM unnest(owners) AS viewer WHERE viewer IS NOT NULL;
  IF TG_ARGV[1] = 'DttTemplate' THEN
    PERFORM announce(viewer || ' ' || TG_TABLE_NAME)
    FROM (SELECT DISTINCT "userId" FROM "DttLibraryEntry" WHERE "templateId" = ANY (wholes)) AS viewers(viewer);
  END IF;
  RETURN NULL;
END $$;
