"""Fitting on a cluster: the same model, to the bit, from texts that lie on several machines.

`DaskKeyTokenClassifier` supplies the steps of the vocabulary and one thing to training: a sum over blocks of documents.
The blocks, and the order in which they are added, depend on the texts alone; so neither the partitions nor the workers,
nor the loss of one of them, show in the result.
"""

from ..base.errors import MissingExtra

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise MissingExtra("a fit on a cluster needs dask, an extra: pip install 'keytokens[dask]'") from error

from .estimator import DaskKeyTokenClassifier, fit_on_dask

__all__ = ["DaskKeyTokenClassifier", "fit_on_dask"]
