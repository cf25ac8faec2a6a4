"""Hashes that are computed once for each object."""

from __future__ import annotations

from typing import Any


class HashedOnce:
    """Base of Types and Ops that compute their hash when they are made.

    ``__init__`` calls ``_keep_hash`` last. Hashes of texts differ between processes, so pickles do
    not contain this one, and copies compute their own. A class that defines ``__eq__`` needs the
    line ``__hash__ = HashedOnce.__hash__``.
    """

    _hash: int

    def _hashed(self) -> Any:
        """Return what the hash depends on."""
        raise NotImplementedError

    def _keep_hash(self) -> None:
        self._hash = hash(self._hashed())

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_hash", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keep_hash()
