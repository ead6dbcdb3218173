"""The numbers of docs/evidence.md, worked out again from the files of the committed runs alone.

`make evidence` runs it. With json and NumPy, and by the words of paper/evidence/PLAN.md: nothing of
the report is used. Where the page says that runs are missing, the files must say so too, and what
it has is compared all the same.
"""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from scipy.stats import t as student

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "paper" / "evidence"
PAGE, README = ROOT / "docs" / "evidence.md", ROOT / "README.md"
LIMITED = ", one protocol, its baseline diverges"
"""What no verdict of the first plan is without."""
GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
TWO = ("Breakout", "Asterix")
PENDULUM = "gymnax-Pendulum-v1"
FIVE = {PENDULUM: "8-sac", "Pendulum-v1": "13-pendulum", "CartPole-v1": "12-cartpole"}
"""By folder: the matrices of other environments that have five seeds."""
MATRICES = {
    "dqn": "1-momentum",
    "momentum-dqn": "1-momentum",
    "deep-sql": "2-speedy",
    "deep-dpp": "2-speedy",
    "munchausen-dqn": "3-munchausen",
    "momentum-dqn-heuristic": "4-beta",
    "momentum-dqn-beta-0": "11-decoupling",
    "double-dqn": "11-decoupling",
    "momentum-dqn-beta-0.1": "4-beta",
    "momentum-dqn-beta-0.5": "4-beta",
    "momentum-dqn-beta-0.9": "4-beta",
    "c51": "10-distributional",
    "momentum-c51": "10-distributional",
}
SCORES = {"greedy": ("evaluations.jsonl", "mean"), "training": ("metrics.jsonl", "score")}
POINTS = 20
"""Of every curve that is compared, by either score."""
SHARE = r"([+−]?)(\d[\d,]*(?:\.(\d+))?) %"


