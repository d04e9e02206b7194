from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0002_policy'),
        ('quotas', '0001_limits'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='tenant',
            name='max_concurrent',
        ),
        migrations.RemoveField(
            model_name='tenant',
            name='requests_per_minute',
        ),
    ]
