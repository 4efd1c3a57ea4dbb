"""The README's example runs and prints what the README says it prints."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_example_prints_what_the_readme_shows(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL).groups()

    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert run.stdout.strip() == shown.strip()
    assert (tmp_path / "attention.py").is_file()
