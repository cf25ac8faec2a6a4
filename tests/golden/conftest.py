"""Puts this folder on the path: the old Python that records finds the programs the same way."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
