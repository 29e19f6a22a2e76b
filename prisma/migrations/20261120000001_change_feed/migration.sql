-- The change feed: whoever writes, every statement announces on the channel `dovetail` whose data it changed and
-- in which table, as `<user id> <table>`. One message per user and statement, so that a bulk load stays fast.

-- Announces the users whom a query finds among the changed rows. The argument is the query; it reads the rows from
-- the transition table `changed`, which for an update holds the old and the new rows alike.
CREATE FUNCTION announce_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SELECT pg_notify(''dovetail'', viewer || %L) FROM (%s) AS viewers(viewer)', ' ' || TG_TABLE_NAME, TG_ARGV[0]);
  RETURN NULL;
END $$;

-- A truncated table has no transition table, so everybody is told.
CREATE FUNCTION announce_truncation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('dovetail', '* ' || TG_TABLE_NAME);
  RETURN NULL;
END $$;

DO $$
DECLARE
  -- Whose data a row is. A template is also the data of those who imported it.
  whose CONSTANT text[][] := ARRAY[
    ['User', 'SELECT id FROM changed'],
    ['DttDevice', 'SELECT "ownerId" FROM changed'],
    ['DttTemplate', 'SELECT "ownerId" FROM changed
                     UNION SELECT "userId" FROM "DttTemplateImport" WHERE "templateId" IN (SELECT id FROM changed)'],
    ['DttTemplateSegment', 'SELECT "ownerId" FROM "DttTemplate" WHERE id IN (SELECT "templateId" FROM changed)
                            UNION SELECT "userId" FROM "DttTemplateImport" WHERE "templateId" IN (SELECT "templateId" FROM changed)'],
    ['DttTemplateImport', 'SELECT "userId" FROM changed'],
    ['DttSession', 'SELECT "ownerId" FROM changed'],
    ['TrainerSegment', 'SELECT "ownerId" FROM "DttSession" WHERE id IN (SELECT "sessionId" FROM changed)'],
    ['LkbxDevice', 'SELECT "ownerId" FROM changed'],
    ['LockTemplate', 'SELECT "ownerId" FROM changed'],
    ['LockSession', 'SELECT "ownerId" FROM changed'],
    ['LockSegment', 'SELECT "ownerId" FROM "LockSession" WHERE id IN (SELECT "sessionId" FROM changed)'],
    ['OssmDevice', 'SELECT "ownerId" FROM changed']
  ];
  entry text[];
  viewers text;
BEGIN
  FOREACH entry SLICE 1 IN ARRAY whose LOOP
    viewers := format('SELECT DISTINCT * FROM (%s) AS found', entry[2]);
    EXECUTE format('CREATE TRIGGER announce_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed
                    FOR EACH STATEMENT EXECUTE FUNCTION announce_change(%L)', entry[1], viewers);
    EXECUTE format('CREATE TRIGGER announce_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed
                    FOR EACH STATEMENT EXECUTE FUNCTION announce_change(%L)', entry[1], viewers);
    EXECUTE format('CREATE TRIGGER announce_update AFTER UPDATE ON %I REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION announce_change(%L)', entry[1],
                    'WITH changed AS (SELECT * FROM old_rows UNION ALL SELECT * FROM new_rows) ' || viewers);
    EXECUTE format('CREATE TRIGGER announce_truncate AFTER TRUNCATE ON %I
                    FOR EACH STATEMENT EXECUTE FUNCTION announce_truncation()', entry[1]);
  END LOOP;
END $$;

-- Tokens are told apart by what matters: noting that one was used, which happens all the time, changes nothing.
CREATE FUNCTION announce_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('dovetail', OLD."userId" || ' ApiToken');
  RETURN NULL;
END $$;
CREATE TRIGGER announce_update AFTER UPDATE OF "revokedAt", "userId", digest ON "ApiToken"
  FOR EACH ROW EXECUTE FUNCTION announce_token();
CREATE TRIGGER announce_delete AFTER DELETE ON "ApiToken" FOR EACH ROW EXECUTE FUNCTION announce_token();
CREATE TRIGGER announce_truncate AFTER TRUNCATE ON "ApiToken" FOR EACH STATEMENT EXECUTE FUNCTION announce_truncation();
