"""Measurements of the hardware's limits for subcommands: done once, and announced on stderr."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from opwise.config import config
from opwise.errors import DeviceError
from opwise.hardware import cpu as processor
from opwise.profiling.machinelimits import QUIET

if TYPE_CHECKING:
    from opwise.profiling.machinelimits import MachineLimits
    from opwise.profiling.profile import Profile


def cpu(refresh: bool = False) -> MachineLimits:
    """Return the limits of this computer's CPU and memory.

    Measures them if they are not known, were measured while other programs ran, or on ``refresh``.
    """
    known: MachineLimits | None = processor.known()
    if refresh or known is None or known.quiet < QUIET:
        click.echo("measuring peak bandwidth and FLOP/s...", err=True)
        known = processor.limits(refresh=True)
    assert known is not None
    return known


def gpu_of_flags(flags: str) -> None:
    """Measure the GPU that a program with these flags would use, unless its limits are known.

    Uses another process, because a process that has used a GPU keeps some of its memory.
    """
    all_flags = ",".join(filter(None, (os.environ.get("OPWISE_FLAGS"), flags)))
    if config.device == "cpu" and "device=" not in all_flags:
        return
    silent = ",".join(filter(None, (all_flags, "print_active_device=False")))
    command = [sys.executable, "-m", "opwise.gpu.runtime.device_peaks"]
    subprocess.run(command, env={**os.environ, "OPWISE_FLAGS": silent})


def gpus_of_profile(profile: Profile) -> tuple[tuple[str, MachineLimits], ...]:
    """Return (name, limits) of each device in a profile; those that are here are measured anew."""
    gpu, found = importlib.import_module("opwise.gpu.runtime.device"), dict(profile.devices)
    for name in sorted({a.device for a in profile.applys if a.device}):
        try:
            device = gpu.device(gpu.index_of(name))
        except DeviceError as error:
            click.echo(f"cannot measure {name}: {error}", err=True)
            continue
        click.echo(f"measuring peak bandwidth and FLOP/s of {device.name}...", err=True)
        peaks = importlib.import_module("opwise.gpu.runtime.device_peaks")
        found[name] = peaks.limits(device, refresh=True)
    return tuple(found.items())