def block_of(name):
    """What stands in a block of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return re.search(rf"<!-- evidence:{name} -->\n(.*?)<!-- /evidence -->", text, re.DOTALL)[1]


def rows_of(name):
    """The rows of the table in a block of the page, as lists of cells."""
    lines = [line for line in block_of(name).splitlines()[2:] if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def judged(verdict):
    """A verdict without what it is not without."""
    assert verdict.endswith(LIMITED)
    return verdict.removesuffix(LIMITED)


def row_that_begins(name, begin):
    """The one row of a block that begins so."""
    (row,) = [row for row in rows_of(name) if row[0].startswith(begin)]
    return row


def is_share(said, value):
    """Whether a share is what the page prints of it: right to half of its last digit."""
    sign, digits, decimals = re.fullmatch(SHARE, said).groups()
    number = (-1 if sign == "−" else 1) * float(digits.replace(",", ""))
    return abs(number - 100 * value) <= 0.5 * 10 ** -len(decimals or "") + 1e-9


def is_short(said, value):
    """The same of a number with four significant digits."""
    half = 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return abs(float(said.replace(",", "").replace("−", "-")) - value) <= half * (1 + 1e-9)


def folders(env, label):
    """The runs that the plan has of an algorithm, by seed, whether or not they are there."""
    if env in FIVE:
        places = [(FIVE[env], seed) for seed in range(5)]
    elif env in ("Hopper-v5", "HalfCheetah-v5"):
        places = [("9-mujoco", seed) for seed in range(2)]
    else:
        places = [(MATRICES[label], seed) for seed in range(3)]
    folder = env if env in FIVE or env.endswith("-v5") else f"MinAtar-{env}"
    return [EVIDENCE / "runs" / m / "runs" / folder / label / f"seed-{s}" for m, s in places]


def has_ended(run):
    if not (run / "status.json").exists():
        return False
    status = json.loads((run / "status.json").read_text())["status"]
    assert status == "finished", f"{run}: what a {status} run counts is not worked out here"
    return True


def ended_of(env, *labels):
    """How many runs of these have ended, and how many are planned."""
    there = [has_ended(run) for label in labels for run in folders(env, label)]
    return sum(there), len(there)


def curve(run, score):
    """The 20 scores of a run; without a score the last one stands, before any the first."""
    file, column = SCORES[score]
    rows = [json.loads(line) for line in (run / file).read_text().splitlines()]
    last = json.loads((run / "status.json").read_text())["step"]
    assert [row["step"] * POINTS for row in rows] == [last * (i + 1) for i in range(POINTS)]
    if score == "greedy":
        assert all(row["mean"] == pytest.approx(np.mean(row["returns"])) for row in rows)
    values = [row[column] for row in rows]
    held = next(value for value in values if value is not None)
    filled = []
    for value in values:
        held = held if value is None else value
        filled.append(held)
    return np.array(filled)


def curves(env, label, score="greedy"):
    """[seeds, 20]"""
    return np.stack([curve(run, score) for run in folders(env, label)])


def at_the_end(env, label):
    """By seed: the mean return of the 100 episodes at the end."""
    means = []
    for run in folders(env, label):
        found = json.loads((run / "evaluation.json").read_text())
        assert len(found["returns"]) == found["episodes"] == 100
        assert found["mean"] == pytest.approx(np.mean(found["returns"]))
        means.append(found["mean"])
    return np.array(means)


def interval(text):
    """The signs of the ends of the first interval of a text; 0 of one that is rounded to it."""
    ends = re.search(rf"\[{SHARE}, {SHARE}\]", text).groups()
    signs = [{"+": 1, "−": -1, "": 0}[sign] for sign in (ends[0], ends[3])]
    assert signs[0] <= signs[1]
    return signs


def compare_contrast(name, label, over, envs, score):
    """Compares a row of the improvements with the files; the mean and the probability it has."""
    (row,) = [row for row in rows_of(score) if row[0] == name]
    gains, chances = [], []
    for env, text in zip(GAMES, row[1:6], strict=True):
        if env not in envs or not is_all_there([env], label, over):
            assert text == "", (name, env)
            continue
        ours, theirs = (curves(env, own, score).mean(1) for own in (label, over))
        gains.append((ours.mean() - theirs.mean()) / abs(theirs.mean()))
        chances.append(np.mean([(x > y) + (x == y) / 2 for x in ours for y in theirs]))
        assert is_share(gain_of(text), gains[-1]), (env, text, gains[-1])
    mean, probability = row[6:]
    if len(gains) < len(envs):
        assert (mean, probability) == ("", "")
        return mean, probability
    assert is_share(gain_of(mean), np.mean(gains)), (mean, np.mean(gains))
    assert float(probability.split()[0]) == pytest.approx(np.mean(chances), abs=0.005 + 1e-9)
    return mean, probability


def is_all_there(envs, *labels):
    return all(len({*ended_of(env, *labels)}) == 1 for env in envs)


CONTRASTS = [
    ("Momentum-DQN over DQN", "momentum-dqn", "dqn", GAMES),
    ("Deep SQL over DQN", "deep-sql", "dqn", GAMES),
    ("Deep DPP over DQN", "deep-dpp", "dqn", GAMES),
    (
        "Momentum-DQN (heuristic) over Momentum-DQN",
        "momentum-dqn-heuristic",
        "momentum-dqn",
        TWO,
    ),
    ("Munchausen-DQN over DQN", "munchausen-dqn", "dqn", GAMES),
    ("Momentum-DQN β=0 over DQN", "momentum-dqn-beta-0", "dqn", GAMES),
    ("Momentum-DQN over Momentum-DQN β=0", "momentum-dqn", "momentum-dqn-beta-0", GAMES),
    ("Double DQN over DQN", "double-dqn", "dqn", GAMES),
    ("Momentum-DQN over Double DQN", "momentum-dqn", "double-dqn", GAMES),
    ("C51 over DQN", "c51", "dqn", TWO),
    ("Momentum-C51 over C51", "momentum-c51", "c51", TWO),
    ("Momentum-C51 over Momentum-DQN", "momentum-c51", "momentum-dqn", TWO),
]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    ("name", "label", "over", "envs"), CONTRASTS, ids=[c[0] for c in CONTRASTS]
)
def test_the_improvements_are_those_of_the_files(name, label, over, envs, score):
    assert len(rows_of(score)) == len(CONTRASTS)
    compare_contrast(name, label, over, envs, score)


def test_what_momentum_makes_of_sac_is_what_the_files_say():
    places = [
        ("Pendulum-v1 (gymnax)", PENDULUM),
        ("Hopper-v5 (Gymnasium)", "Hopper-v5"),
        ("HalfCheetah-v5 (Gymnasium)", "HalfCheetah-v5"),
    ]
    pairs = [("momentum-sac", "sac"), ("momentum-sac-regularised", "momentum-sac")]
    for (name, *said), (where, env) in zip(rows_of("sac"), places, strict=True):
        assert name == where
        for text, (label, over) in zip(said, pairs, strict=True):
            if not is_all_there([env], label, over):
                assert text == ""
                continue
            ours, theirs = (curves(env, own, "training").mean() for own in (label, over))
            assert is_share(gain_of(text), (ours - theirs) / abs(theirs))
        assert said[0]


@pytest.mark.parametrize(
    ("name", "env", "label", "least", "enough"),
    [
        ("SAC", PENDULUM, "sac", -200, 5),
        ("SAC", "Pendulum-v1", "sac", -200, 5),
        ("C51", "CartPole-v1", "c51", 475, 4),
    ],
    ids=["SAC fused", "SAC host", "C51"],
)
def test_the_returns_at_the_ends_are_those_of_the_files(name, env, label, least, enough):
    where = env.replace("gymnax-", "gymnax/")
    ((*_, rule, returns, same),) = [r for r in rows_of("ends") if r[:2] == [where, name]]
    assert rule == f"{least} in {enough} of 5 seeds"
    ended, planned = ended_of(env, label)
    assert planned == 5
    if ended < planned:
        assert (returns.startswith(f"{ended} of 5 runs"), same) == (True, "")
        return
    ours = at_the_end(env, label)
    said = returns.split(", ")
    assert len(said) == 5
    assert all(map(is_short, said, ours)), (said, ours)
    assert same == ("yes" if (ours >= least).sum() >= enough else "no")


@pytest.mark.parametrize(
    ("begin", "middle", "name", "label"),
    [
        ("C6. ", "Momentum-DQN outperforms DQN", "Momentum-DQN", "momentum-dqn"),
        ("C7. ", "Deep SQL does not improve on DQN", "Deep SQL", "deep-sql"),
        ("C7. ", "Deep DPP does not improve on DQN", "Deep DPP", "deep-dpp"),
        ("C7. Deep DPP: ", "fails", "Deep DPP", "deep-dpp"),
    ],
    ids=["C6", "C7 Deep SQL", "C7 Deep DPP", "C7 Deep DPP fails"],
)
def test_the_claims_have_the_improvements_of_the_files(begin, middle, name, label):
    rows = [row for row in rows_of("verdicts") if row[0].startswith(begin) and middle in row[0]]
    ((_, seen, verdict),) = rows
    verdict = judged(verdict)
    mean, probability = compare_contrast(f"{name} over DQN", label, "dqn", GAMES, "greedy")
    if not is_all_there(GAMES, label, "dqn"):
        assert verdict.startswith("Not decided yet, ")
        return
    assert f"mean improvement {mean}; probability of improvement {probability}." in seen
    low, high = interval(mean)
    if 0 in (low, high):
        return  # rounded, it says nothing
    if begin == "C6. ":
        expected = "Confirmed" if low > 0 else "Contradicted" if high < 0 else "Not decided"
    elif middle != "fails":
        expected = "Confirmed" if high < 0 else "Contradicted" if low > 0 else "Not decided"
    else:  # the interval below −50 %; none of these runs diverged, or ended_of had complained
        assert seen.startswith("0 of its runs diverged. ")
        above = re.search(rf"{SHARE} \[{SHARE}, {SHARE}\]", mean).groups()[-3:]
        if above[:2] == ("−", "50"):
            return  # rounded, it says nothing
        below = above[0] == "−" and float(above[1]) > 50
        expected = "Confirmed" if below else "Not confirmed"
    assert verdict == expected


@pytest.mark.parametrize("game", ["Asterix", "Breakout"])
def test_the_quarters_by_beta_are_those_of_the_files(game):
    labels = [f"momentum-dqn-beta-{beta}" for beta in ("0.1", "0.5", "0.9")]
    _, seen, verdict = row_that_begins("verdicts", "C8. ")
    ended, planned = ended_of(game, *labels)
    assert planned == 9
    rows = [row[1:] for row in rows_of("beta") if row[0] == game]
    if ended < planned:
        assert rows == []
        return
    scores = [curves(game, label) for label in labels]
    words = []
    for row, when, part in zip(rows, ("first", "last"), (slice(0, 5), slice(15, 20)), strict=True):
        by_seed = [own[:, part].mean(1) for own in scores]
        quarter, *said, error, word = row
        assert quarter == when
        assert all(map(is_short, said, map(np.mean, by_seed))), (said, by_seed)
        # Of a difference of two means of three: the mean of the variances, by 1/3 + 1/3.
        pooled = math.sqrt((by_seed[0].var(ddof=1) + by_seed[2].var(ddof=1)) / 2 * 2 / 3)
        assert is_short(error, pooled), (error, pooled)
        change = by_seed[2].mean() - by_seed[0].mean()
        expected = "rises" if change > pooled else "falls" if change < -pooled else "stays"
        assert word.removesuffix(" within the error") == expected
        words.append(word)
    opposite = words[0] == "rises" or words[1] == "falls"
    if game == "Asterix":
        assert seen.endswith(f"the first quarter {words[0]} and the last quarter {words[1]}.")
        confirmed = words == ["falls", "rises"]
        expected = "Confirmed" if confirmed else "Contradicted" if opposite else "Not decided"
        assert judged(verdict) == expected
    else:  # the paper says nothing of it
        text = PAGE.read_text(encoding="utf-8")
        assert "the same rule finds the opposite: with β the first quarter rises." in text
        assert opposite
        assert words[0] == "rises"


def test_the_heuristic_is_judged_by_the_files():
    _, seen, verdict = row_that_begins("verdicts", "C9. ")
    verdict = judged(verdict)
    pair = "momentum-dqn-heuristic", "momentum-dqn"
    name = "Momentum-DQN (heuristic) over Momentum-DQN"
    mean, _ = compare_contrast(name, *pair, TWO, "greedy")
    if not is_all_there(TWO, *pair):
        assert verdict.startswith("Not decided yet, ")
        return
    assert f"mean improvement {mean};" in seen
    ends = re.search(rf"{SHARE} \[{SHARE}, {SHARE}\]", mean).groups()[3:]
    low, high = (
        (-1 if sign == "−" else 1) * float(digits) for sign, digits in (ends[:2], ends[3:5])
    )
    if 0 in (low, high) or 25 in (abs(low), abs(high)):
        return  # rounded, it says nothing
    around = low < 0 < high
    within = low > -25 and high < 25
    assert verdict == ("Contradicted" if not around else "Confirmed" if within else "Not decided")


def test_below_dqn_is_not_beyond_chance_by_the_greedy_score():
    """Welch's test, worked out: the difference over the root of the sum of variances over n."""
    text = PAGE.read_text(encoding="utf-8")
    assert "On Breakout and Freeway Momentum-DQN's mean is below DQN's." in text
    assert "which decides (p > 0.15); by the training score Breakout's is not (p < 0.001)." in text
    below = {}
    for score in SCORES:
        for game in GAMES:
            ours, theirs = (curves(game, own, score).mean(1) for own in ("momentum-dqn", "dqn"))
            parts = [own.var(ddof=1) / own.size for own in (ours, theirs)]
            degrees = sum(parts) ** 2 / sum(part**2 / 2 for part in parts)
            distance = abs(ours.mean() - theirs.mean()) / math.sqrt(sum(parts))
            if ours.mean() < theirs.mean():
                below[score, game] = 2 * student.sf(distance, degrees)
    assert [game for score, game in below if score == "greedy"] == ["Breakout", "Freeway"]
    assert min(below["greedy", "Breakout"], below["greedy", "Freeway"]) > 0.15
    assert below["training", "Breakout"] < 0.001


