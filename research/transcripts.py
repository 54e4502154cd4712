"""Run the commands of a documentation page again and put what the last of them prints below them.

Blocks stand between `<!-- run -->` and `<!-- end -->`, with a command per line that begins with `$`. They run in
a folder of their own, to which files of the repository are linked. A benchmark that is not installed is given by
`--with NAME=SPEC`: the page keeps the name.

    python research/transcripts.py docs/statistics.md --with sugarcrepe=sugarcrepe:DIR           # print
    python research/transcripts.py docs/statistics.md --with sugarcrepe=sugarcrepe:DIR --write   # and write the page
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

BLOCK = re.compile(r"(?<=<!-- run -->\n```\n)(.*?)(?=```\n<!-- end -->)", re.DOTALL)


def ran(block: str, names: dict[str, str]) -> str:
    """The block with what its last command prints now."""
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    said = ""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tests").symlink_to(Path(__file__).parents[1] / "tests")
        for line in commands:
            command = line[2:]
            for name, spec in names.items():
                command = re.sub(rf"(?<=\s){re.escape(name)}(?=\s|$)", spec, command)
            environment = {**os.environ, "COLUMNS": "110", "CREPERIE_CACHE": f"{folder}/cache"}
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{command}\n{done.stderr}")
            said = done.stdout
    return "\n".join([*commands, *(line.rstrip() for line in said.strip().splitlines()), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--with", dest="names", action="append", default=[], metavar="NAME=SPEC")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    names = dict(pair.split("=", 1) for pair in asked.names)
    text = BLOCK.sub(lambda found: ran(found[1], names), asked.page.read_text(encoding="utf-8"))
    print("\n".join(BLOCK.findall(text)))
    if asked.write:
        asked.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
