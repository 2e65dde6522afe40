"""On a cluster: the same model to the bit, whatever the partitions, the workers, and what happens to them."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from keytokens import KeyTokenClassifier, Prior, load
from keytokens.base.errors import InputError, KeyTokensError, MissingExtra
from keytokens.base.progress import listening
from keytokens.base.threads import TreeSum
from keytokens.model import blocks as core_counts

from ..corpus import reviews, topics

try:
    from keytokens.dask.estimator import DaskKeyTokenClassifier, fit_on_dask
except MissingExtra as error:
    if os.environ.get("CI") == "true":
        raise
    pytest.skip(str(error), allow_module_level=True)

import dask.array
import dask.bag
import distributed
from distributed import Client, LocalCluster
from distributed.protocol import to_serialize

import dask
from keytokens.dask import cluster as cluster_module
from keytokens.dask import estimator
from keytokens.dask.cluster import Sealed
from keytokens.dask.ngrams import Workers
from keytokens.dask.training import aligned

HERE: dict[str, Any] = {
    "host": "127.0.0.1",
    "protocol": "tcp://",
    "dashboard_address": "127.0.0.1:0",  # any free port: there may be several schedulers
    "scheduler_kwargs": {"dashboard": False},
    "worker_dashboard_address": None,
    "threads_per_worker": 1,
}
FEW = 3  # steps, where what goes in or comes out is tested, and not how a fit goes on


@pytest.fixture(scope="module")
def three_workers() -> Iterator[Client]:
    """Inside this process, but they speak to each other as if they were not."""
    with LocalCluster(n_workers=3, processes=False, **HERE) as cluster, Client(cluster, set_as_default=False) as found:
        yield found


@pytest.fixture
def client(three_workers: Client) -> Iterator[Client]:
    with three_workers.as_current():
        yield three_workers


@pytest.fixture
def small_blocks(monkeypatch):
    """Some dozen blocks where there would be one."""
    monkeypatch.setattr(core_counts, "BLOCK", 250)


def same(ours: Any, local: KeyTokenClassifier) -> None:
    """All that a fit leaves behind agrees to the bit."""
    beside = {"unseen_", "label_noise_", "about_"}  # made of texts, which stay on the workers
    names = [name for name in vars(local) if name.endswith("_") and name not in beside]
    assert names == [name for name in vars(ours) if name.endswith("_") and name not in beside]
    assert {"attention_", "values_", "intercept_", "mean_attention_", "class_counts_", "history_"} <= set(names)
    for name in names:
        mine, theirs = getattr(ours, name), getattr(local, name)
        if name == "vocabulary_":
            assert mine.tokens == theirs.tokens
            assert mine.words == theirs.words
        elif isinstance(theirs, np.ndarray):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), name
            assert mine.flags.aligned, f"{name}: sums of it differ in the last bits"
            assert mine.tobytes() == theirs.tobytes(), name
        else:
            assert mine == theirs, name


def bags(texts: list[str], labels: list[Any], npartitions: int) -> tuple[dask.bag.Bag, dask.bag.Bag]:
    """Labels in other partitions than the texts."""
    return (
        dask.bag.from_sequence(texts, npartitions=npartitions),
        dask.bag.from_sequence(labels, npartitions=npartitions + 2),
    )


# The same sums -------------------------------------------------------------------------------------------------------


class Shown:
    """What was added to what."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: "Shown") -> "Shown":
        return Shown(f"({self.text}{other.text})")


@given(st.integers(1, 70), st.lists(st.integers(0, 70), max_size=6))
def test_aligned_groups_are_nodes_of_the_same_tree(size, cuts):
    def tree(parts: Any) -> TreeSum[Shown]:
        total: TreeSum[Shown] = TreeSum()
        for number in parts:
            total.add(Shown(f"<{number}>"))
        return total

    whole, nodes = tree(range(size)), TreeSum[Shown]()
    for first, last in pairwise(sorted({0, size, *(cut for cut in cuts if cut < size)})):
        for rank, begin in aligned(first, last):
            nodes.add(tree(range(begin, begin + (1 << rank))).total(), rank)
    assert nodes.total().text == whole.total().text