@pytest.mark.parametrize("score", SCORES)
def test_the_pairs_are_counted_from_the_files(score):
    (row,) = [row for row in rows_of("pairs") if row[0] == f"{score} score"]
    counted = []
    for game in GAMES:
        ours, theirs = (
            curves(game, label, score).mean(1) for label in ("momentum-dqn", "momentum-dqn-beta-0")
        )
        counted.append(sum(x > y for x, y in zip(ours, theirs)))
    assert row[1:] == [*(f"{count} of 3" for count in counted), f"{sum(counted)} of 15"]
    assert score == "greedy" or row[-1] == "14 of 15"


def test_the_gain_over_dqn_follows_how_far_its_values_are_above():
    """Ranks over the five games, as the page says: a Spearman correlation of 0.9 or more."""
    above, gains = [], []
    for game, _, dqn, _, _, momentum in rows_of("values"):
        above.append(float(dqn) / float(momentum))
        gains.append(curves(game, "momentum-dqn").mean() / curves(game, "dqn").mean())
    assert spearmanr(above, gains).statistic >= 0.9 - 1e-9


@pytest.mark.parametrize("page", [PAGE, README], ids=lambda page: page.name)
def test_the_answer_is_that_of_the_files(page):
    text = re.search(r"<!-- evidence:answer -->\n(.*?)<!--", page.read_text(), re.DOTALL)[1]
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    first, second = "`minatar-published`", "`minatar`"
    expected = [
        (first, "DQN", "1-momentum", "dqn"),
        (first, "Momentum-DQN β=0", "11-decoupling", "momentum-dqn-beta-0"),
        (first, "Momentum-DQN", "1-momentum", "momentum-dqn"),
        (first, "Munchausen-DQN", "3-munchausen", "munchausen-dqn"),
        (second, "DQN", "6-optimiser", "dqn"),
        (second, "Momentum-DQN", "6-optimiser", "momentum-dqn"),
    ]
    for row, (preset, name, matrix, label) in zip(rows, expected, strict=True):
        games = GAMES if preset == first else ("Asterix",)
        base = "1-momentum" if preset == first else matrix
        assert row[:2] == [preset, name]
        ours, theirs = (areas_of(m, own, games) for m, own in ((matrix, label), (base, "dqn")))
        if label == "dqn":
            assert row[2:4] == ["", ""]
        else:
            assert is_share(gain_of(row[2]), np.mean(ours.mean(1) / theirs.mean(1) - 1))
            assert row[3] == f"{sum(ours.min(1) > theirs.max(1))} of {len(games)} games"
        assert is_short(row[4], ours[0].mean())
        largest = []
        for seed in range(3):
            run = EVIDENCE / "runs" / matrix / "runs" / "MinAtar-Asterix" / label / f"seed-{seed}"
            lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
            largest.append(max(line["mean_q"] or 0.0 for line in lines))
            assert json.loads((run / "config.json").read_text())["gamma"] == 0.99
        assert is_short(row[5], np.mean(largest))
    # What the words beside the table say of it.
    dqn, beta_0, momentum, munchausen, healthy, fails = rows
    assert float(dqn[5]) > 1 / (1 - 0.99)
    assert beta_0[3] == momentum[3] == "3 of 5 games"
    gains = [float(gain_of(row[2]).strip("+ %")) for row in (beta_0, momentum, munchausen)]
    assert gains == sorted(gains)
    assert float(fails[4]) < 1 < float(dqn[4]) < float(healthy[4])


