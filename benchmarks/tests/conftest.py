"""What the tests of the package share."""

from tests.conftest import data_folder

__all__ = ["data_folder"]
