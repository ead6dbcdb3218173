"""The paper's claims about deep agents, each judged by a pure function of the results.

The paper's claims are about 20 Atari games. They are judged on whatever environments the results
have, and each verdict says which. Elsewhere than on Atari, runs that could not decide a claim about
many games, because there is one environment, one run or nothing to compare with, are described.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from momentum_rl.plumbing.games import BETA_GAMES
from momentum_rl.report.deep.results import MOMENTUM, Results, Series
from momentum_rl.report.drawing.bars import bracketed
from momentum_rl.report.drawing.numbers import short
from momentum_rl.report.statistics import Comparison, Estimate, mean_and_deviation
from momentum_rl.report.verdict import Finding, Verdict


@dataclass(frozen=True)
class Claim:
    """What the paper says of an algorithm against DQN."""

    better: bool
    """Whether the paper finds it better."""
    words: str
    """Its words, and where they stand."""


_WORSE = "“both DSQL and DDPP underperform DQN on most of the games” (Section 7.2, fig:auc-{})"
CLAIMS = {
    MOMENTUM: Claim(
        True,
        "“Momentum-DQN outperforms DQN on 16 games out of 20, with an average normalized "
        "improvement of 45%” (Section 7.2, fig:auc)",
    ),
    "deep-sql": Claim(False, _WORSE.format("sql")),
    "deep-dpp": Claim(False, _WORSE.format("dpp")),
}
"""By algorithm. Deep SQL's is about the sign that the appendix prints."""


def improves(results: Results, label: str) -> Verdict | Finding | None:
    """Section 7.2: an algorithm against DQN; None if the paper does not compare the two.

    Better is: on more than half of the games, and on average with an interval above 0. Worse is the
    same the other way round. An interval around 0, or none, decides nothing; nor does a single
    game, as the claims are about most of many. Deep SQL with Speedy Q-learning's own sign is not
    what the paper prints, and is described; so is what decides nothing outside Atari.
    """
    series = results.labelled(label)
    if series.algorithm not in CLAIMS:
        return None
    comparison = results.comparisons.get(label)
    seen = _nothing(results, label) if comparison is None else summary(results, label, comparison)
    if series.sign == "sql":
        return Finding(
            f"Deep SQL with Speedy Q-learning's own sign, on {_where(results)}. The appendix "
            "prints the other one (app:atari-dsql), and the paper's statement on Deep SQL is "
            "judged with that one alone.",
            seen,
        )
    if results.suite != "Atari" and _too_little(results, comparison):
        return Finding(
            f"{series.style.label} beside {results.baseline_of(label)} on {_where(results)}. The "
            "paper's statement is about 20 Atari games, and these runs are too few to judge it.",
            seen,
        )
    claim = f"{CLAIMS[series.algorithm].words}; judged here on {_where(results)}"
    if series.sign == "printed":
        claim += ", for Deep SQL with the sign that the appendix prints (app:atari-dsql)"
    claim += "."
    if comparison is None:
        return Verdict(claim, seen, None)
    mean = comparison.mean
    if mean.low is None or mean.high is None:
        return Verdict(claim, seen, None)
    if mean.low <= 0 <= mean.high:
        return Verdict(claim, f"{seen} The interval contains 0.", None)
    games = len(comparison.games)
    if games == 1:
        return Verdict(claim, f"{seen} One game decides nothing about most games.", None)
    won = comparison.improved.value > games / 2 and mean.low > 0
    lost = comparison.improved.value < games / 2 and mean.high < 0
    return Verdict(claim, seen, won if CLAIMS[series.algorithm].better else lost)


def _too_little(results: Results, comparison: Comparison | None) -> bool:
    """Whether there is one environment, a single run of something, or nothing to compare with."""
    return comparison is None or len(results.games) == 1 or not comparison.repeated


def _where(results: Results) -> str:
    if len(results.games) == 1:
        return f"{results.games[0]} alone"
    return f"{len(results.games)} {results.suite} environments"


def _nothing(results: Results, label: str) -> str:
    everything, _, unfinished = results.count(label)
    if unfinished:
        return f"{unfinished} of its {everything} runs are not finished."
    return "There is no DQN run with the same settings that has ended."


