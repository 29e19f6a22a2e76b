-- One's own templates come into the library, and leave it, with the template, which is announced. But where
-- session_replication_role = replica the triggers do not fire that see to that: such a session writes these entries as well,
-- possibly in another transaction than the template, and so they have to be announced by themselves.

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
