-- CreateEnum
CREATE TYPE "ScheduleType" AS ENUM ('auto', 'weekly', 'single');

-- CreateEnum
CREATE TYPE "TrainerSegmentType" AS ENUM ('repetition', 'endurance', 'freeform', 'bounce');

-- CreateTable
CREATE TABLE "User" (
    "id" SERIAL NOT NULL,
    "username" TEXT NOT NULL,
    "accountType" TEXT NOT NULL DEFAULT 'user',
    "subscriptionTier" TEXT NOT NULL DEFAULT 'free',
    "league" INTEGER NOT NULL DEFAULT 0,
    "rank" INTEGER NOT NULL DEFAULT 0,
    "totalPoints" INTEGER NOT NULL DEFAULT 0,
    "matchPoints" INTEGER NOT NULL DEFAULT 0,
    "profileImage" TEXT,
    "profileDescription" TEXT,
    "profileTitle" TEXT,
    "dttTotalReps" INTEGER NOT NULL DEFAULT 0,
    "dttTotalSessions" INTEGER NOT NULL DEFAULT 0,
    "scheduleType" "ScheduleType" NOT NULL DEFAULT 'auto',
    "activeTemplateId" INTEGER,

    CONSTRAINT "User_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ApiToken" (
    "id" SERIAL NOT NULL,
    "userId" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "digest" BYTEA NOT NULL,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "lastUsedAt" TIMESTAMPTZ(3),
    "revokedAt" TIMESTAMPTZ(3),

    CONSTRAINT "ApiToken_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttDevice" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "macAddress" TEXT NOT NULL,
    "serialNumber" TEXT,
    "softwareVersion" TEXT,
    "lastVisited" TIMESTAMPTZ(3),
    "lastLogAt" TIMESTAMPTZ(3),
    "createdDate" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "apiHits" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "DttDevice_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttTemplate" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "tagline" TEXT,
    "message" TEXT,
    "isPublic" BOOLEAN NOT NULL DEFAULT false,
    "handsFreeMode" BOOLEAN NOT NULL DEFAULT false,
    "targetDepth" DOUBLE PRECISION NOT NULL,
    "targetWindow" DOUBLE PRECISION NOT NULL,
    "toyId" TEXT,
    "createdDate" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updatedAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "DttTemplate_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttTemplateSegment" (
    "id" SERIAL NOT NULL,
    "templateId" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "duration" INTEGER NOT NULL,
    "repeat" INTEGER NOT NULL DEFAULT 1,

    CONSTRAINT "DttTemplateSegment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "DttTemplateImport" (
    "userId" INTEGER NOT NULL,
    "templateId" INTEGER NOT NULL,
    "importedAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "DttTemplateImport_pkey" PRIMARY KEY ("userId","templateId")
);

-- CreateTable
CREATE TABLE "DttSession" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "ownerId" INTEGER NOT NULL,
    "name" TEXT,
    "passed" BOOLEAN,
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "trainerId" INTEGER NOT NULL,
    "templateId" INTEGER,

    CONSTRAINT "DttSession_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "TrainerSegment" (
    "id" SERIAL NOT NULL,
    "sessionId" INTEGER NOT NULL,
    "type" "TrainerSegmentType" NOT NULL,
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
    "createdAt" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "TrainerSegment_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "LkbxDevice" (
    "id" SERIAL NOT NULL,
    "bubbleId" TEXT NOT NULL,
    "macAddress" TEXT NOT NULL,
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
    "breakRegularity" INTEGER,
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
    "name" TEXT,
    "lockState" TEXT NOT NULL,
    "duration" INTEGER NOT NULL,
    "startDate" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
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
    "macAddress" TEXT NOT NULL,
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
CREATE INDEX "ApiToken_userId_id_idx" ON "ApiToken"("userId", "id");

-- CreateIndex
CREATE UNIQUE INDEX "DttDevice_bubbleId_key" ON "DttDevice"("bubbleId");

-- CreateIndex
CREATE INDEX "DttDevice_ownerId_lastVisited_id_idx" ON "DttDevice"("ownerId", "lastVisited" DESC NULLS LAST, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "DttTemplate_bubbleId_key" ON "DttTemplate"("bubbleId");

-- CreateIndex
CREATE INDEX "DttTemplate_ownerId_createdDate_id_idx" ON "DttTemplate"("ownerId", "createdDate" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "DttTemplateSegment_templateId_position_key" ON "DttTemplateSegment"("templateId", "position");

-- CreateIndex
CREATE INDEX "DttTemplateImport_templateId_idx" ON "DttTemplateImport"("templateId");

-- CreateIndex
CREATE UNIQUE INDEX "DttSession_bubbleId_key" ON "DttSession"("bubbleId");

-- CreateIndex
CREATE INDEX "DttSession_ownerId_createdAt_id_idx" ON "DttSession"("ownerId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "DttSession_trainerId_createdAt_id_idx" ON "DttSession"("trainerId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "DttSession_templateId_createdAt_id_idx" ON "DttSession"("templateId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "TrainerSegment_sessionId_order_id_idx" ON "TrainerSegment"("sessionId", "order", "id");

-- CreateIndex
CREATE UNIQUE INDEX "LkbxDevice_bubbleId_key" ON "LkbxDevice"("bubbleId");

-- CreateIndex
CREATE INDEX "LkbxDevice_ownerId_lastVisited_id_idx" ON "LkbxDevice"("ownerId", "lastVisited" DESC NULLS LAST, "id" DESC);

-- CreateIndex
CREATE INDEX "LockTemplate_ownerId_createdAt_id_idx" ON "LockTemplate"("ownerId", "createdAt" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "LockSession_bubbleId_key" ON "LockSession"("bubbleId");

-- CreateIndex
CREATE UNIQUE INDEX "LockSession_publicId_key" ON "LockSession"("publicId");

-- CreateIndex
CREATE INDEX "LockSession_ownerId_startDate_id_idx" ON "LockSession"("ownerId", "startDate" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "LockSession_templateId_startDate_id_idx" ON "LockSession"("templateId", "startDate" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "LockSegment_sessionId_createdAt_id_idx" ON "LockSegment"("sessionId", "createdAt", "id");

-- CreateIndex
CREATE UNIQUE INDEX "OssmDevice_bubbleId_key" ON "OssmDevice"("bubbleId");

-- CreateIndex
CREATE INDEX "OssmDevice_ownerId_lastVisited_id_idx" ON "OssmDevice"("ownerId", "lastVisited" DESC NULLS LAST, "id" DESC);

-- AddForeignKey
ALTER TABLE "User" ADD CONSTRAINT "User_activeTemplateId_fkey" FOREIGN KEY ("activeTemplateId") REFERENCES "DttTemplate"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "ApiToken" ADD CONSTRAINT "ApiToken_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttDevice" ADD CONSTRAINT "DttDevice_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttTemplate" ADD CONSTRAINT "DttTemplate_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttTemplateSegment" ADD CONSTRAINT "DttTemplateSegment_templateId_fkey" FOREIGN KEY ("templateId") REFERENCES "DttTemplate"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttTemplateImport" ADD CONSTRAINT "DttTemplateImport_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttTemplateImport" ADD CONSTRAINT "DttTemplateImport_templateId_fkey" FOREIGN KEY ("templateId") REFERENCES "DttTemplate"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "DttSession" ADD CONSTRAINT "DttSession_trainerId_fkey" FOREIGN KEY ("trainerId") REFERENCES "DttDevice"("id") ON DELETE NO ACTION ON UPDATE CASCADE;

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
ALTER TABLE "LockSession" ADD CONSTRAINT "LockSession_templateId_fkey" FOREIGN KEY ("templateId") REFERENCES "LockTemplate"("id") ON DELETE SET NULL ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "LockSegment" ADD CONSTRAINT "LockSegment_sessionId_fkey" FOREIGN KEY ("sessionId") REFERENCES "LockSession"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "OssmDevice" ADD CONSTRAINT "OssmDevice_ownerId_fkey" FOREIGN KEY ("ownerId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What the schema language cannot say.

-- At most one lock session of a user is active.
CREATE UNIQUE INDEX "LockSession_one_active_per_owner" ON "LockSession"("ownerId") WHERE "isActive";