def areas_of(matrix, label, games):
    """[games, seeds]: greedy areas."""
    folder = EVIDENCE / "runs" / matrix / "runs"
    runs = [[folder / f"MinAtar-{g}" / label / f"seed-{s}" for s in range(3)] for g in games]
    return np.array([[curve(run, "greedy").mean() for run in own] for own in runs])


def gain_of(text):
    """The share that a cell begins with."""
    return text.partition(" [")[0]


def test_episodes_that_were_cut_are_counted_from_the_files():
    text = PAGE.read_text(encoding="utf-8")
    said = re.search(r"cut: (\S+) of (\S+) greedy episodes of Deep DPP on Seaquest, and none", text)
    by_label = {}
    for run in (EVIDENCE / "runs").glob("*/runs/MinAtar-*/*/*"):
        rows = [json.loads(x) for x in (run / "evaluations.jsonl").read_text().splitlines()]
        lengths = by_label.setdefault(run.parts[-3:-1], [])
        lengths += [length for row in rows for length in row["lengths"]]
    counts = {key: sum(n >= 100_000 for n in lengths) for key, lengths in by_label.items()}
    deep_dpp = ("MinAtar-Seaquest", "deep-dpp")
    assert [key for key, cut in counts.items() if cut] == [deep_dpp]
    expected = counts[deep_dpp], len(by_label[deep_dpp])
    assert tuple(int(n.replace(",", "")) for n in said.groups()) == expected


