"""The two tiers of tests/run.sh: the short one, and --all."""

import os
import unittest

# Set by tests/run.sh without arguments: fewer cases, the same each day.
SHORT = bool(os.environ.get("ZOO_TEST_SHORT"))

# Decorates a test that only --all needs: what it guards is guarded by a shorter one, too, or it takes too long.
long = unittest.skipIf(SHORT, "tests/run.sh --all runs it")
