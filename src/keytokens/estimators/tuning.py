"""Options for the data at hand: `autotune` tries some within a budget of seconds and refits with the best.

The texts are tokenised and counted once; a trial takes rows and columns of that one matrix. Which tokens a trial may
use is decided by its own training rows alone, so no validation text has a say. A trial replaces the best so far only
if it gains more than one standard error of the paired difference, and it is given up as soon as that looks unlikely.
Gains that pass this bar one after the other pass it together too, since standard errors add up at most: the result is
better than the default by more than one standard error on the validation texts, or it is the default.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.checks import check_choice, check_labels, check_number, check_texts
from ..base.errors import refusal
from ..base.progress import Bar
from ..model.attention import scores
from ..model.blocks import Float, blocks_of
from ..model.losses import probabilities
from ..model.weighting import WEIGHTINGS, weigh
from ..text.ngrams import Limits, build
from ..text.spill import Threads
from ..training.weights import class_weighted, sample_weights
from .text import KeyTokenClassifier

Options = dict[str, Any]
Rows = NDArray[np.intp]
Labels = NDArray[np.intp]

METRICS = ("accuracy", "log_loss", "macro_f1")
ENOUGH = 10_000  # validation texts: with so many, the other folds need no turn
LARGE = 100_000  # training texts: from here on a quarter of them is tried first
MOST_TRIALS = 150  # more would find the luckiest option, not the best
FEW_LETTERS = 10_000_000  # up to here n-grams may be longer, or occur in one text only
_SCALES = ("spread", "attention_penalty", "tol", "ratio", "sink")  # of the prior
LEAST_BYTES = 10_000  # the names of the files and of the classes need some room themselves
clock = time.perf_counter


@dataclass(frozen=True)
class Trial:
    """Some options and how they did on texts that they were not trained on."""

    options: Options
    score: float
    standard_error: float
    log_loss: float
    seconds: float
    texts: int  # on how many it was judged: fewer where it was given up early


Tick = Callable[[Trial], None]


@dataclass(frozen=True, eq=False)
class Tuned:
    """What `autotune` returns: a model fitted to all texts with the best options, and what was tried.

    >>> texts, labels = ["a great film", "great", "a dull plot", "dull"] * 10, ["good", "good", "bad", "bad"] * 10
    >>> tuned = autotune(texts, labels, seconds=0.1)
    >>> tuned.metric, tuned.score, tuned.changed
    ('accuracy', 1.0, {})
    >>> tuned.model.predict(["so great"]).tolist()
    ['good']
    """

    model: KeyTokenClassifier
    options: Options
    metric: str
    score: float
    standard_error: float
    trials: tuple[Trial, ...]
    seconds: float

    @property
    def changed(self) -> Options:
        """The options that are not as they were at the start."""
        start = self.trials[0].options
        return {name: value for name, value in self.options.items() if value != start[name]}

    def record(self) -> dict[str, Any]:
        """Everything but the model, as plain data for JSON."""
        return {
            "metric": self.metric,
            "score": self.score,
            "standard_error": self.standard_error,
            "options": self.options,
            "trials": [asdict(trial) for trial in self.trials],
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self.changed.items())
        return (
            f"{self.metric.replace('_', ' ')} {self.score:.4f} ± {self.standard_error:.4f} on validation texts"
            f"{' with ' + changed if changed else ', no option changed'}; "
            f"{len(self.trials)} trial{'s' * (len(self.trials) != 1)}, {self.seconds:.0f} s"
        )


def autotune(
    texts: Iterable[str],
    labels: Iterable[Any],
    *,
    seconds: float = 60.0,
    max_bytes: int | None = None,
    metric: str = "accuracy",
    validation: float = 0.2,
    seed: int = 0,
    threads: int | None = None,
    verbose: int = 0,
    fixed: Mapping[str, Any] | None = None,
    sample_weight: Any = None,
) -> Tuned:
    """Look for better options of `KeyTokenClassifier` than the defaults, for about so many seconds.

    Parameters
    ----------
    seconds : float
        For everything, the last fit to all texts included. The default options are always tried.
    max_bytes : int or None
        Size of the model on disk; the score that counts at the end is that of the model made so small.
    metric : "accuracy", "log_loss" or "macro_f1"
    validation : float
        One text in 1 / `validation` is held out at a time, then others, until 10,000 or all have had their turn.
    fixed : dict or None
        Options that stay as they are given, by the names that `set_params` takes (`prior__sink`).
    verbose : 0, or 1 for a bar on a terminal, 2 for a bar anywhere.

    The same data, seed and number of trials give the same result; the time decides only how many trials there are.

    Examples
    --------
    >>> texts = ["a great film", "great acting", "a dull plot", "dull, dull, dull"] * 5
    >>> tuned = autotune(texts, ["pos", "pos", "neg", "neg"] * 5, seconds=0.1)
    >>> tuned.model.predict(["what a great plot!"]).tolist(), tuned.score
    (['pos'], 1.0)
    """
    _check(seconds, max_bytes, metric, validation, seed)
    fixed = {**({} if threads is None else {"threads": threads}), **(fixed or {})}
    start = _start(fixed)
    usual = start.flat_params()
    fixed = {name: value for name, value in usual.items() if name in fixed or name.split("__")[0] in fixed}
    listed = check_texts("autotune", texts)
    y = check_labels("autotune", labels, len(listed))
    weight = sample_weights("fit", sample_weight, len(listed))
    begin = clock()
    deadline = begin + seconds
    space = Space.around(fixed, sum(map(len, listed)))
    options = {name: value for name, value in usual.items() if name in {*space.names, *fixed}}
    data = Data.of(listed, y, weight, space.limits(start._limits()), start._threads, round(1 / validation), seed)
    with _bar(verbose, metric) as tick:
        race = Race(data, metric, deadline, data.probabilities, ahead=0 if max_bytes is None else 3)
        race.run(options, space.moves(options, np.random.default_rng(seed)), tick)
        trials, best = race.trials, race.best
        if max_bytes is not None:
            last_stage = replace(data, stages=data.stages[-1:], screened=False)
            finals = Race(last_stage, metric, deadline, data.when_small(listed, max_bytes))
            finals.run(best.options, space.finalists(options, best.options), tick)
            trials, best = [*trials, *finals.trials], finals.best
    model = KeyTokenClassifier().set_params(**best.options).fit(listed, y, weight)
    if max_bytes is not None:
        model = model.compressed(max_bytes)
    score, error = best.trial.score, best.trial.standard_error
    return Tuned(model, best.options, metric, score, error, tuple(trials), clock() - begin)


def _check(seconds: Any, max_bytes: Any, metric: Any, validation: Any, seed: Any) -> None:
    check_number("autotune", "seconds", seconds, 0, above=True)
    check_number("autotune", "max_bytes", max_bytes, LEAST_BYTES, whole=True, none=True)
    check_choice("autotune", "metric", metric, METRICS)
    check_number("autotune", "validation", validation, 0, above=True)
    if validation > 0.5:
        raise refusal("autotune", "validation", "be a share of the texts, above 0 and at most 0.5", validation)
    check_number("autotune", "seed", seed, 0, whole=True)


def _start(fixed: Mapping[str, Any]) -> KeyTokenClassifier:
    """The default model with the fixed options, checked as `fit` checks them."""
    usual = KeyTokenClassifier().get_params()
    for name in fixed:
        if name not in usual:
            raise refusal("autotune", "fixed", "name options of KeyTokenClassifier", name, "see its get_params()")
    start = KeyTokenClassifier().set_params(**fixed)
    start.check_options()
    return start


@dataclass(frozen=True)
class Space:
    """What may be changed: choices are tried one by one, scales by factors."""

    choices: dict[str, tuple[Any, ...]]
    scales: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        return {*self.choices, *self.scales}

    @classmethod
    def around(cls, fixed: Mapping[str, Any], letters: int) -> Space:
        small = letters <= FEW_LETTERS
        choices = {
            "min_df": ((1, 2), (1, 4), (1, 8), *(((1,),) if small else ())),
            "counts": tuple(WEIGHTINGS)[::-1],
            "ngrams": ((1, 3), (1, 2), (1, 1), *(((1, 4),) if small else ())),
            "prior__sink": (0.0,),
            "prior__ratio": (0.0,),
        }
        return cls(
            {name: values for name, values in choices.items() if name not in fixed},
            tuple(name for name in map("prior__{}".format, _SCALES) if name not in fixed),
        )

    def limits(self, start: Limits) -> Limits:
        """Within these every token of every trial is found."""
        most = max(top for _, top in (*self.choices.get("ngrams", ()), start.ngrams))
        every = [start, *(Limits(min_df=each) for each in self.choices.get("min_df", ()))]
        return Limits((1, most), tuple(min(each.least(n) for each in every) for n in range(1, most + 1)))

    def finalists(self, start: Options, best: Options) -> Generator[Options, bool, None]:
        """What may beat the best when it is made small: the start, and single words."""
        walk = Walk(best)
        yield from walk.ask(start)
        if "ngrams" in self.choices:
            yield from walk.ask({**best, "ngrams": (1, 1)})

    def moves(self, start: Options, rng: np.random.Generator) -> Generator[Options, bool, None]:
        """Options to try next; send back whether they are the best so far.

        Three rounds of one option at a time, scales in ever smaller steps and on in the same direction as long as that
        helps; then by lot around the best.
        """
        walk = Walk(start)
        for step in (2.0, 1.5, 1.25):
            for name, values in self.choices.items():
                for value in values:
                    yield from walk.ask({**walk.best, name: value})
            for name in self.scales:
                if not (yield from walk.climb(name, step)):
                    yield from walk.climb(name, 1 / step)
        for _ in range(MOST_TRIALS):
            yield from walk.ask(self._near(walk.best, rng))

    def _near(self, best: Options, rng: np.random.Generator) -> Options:
        options = best
        for name, factor in zip(self.scales, np.exp(rng.normal(0, 0.3, len(self.scales))).tolist(), strict=True):
            options = _scaled(options, name, factor)
        for name in self.choices:
            if name not in self.scales and rng.random() < 0.2:
                options = {**options, name: self.choices[name][rng.integers(len(self.choices[name]))]}
        return options


class Walk:
    """The best options so far, and all that were asked about: nothing is asked twice."""

    def __init__(self, start: Options) -> None:
        self.best, self.seen = start, {repr(start)}

    def ask(self, options: Options) -> Generator[Options, bool, bool]:
        if repr(options) in self.seen:
            return False
        self.seen.add(repr(options))
        won = yield options
        self.best = options if won else self.best
        return won

    def climb(self, name: str, factor: float) -> Generator[Options, bool, bool]:
        """On in one direction as long as that helps."""
        before = self.best
        while (yield from self.ask(_scaled(self.best, name, factor))):
            pass
        return self.best is not before


def _scaled(options: Options, name: str, factor: float) -> Options:
    """Three digits are enough for a scale, and can be typed."""
    return {**options, name: float(f"{options[name] * factor:.3g}")}


def columns_within(limits: Limits, sizes: NDArray[np.integer[Any]], df: NDArray[np.int64], n_texts: int) -> Rows:
    """The columns that `build` would choose, from the number of words of each and of texts that hold it."""
    least = np.array([limits.least(order) for order in range(1, int(sizes.max(initial=1)) + 1)])
    chosen = (df >= least[sizes - 1]) & (df <= limits.max_df * n_texts * (1 + 1e-12))
    columns = np.flatnonzero(chosen & (sizes >= limits.ngrams[0]) & (sizes <= limits.ngrams[1]))
    if limits.max_tokens is not None and len(columns) > limits.max_tokens:
        columns = np.sort(columns[np.argsort(-df[columns], kind="stable")[: limits.max_tokens]])
    return columns


def folds_of(y: Labels, n_folds: int, seed: int) -> list[Rows]:
    """Rows in folds that have each class in the same share, as near as can be, also where a class is rare."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    return [np.sort(order[k::n_folds]) for k in range(n_folds)]


