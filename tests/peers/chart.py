"""Draws the time of `1+1` for each peer as horizontal bars on a logarithmic scale, as SVG without a library."""

import math
from xml.sax.saxutils import escape

WIDTH, BAR, LEFT, RIGHT, TOP = 860, 30, 190, 330, 56


def draw(figures):
    """Returns the SVG text. `figures` has the figures of each peer by name; bars are sorted by the median."""
    rows = sorted(figures.items(), key=lambda row: row[1]["p50"])
    low = 10 ** math.floor(math.log10(rows[0][1]["p50"]))
    span = math.log10(rows[-1][1]["p50"] / low)
    height = TOP + BAR * len(rows) + 30
    described = "; ".join(f"{name}: {row['p50']:.2f} ms" for name, row in rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="13">',
        "<title>Time of 1+1 through Lockhouse and its peers</title>",
        f"<desc>{escape(described)}</desc>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="16" y="28" font-size="16" font-weight="bold" fill="#1a1a1a">1+1, from request to answer: median in ms (logarithmic scale)</text>',
    ]
    for number, (name, row) in enumerate(rows):
        y = TOP + BAR * number
        length = max(4, (WIDTH - LEFT - RIGHT) * math.log10(row["p50"] / low) / span)
        colour = "#0b6e4f" if name.startswith("Lockhouse") else "#8a8f98"
        parts.append(f'<text x="{LEFT - 10}" y="{y + 16}" text-anchor="end" fill="#1a1a1a">{escape(name)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.0f}" height="{BAR - 10}" rx="3" fill="{colour}"/>')
        label = f"{row['p50']:.2f} – {row['isolation']}"
        parts.append(f'<text x="{LEFT + length + 8:.0f}" y="{y + 15}" fill="#444444" font-size="12">{escape(label)}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
