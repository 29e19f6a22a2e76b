-- Nobody else may have this function run on tables of their own, with the rights of the owner of this schema, as it is with
-- the other functions that have those rights.
REVOKE EXECUTE ON FUNCTION require_known_type() FROM PUBLIC;
