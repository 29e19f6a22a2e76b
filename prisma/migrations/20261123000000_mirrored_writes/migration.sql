-- A write that was relayed to the upstream, and has not been read back yet, was known to the gateway alone that had relayed it:
-- others over the same database served the account as it was before.
ALTER TABLE "MirroredAccount" ADD COLUMN "writtenAt" TIMESTAMPTZ(3);