def test_the_support_of_c51_was_wide_enough():
    text = PAGE.read_text(encoding="utf-8")
    (runs,) = re.findall(r"wide enough: in none of the (\d+) runs was any probability", text)
    there = [*(EVIDENCE / "runs" / "10-distributional").glob("runs/*/*/*/metrics.jsonl")]
    assert len(there) == int(runs)
    rows = [json.loads(line) for file in there for line in file.read_text().splitlines()]
    assert max(row["clipped_q"] or 0.0 for row in rows) == 0


def test_neither_is_shown_to_harm_on_freeway():
    assert "It is not decided: both intervals contain 0." in PAGE.read_text(encoding="utf-8")
    freeway = 1 + GAMES.index("Freeway")
    for name in ("Momentum-DQN β=0 over DQN", "Momentum-DQN over Momentum-DQN β=0"):
        assert interval(row_that_begins("greedy", name)[freeway]) == [-1, 1]


def test_what_the_average_adds_is_open_by_one_score_and_just_above_zero_by_the_other():
    text = PAGE.read_text(encoding="utf-8")
    assert "open by the greedy score, which decides; by the training score its interval" in text
    row = "Momentum-DQN over Momentum-DQN β=0"
    assert interval(row_that_begins("greedy", row)[6]) == [-1, 1]
    ends = re.search(rf"\[{SHARE}, {SHARE}\]", row_that_begins("training", row)[6]).groups()
    assert ends[0] == "+"
    assert float(ends[1]) < 1


