"""A page of headings, tables and pictures in the look of the others: no script, no network."""

from __future__ import annotations

import html

from .style import CSS, DIGEST, digest

__all__ = ["FAIL", "plain_page"]

FAIL = '<span class="kt-fail">FAIL</span>'

_MORE = """
.keytokens.keytokens .kt-list{margin:0 0 1rem;padding:0;list-style:none;columns:22rem;column-gap:2.6rem}
.keytokens.keytokens .kt-list li{padding:.1rem 0;break-inside:avoid}
.keytokens.keytokens img{display:block;max-width:100%;height:auto;background:#fff;padding:.6rem;border-radius:6px;
 border:1px solid var(--kt-line);margin:.4rem 0 .8rem}
.keytokens.keytokens .kt-fail{color:var(--kt-n-solid);font-weight:650;font-style:italic}
.keytokens.keytokens ol.kt-notes{margin:.5rem 0 0;padding-left:1.3rem;max-width:50rem}
.keytokens.keytokens article table td{white-space:nowrap}
.keytokens.keytokens article table td:first-child{white-space:normal}
.keytokens.keytokens .kt-scroll{overflow-x:auto}
"""


def plain_page(title: str, content: str) -> str:
    """A whole page; the title is text, the content markup."""
    styles = f"style-src 'sha256-{DIGEST}' 'sha256-{digest(_MORE)}'"
    policy = f"default-src 'none'; {styles}; img-src data:; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>{CSS}</style>
<style>{_MORE}</style>
</head>
<body class="keytokens kt-page">
<main>
{content}
</main>
</body>
</html>
"""
