"""Puts this folder on the path: ``names`` is a module that also runs by itself."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
