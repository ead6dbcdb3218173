"""One run of each command, in the order in which somebody might use them."""

from importlib.util import find_spec

from momentum_rl.cli import COMMANDS, main

SMALL = "--steps 200 --iteration-steps 100 --learning-starts 50 --hidden 8 --final-episodes 1"
LINES = [
    "mdp garnet --states 10 --out g.npz",
    "solve g.npz --out s.npz",
    "bounds g.npz --iterations 20 --average-errors gaussian:0.1 --beta-max 0.9 --out b.csv",
    f"train momentum-dqn --env CartPole-v1 {SMALL} --out run",
    "resume run --steps 300",
    "evaluate run --episodes 1",
    "record run --out film.mp4 --episodes 1",
    "export run agent.safetensors",
    "sweep mine.toml --out sweep --workers 1",
    "status sweep",
    "compare run",
    "report sweep --out report.html --format svg",
]
TOML = """
environments = ["CartPole-v1"]
algorithms = ["dqn"]
seeds = 1

[config]
steps = 100
learning_starts = 50
hidden = [8]
final_episodes = 1
"""


def test_every_command_has_a_run():
    assert {line.split()[0] for line in LINES} == {words.split()[0] for words in COMMANDS}


def test_each_command_ends_well_on_what_those_before_it_wrote(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(TOML)
    for line in LINES:
        extra = {"record": "imageio_ffmpeg", "report": "vl_convert"}.get(line.split()[0])
        if extra is None or find_spec(extra) is not None:
            status, said = main(line.split()), capsys.readouterr()
            assert (status, bool(said.out)) == (0, True), (line, said.err)


def test_no_command_writes_over_the_mdp_that_it_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["mdp", "garnet", "--states", "10", "--out", "g.npz"]) == 0
    before = (tmp_path / "g.npz").read_bytes()
    for command in ("solve", "bounds"):
        assert main([command, "g.npz", "--out", "g.npz"]) == 2
        assert "out: g.npz is the MDP itself, expected another file" in capsys.readouterr().err
    assert (tmp_path / "g.npz").read_bytes() == before
