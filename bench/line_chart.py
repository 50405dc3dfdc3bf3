"""Lines over a logarithmic x axis as an SVG picture."""

import math
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 360, 70, 20, 40, 60
COLORS = ["#2563eb", "#94a3b8", "#dc2626", "#16a34a"]


@dataclass
class Line:
    name: str
    points: list  # (x, y)


def line_chart(title, x_axis, y_axis, lines):
    xs = sorted({x for line in lines for x, _ in line.points})
    top = 1.1 * max(y for line in lines for _, y in line.points)
    low, high = math.log2(xs[0]), math.log2(xs[-1])

    def place(x, y):
        across = (math.log2(x) - low) / (high - low) if high > low else 0.5
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{title}</text>']
    for step in range(6):
        value = top * step / 5
        _, y = place(xs[0], value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>'
                     f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for x in xs:
        across, _ = place(x, 0)
        parts.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - BOTTOM + 34}" text-anchor="middle">{x_axis}</text>')
    parts.append(f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">{y_axis}</text>')
    for index, line in enumerate(lines):
        color = COLORS[index % len(COLORS)]
        places = [place(x, y) for x, y in line.points]
        if len(places) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>' for x, y in places]
        legend = LEFT + index * 150
        parts.append(f'<circle cx="{legend}" cy="{HEIGHT - 12}" r="4" fill="{color}"/><text x="{legend + 8}" y="{HEIGHT - 8}">{line.name}</text>')
    return "\n".join(parts) + "\n</svg>\n"
