"""The classifiers, and what belongs to a model of theirs: locating, scoring, tuning, saving, compressing."""
