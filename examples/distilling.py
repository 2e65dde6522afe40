"""
What can a small model learn from a large one?
==============================================

A teacher says once of many texts what they are; the student counts that, learns from a few labels, and answers alone,
each time with a proof. Here the teacher is a neural network on groups of letters, and it may as well be a sentence
encoder or a large language model: any function from texts to probabilities.
"""

# %%
# Messages by lot. The teacher has seen 2,000 of them with labels; we have 20, and 3,000 without.
import random

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import keytokens as kt

rng = random.Random(0)
KINDS = {
    "spam": [f"{a}{b}" for a in ("free", "prize", "cash", "bonus", "offer") for b in ("", "s", "now", "today", "win")],
    "mail": [f"{a}{b}" for a in ("lunch", "train", "meet", "thank", "home") for b in ("", "s", "ing", "time", "soon")],
}
EVERYDAY = ["hello", "please", "the", "your", "you", "for", "call", "we", "can", "see", "back"]


def messages(n: int) -> tuple[list[str], list[str]]:
    labels = [rng.choice(list(KINDS)) for _ in range(n)]
    texts = [" ".join(rng.sample(rng.choices(EVERYDAY, k=7) + rng.choices(KINDS[own], k=2), 9)) for own in labels]
    return texts, labels


seen_by_teacher, few, apart = messages(2000), messages(20), messages(1000)
without_labels, _ = messages(3000)
teacher = make_pipeline(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5)), MLPClassifier((50,), random_state=0))
teacher.fit(*seen_by_teacher)

# %%
# The teacher's classes are in the order of the student's, which sorts them.
plain = kt.KeyTokenClassifier().fit(*few)
taught = kt.KeyTokenClassifier().fit(*few, unlabeled=without_labels, teacher=teacher.predict_proba)
for name, model in {"teacher": teacher, "20 labels alone": plain, "20 labels and the teacher": taught}.items():
    print(f"{name:26} {model.score(*apart):.3f}")
answer = taught.score(*apart) - plain.score(*apart)
print(f"the teacher brings {answer:.3f}; {taught.taught_['texts']:,} texts without labels")

# %%
# What decides is proved of the student. The teacher is not asked any more.
e = taught.explain(apart[0][4])
print(e)
