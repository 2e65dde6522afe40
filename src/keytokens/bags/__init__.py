"""`BagClassifier`: one softmax attention over bags of vectors, with proofs about their instances.

f(X) = <phi(X) v, softmax(phi(X) q)> + c     phi: a fixed map of one instance, learnt from the training instances
a_t = phi(x_t)'q    b_t = phi(x_t)'v + c     each instance has one log weight and one value (a value a class, for more)

So what is proved of tokens in `keytokens.certificate` holds for instances, each with count 1.
"""

from ..explanation import BagCertificate, BagExplanation, Instance, InstanceSet
from .estimator import BagClassifier

__all__ = ["BagCertificate", "BagClassifier", "BagExplanation", "Instance", "InstanceSet"]
