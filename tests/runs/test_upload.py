"""Runs sent to MLflow and to Weights & Biases: what these are told."""

import json
import shutil
import sys
import types
from contextlib import contextmanager

import pytest

from movi import cli
from movi.errors import Interrupted
from movi.runs.config import Config
from movi.runs.files import read_metrics
from movi.training.train import train
from tests.recipe_python import run_with_torch
from tests.training.test_kills import TINY

CONFIG = Config(
    "momentum-dqn", "CartPole-v1", **{**TINY, "steps": 300, "iteration_steps": 100, "seed": 5}
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "mine"
    train(CONFIG, out)
    return out


class Tool(types.ModuleType):
    """Stands for either: it remembers what it is told."""

    def __init__(self, name):
        super().__init__(name)
        self.told, self.history, self.files, self.summary = {}, {}, [], {}

    def set_experiment(self, name):
        self.told["project"] = name

    @contextmanager
    def start_run(self, run_name):
        self.told["name"] = run_name
        yield

    def log_params(self, settings):
        self.told["settings"] = settings

    def set_tags(self, tags):
        self.summary.update(tags)

    def log_metrics(self, numbers, step):
        self.history[step] = numbers

    def log_artifact(self, file):
        self.files.append(file)

    @contextmanager
    def init(self, project, name, config):
        self.told.update(project=project, name=name, settings=config)
        yield self

    def log(self, numbers, step):
        assert step > max(self.history, default=0)  # Weights & Biases drops what comes too late
        self.history[step] = numbers

    def save(self, file, base_path, policy):
        assert file.startswith(base_path)
        assert policy == "now"
        self.files.append(file)


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_settings_metrics_and_agents_are_sent(name, run, monkeypatch, capsys):
    tool = Tool(name)
    monkeypatch.setitem(sys.modules, name, tool)
    assert cli.main(["upload", str(run), "--to", name, "--project", "ours"]) == 0
    assert capsys.readouterr().out == f"sent         {run} (3 rows)\n"
    assert (tool.told["project"], tool.told["name"]) == ("ours", "mine")
    settings = tool.told["settings"]
    assert (settings["algorithm"], settings["seed"]) == ("momentum-dqn", 5)
    assert "kappa" in settings  # an option of the algorithm, side by side with the config
    rows = read_metrics(run)
    assert list(tool.history) == [100, 200, 300]
    for row in rows:
        own = tool.history[row["step"]]
        assert own["score"] == row["score"]
        assert own["beta"] == row["beta"]
        assert own["seconds"] > 0
    evaluated = json.loads((run / "evaluations.jsonl").read_text())  # one, at the end
    assert tool.history[300]["evaluation/mean"] == evaluated["mean"]
    ended = json.loads((run / "evaluation.json").read_text())
    assert tool.summary == {"status": "finished", "evaluation": ended["mean"]}
    sent = ["config.json", "agent.safetensors", "best.safetensors"]
    assert tool.files == [str(run / file) for file in sent]


def test_a_folder_sends_all_runs_below_each_under_its_place(run, monkeypatch, capsys):
    tool = Tool("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", tool)
    assert cli.main(["upload", str(run.parent), "--to", "mlflow"]) == 0
    assert tool.told["name"] == f"{run.parent.name}/mine"
    capsys.readouterr()


def test_a_link_in_a_run_that_somebody_sent_is_not_followed(run, tmp_path, monkeypatch, capsys):
    sent = shutil.copytree(run, tmp_path / "sent")
    (tmp_path / "secret").write_text("mine")
    (sent / "best.safetensors").unlink()
    (sent / "best.safetensors").symlink_to(tmp_path / "secret")
    tool = Tool("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", tool)
    assert cli.main(["upload", str(sent), "--to", "mlflow"]) == 0
    assert tool.files == [str(sent / "config.json"), str(sent / "agent.safetensors")]
    capsys.readouterr()


def test_what_is_missing_or_refused_is_one_line(run, tmp_path, monkeypatch, capsys):
    def said(*words):
        assert cli.main(["upload", *map(str, words)]) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line

    assert "no runs, expected a run directory" in said(tmp_path, "--to", "mlflow")
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "wandb is not installed, expected `pip install wandb`" in said(run, "--to", "wandb")
    tool = Tool("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", tool)
    monkeypatch.setattr(tool, "set_experiment", lambda name: 1 / 0)
    line = said(run, "--to", "mlflow")
    assert f"mlflow did not take {run}: ZeroDivisionError division by zero" in line


def test_a_signal_meanwhile_ends_the_command_as_any_other(run, monkeypatch, capsys):
    def asked(name):
        raise Interrupted("interrupted", 15)

    tool = Tool("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", tool)
    monkeypatch.setattr(tool, "set_experiment", asked)
    assert cli.main(["upload", str(run), "--to", "mlflow"]) == 128 + 15
    assert capsys.readouterr().err == "movi: interrupted\n"


TRUE = """
import os, sys, json
from pathlib import Path
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # a server's store would be a database
import movi.cli, mlflow
run, store = sys.argv[1:]
mlflow.set_tracking_uri(Path(store).as_uri())
assert movi.cli.main(["upload", run, "--to", "mlflow", "--project", "ours"]) == 0
(sent,) = mlflow.search_runs(experiment_names=["ours"], output_format="list")
client = mlflow.MlflowClient()
scores = client.get_metric_history(sent.info.run_id, "score")
files = [file.path for file in client.list_artifacts(sent.info.run_id)]
told = {"name": sent.info.run_name, "beta": sent.data.params["beta_schedule"]}
told |= {"scores": [[one.step, one.value] for one in scores], "files": sorted(files)}
print(json.dumps(told))
"""


@pytest.mark.slow
def test_mlflow_itself_has_it_afterwards(run, tmp_path):
    """In a store of files, in the environment of the recipes."""
    words = "-c", TRUE, run, tmp_path / "store"
    told = json.loads(run_with_torch(*words, cwd=tmp_path).splitlines()[-1])
    assert told["name"] == "mine"
    assert told["beta"] == CONFIG.options.beta_schedule
    assert told["scores"] == [[row["step"], row["score"]] for row in read_metrics(run)]
    assert told["files"] == ["agent.safetensors", "best.safetensors", "config.json"]