def summary(results: Results, label: str, comparison: Comparison) -> str:
    """A comparison in words, with its protocol."""
    games = len(comparison.games)
    runs, diverged, unfinished = results.count(label)
    name, baseline = results.labelled(label).style.label, results.baseline_of(label)
    improved = f"{comparison.improved.value:.0f} of {games}"
    verb = "outperforms" if comparison.repeated else "has a larger area than"
    text = (
        f"{name} {verb} {baseline} on {improved} {'game' if games == 1 else 'games'}, "
        f"mean improvement {bracketed(comparison.mean)}"
    )
    if games > 1:
        text += f", median {bracketed(comparison.median)}"
    if comparison.repeated:
        text += (
            f"; interquartile mean {bracketed(comparison.iqm)}, probability of improvement "
            f"{probability(comparison.probability)}."
        )
    else:
        text += ". A single run of either says nothing about other seeds."
    if diverged:
        text += f" {diverged} of its {runs} runs diverged."
    if unfinished:
        text += f" {unfinished} of its {runs} runs are not finished and not counted."
    if comparison.undefined:
        text += f" Without {', '.join(comparison.undefined)}, where {baseline} has area 0."
    return f"{text} Protocol: {results.protocol}"


def probability(estimate: Estimate) -> str:
    """A probability with its interval; of single runs there is none.

    >>> probability(Estimate(0.8, 0.7, 0.9)), probability(Estimate(1.0))
    ('0.80 [0.70, 0.90]', '–')
    """
    if estimate.low is None or estimate.high is None:
        return "–"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def about_beta(results: Results) -> tuple[Callable[[Results], Verdict | Finding | None], ...]:
    """What is said beside the figure on β: the paper's two games judged, the others described.

    The paper's text states one thing of Asterix and another of Zaxxon (app:atari-mixt); the
    caption of its figure states the first of both. The text is judged; see docs/reading.md.
    """
    judged = [g for g in BETA_GAMES if results.suite == "Atari" and g in results.games]
    return (*(partial(beta_on, game=game) for game in judged), beta_elsewhere)


def _fixed(results: Results) -> list[Series]:
    """Momentum-DQN with a fixed β, by β."""
    constant = [v for v in results.series if v.algorithm == MOMENTUM and v.beta is not None]
    return sorted(constant, key=lambda v: v.beta or 0.0)


def _quarters(results: Results, game: str) -> tuple[list[float], list[float]] | None:
    """The mean score of the first and of the last quarter, by β; None if a run has not ended."""
    cells = [results.cells.get((game, series.label)) for series in _fixed(results)]
    ended = [cell for cell in cells if cell is not None and cell.ended.any()]
    if len(ended) < len(cells) or len(cells) < 2:
        return None
    means = [mean_and_deviation(cell.scores[cell.ended])[0] for cell in ended]
    quarter = max(1, means[0].size // 4)
    early = [float(mean[:quarter].mean()) for mean in means]
    return early, [float(mean[-quarter:].mean()) for mean in means]


def _described(results: Results, game: str, early: list[float], late: list[float]) -> str:
    betas = ", ".join(f"{v.beta:g}" for v in _fixed(results))
    first, last = (", ".join(map(short, values)) for values in (early, late))
    return (
        f"{game}, mean training score for β = {betas}: first quarter {first}, last quarter {last}."
    )


def beta_on(results: Results, game: str) -> Verdict:
    """Appendix, on one of its two games: what the text says of it."""
    if game == "Asterix":
        claim = (
            "“We observe for Asterix how a higher β […] slows down learning in the beginning, but "
            "eventually leads to a much higher performance” (app:atari-mixt, fig:beta)."
        )
    else:
        claim = (
            "“a high β […] can damage Zaxxon if too close to 1” (app:atari-mixt, fig:beta). The "
            "caption of the figure says that a higher β “allows for a higher final performance”, "
            "of both games; the text is judged."
        )
    found = _quarters(results, game)
    if found is None:
        return Verdict(claim, f"Two fixed values of β have not ended on {game}.", None)
    early, late = found
    if game == "Asterix":
        holds = early[-1] < early[0] and late[-1] > late[0]
        rule = "Judged: the highest β against the lowest."
    else:
        holds = late[-1] < max(late[:-1])
        rule = "Judged: in the last quarter the highest β is below the best of the others."
    seen = f"{_described(results, game, early, late)} {rule} Protocol: {results.protocol}"
    return Verdict(claim, seen, holds)


def beta_elsewhere(results: Results) -> Finding | None:
    """The games on which the paper says nothing of β."""
    paper = BETA_GAMES if results.suite == "Atari" else ()
    found = {g: _quarters(results, g) for g in results.games if g not in paper}
    known = {game: both for game, both in found.items() if both is not None}
    if not known:
        return None
    betas = [v.beta for v in _fixed(results)]
    best = ", ".join(f"{g} {betas[late.index(max(late))]:g}" for g, (_, late) in known.items())
    parts = " ".join(_described(results, game, *both) for game, both in known.items())
    return Finding(
        "A fixed β on games of which the paper states nothing. It “observed in general that there "
        "was an optimal β per game, that could be quite different from game to game” "
        "(app:atari-mixt).",
        f"{parts} The β with the highest last quarter: {best}. Protocol: {results.protocol}",
    )
