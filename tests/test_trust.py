"""Nothing that a file says makes Python run code, and nothing outside `--out` is written."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import momentum_rl
from momentum_rl.agents.agent import Agent, load, save
from momentum_rl.agents.networks import NetworkSpec, make_network
from momentum_rl.cli import main
from momentum_rl.errors import UserError
from momentum_rl.plumbing.files import file_to_write, write_aside
from momentum_rl.plumbing.modules import import_trusted
from momentum_rl.runs.config import Config
from momentum_rl.runs.sweep import read_sweep_file, to_json
from momentum_rl.spaces import ObservationSpace, Spaces

EVIL = """
from pathlib import Path

import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

Path({mark!r}).touch()
gym.register("X-v0", entry_point=CartPoleEnv, max_episode_steps=20)
"""
SMALL = {"steps": 40, "iteration_steps": 20, "learning_starts": 10, "replay_capacity": 50}
SMALL |= {"hidden": (4,), "final_episodes": 1, "batch_size": 4}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory with a module in it whose import leaves a mark."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evilmod.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
    return tmp_path


def call(*words, cwd, **more):
    """``python -m momentum_rl``, which has the working directory on its path."""
    return subprocess.run(
        [sys.executable, "-m", "momentum_rl", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(momentum_rl.__file__).parents[1]), **more},
        capture_output=True,
        text=True,
        timeout=280,
    )


def write_agent(path, env):
    spaces = Spaces(ObservationSpace((4,), "float32"), 2)
    spec = NetworkSpec("mlp", (4,))
    network = make_network(spec, spaces)
    import jax

    params = network.init(jax.random.key(0), np.zeros((1, 4), np.float32))["params"]
    about = {"env": env, "evaluation_epsilon": 0.0}
    save(Agent(network, {"q": params}, spaces, spec=spec, about=about), path)


def test_an_agents_file_imports_no_module_unless_the_user_names_it_again(place):
    write_agent(place / "agent.safetensors", "evilmod:X-v0")
    done = call("evaluate", "agent.safetensors", "--episodes", 1, cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "movi: env: 'evilmod:X-v0' runs the code of the module 'evilmod', which only a file asks "
        "for; if you trust it, add --trust evilmod\n"
    )
    assert not (place / "mark").exists()
    done = call("evaluate", "agent.safetensors", "--trust", "other", cwd=place)
    assert done.returncode == 2
    assert not (place / "mark").exists()
    words = ("evaluate", "agent.safetensors", "--episodes", 1, "--trust", "evilmod")
    done = call(*words, cwd=place)
    assert done.returncode == 0, done.stderr
    assert (place / "mark").exists()


@pytest.mark.parametrize("env", ["this:X-v0", "venv.__main__:X-v0", "evilmod:CartPole-v1"])
@pytest.mark.parametrize("command", ["evaluate", "record"])
def test_no_module_that_python_has_is_imported_either(place, env, command, capsys):
    write_agent(place / "agent.safetensors", env)
    before = set(sys.modules)
    words = ["--out", "film.mp4"] if command == "record" else []
    assert main([command, "agent.safetensors", *words]) == 2
    assert "--trust" in capsys.readouterr().err
    assert not {"this", "venv", "evilmod"} & (set(sys.modules) - before)
    assert sorted(path.name for path in place.iterdir()) == ["agent.safetensors", "evilmod.py"]


@pytest.mark.parametrize(
    "env", ["a:b:c", ":x", "x:", "a b:X-v0", "1:x", "a..b:X", "GymV21Environment-v0"]
)
def test_an_id_that_is_none_is_one_line(place, env, capsys):
    write_agent(place / "agent.safetensors", env)
    assert main(["evaluate", "agent.safetensors"]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"movi: env: {env!r}")
    assert line.count("\n") == 1


def test_a_config_imports_no_module_but_the_commands_own_option_does(place, capsys):
    sys.path.insert(0, str(place))
    try:
        config = Config("dqn", "evilmod:X-v0", **SMALL)
        run = place / "run"
        run.mkdir()
        (run / "config.json").write_text(config.to_json())
        assert main(["resume", "run"]) == 2
        assert "--trust evilmod" in capsys.readouterr().err
        assert not (place / "mark").exists()
        assert [path.name for path in run.iterdir()] == ["config.json"]
        words = ["train", "dqn", "--env", "evilmod:X-v0", "--steps", "20", "--learning-starts", "9"]
        assert main([*words, "--final-episodes", "0", "--out", "own"]) == 0
        assert (place / "mark").exists()
    finally:
        sys.path.remove(str(place))
        sys.modules.pop("evilmod", None)


def test_the_working_directory_is_on_the_path_only_while_a_trusted_module_is_imported(place):
    """Else a library that looks for something that is not installed would find it there later."""
    before = list(sys.path)
    try:
        import_trusted("evilmod", ("evilmod",), "env")
        assert (place / "mark").exists()
        assert sys.path == before
        with pytest.raises(UserError, match="cannot be imported: ModuleNotFoundError"):
            import_trusted("not_there", ("not_there",), "env")
        assert sys.path == before
    finally:
        sys.modules.pop("evilmod", None)


@pytest.mark.parametrize("where", ["config", "matrix", "sweep"])
def test_an_algorithm_that_a_file_names_imports_no_module_either(place, where, capsys):
    if where == "config":
        (place / "run").mkdir()
        text = Config("dqn", "CartPole-v1", **SMALL).to_json()
        (place / "run" / "config.json").write_text(text.replace('"dqn"', '"evilmod:X"'))
        words = ["resume", "run"]
    else:
        (place / "mine.toml").write_text(SWEEP.replace("evilmod:X-v0", "CartPole-v1"))
        text = to_json(read_sweep_file(place / "mine.toml"))
        if where == "matrix":
            (place / "mine.toml").write_text((place / "mine.toml").read_text().replace("dqn", ALGO))
            words = ["sweep", "mine.toml", "--dry-run", "--out", "new"]
        else:
            (place / "sweep").mkdir()
            text = text.replace('"algorithm": "dqn"', f'"algorithm": "{ALGO}"')
            (place / "sweep" / "sweep.json").write_text(text)
            words = ["sweep", "--out", "sweep", "--dry-run"]
    assert main(words) == 2
    line = capsys.readouterr().err
    assert f"algorithm: {ALGO!r} runs the code of the module 'evilmod'" in line
    assert "--trust evilmod" in line
    assert not (place / "mark").exists()


ALGO = "evilmod:X"
SWEEP = 'environments = ["evilmod:X-v0"]\nalgorithms = ["dqn"]\nseeds = 1\n'


@pytest.mark.parametrize("kind", ["toml", "stored"])
def test_a_sweep_imports_no_module_not_even_to_say_what_it_would_do(
    place, kind, monkeypatch, capsys
):
    if kind == "toml":
        (place / "mine.toml").write_text(SWEEP)
        words = ["mine.toml", "--out", "sweep"]
    else:
        (place / "mine.toml").write_text(SWEEP)
        (place / "sweep").mkdir()
        text = to_json(read_sweep_file(place / "mine.toml"))
        (place / "sweep" / "sweep.json").write_text(text)
        words = ["--out", "sweep"]
    monkeypatch.syspath_prepend(place)  # where Python would find it
    for more in (["--dry-run"], []):
        assert main(["sweep", *words, *more]) == 2
        line = capsys.readouterr().err
        assert "--trust evilmod" in line
        assert line.count("\n") == 1
        assert "evilmod" not in sys.modules
        assert not (place / "mark").exists()
    path = {"PYTHONPATH": f"{Path(momentum_rl.__file__).parents[1]}{os.pathsep}{place}"}
    done = call("sweep", *words, "--dry-run", "--trust", "evilmod", cwd=place, **path)
    assert done.returncode == 0, done.stderr
    assert (place / "mark").exists()


def test_a_sweeps_helpers_do_not_import_from_the_working_directory(tmp_path):
    for name in ("numpy", "random", "jax"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    small = "\n".join(f"{k} = {list(v) if k == 'hidden' else v}" for k, v in SMALL.items())
    (tmp_path / "mine.toml").write_text(
        f'environments = ["CartPole-v1"]\nalgorithms = ["dqn"]\nseeds = 1\n[config]\n{small}\n'
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "momentum_rl", "sweep", "mine.toml", "--out", "out"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(momentum_rl.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "finished" in done.stdout
    assert not (tmp_path / "mark").exists()


@pytest.mark.slow
def test_neither_do_those_under_ray(tmp_path):
    pytest.importorskip("ray")
    for name in ("numpy", "random", "jax"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    small = "\n".join(f"{k} = {list(v) if k == 'hidden' else v}" for k, v in SMALL.items())
    (tmp_path / "mine.toml").write_text(
        f'environments = ["CartPole-v1"]\nalgorithms = ["dqn"]\nseeds = 1\n[config]\n{small}\n'
    )
    words = ["sweep", "mine.toml", "--out", "out", "--ray", "local"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "momentum_rl", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(momentum_rl.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "mark").exists()
    status = json.loads(next(tmp_path.glob("out/runs/**/status.json")).read_text())
    assert status["status"] == "finished"


# Paths that are written -----------------------------------------------------------------------


def test_out_replaces_a_regular_file_or_nothing(tmp_path, capsys):
    """`--out` at what is no file: one line, and it is still what it was."""
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    for out, kind in (("pipe.npz", "a pipe"), ("folder.npz", "a directory")):
        assert main(["mdp", "garnet", "--out", str(tmp_path / out)]) == 2
        assert f"{out} is {kind}, expected a file or a new name" in capsys.readouterr().err
    assert stat.S_ISFIFO((tmp_path / "pipe.npz").stat().st_mode)
    assert main(["mdp", "garnet", "--out", "/dev/null"]) == 2
    assert "/dev/null is a device" in capsys.readouterr().err
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_link_that_the_user_names_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.npz"
    link.symlink_to(tmp_path / "real" / "garnet.npz")
    for _ in range(2):  # to nothing yet, and to a file
        assert main(["mdp", "garnet", "--out", str(link)]) == 0
        assert link.is_symlink()
        assert momentum_rl.load_mdp(tmp_path / "real" / "garnet.npz").states == 30
    link.unlink()
    link.symlink_to("/dev/null")
    with pytest.raises(UserError, match="is a device"):
        momentum_rl.save_mdp(momentum_rl.garnet(), link)
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(UserError, match="symbolic links"):
        file_to_write(link)


def test_a_link_in_a_directory_that_somebody_sent_is_replaced_and_not_followed(tmp_path):
    own = tmp_path / "precious"
    own.write_text("mine")
    (tmp_path / "status.json").symlink_to(own)
    part = tmp_path / f".status.json.{os.getpid()}.part"
    part.symlink_to(own)
    write_aside(tmp_path / "status.json", "{}")
    assert own.read_text() == "mine"
    assert (tmp_path / "status.json").read_text() == "{}"
    assert not (tmp_path / "status.json").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is a pipe, expected a file"):
        write_aside(tmp_path / "pipe", "{}")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "x" * 5000, "y/" * 3000])
@pytest.mark.parametrize("command", ["garnet", "solve", "train", "export", "record", "report"])
def test_a_path_that_no_file_system_takes_is_one_line(tmp_path, name, command, capsys):
    (tmp_path / "agent.safetensors").write_bytes(b"")
    momentum_rl.save_mdp(momentum_rl.garnet(), tmp_path / "g.npz")
    agent, out = str(tmp_path / "agent.safetensors"), str(tmp_path / name)
    words = {
        "garnet": ["mdp", "garnet", "--out", f"{out}.npz"],
        "solve": ["solve", str(tmp_path / "g.npz"), "--out", out],
        "train": ["train", "dqn", "--env", "CartPole-v1", "--out", out],
        "export": ["export", agent, f"{out}.safetensors"],
        "record": ["record", agent, "--out", f"{out}.mp4"],
        "report": ["report", str(tmp_path), "--out", out],
    }
    before = sorted(tmp_path.iterdir())
    assert main(words[command]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert len(line) <= 300
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "name", ["../../escaped", "/tmp/escaped", "a\nb", "a\0b", "..", "", "x" * 101, "​"]
)
def test_the_name_of_a_sweep_is_a_label(tmp_path, name, monkeypatch, capsys):
    """Wherever it would go: a directory below sweeps/, or one line."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    data = {"name": name, "environments": ["CartPole-v1"], "algorithms": ["dqn"], "seeds": 1}
    (inner / "mine.json").write_text(json.dumps(data))
    seen = []
    monkeypatch.setattr(
        "momentum_rl.sweeps.drive.run_sweep",
        lambda sweep, out, pool, **rest: seen.append(out) or [],
    )
    status = main(["sweep", "mine.json", "--dry-run"])
    if status == 0:
        (out,) = seen
        assert out.parent == Path("sweeps")
        assert out.name in ("escaped", "tmp-escaped", "mine")
    else:
        assert (status, seen) == (2, [])
        assert "name: " in capsys.readouterr().err


