-- A mirror has any number of accounts, each of which is pulled by itself.
CREATE TABLE "MirroredAccount" (
    "userId" INTEGER NOT NULL,
    "sessionsComplete" BOOLEAN NOT NULL DEFAULT false,
    "refreshedAt" TIMESTAMPTZ(3),
    "heldBy" TEXT,
    "heldUntil" TIMESTAMPTZ(3),

    CONSTRAINT "MirroredAccount_pkey" PRIMARY KEY ("userId")
);
ALTER TABLE "MirroredAccount" ADD CONSTRAINT "MirroredAccount_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- When a mirror that is whole was last refreshed was not noted: long ago, as far as is known.
INSERT INTO "MirroredAccount" ("userId", "sessionsComplete", "refreshedAt")
  SELECT "userId", "sessionsComplete", CASE WHEN "sessionsComplete" THEN timestamptz 'epoch' END FROM "Mirror";
ALTER TABLE "Mirror" DROP COLUMN "userId", DROP COLUMN "sessionsComplete", DROP COLUMN "heldBy", DROP COLUMN "heldUntil";

-- Lists leave out what only the record by its id has, and an upstream allows few requests a minute.
ALTER TABLE "DttTemplate" ADD COLUMN "detailsPending" BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE "DttSession" ADD COLUMN "detailsPending" BOOLEAN NOT NULL DEFAULT false;
CREATE INDEX "DttSession_details_pending_idx" ON "DttSession"("ownerId", "createdAt" DESC, "id" DESC) WHERE ("detailsPending");
