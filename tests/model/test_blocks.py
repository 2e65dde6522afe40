"""Products with blocks of counts, against dense ones; the same bits at any number of threads."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.model import blocks as counts
from keytokens.model.blocks import Block, blocks_of

SHAPES = [(1, 1), (3, 2), (40, 7), (7, 40), (500, 30), (5, 0), (0, 5), (0, 0)]


def random_matrix(shape: tuple[int, int], density: float = 0.3, seed: int = 0) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    return sparse.csr_matrix((rng.integers(1, 9, shape) * (rng.random(shape) < density)).astype(float))


@pytest.fixture
def several_parts(monkeypatch):
    """Also of small matrices."""
    monkeypatch.setattr(counts, "_PART", 20)


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("columns", [1, 3, 7, 150])
def test_products(shape, density, columns, several_parts):
    C = random_matrix(shape, density)
    dense, block, rng = C.toarray(), Block.of(C), np.random.default_rng(1)
    assert len(block) == shape[0]
    assert block.tokens.shape[0] == shape[1]
    assert np.array_equal(block.rows.toarray(), dense)
    X, R = rng.normal(size=(shape[1], columns)), rng.normal(size=(shape[0], columns))
    for threads in (1, 2, 3):
        assert_allclose(block.times(X, threads), dense @ X, rtol=1e-12, atol=1e-12)
        for of, entries in ((None, dense), (np.square, dense**2), (np.ones_like, dense > 0)):
            assert_allclose(block.transposed_times(R, threads, of), entries.T @ R, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("columns", [2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_give_the_same_bits(dtype, columns, several_parts):
    C, rng = random_matrix((2000, 60)).astype(dtype), np.random.default_rng(2)
    C.data += rng.random(C.nnz).astype(dtype)  # else sums of whole numbers, exact in any order
    block = Block.of(C)
    X, R = rng.normal(size=(60, columns)).astype(dtype), rng.normal(size=(2000, columns)).astype(dtype)
    for found in (
        [block.times(X, threads) for threads in (1, 2, 3)],
        [block.transposed_times(R, threads) for threads in (1, 2, 3)],
        [block.transposed_times(R, threads, np.square) for threads in (1, 2, 3)],
    ):
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
        assert found[0].dtype == dtype


@pytest.mark.parametrize("n", [99, 100, 101, 350])
@pytest.mark.parametrize("n_classes", [2, 30])
def test_blocks_add_up_to_the_whole(monkeypatch, n, n_classes):
    C, rng = random_matrix((n, 20)), np.random.default_rng(3)
    (whole,) = blocks_of(C, n_classes)
    monkeypatch.setattr(counts, "BLOCK", 400)
    blocks = blocks_of(C, n_classes)
    assert len(blocks) == round((C.nnz + n * (n_classes + 8)) / 400) > 1
    assert sum(len(block) for block in blocks) == n
    assert max(block.rows.nnz + len(block) * (n_classes + 8) for block in blocks) < 1.2 * 400
    assert np.array_equal(sparse.vstack([block.rows for block in blocks]).toarray(), C.toarray())
    X, R = rng.normal(size=(20, 1)), rng.normal(size=(n, 1))
    ends = np.cumsum([len(block) for block in blocks])[:-1]
    forward = np.concatenate([block.times(X, 1) for block in blocks])
    back = sum(block.transposed_times(part, 1) for block, part in zip(blocks, np.split(R, ends), strict=True))
    assert forward.tobytes() == whole.times(X, 1).tobytes()  # each row is one sum, in whatever block it stands
    assert_allclose(back, whole.transposed_times(R, 1), rtol=1e-12, atol=1e-12)


def test_a_matrix_without_documents_is_one_block():
    (block,) = blocks_of(sparse.csr_matrix((0, 3)), 2)
    assert block.tokens.shape == (3, 0)


def test_to_another_process_go_the_counts_alone():
    left = []
    block = replace(Block.of(random_matrix((30, 8))), let_go=lambda: left.append(1))
    block.times(np.ones((8, 1)), 1)
    block.let_go()
    sent = pickle.loads(pickle.dumps(block))
    sent.let_go()
    assert left == [1]
    assert np.array_equal(sent.rows.toarray(), block.rows.toarray())