@pytest.mark.parametrize(
    ("corpus", "options", "npartitions"),
    [
        (reviews, {}, 1),
        (reviews, {"counts": "log", "prior": Prior(sink=0.0), "class_weight": "balanced"}, 5),
        (reviews, {"counts": "binary", "ngrams": (1, 1), "brevity": 0.8, "threads": 2}, 40),
        (reviews, {"ngrams": (2, 4), "min_df": (3, 2), "max_df": 0.5, "max_tokens": 60, "prior": Prior(tol=1e-4)}, 7),
        (topics, {}, 6),
        (topics, {"counts": "log", "brevity": 1.0, "class_weight": {0: 2.0, 1: 1.0, 2: 0.3, 3: 1.0}}, 3),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_the_model_of_one_machine(client, small_blocks, corpus, options, npartitions):
    texts, labels = corpus(150)
    options = {"max_iter": 8, **options}
    ours = DaskKeyTokenClassifier(client, **options).fit(*bags(texts, labels, npartitions))
    same(ours, KeyTokenClassifier(**options).fit(texts, labels))


# Parameters and sums on their way -------------------------------------------------------------------------------------


def said_of(texts):
    return [[0.2, 0.8] if "great" in text else [0.7, 0.3] for text in texts]


@pytest.mark.filterwarnings("ignore:fit. the teacher may be guessing")
@pytest.mark.parametrize("teacher", ["self", said_of, "array"])
def test_texts_without_labels(client, small_blocks, teacher):
    texts, labels = reviews(300)
    some, others = texts[:60], [f"{text} n{i % 200}" for i, text in enumerate(texts)]
    told = np.array(said_of(others)) if teacher == "array" else teacher
    options: dict[str, Any] = {"teacher": told, "teacher_weight": 0.5, "teacher_loss": 0.1}
    local = KeyTokenClassifier(max_iter=FEW).fit(some, labels[:60], unlabeled=others, **options)
    ours = DaskKeyTokenClassifier(client, max_iter=FEW)
    parts = bags(some, labels[:60], 3)
    same(ours.fit(*parts, unlabeled=dask.bag.from_sequence(others, npartitions=7), **options), local)
    batches = [others[:100], others[100:]]
    if teacher == "array":
        batches, options["teacher"] = [(others[:100], told[:100]), (others[100:], told[100:])], "given"
    same(ours.fit_batches([(some, labels[:60])], unlabeled=batches, **options), local)
    assert local.taught_ is not None
    assert local.taught_["texts"] == len(set(others) - set(some))


def test_partitions_travel_in_one_message():
    texts = ["some words"] * 5000
    frames = [len(distributed.protocol.dumps({"part": to_serialize(part)})) for part in (texts, Sealed(texts))]
    assert frames[1] < 10 < frames[0], "if dask has learned to send lists as one, there is no need for a seal any more"


def test_one_block_and_three_classes(client):
    texts, labels = topics(90)
    three = [label % 3 for label in labels]
    same(
        DaskKeyTokenClassifier(max_iter=FEW).fit(*bags(texts, three, 4)),
        KeyTokenClassifier(max_iter=FEW).fit(texts, three),
    )


def test_orders_beyond_the_longest_text_are_not_asked_for(client, monkeypatch):
    texts, labels = ["a b c d", "a b c e", "c b a d"] * 4, ["x", "y", "z"] * 4
    merged, exchange = [], Workers.exchange
    monkeypatch.setattr(Workers, "exchange", lambda *given: merged.append(given) or exchange(*given))
    same(
        DaskKeyTokenClassifier(ngrams=(1, 900), max_iter=FEW).fit(texts, labels),
        KeyTokenClassifier(ngrams=(1, 900), max_iter=FEW).fit(texts, labels),
    )
    assert len(merged) == 5  # the last one finds nothing


def test_weights(client, small_blocks):
    texts, labels = reviews(60)
    weight = np.random.RandomState(0).gamma(2.0, size=60)
    local = KeyTokenClassifier(class_weight="balanced", max_iter=FEW).fit(texts, labels, weight)
    for given_weight in (weight, dask.array.from_array(weight, chunks=25)):
        ours = DaskKeyTokenClassifier(class_weight="balanced", max_iter=FEW).fit(*bags(texts, labels, 3), given_weight)
        same(ours, local)


# Every kind of collection --------------------------------------------------------------------------------------------


def collections(client: Client, texts: list[str], labels: list[str]) -> dict[str, tuple[Any, Any]]:
    cuts = [0, 10, 10, 45, len(texts)]  # an empty part, and unequal ones
    parts = [(texts[i:j], labels[i:j]) for i, j in pairwise(cuts)]
    chunks = tuple(j - i for i, j in pairwise(cuts))
    own, named = np.array(texts, object), np.array(labels)
    return {
        "lists": (texts, labels),
        "arrays": (dask.array.from_array(own, chunks=(chunks,)), dask.array.from_array(named, chunks=31)),
        "texts of fixed width": (dask.array.from_array(np.array(texts), chunks=17), labels),
        "delayed": tuple([dask.delayed(part[k]) for part in parts] for k in (0, 1)),
        "one delayed": (dask.delayed(texts), dask.delayed(labels)),
        "futures": tuple([client.submit(list, part[k]) for part in parts] for k in (0, 1)),
    }


@pytest.mark.parametrize("kind", ["lists", "arrays", "texts of fixed width", "delayed", "one delayed", "futures"])
def test_every_collection(client, small_blocks, kind):
    texts, labels = reviews(48)
    X, y = collections(client, texts, labels)[kind]
    local = KeyTokenClassifier(max_iter=FEW).fit(texts, labels)
    ours = DaskKeyTokenClassifier(max_iter=FEW).fit(X, y)
    same(ours, local)
    assert np.array_equal(np.asarray(ours.predict_proba(X)), local.predict_proba(texts))


def test_frames(client):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    texts, labels = reviews(48)
    frame = frames.from_pandas(pandas.DataFrame({"text": texts, "label": labels}), npartitions=2)
    local = KeyTokenClassifier(max_iter=FEW).fit(texts, labels)
    same(DaskKeyTokenClassifier(max_iter=FEW).fit(frame["text"], frame["label"]), local)
    ours = DaskKeyTokenClassifier(max_iter=FEW).fit(frame[["text"]], frame["label"])
    same(ours, local)
    assert ours.predict(frame["text"]).compute().tolist() == local.predict(texts).tolist()
    here = pandas.DataFrame({"text": texts, "label": labels})
    same(DaskKeyTokenClassifier(max_iter=FEW).fit(here[["text"]], here[["label"]]), local)
    same(DaskKeyTokenClassifier(max_iter=FEW).fit(frame[["text"]], frame[["label"]]), local)
    with pytest.raises(InputError, match=r"^fit: `labels` must be one column; saw the columns 'text', 'label'"):
        ours.fit(texts, here)
    with pytest.raises(InputError, match=r"^fit: `texts` must be a series, or a frame of one column; saw \['text'"):
        ours.fit(frame, frame["label"])


# Predictions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", [reviews, topics])
def test_predictions_are_lazy(client, corpus):
    texts, labels = corpus(60)
    ours = DaskKeyTokenClassifier().fit(*bags(texts, labels, 2))
    local, K = ours.to_local(), len(set(labels))
    known = dask.array.from_array(np.array(texts, object), chunks=25)
    for method, tail in (
        ("predict", ()),
        ("predict_proba", (K,)),
        ("predict_log_proba", (K,)),
        ("decision_function", () if K == 2 else (K,)),
    ):
        expected = getattr(local, method)(texts)
        lazy = getattr(ours, method)(known)
        assert isinstance(lazy, dask.array.Array)
        assert (lazy.shape, lazy.dtype) == ((60, *tail), expected.dtype)
        assert lazy.chunks[0] == (25, 25, 10)
        assert np.array_equal(lazy.compute(), expected)
        assert np.array_equal(getattr(ours, method)(bags(texts, labels, 3)[0]).compute(), expected)
        assert np.array_equal(getattr(ours, method)(texts), expected)
    assert ours.explain(texts[0]).label == local.explain(texts[0]).label


def test_predictions_without_a_cluster():
    texts, labels = reviews(60)
    model = DaskKeyTokenClassifier()
    model.__dict__.update(vars(KeyTokenClassifier().fit(texts, labels)))
    bag = dask.bag.from_sequence(texts, npartitions=3)
    assert model.predict(bag).compute(scheduler="sync").tolist() == model.to_local().predict(texts).tolist()


# An estimator like the others ----------------------------------------------------------------------------------------


def test_copies_of_the_estimator(client, tmp_path):
    texts, labels = reviews(60)
    model = DaskKeyTokenClassifier(client, ngrams=(1, 2), prior=Prior(sink=0.5))
    assert model.get_params()["client"] is client
    assert set(model.get_params()) == {*KeyTokenClassifier().get_params(), "client"}
    assert clone(model).flat_params() == model.flat_params()
    with pytest.raises(TypeError, match="unexpected keyword argument 'sinks'"):
        DaskKeyTokenClassifier(sinks=1)
    model.fit(*bags(texts, labels, 2))
    local = model.to_local()
    assert type(local) is KeyTokenClassifier
    same(local, KeyTokenClassifier(ngrams=(1, 2), prior=Prior(sink=0.5)).fit(texts, labels))
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    same(again, local)
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(texts), local.predict_proba(texts))
    assert model.pruned(5).vocabulary_.tokens == local.pruned(5).vocabulary_.tokens
    assert model.compressed(20_000).predict(texts).tolist() == local.compressed(20_000).predict(texts).tolist()
    facts = [each.report(tmp_path / "page.html", texts, labels, title="same") for each in (model, local)]
    assert facts[0] == facts[1]


def test_refusals(client):
    texts, labels = reviews(30)
    X, y = bags(texts, labels, 3)
    model = DaskKeyTokenClassifier(client)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(InputError, match=r"^fit: `labels` must have one entry for each of the 30 texts; saw 20 labels"):
        model.fit(X, dask.bag.from_sequence(labels[:20]))
    with pytest.raises(InputError, match=r"^fit, partition 1: `texts\[0\]` must be a string; saw None"):
        model.fit(dask.bag.from_sequence([*texts[:10], None, *texts[11:]], npartitions=3), y)
    with pytest.raises(InputError, match=r"must have at least two classes; saw only 'pos'"):
        model.fit(X, ["pos"] * 30)
    with pytest.raises(InputError, match=r"be strings, integers or booleans, all of one kind; saw strings .*integers"):
        model.fit(X, dask.bag.from_sequence([*labels[:29], 3], npartitions=4))
    with pytest.raises(InputError, match=r"be strings, integers or booleans, all of one kind"):
        model.fit(X, [["a"]] * 30)
    with pytest.raises(InputError, match=r"must hold at least one token within the limits; saw '30 texts'"):
        DaskKeyTokenClassifier(client, min_df=31).fit(X, y)
    with pytest.raises(InputError, match=r"must be an array of one dimension"):
        model.fit(dask.array.from_array(np.array([texts]), chunks=5), y)
    with pytest.raises(InputError, match=r"`sample_weight` must be 30 finite numbers"):
        model.fit(X, y, dask.array.ones(29, chunks=10))
    with pytest.raises(InputError, match=r"`sink` must be"):
        DaskKeyTokenClassifier(client, prior=Prior(sink=-1)).fit(X, y)
    with pytest.raises(InputError, match=r"`memory, folder, resume` must not be given together with a cluster"):
        model.fit_batches([(texts, labels)], memory=10**9)
    assert not hasattr(model, "classes_")


def test_no_client():
    with pytest.raises(InputError, match=r"`client` must be a client, or one must be open; saw None. Open one"):
        DaskKeyTokenClassifier().fit(["a"], [1])


def test_the_extra_is_named():
    code = "import sys; sys.modules['distributed'] = None; import keytokens.dask"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtra: a fit on a cluster needs dask, an extra: pip install 'keytokens[dask]'" in shown.stderr


# Processes, and their loss -------------------------------------------------------------------------------------------


def test_workers_are_killed(small_blocks, monkeypatch):
    """Blocks, and whatever they are made of, are made again by the other worker."""
    texts, labels = reviews(300)
    options = {"prior": Prior(tol=1e-5), "max_iter": 8}
    local = KeyTokenClassifier(**options).fit(texts, labels)
    assert local.n_iter_ == 8
    monkeypatch.setattr(cluster_module, "_LOOK", 1.0)
    with LocalCluster(n_workers=2, processes=True, **HERE) as cluster, Client(cluster) as client:
        processes = client.run(os.getpid)
        assert len({*processes.values(), os.getpid()}) == 3
        with killing(list(processes.values())[:1]) as values:
            ours = DaskKeyTokenClassifier(**options).fit(*bags(texts, labels, 6))
        assert len(values) == 9
        same(ours, local)
        # a scheduler that is reached by its address, as the command line does it
        batches = [(texts[:100], labels[:100]), (texts[100:], labels[100:])]
        upper = fit_on_dask(batches, options, cluster.scheduler_address, lambda names: [name.upper() for name in names])
        assert upper.classes_.tolist() == ["NEG", "POS"]
        assert upper.values_.tobytes() == local.values_.tobytes()
        # with all of them gone there is nothing to go on with; the one that was killed may still be coming back
        client.wait_for_workers(2)
        monkeypatch.setattr(cluster_module, "_LOOK", 0.4)
        with (
            killing(list(client.run(os.getpid).values())) as values,
            pytest.raises(KeyTokensError, match=r"^fit: all workers of the cluster were lost at once"),
        ):
            DaskKeyTokenClassifier(**options).fit(*bags(texts, labels, 6))
        assert len(values) >= 3, "they were killed first"


@pytest.mark.parametrize(
    ("workers", "near"),
    [
        (["tcp://127.0.0.1:1234", "tcp://127.0.0.1:5678"], True),
        (["tcp://127.0.0.1:1234", "tcp://10.0.0.7:5678"], False),
        (["tls://10.127.0.0:1"], False),
    ],
)
def test_only_workers_on_this_machine_are_asked_directly(workers, near):
    """Of others one does not know whether they can be reached; the scheduler can."""
    asked = {}

    class Asked:
        def gather(self, futures, direct):
            asked["direct"] = direct

    cluster = cluster_module.Cluster(Asked(), workers)
    cluster.gather([])
    assert cluster.near is near
    assert asked["direct"] is (True if near else None)


@contextmanager
def killing(processes: list[int]) -> Iterator[list[float]]:
    """Kill these after the second step of a fit; the objective, step by step."""
    values: list[float] = []

    def tick(value: float) -> None:
        values.append(value)
        if len(values) == 3:
            for process in processes:
                os.kill(process, signal.SIGKILL)

    with listening(tick):
        yield values


def test_an_address_where_nobody_answers(monkeypatch):
    monkeypatch.setattr(estimator, "_PATIENCE", 0.3)
    with pytest.raises(InputError, match=r"`--dask` must be the address of a dask scheduler that answers; saw 'tcp"):
        fit_on_dask([], {}, "tcp://127.0.0.1:9")
