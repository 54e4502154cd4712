"""What a package index shows, filled in when the package is built.

    CREPERIE_REPOSITORY=https://github.com/OWNER/creperie python -m build

The README's links and images become addresses in that repository at the version's tag, and the project gets its URLs.
Without the variable, links to files lose their address and images are left out: an index could show neither.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # read by a test where hatchling is not installed
    MetadataHookInterface = object  # type: ignore[assignment,misc]

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def index_readme(text: str, repository: str, tag: str) -> str:
    """The README as it can stand anywhere."""

    def replaced(found: re.Match[str]) -> str:
        image, words, path = found.groups()
        if not repository:
            return "" if image else words
        return f"{image}[{words}]({repository}/{'raw' if image else 'blob'}/{tag}/{path})"

    return re.sub(r"\n{3,}", "\n\n", _LINK.sub(replaced, text))


def index_urls(repository: str, tag: str) -> dict[str, str]:
    """The addresses of the project's page; none where no repository is known."""
    if not repository:
        return {}
    return {
        "Homepage": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/index.md",
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
    }


class CustomMetadataHook(MetadataHookInterface):
    """Called by hatchling."""

    def update(self, metadata: dict[str, Any]) -> None:
        here = Path(__file__).parent
        version = re.search(r'"([\d.]+\w*)"', (here / "src/creperie/core/version.py").read_text(encoding="utf-8"))
        repository, tag = os.environ.get("CREPERIE_REPOSITORY", "").rstrip("/"), f"v{version[1]}" if version else "main"
        text = index_readme((here / "README.md").read_text(encoding="utf-8"), repository, tag)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = index_urls(repository, tag)