def test_the_values_beside_the_scores_are_those_of_the_metrics():
    """Each run's largest mean of Q, its best greedy score; both averaged over seeds."""
    labels = ("dqn", "double-dqn", "momentum-dqn-beta-0", "momentum-dqn")
    rows = rows_of("values")
    assert [row[0] for row in rows] == [*GAMES]
    for game, best, *said in rows:
        assert is_short(best, curves(game, "dqn").max(1).mean())
        for label, text in zip(labels, said, strict=True):
            if not is_all_there([game], label):
                assert text == ""
                continue
            largest = []
            for run in folders(game, label):
                lines = (run / "metrics.jsonl").read_text().splitlines()
                largest.append(max(json.loads(line)["mean_q"] or 0.0 for line in lines))
            assert is_short(text, np.mean(largest)), (game, label)


def last_tenth(rows):
    """Game by game: the mean of the last tenth of those of 10,000,000 steps, whose last 9,000,000
    have ninety times as many as the last 100,000."""
    games = [row["score"] for row in rows for _ in range(row["episodes"])]
    window = (len(games) + 90 * sum(row["episodes"] for row in rows[-2:])) / 10
    return np.mean(games[-round(window) :])


def test_the_games_alongside_are_those_of_their_files():
    lines = [line.split(",") for line in (EVIDENCE / "published.csv").read_text().splitlines()]
    published = {
        env.removeprefix("MinAtar/"): x for env, label, _, x, *_ in lines if label == "dqn"
    }
    assert published.keys() == {*GAMES}
    for game, weights, theirs, each, mean, difference, explained in rows_of("alongside"):
        folder = {"ours": game, "PyTorch's": f"{game}-torch"}[weights]
        files = sorted((EVIDENCE / "alongside" / folder).glob("*.json"))
        assert theirs == published[game]
        assert len(files) == 3
        scores = [last_tenth(json.loads(file.read_text())["rows"]) for file in files]
        said = [float(one) for one in each.split(", ")]
        assert said == pytest.approx(scores, rel=0.006), (game, scores)
        assert float(mean) == pytest.approx(np.mean(scores), rel=0.006)
        gap = np.mean(scores) / float(theirs) - 1
        sign = -1 if difference.startswith("−") else 1
        assert sign * float(difference.strip("+−% ")) == pytest.approx(100 * gap, abs=0.6)
        assert explained == ("yes" if abs(gap) <= 0.25 else "no")


