"""The command line, as users meet it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import momentum_rl
from momentum_rl.cli import main

SHORT = [
    *("--env", "CartPole-v1", "--steps", "300", "--iteration-steps", "100"),
    *("--learning-starts", "50", "--hidden", "16", "--final-episodes", "2"),
]
HUGE = [*SHORT[:2], "--steps", "2000000000", "--replay-capacity", "2000000000"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("command") / "run"
    assert main(["train", "momentum-dqn", *SHORT, "--out", str(path)]) == 0
    return path


def python(*words, timeout=60):
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": str(Path(momentum_rl.__file__).parents[1])},
    )


def test_off_a_terminal_train_prints_the_result_and_on_stderr_notices_alone(tmp_path, capsys):
    assert main(["train", "dqn", *SHORT, "--out", str(tmp_path / "run")]) == 0
    out, err = capsys.readouterr()
    assert "finished 300 steps" in out
    assert "evaluation over 2 episodes: mean" in out
    assert str(tmp_path / "run" / "agent.safetensors") in out
    # A record has two observations of four floats, an action, a reward, a discount, a checksum.
    assert err == f"replay of 300 transitions: {(2 * 16 + 12 + 4) * 300 / 1e3:.3g} kB\n"


def test_evaluate_prints_mean_standard_deviation_and_each_return(run, capsys):
    assert main(["evaluate", str(run), "--episodes", "7"]) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    returns = np.array([float(word) for word in lines["returns"].split()])
    assert len(returns) == 7
    assert float(lines["mean"]) == pytest.approx(returns.mean(), rel=1e-5)
    assert float(lines["standard deviation"]) == pytest.approx(returns.std(), rel=1e-5)
    assert all(len(word.strip("-").replace(".", "")) <= 6 for word in lines["mean"].split())


def test_an_agent_says_what_it_is(run):
    # One hidden layer of 16 between 4 numbers and 2 actions, twice: 2 (4·16 + 16 + 16·2 + 2).
    summary = "momentum-dqn, CartPole-v1, step 300, networks h, q with 228 weights; acts by h"
    assert repr(momentum_rl.load(run)) == f"Agent({summary})"


def test_export_writes_a_file_that_acts(run, tmp_path):
    file = tmp_path / "agent.safetensors"
    assert main(["export", str(run), str(file)]) == 0
    assert momentum_rl.load(file).act(np.zeros(4, np.float32)) in (0, 1)
    assert main(["evaluate", str(file), "--episodes", "1"]) == 0


def test_record_writes_a_video_of_the_episode_and_complains_of_nothing(
    run, tmp_path, capfd, recwarn
):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    pytest.importorskip("pygame")
    file = tmp_path / "play.mp4"
    before = dict(os.environ)
    assert main(["record", str(run), "--out", str(file), "--epsilon", "0.5"]) == 0
    out, err = capfd.readouterr()
    assert err == ""  # of a sound device or a window that is not there, for instance
    assert [str(warning.message) for warning in recwarn if "fork" in str(warning.message)] == []
    assert dict(os.environ) == before
    frames, _ = imageio_ffmpeg.count_frames_and_secs(str(file))
    assert frames == float(out.split()[-1]) + 1  # CartPole pays 1 a step; one frame is before any
    assert [path.name for path in tmp_path.iterdir()] == ["play.mp4"]


def test_a_video_that_ffmpeg_cannot_write_is_one_line_and_no_file(
    run, tmp_path, capfd, monkeypatch
):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    pytest.importorskip("pygame")
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho 'av_write_frame: No space left' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", lambda: str(program))
    assert main(["record", str(run), "--out", str(tmp_path / "play.mp4")]) == 2
    line = "out: ffmpeg could not write the video: av_write_frame: No space left\n"
    assert capfd.readouterr().err.endswith(line)
    assert [path.name for path in tmp_path.iterdir()] == ["ffmpeg"]


def test_the_presets_values_are_the_defaults_and_given_options_win(tmp_path):
    from momentum_rl.runs.files import read_config

    words = [*SHORT, "--preset", "paper", "--replay-capacity", "500", "--batch-size", "8"]
    assert (
        main(["train", "deep-sql", *words, "--sign", "printed", "--out", str(tmp_path / "r")]) == 0
    )
    config = read_config(tmp_path / "r")
    assert (config.preset, config.optimiser, config.update_period) == ("paper", "rmsprop", 4)
    assert (config.batch_size, config.replay_capacity) == (8, 500)
    assert config.options.sign == "printed"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly"], "command: 'fly', expected one of solve"),
        (["train", "sarsa", *SHORT], "algorithm: 'sarsa', expected one of dqn, momentum-dqn"),
        (["train", "dqn", "--env", "NoSuch-v1"], "NoSuch"),
        (["train", "dqn", "--env", "Pendulum-v1"], "Pendulum-v1 has Box actions, but dqn"),
        (["train", "dqn", *SHORT, "--preset", "old"], "preset: 'old', expected one of control"),
        (["train", "dqn", *SHORT, "--gamma", "1.5"], "gamma: 1.5, expected a number in [0, 1)"),
        (["train", "dqn", *SHORT, "--steps", "many"], "--steps"),
        (["train", "dqn", *SHORT, "--speed", "3"], "--speed"),
        (["train", "dqn"], "--env"),
        (["train", "dqn", *SHORT, "--network", "nature"], "nature"),
        (["train", "dqn", *HUGE], "needs 96 GB"),
        (["evaluate", "nowhere"], "nowhere: no such file"),
        (["evaluate", "."], "agent.safetensors: no such file"),
        (["export", "nowhere", "x.safetensors"], "nowhere: no such file"),
        (["record", "nowhere", "--out", "x.mp4"], "nowhere: no such file"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_status_2_and_nothing_written(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["-m", "momentum_rl", "--help"], ["-c", "import momentum_rl"]])
def test_help_and_import_are_quick_and_load_no_heavy_part(words):
    import resource

    def processor_seconds():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = processor_seconds()  # the clock on the wall also counts what others do meanwhile
    result = python("-X", "importtime", *words)
    assert result.returncode == 0
    assert processor_seconds() - before < 1
    for heavy in ("jax", "flax", "gymnasium"):
        assert f" {heavy}\n" not in result.stderr


def test_the_help_of_train_says_every_fields_meaning_and_paper_value(capsys):
    from dataclasses import fields

    from momentum_rl.runs.config import Config

    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for field in fields(Config):
        if field.name not in ("algorithm", "options"):
            assert f"--{field.name.replace('_', '-')} " in text.replace(",", " ")
    assert "F: agent steps per update (paper: 4)" in text
    assert text.count("(paper") > 10
    with pytest.raises(SystemExit):
        main(["train", "momentum-dqn", "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--kappa" in text
    assert "β of the constant schedule (appendix: 0.1, 0.5, 0.9)" in text


def test_a_progress_bar_is_drawn_on_a_terminal_only(tmp_path):
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    words = [
        sys.executable,
        "-m",
        "momentum_rl",
        "train",
        "dqn",
        *SHORT,
        "--out",
        str(tmp_path / "r"),
    ]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=child,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(momentum_rl.__file__).parents[1]),
            "TERM": "xterm-256color",
            "COLUMNS": "120",
        },
    )
    os.close(child)
    drawn = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        drawn += piece
    assert process.wait(60) == 0
    text = drawn.decode()
    assert "replay of" in text
    assert "steps/s" in text
    assert "score" in text


def test_a_preset_of_another_family_is_one_line(capsys):
    words = ["train", "sac", "--env", "Pendulum-v1", "--preset", "paper"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error == "movi: preset: 'paper', expected sac for sac\n"


def test_a_directory_of_another_algorithm_says_that_and_not_its_options(tmp_path, capsys):
    words = ["--env", "gymnax/CartPole-v1", "--steps", "40", "--out", str(tmp_path / "run")]
    words += ["--learning-starts", "20"]
    assert main(["train", "dqn", *words]) == 0
    capsys.readouterr()
    assert main(["train", "momentum-c51", *words]) == 2
    error = capsys.readouterr().err
    assert error.endswith("holds another run: algorithm is 'dqn' there and 'momentum-c51' here\n")


def test_export_names_what_it_takes(capsys):
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    assert "RUN FILE" in " ".join(capsys.readouterr().out.split())


def test_resume_for_no_steps_is_refused(run, capsys):
    assert main(["resume", str(run), "--steps", "0"]) == 2
    assert "steps: 0, expected an integer from 1 to" in capsys.readouterr().err
