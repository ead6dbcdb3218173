"""The paper's claims about deep agents, each judged by a pure function of the results.

The paper's claims are about 20 Atari games. They are judged on whatever environments the results
have, and each verdict says which. Elsewhere than on Atari, runs that could not decide a claim about
many games, because there is one environment, one run or nothing to compare with, are described.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from momentum_rl.report.chapters import chapter_of, learning_curves, probability
from momentum_rl.report.figure import Figure
from momentum_rl.report.intervals import bracketed
from momentum_rl.report.page import Chapter
from momentum_rl.report.results import BASELINE, Results, Series
from momentum_rl.report.statistics import Comparison, mean_and_deviation
from momentum_rl.report.style import short
from paper.verdict import Finding, Verdict, said

BETA = {
    "Asterix": "“We observe for Asterix how a higher β […] slows down learning in the beginning, "
    "but eventually leads to a much higher performance” (app:atari-mixt, fig:beta).",
    "Zaxxon": "“a high β […] can damage Zaxxon if too close to 1” (app:atari-mixt, fig:beta). The "
    "caption of the figure says that a higher β “allows for a higher final performance”, of both "
    "games; the text is judged.",
}
"""The games of the appendix's study of β, and what its text says of each."""
MOMENTUM, LARGE = "momentum-dqn", "SpaceInvaders"
"""The paper's algorithm, and the game that it shows large."""


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


def improves(results: Results, label: str) -> Verdict | Finding:
    """Section 7.2: an algorithm against DQN.

    Better is: on more than half of the games, and on average with an interval above 0. Worse is the
    same the other way round. An interval around 0, or none, decides nothing; nor does a single
    game, as the claims are about most of many. Deep SQL with Speedy Q-learning's own sign is not
    what the paper prints, and is described; so is what decides nothing outside Atari.
    """
    series = results.labelled(label)
    algorithm, sign = series.config.algorithm, getattr(series.config.options, "sign", None)
    comparison = results.comparisons.get(label)
    seen = _nothing(results, label) if comparison is None else summary(results, label, comparison)
    if sign == "sql":
        return Finding(
            f"Deep SQL with Speedy Q-learning's own sign, on {_where(results)}. The appendix "
            "prints the other one (app:atari-dsql), and the paper's statement on Deep SQL is "
            "judged with that one alone.",
            seen,
        )
    if results.suite != "Atari" and _too_little(results, comparison):
        return Finding(
            f"{series.style.label} and {results.baseline_of(label)} on {_where(results)}. The "
            "paper's statement is about 20 Atari games, and these runs are too few to judge it.",
            seen,
        )
    claim = f"{CLAIMS[algorithm].words}; judged here on {_where(results)}"
    if sign == "printed":
        claim += ", for Deep SQL with the sign that the appendix prints (app:atari-dsql)"
    claim += "."
    if comparison is None or comparison.mean.low is None or comparison.mean.high is None:
        return Verdict(claim, seen, None)
    mean, games = comparison.mean, len(comparison.games)
    if comparison.mean.low <= 0 <= comparison.mean.high:
        return Verdict(claim, f"{seen} The interval contains 0.", None)
    if games == 1:
        return Verdict(claim, f"{seen} One game decides nothing about most games.", None)
    won = comparison.improved.value > games / 2 and mean.value > 0
    lost = comparison.improved.value < games / 2 and mean.value < 0
    return Verdict(claim, seen, won if CLAIMS[algorithm].better else lost)


def _too_little(results: Results, comparison: Comparison | None) -> bool:
    """Whether there is one environment, a single run of something, or nothing to compare with."""
    return comparison is None or len(results.games) == 1 or not comparison.repeated


def _where(results: Results) -> str:
    if len(results.games) == 1:
        return f"{results.games[0]} alone"
    return f"{len(results.games)} {results.suite} environments"


def _nothing(results: Results, label: str) -> str:
    everything, _, unfinished = count(results, label)
    if unfinished:
        return f"{unfinished} of its {everything} runs are not finished."
    return "There is no DQN run with the same settings that has ended."


def summary(results: Results, label: str, comparison: Comparison) -> str:
    """A comparison in words, with its protocol."""
    games = len(comparison.games)
    runs, diverged, unfinished = count(results, label)
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
    return text


