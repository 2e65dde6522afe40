"""`keytokens verify`: run the theorems and say which of them hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...base.files import check_output, write_whole
from ...base.progress import Bar
from ...lab.claims.claim import Verdict, claims, verdicts_page
from ...lab.claims.claim import verify as verify_claims
from .common import JsonOption, say, show_json


def verify(
    claim: Annotated[
        list[str] | None, typer.Argument(help="Ids of claims, or families as in mm.; all by default.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Random instances per claim.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Draw other random instances: 0, 1, 2, ...")] = 0,
    html: Annotated[Path | None, typer.Option("--html", help="Write the verdicts as a page, too.")] = None,
    json: JsonOption = False,
) -> None:
    """Run every executable theorem: are its hypotheses met, does its conclusion hold, by how much?"""
    chosen = claims(claim or ())
    if html is not None:
        check_output(html)
    with Bar(total=sum(one.size(seeds) for one in chosen), unit="instance", disable=None, leave=False) as bar:

        def tick(verdict: Verdict | None) -> None:
            if verdict is None:
                bar.update()
            else:
                bar.set_description(verdict.id)

        found = verify_claims(claim or (), seeds, tick, seed)
    if html is not None:
        write_whole(html, verdicts_page(found).encode("utf-8"))
    if json:
        show_json(found.to_dict())
    else:
        say(str(found))
    if not found.holds:
        raise typer.Exit(1)
