-- The schema of a new database: tables, indexes and keys, then checks, functions and triggers.
--
-- Prisma drafts the tables, indexes and keys from schema.prisma. Written by hand in them is what Prisma's
-- language cannot say: NULLS LAST in an index, which column ON DELETE SET NULL sets, and UNLOGGED, since the counts of
-- requests may be lost in a crash.

-- CreateEnum
CREATE TYPE "ScheduleType" AS ENUM ('auto', 'weekly', 'single');

-- CreateTable
CREATE TABLE "User" (
    "id" SERIAL NOT NULL,
    "username" TEXT NOT NULL,
    "accountType" TEXT DEFAULT 'user',
    "subscriptionTier" TEXT DEFAULT 'free',
    "league" INTEGER DEFAULT 0,
    "rank" INTEGER DEFAULT 0,
    "totalPoints" INTEGER DEFAULT 0,
    "matchPoints" INTEGER DEFAULT 0,
    "profileImage" TEXT DEFAULT '',
    "profileDescription" TEXT DEFAULT '',
    "profileTitle" TEXT DEFAULT '',
    "dttTotalReps" INTEGER DEFAULT 0,
    "dttTotalSessions" INTEGER DEFAULT 0,
    "scheduleType" "ScheduleType" DEFAULT 'auto',
    "activeTemplateId" INTEGER,

    CONSTRAINT "User_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "Mirror" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "source" TEXT NOT NULL,

    CONSTRAINT "Mirror_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "MirroredAccount" (
    "userId" INTEGER NOT NULL,
    "sessionsComplete" BOOLEAN NOT NULL DEFAULT false,
    "refreshedAt" TIMESTAMPTZ(3),
    "writtenAt" TIMESTAMPTZ(3),
    "heldBy" TEXT,
    "heldUntil" TIMESTAMPTZ(3),

    CONSTRAINT "MirroredAccount_pkey" PRIMARY KEY ("userId")
);

-- CreateTable
CREATE UNLOGGED TABLE "RateLimit" (
    "key" VARCHAR(255) NOT NULL,
    "points" INTEGER NOT NULL DEFAULT 0,
    "expire" BIGINT,

    CONSTRAINT "RateLimit_pkey" PRIMARY KEY ("key")
);

