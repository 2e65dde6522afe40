"""
Which words give a topic away?
==============================

News of four topics are told apart, and the words that speak most for each topic are read off the model.
The texts are the AG News of the folder that ``KEYTOKENS_DATA`` names; they are read with the extra ``parquet``.
"""

# %%
# Three thousand texts to learn from, a thousand to be judged on.
import os
from pathlib import Path

import keytokens as kt
from keytokens.io import labels_of, read_table, texts_of

folder = os.environ.get("KEYTOKENS_DATA")
if not folder:
    raise kt.DataError("set KEYTOKENS_DATA to the folder of ag_news_train.parquet")
table = read_table(str(Path(folder) / "ag_news_train.parquet"))
names = ["world", "sport", "business", "science"]
texts, labels = texts_of(table, "text")[:4000], [names[int(label)] for label in labels_of(table, "label")[:4000]]
clf = kt.KeyTokenClassifier().fit(texts[:3000], labels[:3000])
accuracy = clf.score(texts[3000:], labels[3000:])
print(f"accuracy {accuracy:.3f}")

# %%
# A token's mean contribution to a class over the training texts ranks the vocabulary.
for topic, tokens in clf.key_tokens(n=8).items():
    print(f"{topic:>9}: {', '.join(token.token for token in tokens)}")

# %%
# How many news does a single token decide alone: whatever else is deleted, the topic stays?
found = list(clf.explain_many(texts[3000:]))
answer = sum(e.sufficient.size == 1 for e in found) / len(found)
print(f"one token fixes the topic of {answer:.3f} of the news")
