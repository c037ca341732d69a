"""Runs notebooks and stores their outputs. Needs nbclient and ipykernel.

Usage: run.py FILE..."""

import sys
import tempfile

import nbformat
from nbclient import NotebookClient


def run(notebook):
    """Runs the cells in a new kernel and stores their outputs, without times."""
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}},
                                record_timing=False)
        client.execute()
    notebook.metadata["language_info"] = {"name": "python"}


if __name__ == "__main__":
    for file in sys.argv[1:]:
        notebook = nbformat.read(file, as_version=4)
        run(notebook)
        nbformat.write(notebook, file)
