-- The model as it stays: what must not be cannot be written, by whatever client, and what is not known is null.
-- `repairs.sql` says beforehand what is found that does not fit, and what becomes of it here.

-- A library of templates, one's own and imported ones, made of the table of imports, which keeps its rights.

ALTER TABLE "DttTemplateImport" RENAME TO "DttLibraryEntry";
ALTER TABLE "DttLibraryEntry" RENAME CONSTRAINT "DttTemplateImport_pkey" TO "DttLibraryEntry_pkey";
ALTER TABLE "DttLibraryEntry" RENAME CONSTRAINT "DttTemplateImport_userId_fkey" TO "DttLibraryEntry_userId_fkey";
ALTER TABLE "DttLibraryEntry" RENAME CONSTRAINT "DttTemplateImport_templateId_fkey" TO "DttLibraryEntry_templateId_fkey";
ALTER INDEX "DttTemplateImport_templateId_idx" RENAME TO "DttLibraryEntry_templateId_idx";
ALTER TABLE "DttLibraryEntry" ALTER COLUMN "importedAt" DROP NOT NULL;

-- What is null where a mirror was not told it.

ALTER TABLE "User" ALTER COLUMN "accountType" DROP NOT NULL, ALTER COLUMN "subscriptionTier" DROP NOT NULL,
  ALTER COLUMN league DROP NOT NULL, ALTER COLUMN rank DROP NOT NULL,
  ALTER COLUMN "totalPoints" DROP NOT NULL, ALTER COLUMN "matchPoints" DROP NOT NULL,
  ALTER COLUMN "dttTotalReps" DROP NOT NULL, ALTER COLUMN "dttTotalSessions" DROP NOT NULL,
  ALTER COLUMN "scheduleType" DROP NOT NULL;
ALTER TABLE "DttDevice" ALTER COLUMN "macAddress" DROP NOT NULL, ALTER COLUMN "createdDate" DROP NOT NULL,
  ALTER COLUMN "apiHits" DROP NOT NULL;
ALTER TABLE "LkbxDevice" ALTER COLUMN "macAddress" DROP NOT NULL;
ALTER TABLE "OssmDevice" ALTER COLUMN "macAddress" DROP NOT NULL;
ALTER TABLE "DttTemplate" ALTER COLUMN "ownerId" DROP NOT NULL, ADD COLUMN "foreignOwnerId" INTEGER;
ALTER TABLE "DttTemplateSegment" ALTER COLUMN repeat DROP NOT NULL;
ALTER TABLE "DttSession" ALTER COLUMN "trainerId" DROP NOT NULL, ADD COLUMN "goneTrainerId" INTEGER, ADD COLUMN "goneTemplateId" INTEGER;
ALTER TABLE "TrainerSegment" ALTER COLUMN type TYPE TEXT, ALTER COLUMN "createdAt" DROP NOT NULL;
DROP TYPE "TrainerSegmentType";
-- When a session of before was recorded, nobody knows.
ALTER TABLE "LockSession" ADD COLUMN "endDate" TIMESTAMPTZ(3), ADD COLUMN "createdAt" TIMESTAMPTZ(3);
ALTER TABLE "LockSession" ALTER COLUMN "createdAt" SET DEFAULT CURRENT_TIMESTAMP;
ALTER TABLE "ApiToken" ADD COLUMN slot INTEGER;

