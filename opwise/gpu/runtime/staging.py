"""Staging: copies between host and device through pinned memory, which nobody waits for.

What is larger than ``LIMIT`` the driver copies itself, piece by piece, while the caller waits.
"""

from __future__ import annotations

import sys

import numpy as np

#: bytes up to which there is pinned memory for a value
LIMIT = 32 << 20
#: bytes that are compared to see whether they are there already
FEW = 64
#: bytes up to which an array of the device is kept for the next value
KEPT = 1 << 20


class _Staged:
    """Pinned memory for one value at a time."""

    def __init__(self, device):
        self.device = device
        self._memory = None

    def _room(self, size):
        """Return ``size`` bytes of pinned memory, the same as before if it suffices."""
        if self._memory is None or self._memory.size < size:
            self._memory = self.device.pinned(max(size, 1))
        return self._memory[:size]


class Upload(_Staged):
    """Copies values to the device, one in a call of a function.

    The array that the last one lies in, if it is small, is used again where nobody else has it: so
    it lies where a graph expects it.

    steady: whether nobody overwrites the array: a few numbers that are the same again stay there.
    """

    #: references to what nobody has but one object and who counts
    _ALONE = 2

    def __init__(self, device, steady=False):
        super().__init__(device)
        self.steady = steady
        self._array = self._sent = self._last = None

    def __call__(self, value):
        """Return an array of the device with the elements of one of numpy, which may change."""
        told = (value.tobytes(), value.shape) if self.steady and value.nbytes <= FEW else None
        if told is not None and self._last == told and self._is_alone():
            return self._array
        self._last = None  # until it is sent
        if value.nbytes > LIMIT:
            array = self.device.empty(value.shape, value.dtype)
            self.device.send(array, np.ascontiguousarray(value))
            return array
        array = self._target(value)
        if self._sent is not None:
            self._sent.synchronize()  # the copy before this one, long ago
        room = self._room(value.nbytes)
        staged = room.view(value.dtype).reshape(value.shape)
        staged[...] = value
        self.device.send(array, staged)
        self._sent = self.device.mark(self._sent)
        self._last = told
        return array

    def _target(self, value):
        last = self._array
        if last is not None and (last.shape, last.dtype) == (value.shape, value.dtype):
            del last
            if self._is_alone():
                return self._array
        new = self.device.empty(value.shape, value.dtype)
        self._array = new if new.nbytes <= KEPT else None
        return new

    def _is_alone(self):
        """Return whether nobody else has the array, or shows its memory."""
        if self._array is None or sys.getrefcount(self._array) != self._ALONE:
            return False
        return sys.getrefcount(self._array.data.mem) == self._ALONE

    def forget(self):
        """Let go of the array."""
        self._array = self._last = None

    def __del__(self):
        if self._sent is not None:
            self.device.leave(self._sent, self._memory)


class Download(_Staged):
    """Copies values to the host, one in a call of a function: asked for, and there later."""

    def __init__(self, device):
        super().__init__(device)
        self._asked = None

    def ask(self, array):
        """Have an array of the device copied; what is done there before comes first."""
        array = self.device.compact(array)
        if array.nbytes > LIMIT:
            self._asked = self.device.download(array)
            return
        room = self._room(array.nbytes)
        self.device.fetch(room, array)
        self._asked = room.view(array.dtype).reshape(array.shape)

    def land(self):
        """Return the copy, an array of numpy; the device has come as far as that."""
        asked, self._asked = self._asked, None
        return asked if asked.nbytes > LIMIT else asked.copy()

    def forget(self):
        """Let go of what was asked for."""
        if self._asked is not None:
            self.device.leave(self.device.mark(), self._memory)
        self._asked = self._memory = None
