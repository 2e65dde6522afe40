from __future__ import annotations

from typing import Any

from ..claim import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim[Any], ...] = ()