-- The announcements (20261121120000_announce_always says what they rest on). An owner may be null now, and a template is
-- seen by those who have it in their library.

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
    PERFORM pg_notify('dovetail', '* ' || TG_TABLE_NAME);
    RETURN NULL;
  END IF;
  EXECUTE format('SELECT pg_notify(''dovetail'', viewer || %L)
                  FROM (SELECT unnest($2) UNION SELECT "userId" FROM %I."DttLibraryEntry" WHERE "templateId" = ANY ($1)) AS viewers(viewer)
                  WHERE viewer IS NOT NULL',
                 ' ' || TG_TABLE_NAME, TG_TABLE_SCHEMA) USING ids, owners;
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
  PERFORM pg_notify('dovetail', viewer || ' ' || TG_TABLE_NAME) FROM unnest(owners) AS viewer WHERE viewer IS NOT NULL;
  IF TG_ARGV[1] = 'DttTemplate' THEN
    EXECUTE format('SELECT pg_notify(''dovetail'', viewer || %L)
                    FROM (SELECT DISTINCT "userId" FROM %I."DttLibraryEntry" WHERE "templateId" = ANY ($1)) AS viewers(viewer)',
                   ' ' || TG_TABLE_NAME, TG_TABLE_SCHEMA) USING wholes;
  END IF;
  RETURN NULL;
END $$;

-- Announces the users who import a template, or give one up. One's own come and go with the template, which is announced.
CREATE FUNCTION announce_imports() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed CONSTANT text := CASE TG_OP WHEN 'UPDATE' THEN '(TABLE old_rows UNION ALL TABLE new_rows)' ELSE 'changed' END;
BEGIN
  EXECUTE format('SELECT pg_notify(''dovetail'', viewer || %L)
                  FROM (SELECT DISTINCT "userId" FROM %s AS rows WHERE "importedAt" IS NOT NULL) AS viewers(viewer)',
                 ' ' || TG_TABLE_NAME, changed);
  RETURN NULL;
END $$;

-- As before, and tells one's own template from an imported one, whatever the writer says.
CREATE OR REPLACE FUNCTION await_template_writers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner integer;
BEGIN
  -- Until the function ends. A query that is made for each row anew would take longer than the rest.
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  -- Nobody else sees what this transaction has made, so there is nobody to wait for: one's own templates, as a rule.
  SELECT "ownerId" INTO owner FROM "DttTemplate" WHERE id = NEW."templateId" AND xmin = pg_current_xact_id()::xid;
  IF NOT FOUND THEN
    SELECT "ownerId" INTO owner FROM "DttTemplate" WHERE id = NEW."templateId" FOR SHARE;
  END IF;
  -- What is replicated may come before its template.
  IF FOUND THEN
    -- A dump of the data alone brings the entry that has come with its template. What a trigger adds is not looked up: the
    -- query would be planned for the few entries that there are before.
    IF TG_OP = 'INSERT' AND pg_trigger_depth() = 1 AND NEW."importedAt" IS NULL AND owner = NEW."userId" THEN
      IF EXISTS (SELECT FROM "DttLibraryEntry" WHERE "userId" = NEW."userId" AND "templateId" = NEW."templateId" AND "importedAt" IS NULL) THEN
        RETURN NULL;
      END IF;
    END IF;
    NEW."importedAt" := CASE WHEN owner = NEW."userId" THEN NULL ELSE coalesce(NEW."importedAt", now()) END;
  END IF;
  RETURN NEW;
END $$;

