"""Hooks of MkDocs: links out of docs/ lead to the repository, and the navigation has every page of docs/operate/."""

import re
from pathlib import Path, PurePosixPath

REPOSITORY = "https://github.com/hotline-hq/hotline"
ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!\w+:|#|/)([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config):
    """`operate/*` in the navigation stands for the pages of that folder, its README first."""
    pages = sorted((ROOT / "docs" / "operate").glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
    for section in config.nav:
        for name, entries in section.items():
            if isinstance(entries, list) and "operate/*" in entries:
                section[name] = [f"operate/{page.name}" for page in pages] + [e for e in entries if e != "operate/*"]
    return config


def on_page_markdown(markdown, page, config, files):
    """Replaces each relative link to a file that is not part of the site."""
    folder = PurePosixPath("docs", page.file.src_uri).parent

    def replaced(match):
        target = (ROOT / folder / match.group(1)).resolve()
        if not target.is_relative_to(ROOT) or not target.exists():
            return match.group(0)
        path = target.relative_to(ROOT)
        is_of_site = path.parts[0] == "docs" and target.is_file()
        if is_of_site:
            return match.group(0)
        kind = "tree" if target.is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{path.as_posix()}{match.group(2) or ''})"

    return LINK.sub(replaced, markdown)
