"""One model that many tests ask."""

import pytest

from keytokens import BagClassifier

from .planted import planted


@pytest.fixture(scope="session")
def fitted():
    bags, y = planted()
    return BagClassifier(random_state=0).fit(bags, y), bags, y
