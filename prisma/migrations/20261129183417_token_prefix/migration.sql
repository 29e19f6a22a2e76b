-- AlterTable
ALTER TABLE "ApiToken" ADD COLUMN     "prefix" TEXT;

-- The version before gives a token a new secret without its prefix. That of the secret before is then no longer true.
CREATE FUNCTION forget_prefix() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.prefix := NULL;
  RETURN NEW;
END $$;

CREATE TRIGGER forget_prefix BEFORE UPDATE OF digest ON "ApiToken"
  FOR EACH ROW WHEN (OLD.digest <> NEW.digest AND OLD.prefix = NEW.prefix) EXECUTE FUNCTION forget_prefix();
