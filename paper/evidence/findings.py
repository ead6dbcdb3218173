"""What the plan asks beside the paper's claims: described with intervals, and not judged.

What two networks do and what the average adds, and momentum in agents for which the paper
announces it and claims nothing.
"""

from collections.abc import Iterator

from momentum_rl.report.results import BASELINE, game_of, suite_of
from momentum_rl.report.style import short
from paper.evidence.claims import (
    BETA_GAMES,
    MOMENTUM,
    around,
    by_beta,
    missing,
    told,
    verdicts,
)
from paper.evidence.gathered import MAIN, Contrast, Evidence, Group
from paper.verdict import Finding, Verdict

DECOUPLED, DOUBLE = "momentum-dqn β=0", "double-dqn"
CONTRASTS = (
    ("munchausen-dqn", BASELINE, "Munchausen-DQN over DQN"),
    (DECOUPLED, BASELINE, "Momentum-DQN with β = 0 (decoupled, no average) over DQN"),
    (MOMENTUM, DECOUPLED, "Momentum-DQN over Momentum-DQN with β = 0 (what the average adds)"),
    (DOUBLE, BASELINE, "Double DQN over DQN"),
    (MOMENTUM, DOUBLE, "Momentum-DQN over Double DQN"),
    ("c51", BASELINE, "C51 over DQN"),
    ("momentum-c51", "c51", "Momentum-C51 over C51"),
    ("momentum-c51", MOMENTUM, "Momentum-C51 over Momentum-DQN"),
)
"""Beside the claims, by the claims' protocol and score: label, over, in words."""
OPTIMISER: Group = ("MinAtar", "minatar")
SAC: tuple[Group, ...] = (("gymnax", "sac"), ("Gymnasium", "sac"))
SAC_CONTRASTS = (
    ("momentum-sac", "sac", "Momentum-SAC over SAC"),
    ("momentum-sac (regularised)", "momentum-sac", "Regularised Momentum-SAC over plain"),
)
GOOD_ENDS = {"sac": ("sac", "SAC", -200.0, 0), "c51": ("c51-cleanrl", "C51", 475.0, 1)}
"""By label: the protocol, the name, what a seed's mean return at the end must be at least to be
that of the published algorithm, and how many seeds may miss it."""


def everything(evidence: Evidence) -> tuple[Verdict | Finding, ...]:
    """All that the plan asks, in its order."""
    return (*verdicts(evidence), *(one for one in _others(evidence) if one is not None))


def _others(evidence: Evidence) -> Iterator[Finding | None]:
    for label, over, name in CONTRASTS:
        yield described(evidence.contrast(label, over), name)
    yield beta_elsewhere(evidence)
    name = "Momentum-DQN over DQN with RMSProp and the Huber loss (preset minatar)"
    yield described(evidence.contrast(MOMENTUM, BASELINE, group=OPTIMISER), name)
    yield from ends_well(evidence)
    for group in SAC:
        games = dict.fromkeys(game for game, _ in evidence.seeds.get(group, {}))
        for game in games:
            for label, over, name in SAC_CONTRASTS:
                contrast = evidence.contrast(
                    label, over, score="training", group=group, games=[game]
                )
                yield described(contrast, name)


def beta_elsewhere(evidence: Evidence) -> Finding:
    """A fixed β on the plan's other game: the paper states nothing of it."""
    game = BETA_GAMES[1]
    seen, decided, waiting = by_beta(evidence, game)
    word = {True: "seen as on Asterix", False: "the other way round", None: "not decided"}
    rule = f"Not decided yet, {waiting}" if waiting else f"By C8's rule: {word[decided]}"
    return Finding(
        f"A fixed β on MinAtar's {game}. The paper has a sentence on Asterix (C8) and finds “an "
        "optimal β per game, that could be quite different from game to game” (app:atari-mixt).",
        f"{rule}. {seen}",
    )


def described(contrast: Contrast, name: str) -> Finding | None:
    """None if the plan does not have the two on a game."""
    if not contrast.games:
        return None
    about = f"{name}, on {', '.join(contrast.games)}, by the {contrast.score} score."
    if not contrast.is_complete or contrast.comparison is None:
        return Finding(about, f"Not decided yet, {missing(contrast)}. {told(contrast)}")
    return Finding(about, f"{said_of(contrast)}. {told(contrast)}")


def said_of(contrast: Contrast) -> str:
    """A complete contrast in the plan's words."""
    assert contrast.comparison is not None
    mean = contrast.comparison.mean
    return "Open" if around(mean, 0) else "Helps" if mean.value > 0 else "Harms"


def ends_well(evidence: Evidence) -> Iterator[Finding]:
    """Whether ours is the published algorithm where a score at the end says so, seed by seed."""
    for score in evidence.plan.published:
        if suite_of(score.env) == MAIN[0] or score.label not in GOOD_ENDS:
            continue
        protocol, name, good_from, may_miss = GOOD_ENDS[score.label]
        group, game = (suite_of(score.env), protocol), game_of(score.env)
        cell, ended, planned = evidence.counted(game, score.label, "training", group)
        enough = planned - may_miss
        every = "every seed" if not may_miss else f"{enough} of {planned} seeds"
        about = (
            f"Is our {name} the published {name} on {score.env}? The mean return of 100 episodes "
            f"at the end, seed by seed, beside {short(score.score)} ({score.source}); at least "
            f"{short(good_from)} in {every} counts as the same."
        )
        if cell is None or ended < planned:
            yield Finding(about, f"Not decided yet, {ended} of {planned} runs.")
            continue
        good = sum(contrast >= good_from for contrast in cell.evaluations)
        same = "The same" if good >= enough else "Not the same"
        each = ", ".join(short(contrast) for contrast in cell.evaluations)
        yield Finding(about, f"{same}: {good} of {planned} seeds. The returns: {each}.")