def test_the_agents_in_the_original_games_stand_beside_their_cards():
    record = json.loads((EVIDENCE / "original.json").read_text())
    zoo = EVIDENCE.parent / "zoo"
    assert {*record["returns"]} == {
        file.parent.relative_to(zoo).as_posix() for file in zoo.glob("*/*/card.json")
    }
    assert re.fullmatch("[0-9a-f]{40}", record["commit"])
    assert record["versions"]["MinAtar"]
    rows = {row[0]: row[1:] for row in rows_of("original")}
    for place, returns in record["returns"].items():
        ours, theirs, difference, errors = rows.pop(place.removeprefix("MinAtar-"))
        card = json.loads((zoo / place / "card.json").read_text())
        mean = sum(returns) / len(returns)
        # Of a mean: the square root of the variance over n.
        own = (sum((x - mean) ** 2 for x in returns) / (len(returns) - 1) / len(returns)) ** 0.5
        known = (card["interval"][1] - card["score"]) / 1.96
        assert ours == f"{card['score']:.2f} ± {known:.2f}"
        assert theirs == f"{mean:.2f} ± {own:.2f}"
        assert is_share(difference, mean / card["score"] - 1)
        z = (mean - card["score"]) / math.sqrt(own**2 + known**2)
        assert float(errors.replace("−", "-")) == pytest.approx(z, abs=0.06)
        assert abs(z) < 5  # another game, or another sticky share, is tens of errors away
    assert rows == {}


@pytest.mark.parametrize(
    ("said", "value"), [("+57 %", 0.5751), ("−14 %", 0.14), ("−8.7 %", -0.0876), ("+1,230 %", 12.2)]
)
def test_a_share_that_is_not_what_the_page_prints_is_seen(said, value):
    assert not is_share(said, value)


def test_shares_and_numbers_as_the_page_prints_them_are_read():
    pairs = [("+57 %", 0.5749), ("−14 %", -0.14), ("−8.7 %", -0.0874), ("0 %", 0), ("+101 %", 1.01)]
    assert all(is_share(*pair) for pair in pairs)
    assert is_short("6.523", 6.5233)
    assert is_short("1,206", 1206.4)
    assert not is_short("6.523", 6.5236)
    assert not is_short("-156.5", -156.56)