@dataclass(frozen=True, eq=False)
class Stage:
    """Rows to train on and rows to judge by."""

    train: Rows
    held: Rows
    counts: sparse.csr_matrix
    held_counts: sparse.csr_matrix
    df: NDArray[np.int64]  # of the training rows alone

    @classmethod
    def of(cls, counts: sparse.csr_matrix, train: Rows, held: Rows) -> Stage:
        own = counts[train]
        df = np.bincount(own.indices, minlength=counts.shape[1])
        return cls(train, held, own, counts[held].astype(np.float64), df)


@dataclass(frozen=True, eq=False)
class Data:
    """The counts of all texts, and the stages that a trial goes through."""

    sizes: NDArray[np.integer[Any]]
    labels: NDArray[Any]
    classes: NDArray[Any]
    y: Labels
    weight: Float
    stages: list[Stage]
    screened: bool  # the first stage is a screen, on part of the training rows; else stages are folds, and add up
    seconds: float  # that tokenising and counting took

    @classmethod
    def of(
        cls, texts: list[str], labels: NDArray[Any], weight: Float, limits: Limits, threads: int, folds: int, seed: int
    ) -> Data:
        begin = clock()
        built = build(texts, limits, Threads(threads))
        vocabulary, counts = built.vocabulary, built.matrix()
        seconds = clock() - begin
        classes, y = np.unique(labels, return_inverse=True)
        held = folds_of(y, folds, seed)
        held = held[: -(-ENOUGH // max(len(held[-1]), 1))]
        trains = [np.delete(np.arange(len(y)), rows) for rows in held]
        if screened := len(held) == 1 and len(trains[0]) >= LARGE:
            trains, held = [trains[0][folds_of(y[trains[0]], 4, seed)[0]], *trains], held * 2
        if any(len(np.unique(y[rows])) < 2 for rows in trains):
            seen = dict(zip(classes.tolist(), np.bincount(y).tolist(), strict=True))
            raise refusal("autotune", "labels", "have two classes with two texts each", seen, "add texts")
        stages = [Stage.of(counts, *rows) for rows in zip(trains, held, strict=True)]
        return cls(vocabulary.sizes, labels, classes, y, weight, stages, screened, seconds)

    def probabilities(self, options: Options, stage: Stage) -> Float:
        """(held-out texts, classes) from a model trained on the other rows of the stage."""
        model = KeyTokenClassifier().set_params(**options)
        columns = columns_within(model._limits(), self.sizes, stage.df, len(stage.train))
        own = self.weight[stage.train]
        if not len(columns):
            share = np.bincount(self.y[stage.train], own, len(self.classes)) / own.sum()
            return np.tile(share, (len(stage.held), 1))
        weight = class_weighted(model.class_weight, self.labels[stage.train], own)
        counts = weigh(stage.counts[:, columns], model.counts)
        blocks = blocks_of(counts, len(self.classes))
        data = model._training_set(blocks, len(self.classes), self.y[stage.train], weight, self.sizes[columns])
        model._learn(data, self.classes)
        return probabilities(scores(weigh(stage.held_counts[:, columns], model.counts), model._theta)).T

    def when_small(self, texts: list[str], max_bytes: int) -> Callable[[Options, Stage], Float]:
        """The same of a model that is made small, by the road of the user: fit, compress, predict."""

        def judge(options: Options, stage: Stage) -> Float:
            model = KeyTokenClassifier().set_params(**options)
            model.fit([texts[i] for i in stage.train], self.labels[stage.train], self.weight[stage.train])
            P = np.zeros((len(stage.held), len(self.classes)))
            own = np.searchsorted(self.classes, model.classes_)
            P[:, own] = model.compressed(max_bytes).predict_proba([texts[i] for i in stage.held])
            return P

        return judge

    def judged(self, n_stages: int) -> tuple[Labels, Float, slice]:
        """The classes and weights of the held-out texts that speak, and of which stages they are.

        Folds speak together; of a screen and the whole only the last one does.
        """
        judged = slice(n_stages - 1 if self.screened else 0, n_stages)
        rows = np.concatenate([stage.held for stage in self.stages[judged]])
        return self.y[rows], self.weight[rows], judged


def values_of(metric: str, P: Float, y: Labels, weight: Float) -> Float:
    """One number a text, the larger the better; their weighted mean is the metric (for log loss: minus it).

    The metric's standard error is that of the mean. For F1, which is no mean, they are the linear part of its change
    with the weight of each text: F_k = 2 TP_k / D_k moves by (2 tp_ik - F_k d_ik) / D_k, d_ik = [said k] + [is k].
    """
    if metric == "log_loss":
        return np.log(np.maximum(P[np.arange(len(y)), y], 1e-15))
    said = P.argmax(axis=1)
    if metric == "accuracy":
        return (said == y).astype(np.float64)
    classes = np.arange(P.shape[1])
    says, is_ = (said[:, None] == classes).astype(float), (y[:, None] == classes).astype(float)
    total = np.maximum(weight @ (says + is_), 1e-300)
    F = 2 * (weight @ (says * is_)) / total
    return F.mean() + weight.sum() * ((2 * says * is_ - F * (says + is_)) / total).mean(axis=1)


def mean_and_error(values: Float, weight: Float) -> tuple[float, float]:
    """The weighted mean and its standard error."""
    total = max(float(weight.sum()), 1e-300)
    mean = float(values @ weight / total)
    return mean, float(np.sqrt(((weight * (values - mean)) ** 2).sum()) / total)


@dataclass(frozen=True, eq=False)
class Run:
    """Options that went through some stages: what they say of the held-out texts of each, and how good that is."""

    said: list[Float]
    trial: Trial

    @property
    def options(self) -> Options:
        return self.trial.options

    @property
    def pace(self) -> float:
        """Seconds of a stage."""
        return self.trial.seconds / len(self.said)


class Race:
    """Trials against the best so far, stage by stage, while there is time for them and for the last fit."""

    def __init__(
        self, data: Data, metric: str, deadline: float, judge: Callable[[Options, Stage], Float], ahead: int = 0
    ) -> None:
        self.data, self.metric, self.deadline, self.judge, self.ahead = data, metric, deadline, judge, ahead
        self.trials: list[Trial] = []
        self.best: Run

    def run(self, start: Options, moves: Generator[Options, bool, None], tick: Tick) -> None:
        self.best = self.through(start)
        tick(self.best.trial)
        options = next(moves, None) if self.is_through(self.best.said) else None
        while options is not None and len(self.trials) < MOST_TRIALS and self.has_room(1.5 * self.best.pace):
            tried = self.through(options, self.best)
            won = self.is_through(tried.said) and self.leads(tried.said, self.best.said)
            self.best = tried if won else self.best
            tick(self.best.trial)
            try:
                options = moves.send(won)
            except StopIteration:
                options = None

    def through(self, options: Options, rival: Run | None = None) -> Run:
        """Through the stages, as long as there is time and a chance to beat the rival; at least through the first."""
        said: list[Float] = []
        begin = clock()
        for stage in self.data.stages:
            if said and not self.has_room((clock() - begin) / len(said)):
                break
            if said and rival is not None and not self.leads(said, rival.said):
                break
            said.append(self.judge(options, stage))
        y, weight, judged = self.data.judged(len(said))
        P = np.concatenate(said[judged])
        score, error = mean_and_error(values_of(self.metric, P, y, weight), weight)
        loss = -mean_and_error(values_of("log_loss", P, y, weight), weight)[0]
        shown = loss if self.metric == "log_loss" else score
        self.trials.append(Trial(options, shown, error, loss, clock() - begin, len(y)))
        return Run(said, self.trials[-1])

    def is_through(self, said: list[Float]) -> bool:
        return len(said) == len(self.data.stages)

    def has_room(self, pace: float) -> bool:
        """Whether there is time for one more stage at this pace, for the last fit and for what else is ahead."""
        count = self.data.seconds
        refit = 1.25 * (count + pace * len(self.data.y) / len(self.data.stages[-1].train))
        return clock() + pace + refit + 2 * self.ahead * (count + pace) < self.deadline

    def leads(self, said: list[Float], rival: list[Float]) -> bool:
        """Whether the gain exceeds a bar that rises from -1 to 1 paired standard errors up to the last stage."""
        y, weight, judged = self.data.judged(len(said))
        ours, theirs = (values_of(self.metric, np.concatenate(P[judged]), y, weight) for P in (said, rival))
        gain, error = mean_and_error(ours - theirs, weight)
        return gain > (2 * len(said) / len(self.data.stages) - 1) * error


@contextmanager
def _bar(verbose: int, metric: str) -> Iterator[Tick]:
    """A function to call with the best trial after each one; a bar on stderr (1: on a terminal only, 2: always)."""
    with Bar(desc="tuning", unit="trial", disable=None if verbose == 1 else not verbose, leave=False) as bar:

        def tick(best: Trial) -> None:
            bar.update()
            bar.set_postfix({f"best {metric}": f"{best.score:.4f}"})  # shown at once: a trial may be the last

        yield tick
