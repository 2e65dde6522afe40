"""These tests need the extras."""

from ..conftest import library

library("fastapi")
