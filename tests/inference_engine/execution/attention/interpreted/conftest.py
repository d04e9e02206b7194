"""These tests need Triton's interpreter from the moment that triton is imported: test_triton.py runs them."""

import os

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]