def test_an_agents_file_that_is_saved_is_read_again_through_a_link(tmp_path):
    write_agent(tmp_path / "agent.safetensors", "CartPole-v1")
    (tmp_path / "link.safetensors").symlink_to(tmp_path / "new.safetensors")
    words = ["export", str(tmp_path / "agent.safetensors"), str(tmp_path / "link.safetensors")]
    assert main(words) == 0
    assert load(tmp_path / "new.safetensors").about["env"] == "CartPole-v1"


@pytest.mark.parametrize("trust", ["my_evilmod_games", "evilmod"])
def test_a_text_is_no_collection_of_modules(place, trust):
    """Each part of a text is in it: `evilmod` was imported."""
    with pytest.raises(UserError, match=rf"^trust: '{trust}', expected a list$"):
        momentum_rl.train(Config("dqn", "evilmod:X-v0", **SMALL), trust=trust)
    with pytest.raises(UserError, match=rf"trust: '{trust}', expected names of modules"):
        import_trusted("evilmod", trust, "env")
    assert not (place / "mark").exists()
    assert momentum_rl.train(Config("dqn", "evilmod:X-v0", **SMALL), trust=["evilmod"]).step == 40


@pytest.mark.parametrize("out", ["s3:bucket", "s3://bucket/run", "gs://bucket/run"])
def test_a_directory_that_is_called_as_a_cloud_is_a_directory(place, out):
    """tensorboardX takes such a path for a place at Amazon or Google, unless it is absolute."""
    momentum_rl.train(Config("dqn", "CartPole-v1", **SMALL), out)
    (events,) = (place / out).glob("events.out.*")
    assert events.stat().st_size > 0
