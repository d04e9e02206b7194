"""The trail becomes a hash chain that the database itself keeps append-only; earlier records are chained too."""

from django.db import migrations, models

from audit.chain import FIRST_PREVIOUS, link_hash
from audit.guards import install_guards, remove_guards

ACTORS_OF_SYSTEM = ('system', 'command line')


def chain_earlier_records(apps, schema_editor):
    records = apps.get_model('audit', 'AuditRecord').objects.using(schema_editor.connection.alias)
    previous = FIRST_PREVIOUS
    for place, record in enumerate(list(records.order_by('id')), 1):
        was = record.id
        record.id, record.previous_hash = place, previous
        if record.actor not in ACTORS_OF_SYSTEM:
            record.actor = f'user:{record.actor}'
        record.hash = previous = link_hash(record)
        records.filter(id=was).update(
            id=place, actor=record.actor, previous_hash=record.previous_hash, hash=record.hash
        )


def install(apps, schema_editor):
    install_guards(schema_editor.connection)


def remove(apps, schema_editor):
    remove_guards(schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0001_initial'),
    ]

    operations = [
        migrations.RenameField('AuditRecord', 'detail', 'after'),
        migrations.AlterField('AuditRecord', 'after', models.JSONField(null=True)),
        migrations.AlterField('AuditRecord', 'id', models.BigIntegerField(help_text='Its place in the chain.', primary_key=True, serialize=False)),
        migrations.AlterField('AuditRecord', 'at', models.DateTimeField()),
        migrations.AlterField('AuditRecord', 'actor', models.CharField(help_text='user:NAME, api_key:ID, command line, system or anonymous.', max_length=160)),
        migrations.AlterField('AuditRecord', 'subject', models.CharField(max_length=200)),
        migrations.AddField('AuditRecord', 'before', models.JSONField(null=True)),
        migrations.AddField('AuditRecord', 'tenant_id', models.BigIntegerField(help_text='Of the tenant that it concerns.', null=True)),
        migrations.AddField('AuditRecord', 'request_id', models.CharField(blank=True, default='', max_length=64), preserve_default=False),
        migrations.AddField('AuditRecord', 'address', models.CharField(blank=True, default='', help_text='Where the request came from.', max_length=64), preserve_default=False),
        migrations.AddField('AuditRecord', 'previous_hash', models.CharField(default='', max_length=64), preserve_default=False),
        migrations.AddField('AuditRecord', 'hash', models.CharField(default='', max_length=64), preserve_default=False),
        migrations.AddIndex('AuditRecord', models.Index(fields=['tenant_id', 'id'], name='audit_tenant')),
        migrations.AddIndex('AuditRecord', models.Index(fields=['actor', 'id'], name='audit_actor')),
        migrations.RunPython(chain_earlier_records, migrations.RunPython.noop),
        migrations.RunPython(install, remove),
    ]
