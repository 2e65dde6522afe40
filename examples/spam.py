"""
What must a spammer hide?
=========================

A filter learns from made-up messages, and for each spam that it catches we ask for the fewest words that must be hidden
so that it passes. The claim is then checked by hiding these words and asking the filter again.
"""

# %%
# Messages by lot: everyday words for all, and a few words that only spam, or only mail from friends, likes to use.
import random

import keytokens as kt

rng = random.Random(0)
EVERYDAY = ["hello", "please", "the", "your", "you", "for", "today", "call", "now", "we", "can", "see", "back", "soon"]
SPAM = ["free", "prize", "winner", "cash", "urgent", "claim", "offer", "click", "account", "bonus"]
FRIENDS = ["lunch", "mum", "train", "dinner", "home", "late", "meeting", "thanks", "weekend", "football"]


def message(own: list[str], other: list[str]) -> str:
    words = rng.choices(EVERYDAY, k=8) + rng.choices(own, k=3) + rng.choices(other, k=rng.randint(0, 1))
    rng.shuffle(words)
    return " ".join(words)


spam, mail = ([message(*kinds) for _ in range(300)] for kinds in ((SPAM, FRIENDS), (FRIENDS, SPAM)))
clf = kt.KeyTokenClassifier().fit(spam[:200] + mail[:200], ["spam"] * 200 + ["mail"] * 200)

# %%
# The flip set in words: no smaller set of words does it, and ``kt.MASK`` stands for a hidden word.


def hidden(e: kt.Explanation) -> str:
    text = e.text
    for word in sorted(e.flip_words, key=lambda word: -word.start):
        text = text[: word.start] + kt.MASK + text[word.end :]
    return text


caught = [e for e in clf.explain_many(spam[200:]) if e.label == "spam"]
passable = [e for e in caught if e.flip_words.status != "none"]
print(f"{len(caught)} of 100 are caught, {len(passable)} of them can pass with some words hidden, for example")
print(passable[0].text, hidden(passable[0]), sep="\n")
assert all(clf.predict([hidden(e)])[0] == "mail" for e in passable)

# %%
# So many words must be hidden on average. It cannot be done with fewer.
answer = sum(e.flip_words.size for e in passable) / len(passable)
print(f"{answer:.2f} words to hide, on average")
