"""The look of every page. `&` stands for the scope, so that a fragment leaves the notebook around it alone."""

from __future__ import annotations

import base64
import hashlib

LEVELS = 8  # shades of each side


def digest(text: str) -> str:
    """The hash by which a content-security policy allows a style or a script."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_LIGHT = """
--kt-paper:#fff;--kt-card:#f5f7fa;--kt-ink:#15181d;--kt-soft:#59616d;--kt-line:#d9dee5;
--kt-p:38 109 235;--kt-n:238 119 8;--kt-p-solid:#2563c9;--kt-n-solid:#c05c00;--kt-most:.72;
"""
_DARK = """
--kt-paper:#14171c;--kt-card:#1d2128;--kt-ink:#eceff3;--kt-soft:#a0a8b4;--kt-line:#353c47;
--kt-p:56 128 255;--kt-n:226 106 0;--kt-p-solid:#6ea3ff;--kt-n-solid:#ff9b45;--kt-most:.7;
"""

_RULES = """
&{color:var(--kt-ink);background:var(--kt-paper);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
 text-align:left;overflow-wrap:anywhere;-webkit-text-size-adjust:100%}
& *{box-sizing:border-box}
& p{margin:0}
& bdi{unicode-bidi:isolate}
& a{color:var(--kt-p-solid)}
& h1{font-size:1.7rem;line-height:1.2;margin:0 0 .6rem;font-weight:650;letter-spacing:-.01em}
& h2{font-size:1.15rem;line-height:1.3;margin:0 0 .9rem;font-weight:650}
& .kt-one{padding:1rem}
& .kt-head{display:flex;flex-wrap:wrap;gap:1rem 2.5rem;align-items:flex-start;justify-content:space-between}
& .kt-label{font-size:1.9rem;line-height:1.15;font-weight:680;letter-spacing:-.015em}
& .kt-soft{color:var(--kt-soft);font-size:.87rem}
& .kt-figures{color:var(--kt-soft);font-variant-numeric:tabular-nums}
& .kt-figures b{color:var(--kt-ink)}
& .kt-classes{flex:0 1 21rem;min-width:14rem}
& .kt-proof{margin:1.1rem 0;padding:.85rem 1.1rem;background:var(--kt-card);border-left:4px solid var(--kt-ink);
 border-radius:0 6px 6px 0;font-size:1.06rem;line-height:1.55;text-wrap:pretty}
& .kt-legend{display:flex;flex-wrap:wrap;gap:.3rem 1.3rem;margin:0 0 .55rem;font-size:.87rem;color:var(--kt-soft)}
& .kt-legend b{font-weight:500;color:var(--kt-ink);padding:1px 4px}
& .kt-legend .kt-s,& .kt-legend .kt-f{padding:0 0 2px}
& .kt-text{white-space:pre-wrap;font-size:1.04rem;line-height:2;color:var(--kt-soft)}
& .kt-text span,& .kt-text mark{color:var(--kt-ink)}
& mark{background:none;color:inherit}
& .kt-s{text-decoration:underline solid 2px currentColor;text-underline-offset:3px;text-decoration-skip-ink:none}
& .kt-f{border-bottom:2.5px dotted currentColor;padding-bottom:2px}
& .kt-legend .kt-u{color:var(--kt-soft);padding:0}
& .kt-note{margin:.6rem 0;padding:.5rem .8rem;border:1px dashed var(--kt-soft);border-radius:6px;font-size:.93rem}
& .kt-grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:1.8rem 2.6rem;
 margin-top:1.6rem}
& .kt-grid section{min-width:0;break-inside:avoid}
& .kt-h{font-weight:650;font-size:1.02rem;margin-bottom:.1rem}
& .kt-size{margin:.15rem 0 .4rem}
& table{border-collapse:collapse;width:100%;margin:0;border:0;font-size:.93rem;table-layout:auto}
& tbody tr,& thead tr{background:none;border:0}
& th,& td{padding:.2rem .5rem .2rem 0;text-align:left;vertical-align:baseline;border:0;
 border-bottom:1px solid var(--kt-line);white-space:normal;max-width:none;font-weight:400;line-height:1.45}
& td:last-child,& th:last-child{padding-right:0}
& thead th{color:var(--kt-soft);font-size:.8rem;vertical-align:bottom;line-height:1.25;overflow-wrap:normal}
& .kt-num{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
& thead .kt-num{white-space:normal}
& .kt-wide{width:34%;min-width:3rem;vertical-align:middle}
& td:first-child{min-width:6.4rem}
& .kt-many .kt-wide{width:16%;min-width:2rem}
& .kt-classes .kt-wide{width:50%}
& svg{display:block;width:100%;height:.6rem;overflow:visible}
& .kt-track{fill:var(--kt-line)}
& .kt-bp{fill:var(--kt-p-solid)}
& .kt-bn{fill:var(--kt-n-solid)}
& .kt-bk{fill:var(--kt-soft)}
& .kt-here{fill:var(--kt-ink)}
& details{margin:.5rem 0 0}
& summary{cursor:pointer;color:var(--kt-p-solid);font-size:.93rem;padding:.15rem 0}
& summary:focus-visible{outline:2px solid var(--kt-p-solid);outline-offset:2px}
&.kt-page{margin:0 auto;max-width:62rem;padding:1.8rem 1.4rem 3rem;font-size:16px}
&.kt-page .kt-one{padding:0}
&.kt-page article{margin-top:2.2rem;padding-top:1.6rem;border-top:1px solid var(--kt-line)}
& .kt-intro{max-width:50rem;margin-bottom:.7rem}
@media (max-width:34rem){&.kt-page{padding:1.1rem 1rem 2rem}& .kt-classes{flex:1 1 100%}
 & .kt-many .kt-wide{display:none}& .kt-text{line-height:1.9}}
@media print{& *{print-color-adjust:exact;-webkit-print-color-adjust:exact}
 &.kt-page{max-width:none;padding:0;font-size:12px}
 & .kt-grid{grid-template-columns:1fr 1fr;gap:1.2rem 1.6rem}}
"""


def _themes() -> str:
    """Light unless the reader prefers dark; a notebook that says what it is wins; paper is white."""
    light = '[data-jp-theme-light="true"] .keytokens,.vscode-light .keytokens'
    dark = '[data-jp-theme-light="false"] .keytokens,.vscode-dark .keytokens,html[theme="dark"] .keytokens'
    return (
        f".keytokens{{{_LIGHT}}}\n"
        f"@media (prefers-color-scheme:dark){{.keytokens{{{_DARK}}}}}\n"
        f"{light}{{{_LIGHT}}}\n{dark}{{{_DARK}}}\n"
        f"@media print{{.keytokens{{{_LIGHT}}}}}\n"
    )


def _shades() -> str:
    """One class a shade. The second side leans too: nothing is said by colour alone."""
    shades = []
    for side, lean in (("p", ""), ("n", ";font-style:italic")):
        for level in range(1, LEVELS + 1):
            alpha = f"calc(var(--kt-most)*{level / LEVELS:.3g})"
            shades.append(f"& .kt-{side}{level}{{background:rgb(var(--kt-{side})/{alpha}){lean}}}")
    return "\n".join(shades)


CSS = "\n" + _themes() + (_RULES + _shades()).replace("&", ".keytokens.keytokens") + "\n"
DIGEST = digest(CSS)
