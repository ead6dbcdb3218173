"""Tutorials: Python files in the percent format, executed as notebooks when the site is built."""

from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from traitlets.config import Config

SECONDS = 900


def executed(source: Path) -> Any:
    """A tutorial as a notebook with its outputs; an error in any cell is an error of the build."""
    notebook = jupytext.read(source)
    config = Config({"KernelManager": {"transport": "ipc"}})  # a socket in the file system
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", config=config).execute()
    return notebook


def page_of(notebook: Any, name: str) -> dict[str, str | bytes]:
    """The files of a tutorial: its page, its figures and the notebook to download."""
    config = Config()
    config.NbConvertBase.display_data_priority = ["image/svg+xml", "text/markdown", "text/plain"]
    exporter = MarkdownExporter(config=config)
    directory = {"output_files_dir": f"{name}-figures", "unique_key": name}
    markdown, resources = exporter.from_notebook_node(notebook, resources=directory)
    title, rest = markdown.strip().split("\n", 1)
    download = f"[Download this notebook]({name}.ipynb){{ download }}"
    return {
        f"{name}.md": f"{title}\n\n{download}\n{rest}\n",
        f"{name}.ipynb": nbformat.writes(notebook),
        **{path: bytes(content) for path, content in resources["outputs"].items()},
    }
