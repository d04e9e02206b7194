"""Triton's interpreter, by which the kernels run on a CPU: TRITON_INTERPRET=1 before triton is imported.

Triton 3.6 makes loop bounds of one-element arrays, which numpy 2.4 no longer turns into numbers by itself.
"""

from typing import Any

import triton
from triton.runtime import interpreter


def is_interpreted() -> bool:
    return bool(triton.knobs.runtime.interpret)


def repair_loop_bounds() -> None:
    """Let the interpreter's scalars be bounds of `range`, whatever numpy is installed."""
    original = interpreter._patch_lang_tensor
    if getattr(original, "is_repaired", False):
        return

    def patched(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    patched.is_repaired = True  # type: ignore[attr-defined]
    interpreter._patch_lang_tensor = patched
