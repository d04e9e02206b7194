"""Operators of the console. Changes are recorded by audit/operators.py, whichever page makes them."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from console.chosen_rows import ChosenRowsAdmin

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class OperatorAdmin(UserAdmin, ChosenRowsAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
