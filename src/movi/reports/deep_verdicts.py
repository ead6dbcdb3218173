"""The paper's claims about deep agents, each judged by a pure function of the results.

The paper's claims are about 20 Atari games. They are judged on whatever environments the results
have, and each verdict says which.
"""

from movi.reports.bars import interval, percent
from movi.reports.deep import MOMENTUM, Results
from movi.reports.statistics import Comparison, Estimate, mean_and_deviation
from movi.reports.verdicts import Verdict

CLAIMS = {
    MOMENTUM: (
        True,
        "outperforms DQN (Section 7.2: on 16 of 20 Atari games, by 45 % on average)",
    ),
    "deep-sql": (False, "underperforms DQN on most games (Section 7.2)"),
    "deep-dpp": (False, "underperforms DQN on most games, as its values diverge (Section 7.2)"),
}
"""By algorithm: whether the paper finds it better, and in its words."""


def improves(results: Results, label: str) -> Verdict | None:
    """Section 7.2: an algorithm against DQN; None if the paper does not compare the two.

    Better is: on more than half of the games, and on average with an interval above 0. Worse is the
    same the other way round. An interval around 0, or none, decides nothing; nor does a single
    game, as the claims are about most of many.
    """
    variant = results.variant(label)
    if variant.algorithm not in CLAIMS:
        return None
    better, words = CLAIMS[variant.algorithm]
    claim = f"{variant.style.label} {words}; judged here on {_where(results)}."
    comparison = results.comparisons.get(label)
    if comparison is None:
        return Verdict(claim, _nothing(results, label), None)
    seen = summary(results, label, comparison)
    mean = comparison.mean
    if mean.low is None or mean.high is None:
        return Verdict(claim, f"{seen} A single run of either decides nothing.", None)
    if mean.low <= 0 <= mean.high:
        return Verdict(claim, f"{seen} The interval contains 0.", None)
    games = len(comparison.games)
    if games == 1:
        return Verdict(claim, f"{seen} One game decides nothing about most games.", None)
    won = comparison.improved.value > games / 2 and mean.low > 0
    lost = comparison.improved.value < games / 2 and mean.high < 0
    return Verdict(claim, seen, won if better else lost)


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
    name, baseline = results.variant(label).style.label, results.baseline_of(label)
    improved = f"{comparison.improved.value:.0f} of {games}"
    text = (
        f"{name} outperforms {baseline} on {improved} {'game' if games == 1 else 'games'}, "
        f"mean improvement {bracketed(comparison.mean)}"
    )
    if games > 1:
        text += f", median {bracketed(comparison.median)}"
    text += (
        f"; interquartile mean {bracketed(comparison.iqm)}, probability of improvement "
        f"{probability(comparison.probability)}."
    )
    if diverged:
        text += f" {diverged} of its {runs} runs diverged."
    if unfinished:
        text += f" {unfinished} of its {runs} runs are not finished and not counted."
    if comparison.undefined:
        text += f" Without {', '.join(comparison.undefined)}, where {baseline} has area 0."
    return f"{text} Protocol: {results.protocol}"


def bracketed(estimate: Estimate) -> str:
    """A share with its interval."""
    return f"{percent(estimate.value)} {interval(estimate)}".strip()


def probability(estimate: Estimate) -> str:
    """A probability with its interval."""
    text = f"{estimate.value:.2f}"
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{estimate.low:.2f}, {estimate.high:.2f}]"


def beta_slows_then_helps(results: Results) -> Verdict:
    """Appendix: "a higher β slows learning in the beginning but allows for a higher final one"."""
    claim = (
        "With a fixed β, a higher one slows learning in the beginning and allows for a higher "
        "final performance (appendix, on Asterix and Zaxxon)."
    )
    constant = [v for v in results.variants if v.algorithm == MOMENTUM and v.beta is not None]
    constant.sort(key=lambda v: v.beta or 0.0)
    if len(constant) < 2:
        return Verdict(claim, "The results have fewer than two fixed values of β.", None)
    parts, holds = [], []
    for game in results.games:
        cells = [results.cells.get((game, v.label)) for v in constant]
        ended = [cell for cell in cells if cell is not None and cell.ended.any()]
        if len(ended) < len(constant):
            continue
        means = [mean_and_deviation(cell.scores[cell.ended])[0] for cell in ended]
        quarter = max(1, means[0].size // 4)
        early = [float(mean[:quarter].mean()) for mean in means]
        late = [float(mean[-quarter:].mean()) for mean in means]
        holds.append(early[-1] < early[0] and late[-1] > late[0])
        parts.append(f"{game}: first quarter {_list(early)}, last quarter {_list(late)}")
    if not holds:
        return Verdict(claim, "There is no game on which all of them have ended.", None)
    betas = ", ".join(f"{v.beta:g}" for v in constant)
    seen = (
        f"Mean training score for β = {betas}, in this order. {'; '.join(parts)}. "
        f"The claim, for the highest against the lowest, holds on {sum(holds)} of {len(holds)} "
        f"games. Protocol: {results.protocol}"
    )
    return Verdict(claim, seen, all(holds))


def _list(values: list[float]) -> str:
    return ", ".join(f"{float(f'{value:.4g}'):,g}" for value in values)
