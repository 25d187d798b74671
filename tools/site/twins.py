"""Hooks of MkDocs for coding agents: a page for each resource of the API, each page as Markdown, and llms.txt."""

import re
import sys
from pathlib import Path, PurePosixPath
from urllib.parse import urljoin

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent))

import api  # noqa: E402

LINK = re.compile(r"\]\((?!\w+:|#|/)([^)\s#]+)(?:#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# Longest description of a page in llms.txt.
SUMMARY_MAX = 200
INTRODUCTION = (
    "Hotline is a customer-service and CRM API in one binary on PostgreSQL: conversations of WhatsApp, social channels and a "
    "webchat, contacts, queues, campaigns, sales boards, signed webhooks and ordered events."
)
# The text of each page by its path, as the site has it.
texts = {}
pages = {}


def on_config(config):
    """`api/*` in the navigation stands for the generated pages."""
    texts.clear()
    pages.clear()
    pages.update(api.Pages().all())
    for section in config.nav:
        for name, entries in section.items():
            if isinstance(entries, list) and "api/*" in entries:
                section[name] = list(pages)
    return config


def on_files(files, config):
    """Adds the generated pages; none of them is in the repository."""
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Keeps what the page is made of."""
    texts[page.file.src_uri] = markdown


def on_post_page(output, page, config):
    """Says in the page where its Markdown is."""
    address = urljoin(config.site_url, page.file.src_uri)
    return output.replace("</head>", f'<link rel="alternate" type="text/markdown" href="{address}">\n</head>', 1)


def on_post_build(config):
    """Writes the Markdown and llms.txt, and fails if a link of them leads nowhere."""
    site = Path(config.site_dir)
    for path, text in texts.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.rstrip() + "\n")
    text = llms(config)
    (site / "llms.txt").write_text(text)
    wrong = [f"{path}: {link}" for path in texts for link in broken(site, path)]
    listed = {address.removeprefix(config.site_url) for address in re.findall(r"\]\((\S+\.md)\)", text)}
    wrong += [f"llms.txt: {path}" for path in sorted(listed ^ (set(texts) - unlisted()))]
    missing = [one.id for one in api.model.read().operations if not is_described(one)]
    if wrong or missing:
        raise PluginError(f"links that lead nowhere: {wrong}; operations without a page: {missing}")


def broken(site, path):
    """Links to Markdown or files that are not there."""
    folder = PurePosixPath(path).parent
    return [link for link in LINK.findall(FENCE.sub("", texts[path])) if not (site / folder / link).exists()]


def unlisted():
    """A decision is found by the list of them."""
    return {path for path in texts if re.match(r"decisions/\d", path)}


def is_described(operation):
    return any(f"`{operation.method} {operation.path}`" in text for path, text in pages.items())


def llms(config):
    """The map of the site, as https://llmstxt.org describes it."""
    lines = ["# Hotline", "", f"> {INTRODUCTION}", "", f"Each address below is Markdown. The API document is {config.repo_url}/blob/main/openapi.json"]
    for section in config.nav:
        for name, entries in section.items():
            lines += ["", f"## {name}", ""]
            paths = entries if isinstance(entries, list) else [entries]
            lines += [f"- [{title_of(path)}]({urljoin(config.site_url, path)}){summary_of(path)}" for path in paths]
    return "\n".join(lines) + "\n"


def title_of(path):
    found = re.search(r"^# (.+)$", texts[path], re.MULTILINE)
    return found.group(1) if found else path


def summary_of(path):
    """The first sentence of the page."""
    paragraphs = [one for one in FENCE.sub("", texts[path]).split("\n\n") if re.match(r"\s*[A-Za-z`\[*]", one)]
    if not paragraphs:
        return ""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraphs[0].split()))
    sentence = re.split(r"(?<=[.:]) ", text)[0].rstrip(":")
    return ": " + (sentence if len(sentence) <= SUMMARY_MAX else sentence[: SUMMARY_MAX - 1].rsplit(" ", 1)[0] + "…")
