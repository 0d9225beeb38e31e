"""What a release of the package is fitted to, and how far its predictions are off what others measured."""

from __future__ import annotations