def remarks(results: Results) -> list[Verdict | Finding]:
    """Everything that is judged or described of some results.

    On β the paper's text states one thing of Asterix and another of Zaxxon (app:atari-mixt); the
    caption of its figure states the first of both. The text is judged; see docs/reading.md.
    """
    main = [
        series for series in results.series if series.config.algorithm in CLAIMS and is_main(series)
    ]
    sentences: list[Verdict | Finding] = [improves(results, series.label) for series in main]
    if any(not is_main(series) for series in results.series):
        judged = [g for g in BETA if results.suite == "Atari" and g in results.games]
        sentences += [beta_on(results, game) for game in judged]
    return sentences


def is_main(series: Series) -> bool:
    """Whether a series is not one that differs from Momentum-DQN in its schedule of β alone."""
    options = series.config.options
    schedule = getattr(options, "beta_schedule", "rate-updates")
    return series.config.algorithm != MOMENTUM or schedule == "rate-updates"


def chapter_on(results: Results, directory: Path) -> tuple[Chapter, list[Verdict | Finding]]:
    """The library's chapter on some results, with what the paper says of them."""
    chapter, sentences = chapter_of(results, directory), remarks(results)
    if not chapter.figures:
        return chapter, []
    drawn = (one_game(results), influence_of_beta(results))
    further = (figure for figure in drawn if figure is not None)
    return replace(chapter, parts=(said(sentences), *chapter.parts, *further)), sentences


def one_game(results: Results) -> Figure | None:
    """Section 7.2, "Scores obtained on SpaceInvaders by DQN and Momentum-DQN"."""
    shown = [series for series in results.series if series.label in (BASELINE, MOMENTUM)]
    if LARGE not in results.games or len(results.games) < 2 or len(shown) < 2:
        return None
    title = f"DQN and Momentum-DQN on {LARGE}"
    return learning_curves(results, "one-game", title, [LARGE], shown)


def influence_of_beta(results: Results) -> Figure | None:
    """Appendix, "Influence of β": Momentum-DQN with other schedules of β, and DQN."""
    others = [series for series in results.series if not is_main(series)]
    games = [
        g for g in results.games if any((g, series.label) in results.cells for series in others)
    ]
    main = [series for series in results.series if series.config.algorithm in (BASELINE, MOMENTUM)]
    shown = sorted(main, key=lambda series: (beta_of(series) is not None, beta_of(series) or 0.0))
    if not others:
        return None
    return learning_curves(results, "beta", "Influence of β", games, shown)


def beta_of(series: Series) -> float | None:
    """β, if it is constant."""
    options = series.config.options
    is_constant = getattr(options, "beta_schedule", None) == "constant"
    return getattr(options, "beta", None) if is_constant else None


def count(results: Results, label: str) -> tuple[int, int, int]:
    """Runs of a series: all, diverged, unfinished."""
    cells = [cell for (_, name), cell in results.cells.items() if name == label]
    unfinished = sum(int((~cell.ended).sum()) for cell in cells)
    return sum(c.ended.size for c in cells), sum(len(c.diverged) for c in cells), unfinished


def beta_on(results: Results, game: str) -> Verdict:
    """Appendix, on one of its two games: the first and the last quarter of the runs, by β."""
    momentum = [series for series in results.series if series.config.algorithm == MOMENTUM]
    fixed = sorted((beta, one.label) for one in momentum if (beta := beta_of(one)) is not None)
    cells = [results.cells.get((game, label)) for _, label in fixed]
    ended = [cell for cell in cells if cell is not None and cell.ended.any()]
    if len(ended) < max(2, len(cells)):
        return Verdict(BETA[game], f"Two fixed values of β have not ended on {game}.", None)
    means = [mean_and_deviation(cell.scores[cell.ended])[0] for cell in ended]
    quarter = max(1, means[0].size // 4)
    early = [float(mean[:quarter].mean()) for mean in means]
    late = [float(mean[-quarter:].mean()) for mean in means]
    if game == "Asterix":
        holds = early[-1] < early[0] and late[-1] > late[0]
        rule = "Judged: the highest β against the lowest."
    else:
        holds = late[-1] < max(late[:-1])
        rule = "Judged: in the last quarter the highest β is below the best of the others."
    betas = ", ".join(f"{beta:g}" for beta, _ in fixed)
    first, last = (", ".join(map(short, values)) for values in (early, late))
    seen = (
        f"{game}, mean training score for β = {betas}: first quarter {first}, last quarter {last}. "
        f"{rule}"
    )
    return Verdict(BETA[game], seen, holds)