-- CreateTable
CREATE TABLE "ApiToken" (
    "id" SERIAL NOT NULL,
    "userId" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "digest" BYTEA NOT NULL,
    "previousDigest" BYTEA,
    "previousValidUntil" TIMESTAMPTZ(3),
    "scope" TEXT NOT NULL DEFAULT 'activate',
    "slot" INTEGER NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "lastUsedAt" TIMESTAMPTZ(3),
    "expiresAt" TIMESTAMPTZ(3),
    "revokedAt" TIMESTAMPTZ(3),

    CONSTRAINT "ApiToken_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttDevice" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "macAddress" TEXT DEFAULT '',
    "serialNumber" TEXT DEFAULT '',
    "softwareVersion" TEXT DEFAULT '',
    "lastVisited" TIMESTAMPTZ(3),
    "lastLogAt" TIMESTAMPTZ(3),
    "createdDate" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,
    "apiHits" INTEGER DEFAULT 0,

    CONSTRAINT "DttDevice_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttTemplate" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "ownerId" INTEGER,
    "foreignOwnerId" INTEGER,
    "name" TEXT NOT NULL,
    "description" TEXT DEFAULT '',
    "tagline" TEXT DEFAULT '',
    "message" TEXT DEFAULT '',
    "isPublic" BOOLEAN NOT NULL DEFAULT false,
    "handsFreeMode" BOOLEAN NOT NULL DEFAULT false,
    "targetDepth" DOUBLE PRECISION NOT NULL,
    "targetWindow" DOUBLE PRECISION NOT NULL,
    "toyId" TEXT,
    "createdDate" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "detailsPending" BOOLEAN NOT NULL DEFAULT false,
    "listedDigest" TEXT,

    CONSTRAINT "DttTemplate_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttTemplateSegment" (
    "id" SERIAL NOT NULL,
    "templateId" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "duration" INTEGER NOT NULL,
    "repeat" INTEGER DEFAULT 1,

    CONSTRAINT "DttTemplateSegment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttLibraryEntry" (
    "userId" INTEGER NOT NULL,
    "templateId" INTEGER NOT NULL,
    "importedAt" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "DttLibraryEntry_pkey" PRIMARY KEY ("userId","templateId")
);

-- CreateTable
CREATE TABLE "DttSession" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "name" TEXT,
    "passed" BOOLEAN,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "trainerId" INTEGER,
    "goneTrainerId" INTEGER,
    "templateId" INTEGER,
    "goneTemplateId" INTEGER,
    "detailsPending" BOOLEAN NOT NULL DEFAULT false,
    "listedDigest" TEXT,

    CONSTRAINT "DttSession_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "TrainerSegment" (
    "id" SERIAL NOT NULL,
    "sessionId" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "passed" BOOLEAN,
    "percentGrade" DOUBLE PRECISION,
    "points" INTEGER,
    "durationMeasured" INTEGER,
    "durationTarget" INTEGER,
    "repsMeasured" INTEGER,
    "repsTarget" INTEGER,
    "speedMeasured" DOUBLE PRECISION,
    "speedTarget" DOUBLE PRECISION,
    "targetDepth" DOUBLE PRECISION,
    "targetWindow" DOUBLE PRECISION,
    "longestDeepthroat" DOUBLE PRECISION,
    "strokeLength" DOUBLE PRECISION,
    "distanceTravelled" DOUBLE PRECISION,
    "order" INTEGER NOT NULL,
    "createdAt" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "TrainerSegment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "LkbxDevice" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "macAddress" TEXT DEFAULT '',
    "ownerId" INTEGER NOT NULL,
    "locked" BOOLEAN NOT NULL DEFAULT false,
    "hueShift" DOUBLE PRECISION NOT NULL DEFAULT 0,
    "lastVisited" TIMESTAMPTZ(3),
    "lastLogAt" TIMESTAMPTZ(3),

    CONSTRAINT "LkbxDevice_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "LockTemplate" (
    "id" SERIAL NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "duration" INTEGER NOT NULL,
    "isRandomDuration" BOOLEAN NOT NULL DEFAULT false,
    "isBreakEnabled" BOOLEAN NOT NULL DEFAULT false,
    "breakRegularity" INTEGER DEFAULT 0,
    "isEmergencyUnlockEnabled" BOOLEAN NOT NULL DEFAULT false,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "LockTemplate_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "LockSession" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "publicId" TEXT NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "name" TEXT DEFAULT '',
    "lockState" TEXT NOT NULL,
    "duration" INTEGER NOT NULL,
    "startDate" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "endDate" TIMESTAMPTZ(3),
    "createdAt" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,
    "isActive" BOOLEAN NOT NULL DEFAULT false,
    "templateId" INTEGER,

    CONSTRAINT "LockSession_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "LockSegment" (
    "id" SERIAL NOT NULL,
    "sessionId" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "isLocked" BOOLEAN NOT NULL,

    CONSTRAINT "LockSegment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "OssmDevice" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "macAddress" TEXT DEFAULT '',
    "chip" TEXT NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "pairingCode" TEXT,
    "pairingExpires" TIMESTAMPTZ(3),
    "lastVisited" TIMESTAMPTZ(3),
    "OSSMFirmwareId" INTEGER,

    CONSTRAINT "OssmDevice_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "User_username_key" ON "User"("username");

-- CreateIndex
CREATE INDEX "User_activeTemplateId_idx" ON "User"("activeTemplateId");

-- CreateIndex
CREATE UNIQUE INDEX "ApiToken_digest_key" ON "ApiToken"("digest");

-- CreateIndex
CREATE UNIQUE INDEX "ApiToken_previousDigest_key" ON "ApiToken"("previousDigest");

-- CreateIndex
CREATE INDEX "ApiToken_userId_id_idx" ON "ApiToken"("userId", "id");

-- CreateIndex
CREATE UNIQUE INDEX "ApiToken_slot_in_use" ON "ApiToken"("userId", "slot") WHERE ("revokedAt" IS NULL);

-- CreateIndex
CREATE UNIQUE INDEX "DttDevice_bubbleId_key" ON "DttDevice"("bubbleId");

-- CreateIndex
CREATE INDEX "DttDevice_ownerId_lastVisited_id_idx" ON "DttDevice"("ownerId", "lastVisited" DESC NULLS LAST, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "DttDevice_id_ownerId_key" ON "DttDevice"("id", "ownerId");

-- CreateIndex
CREATE UNIQUE INDEX "DttTemplate_bubbleId_key" ON "DttTemplate"("bubbleId");

-- CreateIndex
CREATE INDEX "DttTemplate_ownerId_createdDate_id_idx" ON "DttTemplate"("ownerId", "createdDate" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "DttTemplateSegment_templateId_position_key" ON "DttTemplateSegment"("templateId", "position");

-- CreateIndex
CREATE INDEX "DttLibraryEntry_imports_idx" ON "DttLibraryEntry"("userId", "templateId") WHERE ("importedAt" IS NOT NULL);

-- CreateIndex
CREATE INDEX "DttLibraryEntry_templateId_idx" ON "DttLibraryEntry"("templateId");

-- CreateIndex
CREATE UNIQUE INDEX "DttSession_bubbleId_key" ON "DttSession"("bubbleId");

-- CreateIndex
CREATE INDEX "DttSession_ownerId_createdAt_id_idx" ON "DttSession"("ownerId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "DttSession_trainerId_createdAt_id_idx" ON "DttSession"("trainerId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "DttSession_templateId_createdAt_id_idx" ON "DttSession"("templateId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "DttSession_details_pending_idx" ON "DttSession"("ownerId", "createdAt" DESC, "id" DESC) WHERE ("detailsPending");

-- CreateIndex
CREATE UNIQUE INDEX "TrainerSegment_sessionId_order_key" ON "TrainerSegment"("sessionId", "order");

-- CreateIndex
CREATE UNIQUE INDEX "LkbxDevice_bubbleId_key" ON "LkbxDevice"("bubbleId");

-- CreateIndex
CREATE INDEX "LkbxDevice_ownerId_lastVisited_id_idx" ON "LkbxDevice"("ownerId", "lastVisited" DESC NULLS LAST, "id" DESC);

-- CreateIndex
CREATE INDEX "LockTemplate_ownerId_createdAt_id_idx" ON "LockTemplate"("ownerId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "LockTemplate_id_ownerId_key" ON "LockTemplate"("id", "ownerId");

-- CreateIndex
CREATE UNIQUE INDEX "LockSession_bubbleId_key" ON "LockSession"("bubbleId");

-- CreateIndex
CREATE UNIQUE INDEX "LockSession_publicId_key" ON "LockSession"("publicId");

-- CreateIndex
CREATE INDEX "LockSession_ownerId_startDate_id_idx" ON "LockSession"("ownerId", "startDate" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "LockSession_templateId_startDate_id_idx" ON "LockSession"("templateId", "startDate" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "LockSession_one_active_per_owner" ON "LockSession"("ownerId") WHERE ("isActive");

-- CreateIndex
CREATE INDEX "LockSegment_sessionId_createdAt_id_idx" ON "LockSegment"("sessionId", "createdAt", "id");

-- CreateIndex
CREATE UNIQUE INDEX "OssmDevice_bubbleId_key" ON "OssmDevice"("bubbleId");

-- CreateIndex
CREATE INDEX "OssmDevice_ownerId_lastVisited_id_idx" ON "OssmDevice"("ownerId", "lastVisited" DESC NULLS LAST, "id" DESC);

-- AddForeignKey
ALTER TABLE "User" ADD CONSTRAINT "User_activeTemplateId_fkey" FOREIGN KEY ("activeTemplateId") REFERENCES "DttTemplate"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "User" ADD CONSTRAINT "User_activeTemplateId_id_fkey" FOREIGN KEY ("activeTemplateId", "id") REFERENCES "DttLibraryEntry"("templateId", "userId") ON DELETE SET NULL ("activeTemplateId") ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "MirroredAccount" ADD CONSTRAINT "MirroredAccount_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "ApiToken" ADD CONSTRAINT "ApiToken_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttDevice" ADD CONSTRAINT "DttDevice_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttTemplate" ADD CONSTRAINT "DttTemplate_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttTemplateSegment" ADD CONSTRAINT "DttTemplateSegment_templateId_fkey" FOREIGN KEY ("templateId") REFERENCES "DttTemplate"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttLibraryEntry" ADD CONSTRAINT "DttLibraryEntry_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttLibraryEntry" ADD CONSTRAINT "DttLibraryEntry_templateId_fkey" FOREIGN KEY ("templateId") REFERENCES "DttTemplate"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_trainerId_ownerId_fkey" FOREIGN KEY ("trainerId", "ownerId") REFERENCES "DttDevice"("id", "ownerId") ON DELETE NO ACTION ON UPDATE NO ACTION;

-- AddForeignKey
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_templateId_fkey" FOREIGN KEY ("templateId") REFERENCES "DttTemplate"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "TrainerSegment" ADD CONSTRAINT "TrainerSegment_sessionId_fkey" FOREIGN KEY ("sessionId") REFERENCES "DttSession"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "LkbxDevice" ADD CONSTRAINT "LkbxDevice_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "LockTemplate" ADD CONSTRAINT "LockTemplate_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "LockSession" ADD CONSTRAINT "LockSession_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "LockSession" ADD CONSTRAINT "LockSession_templateId_ownerId_fkey" FOREIGN KEY ("templateId", "ownerId") REFERENCES "LockTemplate"("id", "ownerId") ON DELETE SET NULL ("templateId") ON UPDATE NO ACTION;

-- AddForeignKey
ALTER TABLE "LockSegment" ADD CONSTRAINT "LockSegment_sessionId_fkey" FOREIGN KEY ("sessionId") REFERENCES "LockSession"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "OssmDevice" ADD CONSTRAINT "OssmDevice_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Names of users are unique whatever their case.
CREATE UNIQUE INDEX "User_username_in_any_case" ON "User"(lower(username));

-- Checks. PostgreSQL sorts NaN above infinity, so `< 'Infinity'` rejects it too. A check holds for null.

DO $$
DECLARE
  -- The name of the check, its condition, and the columns that have it.
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
    ['mac', '%1$I ~ ''^([0-9A-F]{2}(:[0-9A-F]{2}){5})?$''', 'DttDevice.macAddress LkbxDevice.macAddress OssmDevice.macAddress'],
    ['from_1_to_5', '%1$I BETWEEN 1 AND 5', 'ApiToken.slot'],
    ['sha256', 'octet_length(%1$I) = 32', 'ApiToken.digest ApiToken.previousDigest'],
    ['known', '%1$I IN (''read'', ''activate'', ''manage'', ''manage_on_loopback'')', 'ApiToken.scope']
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
ALTER TABLE "ApiToken" ADD CONSTRAINT "ApiToken_previous_until" CHECK (num_nonnulls("previousDigest", "previousValidUntil") <> 1);
ALTER TABLE "Mirror" ADD CONSTRAINT "Mirror_only_one" CHECK (id = 1);

-- Texts and numbers that are null only in a mirror, where null means that the value is not known. In any other database null
-- is an error, as it is in a column that is NOT NULL. The trigger fires after the write, since PostgreSQL locks each updated row once
-- more for a trigger that fires before. It does not fire with session_replication_role = replica: what is replicated from a
-- mirror may come before the row of "Mirror".

-- Rejects null in the columns that are the arguments, unless the database is a mirror.
CREATE FUNCTION require_values() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  missing text;
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF EXISTS (SELECT FROM "Mirror") THEN
    RETURN NULL;
  END IF;
  SELECT name INTO missing FROM unnest(TG_ARGV) AS columns(name) WHERE to_jsonb(NEW) ->> name IS NULL LIMIT 1;
  RAISE EXCEPTION 'null value in column "%" of relation "%": only a mirror may have none', missing, TG_TABLE_NAME
    USING ERRCODE = 'not_null_violation', COLUMN = missing, TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA;
END $$;

DO $$
DECLARE
  -- The table, and its columns that always have a value.
  known CONSTANT text[][] := ARRAY[
    ['User', 'accountType subscriptionTier league rank totalPoints matchPoints profileImage profileDescription profileTitle
      dttTotalReps dttTotalSessions scheduleType'],
    ['DttDevice', 'macAddress serialNumber softwareVersion createdDate apiHits'],
    ['DttTemplate', 'description tagline message'],
    ['DttTemplateSegment', 'repeat'],
    ['LkbxDevice', 'macAddress'],
    ['LockTemplate', 'breakRegularity'],
    ['LockSession', 'name'],
    ['OssmDevice', 'macAddress']
  ];
  entry text[];
BEGIN
  FOREACH entry SLICE 1 IN ARRAY known LOOP
    EXECUTE (
      SELECT format('CREATE TRIGGER has_values AFTER INSERT OR UPDATE OF %s ON %I FOR EACH ROW WHEN (%s)
                     EXECUTE FUNCTION require_values(%s)', string_agg(quote_ident(name), ', '), entry[1],
                    string_agg(format('NEW.%I IS NULL', name), ' OR '), string_agg(quote_literal(name), ', '))
      FROM regexp_split_to_table(entry[2], '\s+') AS columns(name));
  END LOOP;
END $$;

-- The interface names all types of trainer segments. Only a mirror may have others: its upstream may add some.
CREATE FUNCTION require_known_type() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF EXISTS (SELECT FROM "Mirror") THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'a trainer segment is of no type %: only a mirror may have other types than the interface names', NEW.type
    USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA, CONSTRAINT = 'TrainerSegment_known_type';
END $$;

CREATE TRIGGER known_type AFTER INSERT OR UPDATE OF type ON "TrainerSegment"
  FOR EACH ROW WHEN (NEW.type NOT IN ('repetition', 'endurance', 'freeform', 'bounce')) EXECUTE FUNCTION require_known_type();

-- The rules of the library: a user's own templates are in it as long as they are theirs. These triggers do not fire in a
-- session with session_replication_role = replica, since the library is replicated as well.

-- Adds a new template to the library of its owner.
CREATE FUNCTION add_own_templates() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('INSERT INTO %I."DttLibraryEntry" ("userId", "templateId", "importedAt")
                  SELECT "ownerId", id, NULL FROM changed WHERE "ownerId" IS NOT NULL', TG_TABLE_SCHEMA);
  RETURN NULL;
END $$;

-- Moves a template that changes its owner to the library of the new one, who may have imported it before.
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

-- Keeps a user's own template in their library until the template or the user is deleted.
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

-- Only the highest tier creates tokens. A user who loses the tier keeps those they have.
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

CREATE TRIGGER library_insert AFTER INSERT ON "DttTemplate" REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION add_own_templates();
CREATE TRIGGER library_update AFTER UPDATE OF "ownerId" ON "DttTemplate"
  FOR EACH ROW WHEN (OLD."ownerId" IS DISTINCT FROM NEW."ownerId") EXECUTE FUNCTION move_own_template();
CREATE TRIGGER keep_own BEFORE DELETE OR UPDATE OF "userId", "templateId" ON "DttLibraryEntry"
  FOR EACH ROW WHEN (OLD."importedAt" IS NULL) EXECUTE FUNCTION keep_own_template();
CREATE TRIGGER only_for_ultra BEFORE INSERT OR UPDATE OF "userId" ON "ApiToken"
  FOR EACH ROW EXECUTE FUNCTION check_token_owner();

-- Announcements: every write announces, as `<user id> <table>`, each user who sees what it changes. `*` is everybody.
--
-- No announcement may be lost, whatever the isolation level, the search_path and session_replication_role of the writer. A
-- statement announces the users who see the changed rows while it runs. A user who begins to see a row later, but before
-- the writer commits, would never be told. So the rare side waits: an import locks the template FOR SHARE, a change of owner
-- locks the template or session FOR UPDATE. Each of them waits for all who are changing it or its segments, and commits
-- after them.
--   - A writer who changes the row itself holds its lock.
--   - A writer who changes segments of a template locks it FOR NO KEY UPDATE, which an import waits for.
--   - A writer who changes segments of a session locks it FOR KEY SHARE, as a foreign key does, which a change of owner
--     waits for.
-- None of these locks keeps out a row that refers to the template or session, such as an activation. A writer that comes
-- later than an import waits for it where it needs the row itself, and sees it then. Where it changes segments it does not
-- wait, which could be a deadlock with a deletion: it announces everybody.
--
-- This needs a snapshot that is newer than the lock. READ COMMITTED takes one for each statement of a function. The other
-- levels have one for the whole transaction, so there a writer announces everybody.
--
-- Functions find tables by the schema of the table that fired the trigger, so they work in a database that was restored
-- from a dump, or whose schema was renamed. They set the search_path, instead of naming the schema in a text that they
-- execute, since PostgreSQL then plans their statements once for a session.

-- Chooses how writes announce: by NOTIFY (`notify`, the default), by a message in the write-ahead log that logical decoding
-- reads (`logical`), or both. NOTIFY makes commits wait for each other, and a message does not. The owner of the functions
-- calls it, or has a gateway do so (CHANGE_FEED): SELECT announce_by('logical');
--
-- The choice is written into the functions, and not into a table: a transaction with a snapshot from before a change would
-- go on reading the old row, but every statement that begins to write reads the definition of a function anew.
--
-- From `logical` to `notify` the way leads by `both`: a write that began before may still announce by a message alone, and
-- gateways read messages until there is none. From `notify` there is no need, since gateways always listen. Where there is no
-- logical decoding, as in the embedded engine, every choice announces by NOTIFY.
CREATE FUNCTION announce_by(feed text) RETURNS void LANGUAGE plpgsql AS $switch$
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

-- Makes announce, announce_owners, announce_updated_user and announce_updated_row.
SELECT announce_by('notify');
-- Some triggers run with the rights of the writer.
GRANT EXECUTE ON FUNCTION announce(text) TO PUBLIC;

-- Announces the users who import a template, or give one up. A user's own entries come and go with the template, whose
-- change is announced. Replication may write them in another transaction than the template, so it announces them as well.
CREATE FUNCTION announce_imports() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  comes_alone CONSTANT boolean := current_setting('session_replication_role') = 'replica';
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  IF TG_OP = 'UPDATE' THEN
    PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
      FROM (SELECT "userId" FROM old_rows WHERE "importedAt" IS NOT NULL OR comes_alone
            UNION SELECT "userId" FROM new_rows WHERE "importedAt" IS NOT NULL OR comes_alone) AS viewers(viewer);
  ELSE
    PERFORM announce(pg_catalog.concat(viewer, ' ', TG_TABLE_NAME))
      FROM (SELECT DISTINCT "userId" FROM changed WHERE "importedAt" IS NOT NULL OR comes_alone) AS viewers(viewer);
  END IF;
  RETURN NULL;
END $$;

-- Announces the owners of the changed templates, and the users who have them in their libraries. The rows are locked, since
-- they were changed: an import that the query does not see waits for this transaction.
CREATE FUNCTION announce_templates() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- Announces the users who see the changed segments: the owners of what they are part of and, for a template, those who have
-- it in their libraries. The arguments are the column that names the whole, and the table of the wholes.
CREATE FUNCTION announce_segments() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $_$
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
END $_$;

-- A truncated table has no changed rows to look at.
CREATE FUNCTION announce_truncation() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  PERFORM announce(pg_catalog.concat('* ', TG_TABLE_NAME));
  RETURN NULL;
END $$;

-- Fires for what makes a token valid or not, and not for its last use, which is written all the time. An inserted row has no OLD.
CREATE FUNCTION announce_token() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA) || ', pg_temp', true);
  PERFORM announce(pg_catalog.concat(coalesce(OLD."userId", NEW."userId"), ' ApiToken'));
  RETURN NULL;
END $$;

-- Has an import wait for all who are changing the template or its segments, before it has locked anything itself. Imports
-- do not wait for each other. It also sets `importedAt`, which tells a user's own template from an imported one.
CREATE FUNCTION await_template_writers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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

-- Has a change of owner wait for all who are changing segments, which the new owner is about to see.
CREATE FUNCTION await_segment_writers() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $_$
BEGIN
  EXECUTE format('SELECT FROM %I.%I WHERE id = $1 FOR UPDATE', TG_TABLE_SCHEMA, TG_TABLE_NAME) USING OLD.id;
  RETURN NEW;
END $_$;

-- Nobody else may have these functions run on tables of their own, with the rights of the owner of this schema.
REVOKE EXECUTE ON FUNCTION require_values(), add_own_templates(), move_own_template(), keep_own_template(), check_token_owner(),
  announce_templates(), announce_segments(), await_template_writers(), await_segment_writers() FROM PUBLIC;

DO $$
DECLARE
  -- The table, the function that announces its changes, and the one for a single updated row, if it has one: an update of a
  -- row with an owner is what is written most.
  announced CONSTANT text[][] := ARRAY[
    ['User', 'announce_owners(id)', 'announce_updated_user()'],
    ['DttDevice', 'announce_owners("ownerId")', 'announce_updated_row()'],
    ['DttTemplate', 'announce_templates()', NULL],
    ['DttTemplateSegment', 'announce_segments("templateId", "DttTemplate")', NULL],
    ['DttLibraryEntry', 'announce_imports()', NULL],
    ['DttSession', 'announce_owners("ownerId")', 'announce_updated_row()'],
    ['TrainerSegment', 'announce_segments("sessionId", "DttSession")', NULL],
    ['LkbxDevice', 'announce_owners("ownerId")', 'announce_updated_row()'],
    ['LockTemplate', 'announce_owners("ownerId")', 'announce_updated_row()'],
    ['LockSession', 'announce_owners("ownerId")', 'announce_updated_row()'],
    ['LockSegment', 'announce_segments("sessionId", "LockSession")', NULL],
    ['OssmDevice', 'announce_owners("ownerId")', 'announce_updated_row()']
  ];
  entry text[];
BEGIN
  FOREACH entry SLICE 1 IN ARRAY announced LOOP
    EXECUTE format('CREATE TRIGGER announce_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS changed
                    FOR EACH STATEMENT EXECUTE FUNCTION %s', entry[1], entry[2]);
    EXECUTE format('CREATE TRIGGER announce_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS changed
                    FOR EACH STATEMENT EXECUTE FUNCTION %s', entry[1], entry[2]);
    IF entry[3] IS NULL THEN
      EXECUTE format('CREATE TRIGGER announce_update AFTER UPDATE ON %I REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
                      FOR EACH STATEMENT EXECUTE FUNCTION %s', entry[1], entry[2]);
    ELSE
      EXECUTE format('CREATE TRIGGER announce_update AFTER UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION %s', entry[1], entry[3]);
    END IF;
    EXECUTE format('CREATE TRIGGER announce_truncate AFTER TRUNCATE ON %I
                    FOR EACH STATEMENT EXECUTE FUNCTION announce_truncation()', entry[1]);
  END LOOP;
END $$;

CREATE TRIGGER announce_insert AFTER INSERT ON "ApiToken" FOR EACH ROW EXECUTE FUNCTION announce_token();
CREATE TRIGGER announce_update AFTER UPDATE OF "revokedAt", "expiresAt", scope, "userId", digest, "previousDigest", "previousValidUntil" ON "ApiToken"
  FOR EACH ROW EXECUTE FUNCTION announce_token();
CREATE TRIGGER announce_delete AFTER DELETE ON "ApiToken" FOR EACH ROW EXECUTE FUNCTION announce_token();
CREATE TRIGGER announce_truncate AFTER TRUNCATE ON "ApiToken" FOR EACH STATEMENT EXECUTE FUNCTION announce_truncation();

CREATE TRIGGER await_writers BEFORE INSERT OR UPDATE OF "userId", "templateId", "importedAt" ON "DttLibraryEntry"
  FOR EACH ROW EXECUTE FUNCTION await_template_writers();
CREATE TRIGGER await_writers BEFORE UPDATE OF "ownerId" ON "DttTemplate"
  FOR EACH ROW WHEN (OLD."ownerId" IS DISTINCT FROM NEW."ownerId") EXECUTE FUNCTION await_segment_writers();
CREATE TRIGGER await_writers BEFORE UPDATE OF "ownerId" ON "DttSession"
  FOR EACH ROW WHEN (OLD."ownerId" <> NEW."ownerId") EXECUTE FUNCTION await_segment_writers();
CREATE TRIGGER await_writers BEFORE UPDATE OF "ownerId" ON "LockSession"
  FOR EACH ROW WHEN (OLD."ownerId" <> NEW."ownerId") EXECUTE FUNCTION await_segment_writers();

-- These triggers fire whatever session_replication_role says.
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
