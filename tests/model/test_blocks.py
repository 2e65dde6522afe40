"""Products with blocks of counts, against dense ones; the same bits at any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.model import blocks as counts
from keytokens.model.blocks import Block, blocks_of

SHAPES = [(1, 1), (3, 2), (40, 7), (7, 40), (500, 30), (5, 0), (0, 5), (0, 0)]


def random_matrix(shape: tuple[int, int], density: float = 0.3, seed: int = 0) -> sparse.csr_matrix:
    rng = np.random.default_rng(seed)
    return sparse.csr_matrix((rng.integers(1, 9, shape) * (rng.random(shape) < density)).astype(float))


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("turn", [False, True])
def test_products(shape, density, turn):
    C = random_matrix(shape, density)
    dense, block, rng = C.toarray(), Block.of(C, turn), np.random.default_rng(1)
    assert len(block) == shape[0]
    assert block.n_tokens == shape[1]
    assert np.array_equal(block.rows.toarray(), dense)
    X, R = rng.normal(size=(3, shape[1])), rng.normal(size=(2, shape[0]))
    many_X, many_R = rng.normal(size=(7, shape[1])), rng.normal(size=(7, shape[0]))
    for threads in (1, 2, 3):
        for x, r in ((X, R), (many_X, many_R)):
            assert_allclose(block.times(x, threads), x @ dense.T, rtol=1e-12, atol=1e-12)
            assert_allclose(block.transposed_times(r, threads), r @ dense, rtol=1e-12, atol=1e-12)
        assert_allclose(
            np.array(block.column_sums(counts.squares, [*R], threads)), R @ dense**2, rtol=1e-12, atol=1e-12
        )
        assert_allclose(
            np.array(block.column_sums(counts.present, [*R], threads)), R @ (dense > 0), rtol=1e-12, atol=1e-12
        )


@given(st.integers(0, 30), st.integers(0, 12), st.floats(0, 1), st.integers(0, 99))
def test_slices_cover_every_row_once(n, V, density, seed):
    C = random_matrix((n, V), density, seed)
    parts = counts._parts(C, counts.slices_of_block(C.indptr))
    assert sum(part.shape[0] for part in parts) == n
    assert len(parts) <= counts._SLICES
    if parts:
        assert np.array_equal(sparse.vstack(parts).toarray(), C.toarray())


def test_slices_share_the_work():
    """The heaviest holds little more than its share, and none is a copy."""
    C = random_matrix((4000, 20))
    parts = counts._parts(C, counts.slices_of_block(C.indptr))
    sizes = [part.nnz for part in parts]
    assert len(sizes) == counts._SLICES
    assert max(sizes) < 1.1 * sum(sizes) / len(sizes)
    assert all(np.shares_memory(part.data, C.data) and np.shares_memory(part.indices, C.indices) for part in parts)


@pytest.mark.parametrize("rows", [2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_give_the_same_bits(dtype, rows):
    C, rng = random_matrix((2000, 60)).astype(dtype), np.random.default_rng(2)
    block = Block.of(C)
    X, R = rng.normal(size=(rows, 60)).astype(dtype), rng.normal(size=(rows, 2000)).astype(dtype)
    for product in (
        lambda threads: block.times(X, threads),
        lambda threads: block.transposed_times(R, threads),
        lambda threads: block.column_sums(counts.squares, [*R], threads),
    ):
        one, two, three = (b"".join(x.tobytes() for x in product(threads)) for threads in (1, 2, 3))
        assert one == two == three
        assert product(1)[0].dtype == dtype


@pytest.mark.parametrize("n", [99, 100, 101, 350])
def test_blocks_add_up_to_the_whole(monkeypatch, n):
    C, rng = random_matrix((n, 20)), np.random.default_rng(3)
    (whole,) = blocks_of(C)
    monkeypatch.setattr(counts, "BLOCK", 400)
    blocks = blocks_of(C)
    assert len(blocks) == round(C.nnz / 400) > 1
    assert sum(len(block) for block in blocks) == n
    assert max(block.rows.nnz for block in blocks) < 1.2 * 400
    x, r = rng.normal(size=20), rng.normal(size=n)
    ends = np.cumsum([len(block) for block in blocks])[:-1]
    by_threads = []
    for threads in (1, 2, 3):
        forward = np.concatenate([block.times(x[None], threads)[0] for block in blocks])
        back = sum(
            block.transposed_times(part[None], threads)[0]
            for block, part in zip(blocks, np.split(r, ends), strict=True)
        )
        by_threads.append(forward.tobytes() + back.tobytes())
    assert by_threads[0] == by_threads[1] == by_threads[2]
    assert forward.tobytes() == whole.times(x[None], 1)[0].tobytes()  # each row is one sum, in whatever block it stands
    assert_allclose(back, whole.transposed_times(r[None], 1)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("piece", [1, 50, 10_000])
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_token_by_token_or_document_by_document_are_the_same_bits(monkeypatch, dtype, piece, rows):
    monkeypatch.setattr(counts, "_PIECE", piece)
    monkeypatch.setattr(counts, "_LARGE_PIECE", piece)
    C, rng = random_matrix((400, 60)).astype(dtype), np.random.default_rng(4)
    C.data += rng.random(C.nnz).astype(dtype)  # else sums of whole numbers, exact in any order
    X, R = (np.asfortranarray(rng.normal(size=(rows, n)).astype(dtype)) for n in (60, 400))
    turned, plain = Block.of(C, turn=True), Block.of(C)
    groups = rng.integers(0, rows, 400)
    assert len(turned._small_pieces) == {1: 60, 50: 60, 10_000: 1}[piece]

    def everything(block: Block, threads: int) -> list[bytes]:
        found = (
            block.times(X, threads),
            block.transposed_times(R, threads),
            block.column_sums(counts.squares, R, threads),
            block.presence(groups, R[0], rows, threads),
        )
        return [np.ascontiguousarray(array).tobytes() for array in found]

    expected = everything(plain, 1)
    for threads in (1, 2, 3):
        assert everything(turned, threads) == everything(plain, threads) == expected


def test_slices_lie_token_by_token_where_tokens_or_classes_are_many():
    assert not counts.by_token(1 << 20, 2)
    assert counts.by_token((1 << 20) + 1, 2)
    assert not counts.by_token(10, 3)
    assert counts.by_token(10, 4)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 60))
def test_slices_of_all_blocks(lengths, size):
    """They are those that each block would be cut into by itself."""
    pointer = np.cumsum([0, *lengths])
    C = sparse.csr_matrix(
        (np.ones(pointer[-1]), np.concatenate([[], *map(np.arange, lengths)]), pointer), (len(lengths), 30)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "BLOCK", size)
        blocks, bounds = blocks_of(C), counts.slice_bounds(C.indptr)
    found = [[part.shape[1] for part in block.slices] for block in blocks]
    assert [np.diff(ends).tolist() for ends in bounds] == (found if lengths else [])


@pytest.mark.parametrize("rows", [3, 9])
def test_products_are_written_where_they_are_asked_for(rows):
    C, rng = random_matrix((40, 30)), np.random.default_rng(5)
    R, out = rng.normal(size=(rows, 40)), np.full((rows, 30), np.nan, order=counts.layout(rows))
    assert Block.of(C).transposed_times(R, 2, out) is out
    assert_allclose(out, R @ C.toarray(), rtol=1e-12, atol=1e-12)
