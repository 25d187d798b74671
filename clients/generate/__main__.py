"""Writes the generated part of the clients and of the n8n node from `openapi.json`: `python3 clients/generate`.

With `--check` nothing is written; the status is 1 if a file is not as it would be.
"""

from __future__ import annotations

import sys
from pathlib import Path

import model
import n8n
import python
import typescript

CLIENTS = Path(__file__).resolve().parents[1]
FOLDERS = {
    typescript: CLIENTS / "typescript" / "src" / "generated",
    python: CLIENTS / "python" / "src" / "hotline" / "generated",
    n8n: CLIENTS / "n8n" / "nodes" / "Hotline" / "generated",
}


def main(arguments: list[str]) -> int:
    is_check = arguments == ["--check"]
    if arguments and not is_check:
        print("usage: python3 clients/generate [--check]", file=sys.stderr)
        return 2
    try:
        document = model.read()
    except model.Incomplete as error:
        print(f"openapi.json cannot be turned into clients: {error}", file=sys.stderr)
        return 1
    stale = [file for language, folder in FOLDERS.items() for file in write(folder, language.files(document), is_check)]
    for file in stale:
        print(f"{file.relative_to(CLIENTS.parent)} {'is out of date: run make clients-generate' if is_check else 'written'}")
    return 1 if is_check and stale else 0


def write(folder: Path, files: dict[str, str], is_check: bool) -> list[Path]:
    """Writes what has changed, and answers it."""
    changed = []
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            changed.append(path)
            if not is_check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
