-- CreateTable
CREATE TABLE "Mirror" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "source" TEXT NOT NULL,
    "userId" INTEGER NOT NULL,
    "sessionsComplete" BOOLEAN NOT NULL DEFAULT false,
    "heldBy" TEXT,
    "heldUntil" TIMESTAMPTZ(3),

    CONSTRAINT "Mirror_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "Mirror_userId_key" ON "Mirror"("userId");

-- AddForeignKey
ALTER TABLE "Mirror" ADD CONSTRAINT "Mirror_userId_fkey" FOREIGN KEY ("userId") REFERENCES "User"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What the schema language cannot say.

-- A database mirrors one account.
ALTER TABLE "Mirror" ADD CONSTRAINT "Mirror_only_one" CHECK (id = 1);
