"""Changes of an expression that change nothing that is claimed, and why: (function, expression)."""

EQUIVALENT = {
    ("Reading.pull", "-np.inf"): "a bag whose tokens all have one score; there the sign multiplies zero",
    ("Reading.pull", "spread(top) + log_abs(tied)"): "a tie of many tokens, counted in logarithms",
    ("evaluate", "-1"): "the claims are about one row of values, whose two columns are the first and the last",
    ("separating_witness", "1e-12 * float(np.abs(direction).max())"): "a tolerance",
    ("separating_witness", "np.abs(direction).max()"): "a tolerance",
    ("contests", "other - bags.starts[bags.bag[other]]"): "the names of the rows, which no claim reads",
    ("MultiToken.length", "given - self.finite"): "the finite part is orthogonal to the direction, as is claimed",
    ("_shortest", "np.abs(ties.times(p) - wanted).max(initial=0.0)"): "refuses what no claim asks for",
    ("_shortest", "1e-08 * (1 + float(np.abs(wanted).max(initial=0.0)))"): "a tolerance",
    ("_shortest", "np.abs(wanted).max(initial=0.0)"): "a tolerance",
    ("indicator_direction", "np.abs(rows @ q - target).max()"): "a residual that is reported, zero either way",
    ("indicator_direction", "np.asarray(u) / np.linalg.norm(u)"): "any multiple spans the same line",
    ("sufficient_step", "data.lengths.max()"): "all documents of the planted model have one length",
}
