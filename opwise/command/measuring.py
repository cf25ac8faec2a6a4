"""Measurements of the hardware's limits for subcommands: kept, and announced on stderr."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opwise.config import config
from opwise.errors import DeviceError, ProfileFormatError
from opwise.hardware import cpu as processor
from opwise.profiling import machinelimits
from opwise.profiling.machinelimits import QUIET
from opwise.profiling.profile import Profile

if TYPE_CHECKING:
    from opwise.profiling.machinelimits import MachineLimits


#: how often limits are measured, at most, while other programs keep the processors busy
MOST_TIMES = 3


def cpu(refresh: bool = False) -> MachineLimits | None:
    """Measure the limits of this computer's CPU and memory, and return the best figures so far.

    Returns None, and measures nothing, if they are known. Limits that were measured while other
    programs ran are measured again, up to MOST_TIMES in all; on ``refresh`` any are.
    """
    known: MachineLimits | None = processor.known()
    if known is not None and not refresh and (known.quiet >= QUIET or known.times >= MOST_TIMES):
        return None
    again = (
        "" if known is None or refresh else f" again ({known.times + 1} of at most {MOST_TIMES})"
    )
    click.echo(f"measuring peak bandwidth and FLOP/s{again}...", err=True)
    found: MachineLimits = processor.limits(refresh=True)
    if processor.known() is None:
        click.echo(
            f"they cannot be kept, because {config.compiledir} cannot be written to; "
            "`opwise run --no-limits` does not measure them",
            err=True,
        )
    elif found.quiet < QUIET:
        click.echo(_disturbed(found), err=True)
    return found


def _disturbed(found: MachineLimits) -> str:
    """Return a sentence about limits that were measured while other programs ran."""
    then = (
        "the next `opwise run` measures again"
        if found.times < MOST_TIMES
        else "the best figures are kept; `opwise report --limits` measures again"
    )
    return f"other programs were running: the limits may be higher than measured; {then}"


def add_to(paths: Sequence[Path], flags: str) -> None:
    """Put limits that are not known yet into the files of profiles; measure them for that.

    Those of the CPU belong to profiles that were recorded with as many threads. flags: those that
    the program ran with.
    """
    profiles: dict[Path, Profile] = {}
    for path in paths:
        with contextlib.suppress(ProfileFormatError, OSError):  # reported when it is read
            profiles[path] = Profile.load(path)
    machine = cpu()
    unknown = {name for profile in profiles.values() for name in _unknown(profile)}
    gpus = _gpus(sorted(unknown), flags) if unknown else {}
    for path, profile in profiles.items():
        new = profile
        if machine is not None and profile.environment.get("threads") == machine.threads:
            new = replace(new, machine=machine)
        if here := [(name, gpus[name]) for name in sorted(_unknown(profile)) if name in gpus]:
            new = replace(new, devices=(*profile.devices, *here))
        if new is not profile:
            with contextlib.suppress(OSError):
                new.save(path)


def _unknown(profile: Profile) -> set[str]:
    """Return the names of the devices in a profile whose limits are not in it."""
    return {a.device for a in profile.applys if a.device} - {name for name, _ in profile.devices}


def _gpus(names: Sequence[str], flags: str) -> dict[str, MachineLimits]:
    """Return the limits of GPUs; those that were not measured before are measured.

    Uses another process, because a process that has used a GPU keeps some of its memory.
    """
    given = (os.environ.get("OPWISE_FLAGS"), flags, "print_active_device=False")
    environment = {**os.environ, "OPWISE_FLAGS": ",".join(filter(None, given))}
    command = [sys.executable, "-m", "opwise.gpu.runtime.device_peaks", *names]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    with contextlib.suppress(ValueError):  # it ended early, and has said why
        return {
            name: machinelimits.MachineLimits.from_json(found)
            for name, found in json.loads(done.stdout).items()
        }
    return {}


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
