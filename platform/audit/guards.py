"""Triggers that keep the audit trail append-only for whoever talks SQL to the database as well."""

from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "audit_auditrecord"

# An insert must be the next in the chain: this also stops SQLite's INSERT OR REPLACE, which deletes untold.
_SQLITE = (
    f"""CREATE TRIGGER audit_no_update BEFORE UPDATE ON {TABLE}
    BEGIN SELECT RAISE(ABORT, 'audit records are never changed'); END""",
    f"""CREATE TRIGGER audit_no_delete BEFORE DELETE ON {TABLE}
    BEGIN SELECT RAISE(ABORT, 'audit records are never deleted'); END""",
    """CREATE TRIGGER audit_next_only BEFORE INSERT ON audit_auditrecord
    WHEN NEW.id IS NOT (SELECT COALESCE(MAX(id), 0) + 1 FROM audit_auditrecord)
    BEGIN SELECT RAISE(ABORT, 'audit records are only added at the end'); END""",
)
_POSTGRESQL = (
    """CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'audit records are never changed or deleted'; END $$""",
    """CREATE OR REPLACE FUNCTION audit_next_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        IF NEW.id IS DISTINCT FROM (SELECT COALESCE(MAX(id), 0) + 1 FROM audit_auditrecord) THEN
            RAISE EXCEPTION 'audit records are only added at the end';
        END IF;
        RETURN NEW;
    END $$""",
    f"""CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON {TABLE}
    FOR EACH ROW EXECUTE FUNCTION audit_refuse()""",
    f"""CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON {TABLE}
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()""",
    f"""CREATE TRIGGER audit_next_only BEFORE INSERT ON {TABLE}
    FOR EACH ROW EXECUTE FUNCTION audit_next_only()""",
)
_NAMES = {
    "sqlite": ("audit_no_update", "audit_no_delete", "audit_next_only"),
    "postgresql": ("audit_no_change", "audit_no_truncate", "audit_next_only"),
}


def install_guards(connection: BaseDatabaseWrapper) -> None:
    statements = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}[connection.vendor]
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def remove_guards(connection: BaseDatabaseWrapper) -> None:
    """For migrations of the table, which put them back."""
    on_table = f" ON {TABLE}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in _NAMES[connection.vendor]:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on_table}")
