"""The first page of the server: models, and training a new one."""

from __future__ import annotations

import functools
from importlib.resources import files

from ...explain.style import digest
from ..explorer.page import style


def _read(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text("utf-8").replace("\r\n", "\n")


@functools.cache
def home_page() -> str:
    """One page with its script and style inside, allowed by their hashes; it talks to its own server only."""
    script, look = "\n" + _read("home.js"), style() + _read("home.css")
    policy = [
        "default-src 'none'",
        f"script-src 'sha256-{digest(script)}'",
        f"style-src 'sha256-{digest(look)}'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>keytokens</title>
<style>{look}</style>
</head>
<body>
{_read("home.html").strip()}
<script type="module">{script}</script>
</body>
</html>
"""
