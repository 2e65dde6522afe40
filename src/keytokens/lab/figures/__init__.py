"""Figures that check themselves: a table is computed, drawn, and its numbers are compared with what is known.

To add a figure, write one small file in this folder that ends in

    FIGURE = Figure(name=..., title=..., caption=..., compute=..., draw=..., checks=...)

and put the file's name into `gallery.FILES`, in the order of the page.

name       what is typed: `keytokens figure NAME`, and the beginning of the names of its files
caption    a few sentences in our own words; what a paper states as the paper's, what was found here as ours
compute    small -> tables: {"paths": table(t=..., p1=..., p2=...), ...}. All that is drawn or checked is in them;
           each is saved as CSV. No clock, no unseeded lot, no download. `small` asks for a version for the tests (fewer
           trials, fewer steps); a figure that takes a second or two may ignore it. Where the published size takes
           longer than two minutes, `compute` takes a sample and `full` (no argument) the published size.
draw       tables -> a matplotlib Figure, made with `look.sheet`; matplotlib is imported inside functions only. Use
           `look.STYLES`, so that no line is known by its colour alone.
checks     tables -> a list of `Check(name, measured, expected, tolerance, source, note, rule)`; `Check.printed` takes
           the tolerance from the digits of a printed number. `source` is PAPER, CODE or OURS. Where two sources give
           different numbers, check ours, and say in the note which is right and why.

Then `keytokens figure NAME -o folder` writes NAME.csv (NAME-TABLE.csv if there are several tables), NAME.png and
NAME.svg, prints the checks and exits with 1 if one fails. Add the name to a test in tests/figures that makes the small
version, and look at the picture.
"""

from .figure import Check, Figure, Rule, Table, Tables, table
from .gallery import Made, figures, make

__all__ = ["Check", "Figure", "Made", "Rule", "Table", "Tables", "figures", "make", "table"]
