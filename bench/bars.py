"""Draws fairness figures as grouped bars, by hand, as SVG."""

from collections.abc import Sequence
from html import escape

from bench.run import Figure

# What is drawn: its name in a figure's `more`, and its colour (apart for the colour-blind too).
_ORDERS = {
    "first-come by tasks": "#9fb3c8",
    "first-come by turns": "#52606d",
    "ours": "#2f8f83",
}
_WIDTH, _HEIGHT = 910, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 76, 330
_BAR = 34


def bars(figures: Sequence[Figure]) -> str:
    """Return an SVG: for each regime how far the trained mix of turns is off, by order."""
    most = max(f.more[f"{order}: 95 % of windows, %"] for f in figures for order in _ORDERS)
    top = 10 * int(most // 10 + 1)
    slot = (_WIDTH - _LEFT - _RIGHT) / len(figures)
    parts = [*_frame(), *_legend(), *_axis(top)]
    for place, figure in enumerate(figures):
        parts += _group(figure, _LEFT + slot * (place + 0.5), top)
    return "\n".join([*parts, "</svg>", ""])


def _frame() -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        ' font-family="system-ui, sans-serif" font-size="13" fill="#102a43">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(
            _LEFT,
            24,
            "Turns trained off the submitted mix, over the whole run",
            "font-size='15' font-weight='600'",
        ),
    ]


def _legend() -> list[str]:
    parts, x = [], float(_LEFT)
    for order, colour in _ORDERS.items():
        parts.append(f'<rect x="{x}" y="38" width="14" height="14" fill="{colour}"/>')
        parts.append(_text(x + 20, 50, order))
        x += 165
    parts.append(_line(x - 70, 38, x - 70, 52, "#d64545", 2))
    parts.append(_text(x - 60, 50, "up to there: 95 % of windows of ten batches"))
    return parts


def _axis(top: int) -> list[str]:
    parts = []
    for share in range(0, top + 1, 10):
        y = _y(share, top)
        parts.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "#d9e2ec", 1))
        parts.append(_text(_LEFT - 8, y + 4, f"{share}", "text-anchor='end'"))
    middle = (_TOP + _BOTTOM) / 2
    turned = f"text-anchor='middle' transform='rotate(-90 24 {middle})'"
    parts.append(_text(24, middle, "total variation, % of turns", turned))
    below = (_LEFT + _WIDTH - _RIGHT) / 2
    label = "supply, as a multiple of what the learner takes, and age caps"
    return [*parts, _text(below, _HEIGHT - 10, label, "text-anchor='middle'")]


def _group(figure: Figure, centre: float, top: int) -> list[str]:
    parts = []
    for nth, (order, colour) in enumerate(_ORDERS.items()):
        whole = figure.more[f"{order}: whole run, %"]
        window = figure.more[f"{order}: 95 % of windows, %"]
        x = centre + (nth - len(_ORDERS) / 2) * (_BAR + 4) + 2
        y = _y(whole, top)
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{_BAR}" height="{_BOTTOM - y:.1f}"'
            f' fill="{colour}"/>'
        )
        middle, high = x + _BAR / 2, _y(window, top)
        parts.append(_line(middle, y, middle, high, "#d64545", 2))
        parts.append(_line(middle - 5, high, middle + 5, high, "#d64545", 2))
        label = "text-anchor='middle' font-size='11' font-weight='600'"
        parts.append(_text(middle, min(y, high) - 5, f"{whole:.1f}", label))
    _, supply, caps = figure.name.split(", ")
    parts.append(
        _text(centre, _BOTTOM + 20, supply.removeprefix("supply "), "text-anchor='middle'")
    )
    parts.append(_text(centre, _BOTTOM + 37, caps, "text-anchor='middle' fill='#52606d'"))
    return parts


def _y(share: float, top: int) -> float:
    return _BOTTOM - share / top * (_BOTTOM - _TOP)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int) -> str:  # noqa: PLR0913, PLR0917
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'.replace("'", '"')