-- A template is in the library of its owner, from when it is written.
CREATE FUNCTION add_own_templates() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('INSERT INTO %I."DttLibraryEntry" ("userId", "templateId", "importedAt")
                  SELECT "ownerId", id, NULL FROM changed WHERE "ownerId" IS NOT NULL', TG_TABLE_SCHEMA);
  RETURN NULL;
END $$;

-- Who gives a template away has it no more; whoever gets it, and had imported it, has it as their own.
CREATE FUNCTION move_own_template() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  DELETE FROM "DttLibraryEntry" WHERE "userId" = OLD."ownerId" AND "templateId" = NEW.id;
  IF NEW."ownerId" IS NOT NULL THEN
    INSERT INTO "DttLibraryEntry" ("userId", "templateId", "importedAt") VALUES (NEW."ownerId", NEW.id, NULL)
      ON CONFLICT ("userId", "templateId") DO UPDATE SET "importedAt" = NULL;
  END IF;
  RETURN NULL;
END $$;

-- One's own template leaves the library with the template, or with its owner.
CREATE FUNCTION keep_own_template() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF TG_OP = 'UPDATE' THEN
    IF (NEW."userId", NEW."templateId") = (OLD."userId", OLD."templateId") THEN
      RETURN NEW;
    END IF;
  END IF;
  IF EXISTS (SELECT FROM "DttTemplate" AS t JOIN "User" AS u ON u.id = t."ownerId"
             WHERE t.id = OLD."templateId" AND u.id = OLD."userId") THEN
    RAISE EXCEPTION 'template % is the own of user %, and leaves the library with the template alone', OLD."templateId", OLD."userId"
      USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA, CONSTRAINT = 'DttLibraryEntry_keeps_own';
  END IF;
  RETURN CASE TG_OP WHEN 'UPDATE' THEN NEW ELSE OLD END;
END $$;

-- Only the highest tier has tokens. Who had one before losing the tier keeps it.
CREATE FUNCTION check_token_owner() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tier text;
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  SELECT "subscriptionTier" INTO tier FROM "User" WHERE id = NEW."userId";
  -- A user who does not exist is what the key is for.
  IF FOUND AND tier IS DISTINCT FROM 'ultra' THEN
    RAISE EXCEPTION 'a token needs the tier ultra; user % has %', NEW."userId", coalesce(tier, 'none that is known')
      USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA, CONSTRAINT = 'ApiToken_only_for_ultra';
  END IF;
  RETURN NEW;
END $$;

REVOKE EXECUTE ON FUNCTION add_own_templates(), move_own_template(), keep_own_template(), check_token_owner() FROM PUBLIC;

-- A table that was made anew may have none of them.
DROP TRIGGER IF EXISTS announce_insert ON "DttLibraryEntry";
DROP TRIGGER IF EXISTS announce_update ON "DttLibraryEntry";
DROP TRIGGER IF EXISTS announce_delete ON "DttLibraryEntry";
DROP TRIGGER IF EXISTS await_writers ON "DttLibraryEntry";
DROP TRIGGER IF EXISTS await_writers ON "DttTemplate";
CREATE TRIGGER announce_insert AFTER INSERT ON "DttLibraryEntry" REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION announce_imports();
CREATE TRIGGER announce_update AFTER UPDATE ON "DttLibraryEntry" REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION announce_imports();
CREATE TRIGGER announce_delete AFTER DELETE ON "DttLibraryEntry" REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION announce_imports();
CREATE TRIGGER await_writers BEFORE INSERT OR UPDATE OF "userId", "templateId", "importedAt" ON "DttLibraryEntry"
  FOR EACH ROW EXECUTE FUNCTION await_template_writers();
CREATE TRIGGER await_writers BEFORE UPDATE OF "ownerId" ON "DttTemplate"
  FOR EACH ROW WHEN (OLD."ownerId" IS DISTINCT FROM NEW."ownerId") EXECUTE FUNCTION await_segment_writers();
ALTER TABLE "DttLibraryEntry" ENABLE ALWAYS TRIGGER announce_insert, ENABLE ALWAYS TRIGGER announce_update,
  ENABLE ALWAYS TRIGGER announce_delete, ENABLE ALWAYS TRIGGER await_writers;
ALTER TABLE "DttTemplate" ENABLE ALWAYS TRIGGER await_writers;

-- The repairs, in the order of `repairs.sql`.

DO $$
DECLARE
  stand_ins integer[];
  devices text;
  account record;
  wanted text;
BEGIN
  -- What a mirror of 0.1.0 put in the place of what it did not know.
  IF EXISTS (SELECT FROM "Mirror") THEN
    -- No temporary table: a role may own the tables and have no right to make one.
    stand_ins := ARRAY(SELECT id FROM "User" WHERE id NOT IN (SELECT "userId" FROM "Mirror") AND username = 'upstream-user-' || id);
    UPDATE "DttSession" SET "goneTrainerId" = "trainerId", "trainerId" = NULL
      WHERE "trainerId" IN (SELECT id FROM "DttDevice" WHERE "ownerId" = ANY (stand_ins));
    UPDATE "DttSession" SET "goneTemplateId" = "templateId", "templateId" = NULL
      WHERE "templateId" IN (SELECT id FROM "DttTemplate" WHERE "ownerId" = 0 AND 0 = ANY (stand_ins));
    UPDATE "DttTemplate" SET "foreignOwnerId" = "ownerId", "ownerId" = NULL
      WHERE "ownerId" > 0 AND "ownerId" = ANY (stand_ins);
    DELETE FROM "User" WHERE id = ANY (stand_ins);
    -- The next refresh brings what the upstream tells.
    UPDATE "User" SET "accountType" = nullif("accountType", 'user'), "subscriptionTier" = nullif("subscriptionTier", 'free'),
        league = nullif(league, 0), rank = nullif(rank, 0), "totalPoints" = nullif("totalPoints", 0),
        "matchPoints" = nullif("matchPoints", 0), "dttTotalReps" = nullif("dttTotalReps", 0),
        "dttTotalSessions" = nullif("dttTotalSessions", 0), "scheduleType" = nullif("scheduleType", 'auto')
      WHERE id IN (SELECT "userId" FROM "Mirror");
    UPDATE "DttDevice" SET "createdDate" = NULL, "apiHits" = nullif("apiHits", 0)
      WHERE "ownerId" IN (SELECT "userId" FROM "Mirror");
  END IF;

  -- Behind a name goes the id, as often as it takes for nobody else to have it.
  CREATE INDEX "User_username_while_repaired" ON "User"(lower(username));
  FOR account IN
    SELECT id, CASE WHEN username ~ '\S' THEN username ELSE 'user' END AS name
    FROM (SELECT id, username, row_number() OVER (PARTITION BY lower(username) ORDER BY id) AS place FROM "User") AS same
    WHERE place > 1 OR username !~ '\S' ORDER BY id
  LOOP
    wanted := account.name;
    LOOP
      wanted := wanted || '-' || account.id;
      EXIT WHEN NOT EXISTS (SELECT FROM "User" WHERE lower(username) = lower(wanted));
    END LOOP;
    UPDATE "User" SET username = wanted WHERE id = account.id;
  END LOOP;
  DROP INDEX "User_username_while_repaired";
  UPDATE "ApiToken" SET name = 'token ' || id WHERE name !~ '\S';
  UPDATE "DttTemplate" SET name = 'template ' || id WHERE name !~ '\S';
  UPDATE "LockTemplate" SET name = 'lock template ' || id WHERE name !~ '\S';

  DELETE FROM "ApiToken" WHERE octet_length(digest) <> 32;
  UPDATE "ApiToken" SET slot = 1 + (place - 1) % 5,
      "revokedAt" = CASE WHEN place > 5 THEN coalesce("revokedAt", now()) ELSE "revokedAt" END
    FROM (SELECT id, row_number() OVER (PARTITION BY "userId", "revokedAt" IS NULL ORDER BY "lastUsedAt" DESC NULLS LAST, id DESC) AS place
          FROM "ApiToken") AS used WHERE used.id = "ApiToken".id;

  UPDATE "User" SET league = CASE WHEN league >= 0 THEN league END, rank = CASE WHEN rank >= 0 THEN rank END,
      "dttTotalReps" = CASE WHEN "dttTotalReps" >= 0 THEN "dttTotalReps" END,
      "dttTotalSessions" = CASE WHEN "dttTotalSessions" >= 0 THEN "dttTotalSessions" END
    WHERE least(league, rank, "dttTotalReps", "dttTotalSessions") < 0;

  -- One's own, whoever else had imported them: the trigger on entries says which is which.
  INSERT INTO "DttLibraryEntry" ("userId", "templateId") SELECT "ownerId", id FROM "DttTemplate" WHERE "ownerId" IS NOT NULL
    ON CONFLICT ("userId", "templateId") DO UPDATE SET "importedAt" = NULL;
  UPDATE "User" SET "activeTemplateId" = NULL WHERE "activeTemplateId" IS NOT NULL
    AND NOT EXISTS (SELECT FROM "DttLibraryEntry" WHERE "userId" = "User".id AND "templateId" = "activeTemplateId");

  FOREACH devices IN ARRAY ARRAY['DttDevice', 'LkbxDevice', 'OssmDevice'] LOOP
    EXECUTE format($update$
      UPDATE %I SET "macAddress" =
        CASE WHEN hex ~ '^[0-9A-F]{12}$' THEN rtrim(regexp_replace(hex, '(..)', '\1:', 'g'), ':') END
      FROM (SELECT id, upper(regexp_replace("macAddress", '[-:.\s]', '', 'g')) AS hex FROM %1$I) AS digits
      WHERE digits.id = %1$I.id AND "macAddress" !~ '^[0-9A-F]{2}(:[0-9A-F]{2}){5}$' $update$, devices);
  END LOOP;
  UPDATE "DttDevice" SET "apiHits" = NULL WHERE "apiHits" < 0;

  UPDATE "DttTemplate" SET "targetDepth" = CASE WHEN abs("targetDepth") < 'Infinity' THEN "targetDepth" ELSE 0 END,
      "targetWindow" = CASE WHEN abs("targetWindow") < 'Infinity' THEN "targetWindow" ELSE 0 END
    WHERE greatest("targetDepth", "targetWindow") >= 'Infinity' OR least("targetDepth", "targetWindow") = '-Infinity';
  UPDATE "LkbxDevice" SET "hueShift" = 0 WHERE "hueShift" >= 'Infinity' OR "hueShift" = '-Infinity';
  UPDATE "DttTemplateSegment" SET duration = 0 WHERE duration < 0;
  UPDATE "LockTemplate" SET duration = 0 WHERE duration < 0;
  UPDATE "LockSession" SET duration = 0 WHERE duration < 0;
  UPDATE "DttTemplateSegment" SET repeat = NULL WHERE repeat < 0;
  UPDATE "LockTemplate" SET "breakRegularity" = NULL WHERE "breakRegularity" < 0;

  -- The index looks at each row as it is written, when another may still have the place.
  DROP INDEX "DttTemplateSegment_templateId_position_key";
  UPDATE "DttTemplateSegment" SET position = place.position
    FROM (SELECT id, row_number() OVER (PARTITION BY "templateId" ORDER BY position) - 1 AS position FROM "DttTemplateSegment"
          WHERE "templateId" IN (SELECT "templateId" FROM "DttTemplateSegment" WHERE position < 0)) AS place
    WHERE place.id = "DttTemplateSegment".id;
  CREATE UNIQUE INDEX "DttTemplateSegment_templateId_position_key" ON "DttTemplateSegment"("templateId", position);

  UPDATE "TrainerSegment" SET
      "percentGrade" = CASE WHEN "percentGrade" BETWEEN 0 AND 100 THEN "percentGrade" END,
      "durationMeasured" = CASE WHEN "durationMeasured" >= 0 THEN "durationMeasured" END,
      "durationTarget" = CASE WHEN "durationTarget" >= 0 THEN "durationTarget" END,
      "repsMeasured" = CASE WHEN "repsMeasured" >= 0 THEN "repsMeasured" END,
      "repsTarget" = CASE WHEN "repsTarget" >= 0 THEN "repsTarget" END,
      "speedMeasured" = CASE WHEN abs("speedMeasured") < 'Infinity' THEN "speedMeasured" END,
      "speedTarget" = CASE WHEN abs("speedTarget") < 'Infinity' THEN "speedTarget" END,
      "targetDepth" = CASE WHEN abs("targetDepth") < 'Infinity' THEN "targetDepth" END,
      "targetWindow" = CASE WHEN abs("targetWindow") < 'Infinity' THEN "targetWindow" END,
      "longestDeepthroat" = CASE WHEN "longestDeepthroat" >= 0 AND "longestDeepthroat" < 'Infinity' THEN "longestDeepthroat" END,
      "strokeLength" = CASE WHEN abs("strokeLength") < 'Infinity' THEN "strokeLength" END,
      "distanceTravelled" = CASE WHEN "distanceTravelled" >= 0 AND "distanceTravelled" < 'Infinity' THEN "distanceTravelled" END
    WHERE "percentGrade" > 100
      OR greatest("speedMeasured", "speedTarget", "targetDepth", "targetWindow", "longestDeepthroat", "strokeLength", "distanceTravelled") >= 'Infinity'
      OR least("speedMeasured", "speedTarget", "targetDepth", "targetWindow", "strokeLength") = '-Infinity'
      OR least("percentGrade", "longestDeepthroat", "distanceTravelled") < 0
      OR least("durationMeasured", "durationTarget", "repsMeasured", "repsTarget") < 0;
  UPDATE "TrainerSegment" SET "order" = place."order"
    FROM (SELECT id, row_number() OVER (PARTITION BY "sessionId" ORDER BY "order", id) - 1 AS "order" FROM "TrainerSegment"
          WHERE "sessionId" IN (SELECT "sessionId" FROM "TrainerSegment" GROUP BY "sessionId"
                                HAVING count(*) > count(DISTINCT "order") OR min("order") < 0)) AS place
    WHERE place.id = "TrainerSegment".id;

  UPDATE "DttSession" AS s SET "goneTrainerId" = "trainerId", "trainerId" = NULL
    FROM "DttDevice" AS d WHERE d.id = "trainerId" AND d."ownerId" <> s."ownerId";
  UPDATE "LockSession" AS s SET "templateId" = NULL
    FROM "LockTemplate" AS t WHERE t.id = "templateId" AND t."ownerId" <> s."ownerId";
  UPDATE "LockSession" SET "isActive" = false WHERE "isActive" AND "lockState" IN ('completed', 'abandoned');
END $$;

-- Keys.

ALTER TABLE "ApiToken" ALTER COLUMN slot SET NOT NULL;
CREATE UNIQUE INDEX "ApiToken_slot_in_use" ON "ApiToken"("userId", slot) WHERE ("revokedAt" IS NULL);
-- What schema.prisma cannot say: an index on an expression.
CREATE UNIQUE INDEX "User_username_in_any_case" ON "User"(lower(username));
-- An owner of many templates has few imports: the list reads those by themselves.
CREATE INDEX "DttLibraryEntry_imports_idx" ON "DttLibraryEntry"("userId", "templateId") WHERE ("importedAt" IS NOT NULL);
CREATE UNIQUE INDEX "DttDevice_id_ownerId_key" ON "DttDevice"(id, "ownerId");
CREATE UNIQUE INDEX "LockTemplate_id_ownerId_key" ON "LockTemplate"(id, "ownerId");
DROP INDEX "TrainerSegment_sessionId_order_id_idx";
CREATE UNIQUE INDEX "TrainerSegment_sessionId_order_key" ON "TrainerSegment"("sessionId", "order");

-- What schema.prisma cannot say: of a key with two columns, one becomes null.
ALTER TABLE "User" ADD CONSTRAINT "User_activeTemplateId_id_fkey" FOREIGN KEY ("activeTemplateId", id)
  REFERENCES "DttLibraryEntry"("templateId", "userId") ON DELETE SET NULL ("activeTemplateId") ON UPDATE CASCADE;
ALTER TABLE "LockSession" DROP CONSTRAINT "LockSession_templateId_fkey";
ALTER TABLE "LockSession" ADD CONSTRAINT "LockSession_templateId_ownerId_fkey" FOREIGN KEY ("templateId", "ownerId")
  REFERENCES "LockTemplate"(id, "ownerId") ON DELETE SET NULL ("templateId") ON UPDATE NO ACTION;
-- A device that sessions name is neither deleted nor given away: its sessions would be lost, or somebody else's.
ALTER TABLE "DttSession" DROP CONSTRAINT "DttSession_trainerId_fkey";
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_trainerId_ownerId_fkey" FOREIGN KEY ("trainerId", "ownerId")
  REFERENCES "DttDevice"(id, "ownerId") ON DELETE NO ACTION ON UPDATE NO ACTION;

-- Not in sessions that replicate: the rows of the library are replicated as well, as are the tokens.
CREATE TRIGGER library_insert AFTER INSERT ON "DttTemplate" REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION add_own_templates();
CREATE TRIGGER library_update AFTER UPDATE OF "ownerId" ON "DttTemplate"
  FOR EACH ROW WHEN (OLD."ownerId" IS DISTINCT FROM NEW."ownerId") EXECUTE FUNCTION move_own_template();
CREATE TRIGGER keep_own BEFORE DELETE OR UPDATE OF "userId", "templateId" ON "DttLibraryEntry"
  FOR EACH ROW WHEN (OLD."importedAt" IS NULL) EXECUTE FUNCTION keep_own_template();
CREATE TRIGGER only_for_ultra BEFORE INSERT OR UPDATE OF "userId" ON "ApiToken"
  FOR EACH ROW EXECUTE FUNCTION check_token_owner();

-- Checks, none of which schema.prisma can say. NaN is greater than infinity, to PostgreSQL.

DO $$
DECLARE
  -- The kind of check, what holds, and the columns of which it holds.
  rules CONSTANT text[][] := ARRAY[
    ['finite', 'abs(%1$I) < ''Infinity''', 'DttTemplate.targetDepth DttTemplate.targetWindow LkbxDevice.hueShift
      TrainerSegment.speedMeasured TrainerSegment.speedTarget TrainerSegment.targetDepth TrainerSegment.targetWindow
      TrainerSegment.strokeLength'],
    ['finite_not_negative', '%1$I >= 0 AND %1$I < ''Infinity''', 'TrainerSegment.longestDeepthroat TrainerSegment.distanceTravelled'],
    ['percent', '%1$I BETWEEN 0 AND 100', 'TrainerSegment.percentGrade'],
    ['not_negative', '%1$I >= 0', 'User.league User.rank User.dttTotalReps User.dttTotalSessions DttDevice.apiHits
      DttTemplateSegment.position DttTemplateSegment.duration DttTemplateSegment.repeat
      TrainerSegment.order TrainerSegment.durationMeasured TrainerSegment.durationTarget TrainerSegment.repsMeasured
      TrainerSegment.repsTarget LockTemplate.duration LockTemplate.breakRegularity LockSession.duration'],
    ['not_blank', '%1$I ~ ''\S''', 'User.username ApiToken.name DttTemplate.name LockTemplate.name'],
    ['mac', '%1$I ~ ''^[0-9A-F]{2}(:[0-9A-F]{2}){5}$''', 'DttDevice.macAddress LkbxDevice.macAddress OssmDevice.macAddress'],
    ['from_1_to_5', '%1$I BETWEEN 1 AND 5', 'ApiToken.slot'],
    ['sha256', 'octet_length(%1$I) = 32', 'ApiToken.digest']
  ];
  rule text[];
  place text;
BEGIN
  FOREACH rule SLICE 1 IN ARRAY rules LOOP
    FOREACH place IN ARRAY regexp_split_to_array(rule[3], '\s+') LOOP
      EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (%s)', split_part(place, '.', 1),
                     replace(place, '.', '_') || '_' || rule[1], format(rule[2], split_part(place, '.', 2)));
    END LOOP;
  END LOOP;
END $$;

ALTER TABLE "LockSession" ADD CONSTRAINT "LockSession_active_not_over"
  CHECK (NOT ("isActive" AND "lockState" IN ('completed', 'abandoned')));
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_one_trainer" CHECK (num_nonnulls("trainerId", "goneTrainerId") = 1);
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_one_template" CHECK (num_nonnulls("templateId", "goneTemplateId") <= 1);
ALTER TABLE "DttTemplate" ADD CONSTRAINT "DttTemplate_one_owner" CHECK (num_nonnulls("ownerId", "foreignOwnerId") = 1);
