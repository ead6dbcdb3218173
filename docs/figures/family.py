"""Draws docs/figures/family.svg: the map of the family, identities as lines and limits as arrows.

python docs/figures/family.py
"""

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 1000, 640
BOXES = {  # name: centre x, centre y, lines
    "md": (500, 300, ("MD-VI(λ, τ) = DA-VI(λ, τ)", "regularised evaluation")),
    "mvi": (205, 215, ("M-VI(α, τ')", "λ = ατ', τ = (1−α)τ'")),
    "cvi": (205, 335, ("CVI(α, η)", "η = 1/τ'")),
    "kl": (500, 430, ("MD-VI(λ, 0) = DA-VI(λ, 0)", "regularised evaluation")),
    "dpp": (205, 455, ("DPP(η)", "η = 1/λ, log-sum-exp")),
    "al": (500, 165, ("advantage learning(α)", "α = β")),
    "gdpp": (205, 575, ("DPP, greedy",)),
    "sql": (500, 575, ("SQL", "exactly: anchored VI")),
    "avi": (500, 45, ("AVI = MPI(1)", "λ = τ = 0")),
    "pi": (205, 45, ("policy iteration", "MPI(∞)")),
    "plain": (815, 300, ("MD-VI(λ, τ) = DA-VI(λ, τ)", "plain evaluation")),
    "plainkl": (815, 430, ("DA-VI(λ, 0), plain", "Politex(m = 1)")),
    "fixed": (815, 165, ("MoVI, fixed β; Momentum-DQN", "softened LSPI(m = 1)")),
    "movi": (815, 575, ("MoVI", "")),
}
LINES = [  # from, to, label, kind
    ("md", "mvi", "q' = q + λ ln π", "same"),
    ("mvi", "cvi", "a constant", "same"),
    ("kl", "dpp", "", "same"),
    ("cvi", "dpp", "α = 1", "case"),
    ("md", "kl", "τ = 0", "case"),
    ("plain", "plainkl", "τ = 0", "case"),
    ("md", "al", "λ, τ → 0, β held", "limit"),
    ("al", "avi", "α = 0", "case"),
    ("plain", "fixed", "λ, τ → 0, β held", "limit"),
    ("fixed", "avi", "β = 0", "case"),
    ("dpp", "gdpp", "η → ∞", "limit"),
    ("kl", "sql", "λ → 0", "limit"),
    ("plainkl", "movi", "λ → 0", "limit"),
    ("gdpp", "sql", "same policies", "same"),
    ("avi", "pi", "m → ∞", "limit"),
    ("md", "plain", "one bit", "bit"),
    ("kl", "plainkl", "one bit", "bit"),
    ("sql", "movi", "one bit", "bit"),
]
STYLES = {
    "same": ("#0072b2", "", False),
    "case": ("#5b6770", "", True),
    "limit": ("#d55e00", "7 4", True),
    "bit": ("#b4508f", "2 3", False),
}
LEGEND = (
    ("same", "the same scheme"),
    ("case", "a special case"),
    ("limit", "a limit"),
    ("bit", "evaluation regularised or plain"),
)
HALF = (122, 27)


def edge(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Where the line from the centre a to b leaves a's box."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    share = min(HALF[0] / abs(dx) if dx else 9e9, HALF[1] / abs(dy) if dy else 9e9)
    return a[0] + share * dx, a[1] + share * dy


def line(one: str, other: str, label: str, kind: str) -> str:
    colour, dash, arrow = STYLES[kind]
    a, b = BOXES[one][:2], BOXES[other][:2]
    (x1, y1), (x2, y2) = edge(a, b), edge(b, a)
    head = f' marker-end="url(#{kind})"' if arrow else ""
    drawn = (
        f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="{colour}" '
        f'stroke-width="2" stroke-dasharray="{dash}"{head}/>'
    )
    steep = abs(y2 - y1) > abs(x2 - x1)
    x, y = (x1 + x2) / 2 + (8 if steep else 0), (y1 + y2) / 2 + (4 if steep else -7)
    anchor = "start" if steep else "middle"
    return drawn + (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="13" fill="{colour}">'
        f"{escape(label)}</text>"
    )


def box(x: float, y: float, lines: tuple[str, ...]) -> str:
    lines = tuple(filter(None, lines))
    parts = [
        f'<rect x="{x - HALF[0]}" y="{y - HALF[1]}" width="{2 * HALF[0]}" height="{2 * HALF[1]}" '
        'rx="7" fill="#ffffff" stroke="#5b6770"/>'
    ]
    for i, text in enumerate(lines):
        weight, size = ("bold", 14) if i == 0 else ("normal", 12)
        at = y + 5 + (i - (len(lines) - 1) / 2) * 18
        parts.append(
            f'<text x="{x}" y="{at:.0f}" text-anchor="middle" font-size="{size}" '
            f'font-weight="{weight}" fill="#1c2733">{escape(text)}</text>'
        )
    return "".join(parts)


def main() -> None:
    heads = "".join(
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        for kind, (colour, _, arrow) in STYLES.items()
        if arrow
    )
    legend = "".join(
        f'<line x1="{690}" y1="{30 + 20 * i}" x2="{735}" y2="{30 + 20 * i}" '
        f'stroke="{STYLES[kind][0]}" stroke-width="2" stroke-dasharray="{STYLES[kind][1]}"/>'
        f'<text x="745" y="{34 + 20 * i}" font-size="13" fill="#1c2733">{escape(text)}</text>'
        for i, (kind, text) in enumerate(LEGEND)
    )
    body = "".join(line(*own) for own in LINES) + "".join(box(*own) for own in BOXES.values())
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="Liberation Sans, Arial, sans-serif">'
        "<title>The map of the family</title>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f6f8fa"/><defs>{heads}</defs>'
        f"{body}{legend}</svg>\n"
    )
    (Path(__file__).parent / "family.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
