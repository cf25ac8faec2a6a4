"""Jupyter: functions and graphs as HTML, and the magic ``%%opwise``, which profiles a cell."""
