"""Profile: the class of profiles that users hold.

The data is ``model.ProfileData``, the methods are those of ``methods.ProfileMethods``. The names of
the data classes are here as well.
"""

from __future__ import annotations

from pathlib import Path

from opwise.profiling import serialization
from opwise.profiling.methods import ProfileMethods
from opwise.profiling.model import (
    VERSION,
    ApplyProfile,
    ArrayProfile,
    CallProfile,
    CompileProfile,
    FunctionProfile,
    OriginProfile,
    ProfileData,
)
from opwise.profiling.serialization import FORMAT, schema

__all__ = [
    "FORMAT",
    "VERSION",
    "ApplyProfile",
    "ArrayProfile",
    "CallProfile",
    "CompileProfile",
    "FunctionProfile",
    "OriginProfile",
    "Profile",
    "schema",
]


class Profile(ProfileData, ProfileMethods):
    """What was recorded of several functions under one name; nothing in it changes."""

    def profile(self) -> Profile:
        """Return the profile itself."""
        return self

    def to_json(self) -> str:
        """Return the profile as JSON text; ``from_json`` gives an equal Profile."""
        return serialization.to_json(self)

    @classmethod
    def from_json(cls, text: str, source: str = "The text") -> Profile:
        """Return the Profile of a JSON text. source: what an error calls the text.

        Raises ProfileFormatError unless the text is a valid profile of this version.
        """
        return serialization.from_json(text, source, cls)

    def save(self, path: str | Path) -> None:
        """Write the profile to a file as JSON, replacing the file as a whole. Raises OSError."""
        serialization.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Return the Profile that ``save`` wrote. Raises ProfileFormatError, or OSError.

        Refuses devices, pipes and files of more than ``files.MOST_BYTES`` bytes before reading.
        """
        return serialization.load(path, cls)
