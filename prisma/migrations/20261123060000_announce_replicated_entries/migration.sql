-- Triggers add the library entry of a user's own template together with the template, and remove it together with it. The change
-- of the template is announced, so that of the entry need not be. In a session with session_replication_role = replica these
-- triggers do not fire. Such a session writes the entries itself, possibly in another transaction than the templates, and so
-- its entries are announced too.

CREATE OR REPLACE FUNCTION announce_imports() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
