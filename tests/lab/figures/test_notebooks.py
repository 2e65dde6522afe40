"""The published experiments, run again: their numbers, their table and the command."""

import json

import numpy as np
import pytest

from keytokens.app.cli.app import run
from keytokens.base.errors import InputError
from keytokens.lab.claims.normals import Normals
from keytokens.lab.figures.notebook_data import sphere_problem
from keytokens.lab.figures.notebooks import EXPERIMENTS, HOW, MARKS, experiments, rerun, text

# as the notebooks end under their own library in single precision, and as they end in double; exact by other solvers
KNOWN = {
    ("1a", "½|p_mm|²"): (None, None, 0.49505),
    ("1a", "|p|, start (0, 1)"): (15.70, 21.50, 100.7),
    ("1a", "cos(p, its limit), start (0, 1)"): (0.9355, 0.9956, 0.9998),
    ("1b", "cos(p, its limit), start (0, -1.5)"): (-0.156, 0.9994, 0.99997),
    ("1c", "½|p_mm|² of 3-D keys"): (None, None, 0.31319),
    ("1c", "cos(p, its limit), start (1, 0)"): (0.9977, 0.9999, 0.9998),
    ("4b", "|p|, normalised, step 199"): (19.41, 19.75, 19.79),
    ("3a", "angle of p, degrees"): (14.09, 13.507, 13.84),
    ("3a", "|p|"): (22.90, 35.49, 98.04),
    ("3b", "angle of p, degrees"): (10.66, 2.25, 0.176),
    ("3b", "cos(p, p_mm)"): (0.99994, 0.98753, 0.98118),
    ("5", "p₂ at the end, logistic, C = 10"): (-0.0547, -3.192, -3.192),
    ("5", "p₂ at the end, logistic, C = 100"): (-8.373, -11.916, -47.04),
}


@pytest.fixture(scope="module")
def rows():
    names = dict.fromkeys(name for name, _ in KNOWN)
    return [row for one in experiments([*names, "3c", "4a", "6-7", "8"]) for row in rerun(one)]


@pytest.mark.parametrize("name, quantity", KNOWN)
def test_what_is_known_is_found(rows, name, quantity):
    (row,) = [row for row in rows if (row.experiment, row.quantity) == (name, quantity)]
    for how, known in zip(HOW, KNOWN[name, quantity], strict=True):
        found = getattr(row, how)
        if known is None:
            assert np.isnan(found)
        else:
            digits = len(str(known).partition(".")[2])
            # single precision goes by its rounding: another library may round the last unit otherwise
            assert found == pytest.approx(known, abs=0.6 * 10.0**-digits + (5e-3 * abs(known)) * (how == "float32"))


def test_published_numbers_are_those_of_the_exact_or_of_the_single_road(rows):
    """Whatever was stored or drawn is found again, to the digits that it has."""
    seen = 0
    for row in rows:
        if row.source in ("stored output", "read off a plot"):
            road = row.float32 if row.source == "read off a plot" else row.exact
            assert road == pytest.approx(float(row.published), abs=0.6 * 10.0 ** -len(row.published.partition(".")[2]))
            seen += 1
    assert seen == 10


@pytest.mark.parametrize("name", ["1a", "1b", "1c"])
def test_paths_of_a_hundred_steps_need_no_exact_arithmetic(rows, name):
    (row,) = [row for row in rows if row.experiment == name and "step 100" in row.quantity]
    assert row.float32 < 2e-3
    assert row.float64 < 2e-3


# fmt: off
# torch.randn(3, 7, 3)[:, :, :2] after torch.manual_seed(0); (2), (2, 3, 2) and (2, 2) after seed 1; (2), (2, 5, 2) and
# (2, 2) after seed 3; in single precision
NORMALS = np.array([
    -1.1258398, -1.1523602, -0.43387884, 0.8487103, -0.31601277, -2.1152194, -1.2633348, 0.3499832, 0.1198415,
    1.237658, -0.24727815, -1.3526537, 0.5666506, 0.79350835, -1.5550951, -0.3413604, 0.7501895, -0.58549756,
    0.18347794, 1.3893661, 0.94629836, -0.84367675, 0.03159274, -0.49267697, 0.43969584, 0.112411186,
    0.44115627, -0.10230965, -0.2896677, 0.052507486, 2.3022053, -1.4688939, -0.5692481, 0.9199714, 1.2898741,
    -1.4781742, -0.4731198, 1.3252748, -0.54974365, -0.47983426, -1.0669804, 1.1149396,
], np.float32).reshape(3, 7, 2)
SEED_1 = np.array([
    0.66135216, 0.2669241, 0.06167726, 0.6213173, -0.45190597, -0.16613023, -1.5227685, 0.38168392, -1.0276086,
    -0.5630528, -0.89229053, -0.058250178, -0.19550958, -0.96563596, 0.42241532, 0.267317, -0.42119515, -0.5107,
], np.float32)
SEED_3 = np.array([
    0.80327606, 0.17483339, 0.6648394, -0.2867803, 1.6205508, -1.596708, 0.40460718, 0.61129963, 0.76039034,
    -0.03364326, -0.34484532, 0.49365357, -0.07758075, -1.8053645, 0.48511407, 0.20523438, 0.33842817, 1.352754,
    0.37363538, 0.013416479, 0.7736732, -0.10924352, -0.6779622, -1.0591074, 0.74769664, 0.23891741,
], np.float32)
# fmt: on


def test_numbers_are_drawn_as_published():
    np.testing.assert_allclose(Normals(0)(3, 7, 3)[:, :, :2], NORMALS, atol=1e-6)
    for seed, known in ((1, SEED_1), (3, SEED_3)):
        T = 3 if seed == 1 else 5
        draw = Normals(seed)
        found = np.concatenate([draw(2), draw(2, T, 2).ravel(), draw(2, 2).ravel()])
        np.testing.assert_allclose(found, known, atol=1e-6)


def test_random_problems_are_of_unit_vectors():
    problem = sphere_problem(3, 6, 8, 10)
    np.testing.assert_allclose(np.linalg.norm(problem.values.rows, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(problem.queries, axis=1), 1, atol=1e-6)
    assert problem.values.sizes.tolist() == [8] * 6


def test_all_published_experiments_are_there():
    experiments()
    assert len({one.paper for one in EXPERIMENTS.values()}) == 3
    assert {"1a", "1b", "1c", "3a", "3b", "3c", "4a", "4b", "5", "6-7", "8", "9a", "9b-10"} <= set(EXPERIMENTS)
    assert {"visualization1", "visualization2", "local_converge", "svm_rank", "multi_token_converge"} <= set(
        EXPERIMENTS
    )
    assert all(source in MARKS for one in EXPERIMENTS.values() for _, source in one.published.values())


def test_the_table_says_where_a_value_is_from(rows):
    lines = text(rows).splitlines()
    assert lines[1] == "(max-margin selection)"
    assert "0.49505 s" in lines[2]
    assert any(line.startswith("6-7") and " - " in line for line in lines)
    assert lines[-1].startswith("8: No coordinates are published")


def test_the_command_prints_a_table_and_json(capsys):
    assert run(["lab", "notebooks", "4b"]) == 0
    assert "19.4 p" in capsys.readouterr().out
    assert run(["lab", "notebooks", "4b", "6-7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["experiment"] for row in found["rows"]] == ["4b", "4b", "6-7"]
    assert found["rows"][2]["exact"] is None
    assert set(found["notes"]) == {"4b", "6-7"}


def test_unknown_experiments_are_refused():
    with pytest.raises(InputError, match="`NAME` must be one of 1a"):
        experiments(["11"])
