"""Draws docs/figures/layers.svg: the layers of src/momentum_rl, and what each imports.

python docs/figures/layers.py
"""

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 1000, 620
LAYERS = {  # name: centre x, centre y, what it holds
    "cli": (500, 45, "a table of commands"),
    "report": (300, 145, "statistics, figures, the page"),
    "sweeps": (700, 145, "many runs, here or on Ray"),
    "training": (700, 245, "a run: loops, checkpoints"),
    "planning": (130, 345, "schemes on tables, bounds"),
    "runs": (590, 345, "runs and sweeps on disk"),
    "mdp": (240, 445, "finite MDPs, exact answers"),
    "agents": (590, 445, "networks, the learner"),
    "envs": (350, 345, "Atari, Gymnasium, JAX, MDPs"),
    "replay": (885, 445, "frames, device arrays"),
    "core": (420, 535, "the algorithms; values, schedules"),
}
IMPORTS = {  # and what those import
    "cli": ("report", "sweeps"),
    "report": ("planning", "runs"),
    "sweeps": ("training",),
    "training": ("runs", "envs", "replay"),
    "planning": ("mdp",),
    "runs": ("agents",),
    "mdp": ("core",),
    "agents": ("core",),
    "envs": ("mdp",),
    "replay": ("core",),
}
GROUND = "every layer may import: errors, plumbing, spaces, version"
HALF = (105, 26)


def box(name: str) -> str:
    x, y, holds = LAYERS[name]
    left, top = x - HALF[0], y - HALF[1]
    return (
        f'<rect x="{left}" y="{top}" width="{2 * HALF[0]}" height="{2 * HALF[1]}" rx="6"/>'
        f'<text x="{x}" y="{y - 4}" class="name">{name}</text>'
        f'<text x="{x}" y="{y + 15}">{escape(holds)}</text>'
    )


def arrow(upper: str, lower: str) -> str:
    (x1, y1, _), (x2, y2, _) = LAYERS[upper], LAYERS[lower]
    start, end = y1 + HALF[1], y2 - HALF[1] - 3
    return f'<path d="M{x1} {start} C{x1} {start + 32} {x2} {end - 32} {x2} {end}"/>'


def picture() -> str:
    """The whole drawing as SVG."""
    arrows = [arrow(upper, lower) for upper, all_ in IMPORTS.items() for lower in all_]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="13" text-anchor="middle" role="img" '
            'aria-label="The layers of the package and what each imports">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6770"/></marker>',
            "<style>rect{fill:#f4f7f9;stroke:#0072b2}path{fill:none;stroke:#5b6770}"
            "svg>path{marker-end:url(#tip)}.name{font-weight:bold;font-size:15px}</style></defs>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" style="fill:#fff;stroke:none"/>',
            *arrows,
            *map(box, LAYERS),
            f'<rect x="20" y="575" width="{WIDTH - 40}" height="34" rx="6" '
            'style="stroke:#5b6770"/>',
            f'<text x="{WIDTH // 2}" y="597">{escape(GROUND)}</text>',
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture())
