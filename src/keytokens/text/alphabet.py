"""The classes of characters that make tokens, pinned to Unicode 14.

A table of our own, not the interpreter's: Python 3.11 and 3.13, or a browser, know different versions of Unicode, and a
model must read the same tokens everywhere. Characters assigned later belong to no class; those assigned by then keep
their lower case and their composed form for good (Unicode's stability policy).

LETTERS     letters, digits, other numbers and the underscore, without the next row
IDEOGRAPHS  Han characters and Hiragana: written without spaces, so each is a word of its own
MARKS       combining marks and the two joiners: they belong to the letter before them
SYMBOLS     "other symbols", emoji among them, without FULL BLOCK, which is the mask
"""

from __future__ import annotations

Ranges = tuple[tuple[int, int], ...]


def _ranges(packed: str) -> Ranges:
    """Unpack "gap.more" pairs in base 36: how far from the last range one begins, how many more characters follow.

    >>> _ranges("1d.1 5")
    ((49, 50), (55, 55))
    """
    found, end = [], 0
    for item in packed.split():
        gap, _, more = item.partition(".")
        first = end + int(gap, 36)
        end = first + int(more or "0", 36)
        found.append((first, end))
    return tuple(found)


LETTERS = _ranges(
    """
    1c.9 8.p 5 2.p 1c 8.1 2 4.1 2.2 2.m 2.u 2.cp 5.b f.4 8 2 3m.4 2.1 3.3 2 7 2.2 2 2.j 2.2a 2.3u 9.4l 2.11 3
    7.14 20.q 5.3 1a.16 m.9 5.1 2.2q 2 g.1 8.e 3 h 2.t u.2g c f.16 a.1 5 6.l 5 a 4 o.o 8.a 6.n 2.5 i.15 1n.1h 4
    j 8.9 5.9 2.f 5.7 3.1 3.l 2.6 2 4.3 4 h e.1 2.2 5.b 3.5 3 9.5 5.1 3.l 2.6 2.1 2.1 2.1 w.3 2 8.9 3.2 h.8 2.2
    2.l 2.6 2.1 2.4 4 j g.1 5.9 a c.7 3.1 3.l 2.6 2.1 2.4 4 v.1 2.2 5.9 2.6 c 2.5 4.2 2.3 4.1 2 2.1 4.1 4.2 4.b
    n m.c j.7 2.2 2.m 2.f 4 r.2 3 3.1 5.9 9.6 2 5.7 2.2 2.m 2.9 2.4 4 w.1 2.1 5.9 2.1 i.8 2.2 2.14 3 h 6.2 2.9
    5.i 2.5 6.h 4.n 2.8 2 3.6 w.9 i.1b 2.1 d.6 a.9 14.1 2 2.4 2.n 2 2.9 2.1 a 3.4 2 a.9 3.3 x w.j d.7 2.z s.4
    38.16 l.a 7.5 5.3 4 4.1 8.2 5.c d 2.9 7.11 2 6 3.16 2.98 2.3 3.6 2 2.3 3.14 2.3 3.w 2.3 3.6 2 2.3 3.e 2.1k
    2.3 3.1u f.j 4.f h.2d 3.5 4.h7 3.g 2.p 6.22 4.a 8.h e.i f.h f.c 2.2 g.1f 10 5 4.9 7.9 n.9 7.2g 8.4 3.x 2
    6.1x b.u 14.13 3.4 c.17 5.p 7.a 12.m a.1g 18.9 7.9 e 2m.1a i.7 4.9 16.t e.1j r.z t.9 4.1c 3.8 8.16 3.2 16.3
    2.5 2.1 4 6.5b 1t.7p 3.5 3.11 3.5 3.7 2 2 2 2.u 3.1g 2.6 2 4.2 2.6 4.3 3.5 5.c 6.2 2.6 38.1 3.5 6.a 7.c 2u 5
    3.9 2 4.4 7 2 2 2.3 2.a 3.3 6.4 5 2.1l k7.1n 27.l hj.t vh.6c 7.3 4.1 a 3.11 2 6 3.1j 8 h.m a.6 2.6 2.6 2.6
    2.6 2.6 2.6 2.6 29 ea.4 7 2t.2h 2.3 6.16 2.2l 4.3 b.v 1d.f x.9 v.7 2.e x.9 14.e lkx.wc 1w.19 3.7g 4.r l.1a
    h.u 3.27 14.8 3.2u 3.1r 6.1 2 2.4 p.f 2.2 2.3 2.m e.5 b.1f f.1d t.9 p.5 4 2.1 2.11 b.m q.s 8.1a t.a 7.4 2.o
    2.14 o.2 2.7 5.9 7.m 4 4.1d 2 4.1 3.4 3 2 p.2 3.a 8.2 d.5 3.5 3.5 a.6 2.6 2.16 2.d 7.36 e.9 7.8mb d.m 5.1c
    6x1.6 d.4 6 2.9 2.c 2.4 2 2.1 2.1 2.2z y.a2 j.1r 3.1h 15.b 39.4 2.3q k.9 8.p 7.p c.2g 4.5 3.5 3.5 3.2 10.b
    2.p 2.i 2.1 2.e 3.d z.3e d.18 d.1k i.1 6t.s 4.1c h.q 5.z a.t 6.11 b.t 3.z 5.7 2.4 17.4d 3.9 7.z 5.z 5.13
    9.1f d.a 2.e 2.6 2.1 2.a 2.e 2.6 2.1 1w.8m a.l b.7 p.5 2.15 2.8 1y.5 3 2.17 2.1 4 3.m 3.u 3.11 9.8 1d.i 2.1
    6.w 5.p 1z.1j 5.j 3.1a g.3 2.2 2.s b.8 o.u 2.v x.7 2.r 7.4 h.1h b.l 3.q 6.p o.6 29.20 1k.1e e.1e 8.15 d.9
    87.u 2.15 7.1 27.13 9.l c.3 s.h 1b.r l.m d.1g r.t 2.1 3 e.18 x.o 8.9 a.z g.9 5 3 9.y 4 d.1b f.3 c.a 2 5.j
    c.h 2.o 2d.6 2 2.3 2.e 2.9 8.1a i.9 c.7 3.1 3.l 2.6 2.1 2.4 4 j d.4 4f.1g j.3 6.9 6.2 v.1b l.1 2 9.9 4n.1a
    16.3 11.1b l c.9 13.16 e 8.9 1j.q m.b 5.6 56.17 39.2a d.7 3 3.7 2.1 2.n g 2 f.9 1z.7 3.12 h 2 t b.13 8 m
    c.19 k j.20 7c.8 2.10 i g.s 6.t 35.6 2.1 2.11 m a.9 7.5 2.1 2.v f 8.9 8n.i 5a g.k 18.pl 2v.32 i.5f 219.2o
    g.tq 34i.g6 6nu.fs 8.u 2.9 7.26 2.9 7.t j.1b h.3 d.9 2.6 2.k 6.i j5.2e 2y.22 6 1v.c 1t.1 2 t.4qf 9.yd 17.8
    6w8.3 2.6 2.1 2 80.2 1u.3 9.az 1s5.2y 6.c 4.8 8.9 4ef.j 31.o 3s.2c 2.1y 2.1 3 3.1 3.3 2.b 2 2.6 2.1s 2.3 3.7
    2.6 2.r 2.3 2.4 2 4.6 2.9f 3.o 2.o 2.u 2.o 2.u 2.o 2.u 2.o 2.u 2.o 2.7 3.1d 1dt.u de.18 b.6 3.9 5 8y.t j.17
    5.9 yv.6 2.3 2.1 2.e 2.5g 3.8 1d.1v 8 5.9 m0.1m 2.2 2.3 25.18 2.e 5f.3 2.q 2.1 2 3 2.9 2.3 2 2 7 5 2 2 2.2
    2.1 2 3 2 2 2 2 2.1 2 3.3 2.6 2.3 2.3 2 2.9 2.g 6.2 2.4 2.g g5.c 25g.9
    """
)
IDEOGRAPHS = _ranges(
    """
    9hh.2 q.8 f.3 6.2d 7.2 o1.533 1t.g73 hkx.a5 3.2x zs8.7y 1d.2 fji.wyn x.37c 8.65 3.4g1 f.5rk 2e8.f1 15v.3t6
    """
)
MARKS = _ranges(
    """
    lc.33 7o.6 7c.18 2 2.1 2.1 2 21.a 1d.k h 2u.6 3.5 3.1 2.3 10 v.q 2k.a 1n.8 a p.3 2.8 2.2 2.4 18.2 1p.7 17.n
    2.w 1j.2 2.h 2.6 b.1 u.2 1l 2.6 3.1 3.2 a b.1 r 3.2 1l 2.4 5.1 3.2 4 v.1 4 c.2 1l 2.7 2.2 2.2 l.1 n.5 2.2 1l
    2.6 3.1 3.2 8.2 b.1 v 1o.4 4.2 2.3 a 15.4 1k 2.6 2.2 2.3 8.1 c.1 u.2 1l 2.6 2.2 2.3 8.1 c.1 t.3 1k.1 2.6 2.2
    2.3 a b.1 u.2 1z 5.5 2 2.7 j.1 1q 3.6 d.7 2r 3.8 c.5 23.1 s 2 2 5.1 1e.j 2.1 6.a 2.z a 2t.j o.3 5.2 2.2 3.6
    4.3 e.b 2 b.3 jk.2 qb.3 t.2 u.1 v.1 1t.v a 1a.2 2 3a.1 z 3b.b 5.b 64.4 1m.9 2.s 3 1d.u 1e.4 1c.g 13.8 d.2
    v.c 1l.d 1d.j 49.2 2.k 5 7 3.2 5j.1r el.1 5f.w 2db.2 3y 2p.v ff.5 2y.1 n9x.3 2.9 x.1 29.1 7l 4 5 o.4 5 2c.1
    1f.h r.h e 13.7 q.c 19.3 1c.d 11 1w.d d 9.1 1a.2 1f 2.2 3.1 6.1 2 16.4 6.1 6l.7 2.1 fn5 ki.f h.f r2 6b 46.4
    1af.2 2.1 6.3 15.2 5 4m.1 fy.3 as.1 4a.a 1e.3 3f.2 1i.e 16 3.1 b.3 1a.a 8 1q.2 11.d h.1 19 d.2 1d.d 9.3 2.1
    2l.b 7 4h.b m.3 1k.1 2.6 3.1 3.2 a b.1 3.6 4.4 5d.h o 2a.j 6k.6 3.8 s.1 2b.g 2z.c 2u.e 75.e 6u.5 2.1 3.3 2
    2.1 3y.6 3.6 4 t.9 15.6 2.3 9 a.a 1b.f ba.7 2.7 2b.l 2.d 3f.5 4 2.1 2.6 2 1v.4 2.1 2.4 9o.3 f0a.4 1o.6 t5
    2.1i 8.3 2a c.1 f58.1 3mq.19 3.m f3.4 4.5 9.7 3.6 v.3 45.2 1j0.1i 5.1d 9 f n.4 2.e 11t.6 2.g 3.6 2.1 2.4
    7a.6 ag 1q.3 15t.6 32.6 gzhy.6n
    """
)
SYMBOLS = _ranges(
    """
    4m 3 5 2 r6 7f.1 3k.1 5r b k.1 6w ec ae 3n.5 2 3p 5s 16 aw.2 g 2.2 3.5 l 2 2 3q.7 2.5 2.1 6.3 5i.1 kx.9 k4
    k3 4e.x 9u.9 a.8 138.1 2.3 2.1 b 2.1 7.5 2 2 2 5 c.1 f 2.1 2 1n.1 a.4 3.3 2.1 2.1 2.6 2.u 3.1 2 2.u 7h.7 5.j
    3.6 3.28 2.t q.13 7.1w q.a 2a.25 n.3r 2.19 2.8 2.1h 9.32 2.6v 19.17 1t.73 e9.1b m.1 7.12 3.v 2.2w 6e.5 9y.1
    1b.p 2.2g d.5x r.b 9 e.1 d m.1 7.1 9d.1 5.9 x.z t.u c.t 9 g.v b.12 g.8v 535.1r h3l.1i o2.3 b.1 2 fy.2 gcn.f
    3k 1a.2 dh 4 5.1 e.1 8q.8 1m.g 3.2 2.c 4 1c.18 1a3.1 gg 2gn 1p2.7 5.g evf.3 6 g2f 3p0.37 1p.6t b.12 3.1n 6.2
    n.1 8.t 5.1o m.1t 4 57.2e x6.e7 1k.3 1f.7 2.d 2.1 1c9 28t 3m k2.17 5.2r d.e 3.e 2.e 2.10 o.4g 1l.s e.17 5.8
    8.1 f.5 4b.6y 6.k7 6.f 4.c 4.37 d.2g 8.b 5 g.b 5.1j 9.9 7.13 9.t 3.1 27.9f d.d 3.4 4.4 4.6 a.s 4.a 6.5 b.9
    7.7 9.6 a.42 2.1i
    """
)
