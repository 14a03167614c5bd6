"""The Hub's settings in the tests: local mode, in a data directory of this test process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

for name in [name for name in os.environ if name.startswith(("HUB_", "REDIS_URL", "DATABASE_URL"))]:
    del os.environ[name]
os.environ["HUB_DATA_DIR"] = tempfile.mkdtemp(prefix="hub-")
atexit.register(shutil.rmtree, os.environ["HUB_DATA_DIR"], ignore_errors=True)

from hub_learning.settings import *  # noqa: E402, F403
