"""platform/ is a folder on the path, not a package: as one it would take the standard library's name."""

import importlib.metadata
import sys

from source_tree import ROOT, run_python

PLATFORM = ROOT / "platform"


def apps() -> set[str]:
    return {path.parent.name for path in PLATFORM.glob("*/__init__.py")}


def test_platform_is_no_package() -> None:
    assert not (PLATFORM / "__init__.py").exists()
    assert {"tenants", "gateway", "operations"} <= apps()


def test_apps_take_no_name_of_the_standard_library() -> None:
    assert not apps() & set(sys.stdlib_module_names)


def test_apps_take_no_name_of_an_installed_package() -> None:
    assert not apps() & set(importlib.metadata.packages_distributions())


def test_django_processes_see_the_standard_library_s_platform() -> None:
    program = f"""
import runpy, sys
sys.argv = ["manage.py", "version"]
sys.path.insert(0, {str(ROOT)!r})
try:
    runpy.run_path("manage.py", run_name="__main__")
except SystemExit:
    pass
import platform
print(platform.__file__, platform.python_version())
"""
    last = run_python(program).splitlines()[-1]
    assert not last.startswith(str(ROOT / "platform"))
    assert last.split()[0].endswith("platform.py")
