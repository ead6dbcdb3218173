"""The paper's sentences on deep agents, judged on made-up runs on twenty games."""

from pathlib import Path

import numpy as np
import pytest

from momentum_rl.report.results import Results
from momentum_rl.report.style import ALGORITHMS
from paper.claims.atari import (
    beta_on,
    improves,
    influence_of_beta,
    is_main,
    one_game,
    remarks,
)
from paper.claims.drawing import SCHEMES
from paper.verdict import Finding, Verdict
from tests.report import synthetic_runs as synthetic
from tests.report.synthetic_runs import GAMES
from tests.report.test_results import only


@pytest.fixture(scope="module")
def atari(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return only(synthetic.write_atari(tmp_path_factory.mktemp("atari")))


def test_verdicts_follow_from_the_data(atari: Results) -> None:
    for label, words in (
        ("momentum-dqn", "mean improvement +45 % [+"),
        ("deep-dpp", "60 of its 100 runs diverged"),
    ):
        verdict = improves(atari, label)
        assert isinstance(verdict, Verdict)
        assert verdict.confirmed is True
        assert words in verdict.seen
        assert "20 Atari environments" in verdict.claim
        assert "(Section 7.2, fig:auc" in verdict.claim


def test_deep_sql_is_judged_with_the_printed_sign_and_described_with_sqls(
    atari: Results, tmp_path: Path
) -> None:
    own = improves(atari, "deep-sql")
    assert isinstance(own, Finding)
    assert "Speedy Q-learning's own sign" in own.about
    assert "Deep SQL outperforms DQN on 5 of 20 games, mean improvement −31 % [−" in own.seen
    synthetic.write_atari(tmp_path, games=GAMES[:4], seeds=3)
    for game in GAMES[:4]:
        for seed in range(3):
            config = synthetic.atari_config("deep-sql", game, seed).replace(sign="printed")
            scores = synthetic.scores_of(game, seed, synthetic.SQL[game])
            synthetic.write_run(tmp_path / game / "printed" / str(seed), config, scores)
    results = only(tmp_path)
    verdict = improves(results, "deep-sql sign=printed")
    assert isinstance(verdict, Verdict)
    assert verdict.confirmed is True
    assert "with the sign that the appendix prints (app:atari-dsql)" in verdict.claim
    assert isinstance(improves(results, "deep-sql sign=sql"), Finding)


def test_the_opposite_data_give_the_opposite_verdict(tmp_path: Path) -> None:
    for game in GAMES[:3]:
        for seed in range(3):
            for algorithm, gain in (("dqn", 0.0), ("momentum-dqn", -0.5), ("deep-sql", 0.5)):
                config = synthetic.atari_config(algorithm, game, seed)
                if algorithm == "deep-sql":
                    config = config.replace(sign="printed")
                scores = synthetic.scores_of(game, seed, gain)
                synthetic.write_run(tmp_path / game / algorithm / str(seed), config, scores)
    results = only(tmp_path)
    words = [improves(results, label) for label in ("momentum-dqn", "deep-sql")]
    assert [said.word for said in words if isinstance(said, Verdict)] == ["Not confirmed"] * 2


def test_too_few_runs_or_games_decide_nothing(tmp_path: Path) -> None:
    synthetic.write_atari(tmp_path / "one", games=GAMES[:3], seeds=1)
    synthetic.write_atari(tmp_path / "game", games=GAMES[:1])
    for folder, words in (("one", "A single run of either"), ("game", "One game decides nothing")):
        verdict = improves(only(tmp_path / folder), "momentum-dqn")
        assert isinstance(verdict, Verdict)
        assert verdict.confirmed is None
        assert words in verdict.seen


def test_the_influence_of_beta(tmp_path: Path) -> None:
    results = only(synthetic.write_betas(tmp_path))
    assert [series.label for series in results.series if is_main(series)] == ["dqn", "momentum-dqn"]
    figure = influence_of_beta(results)
    assert figure is not None
    assert [panel.title for panel in figure.panels] == ["Asterix", "Zaxxon"]
    labels = [curve.style.label for curve in figure.panels[0].curves]
    assert labels == [
        "DQN",
        "Momentum-DQN",
        "Momentum-DQN (heuristic)",
        "Momentum-DQN β=0.1",
        "Momentum-DQN β=0.5",
        "Momentum-DQN β=0.9",
    ]
    dashes = [curve.style.dash for curve in figure.panels[0].curves]
    assert len(set(dashes)) == len(dashes)
    asterix, zaxxon = (beta_on(results, game) for game in ("Asterix", "Zaxxon"))
    assert asterix.confirmed is True
    # The last five of 20 points of 1000 · 1.9 · x^1.9 + 30, and of 1000 · 1.1 · x^1.1 + 30.
    x = np.arange(15, 20) / 19
    late = [1000 * h * (x**h).mean() + 30 for h in (1.1, 1.9)]
    assert f"last quarter {late[0]:,.0f}" in asterix.seen.replace(".5,", ",")
    assert f"{late[1]:,.0f}. Judged: the highest β against the lowest." in asterix.seen
    # The same curves do not show what the text says of Zaxxon.
    assert zaxxon.confirmed is False
    assert "can damage Zaxxon" in zaxxon.claim
    assert remarks(results)[-2:] == [asterix, zaxxon]


def test_a_high_beta_that_damages_zaxxon_is_what_the_paper_says(tmp_path: Path) -> None:
    for beta, level in ((0.1, 50.0), (0.5, 80.0), (0.9, 60.0)):
        for seed in range(2):
            config = synthetic.atari_config("momentum-dqn", "Zaxxon", seed)
            config = config.replace(beta_schedule="constant", beta=beta)
            scores = [level] * synthetic.ITERATIONS
            synthetic.write_run(tmp_path / str(beta) / str(seed), config, scores)
    verdict = beta_on(only(tmp_path), "Zaxxon")
    assert verdict.confirmed is True
    assert (
        "for β = 0.1, 0.5, 0.9: first quarter 50, 80, 60, last quarter 50, 80, 60" in verdict.seen
    )
    assert beta_on(only(tmp_path), "Asterix").confirmed is None


def test_the_papers_figures_are_there(atari: Results) -> None:
    figure = one_game(atari)
    assert figure is not None
    assert figure.title == "DQN and Momentum-DQN on SpaceInvaders"
    assert influence_of_beta(atari) is None


def test_an_algorithm_has_the_look_of_its_scheme() -> None:
    pairs = {"dqn": "avi", "momentum-dqn": "movi", "deep-sql": "sql", "deep-dpp": "dpp"}
    for algorithm, scheme in pairs.items():
        assert ALGORITHMS[algorithm] == (SCHEMES[scheme].colour, SCHEMES[scheme].dash)
