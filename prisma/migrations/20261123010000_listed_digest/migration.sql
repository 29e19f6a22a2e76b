-- A list may round what the record by its id has exactly. Whether a list says something new of a record cannot be told from the
-- record alone, so a mirror remembers what the list said. Null: not remembered yet, as for the records that are here now.
ALTER TABLE "DttTemplate" ADD COLUMN "listedDigest" TEXT;
ALTER TABLE "DttSession" ADD COLUMN "listedDigest" TEXT;
