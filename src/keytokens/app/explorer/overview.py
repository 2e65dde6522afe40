"""How good the model is: an evaluation as the facts of the page's first view, and for `--json`."""

from __future__ import annotations

from typing import Any

from ...estimators.evaluation import Evaluation
from ...explain.format import label_name


def overview(found: Evaluation | None) -> dict[str, Any]:
    """The numbers of an evaluation; labels are numbers in it, and `names` says which."""
    if found is None:
        return {"kind": None, "kinds": {}, "n": 0, "right": 0}
    facts, most = found.to_dict(), found.baseline
    return {
        **{name: facts[name] for name in ("kind", "kinds", "n", "accuracy", "macro_f1", "weighted_f1", "log_loss")},
        **{name: facts[name] for name in ("brier", "roc_auc", "average_precision")},
        "right": int(found.right.sum()),
        "interval": facts["interval"],
        "baseline": most and {"name": most[0], "share": most[1]},
        "names": [label_name(label) for label in found.names],
        "known": found.known,
        "uncovered": found.uncovered,
        "classes": found.classes,
        "confusions": found.confusions,
        "calibration": found.calibration,
    }
