"""Puts ids that exist into most requests: an id that was made up finds nothing, and shows little but the 404.

Nothing here names an endpoint. Whatever answers hold is kept as it comes: the `id` of a row belongs to the path that
reads such a row, `contactId` or `contact: {id}` to every field of that name.
"""

import itertools
import json
import os
import re
import urllib.request
import zlib

import schemathesis

ORIGIN = os.environ["HOTLINE_ORIGIN"]
# What stands before the path of every endpoint.
API = "/api/v1"
TOKEN = os.environ["HOTLINE_TOKEN"]

# Values kept of each kind; the latest stay.
KEPT_MAX = 40
# One id in so many stays as it was made up.
UNKNOWN_EVERY = 20
# One idempotency key in so many is used as often as it comes.
REUSED_EVERY = 8

# What stands before the path of everything that visitors ask, and agents behind their door.
DOOR = "/webchat/{publicKey}"

# A webchat's public key, and the token of a visitor in it: company tokens open nothing there.
door: dict[str, str] = {}

calls = itertools.count(1)

# By the name of a field: values. By the path of one record: the ids in it, by name.
named: dict[str, list] = {}
records: dict[str, list] = {}
# The path of one record, by the path of its list.
record_of: dict[str, str] = {}


def keep(pool: dict[str, list], kind: str, value) -> None:
    known = pool.setdefault(kind, [])
    if value not in known:
        known.append(value)
        del known[:-KEPT_MAX]


def harvest(value) -> None:
    """Keeps every id that is named in an answer."""
    if isinstance(value, list):
        for item in value:
            harvest(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("Id") and isinstance(inner, (int, str)):
                keep(named, name, inner)
            elif isinstance(inner, dict) and "id" in inner:
                keep(named, "userId" if name == "assignedTo" else f"{name}Id", inner["id"])
            harvest(inner)


def learn(path: str, ids: dict, answer) -> None:
    """Keeps what an answer at this path, with these ids in it, says of records."""
    data = answer.get("data") if isinstance(answer, dict) else None
    harvest(data)
    one = record_of.get(path)
    if one is None:
        return
    name = re.findall(r"{(\w+)}", one)[-1]
    for row in data if isinstance(data, list) else [data]:
        if isinstance(row, dict) and "id" in row:
            keep(records, one, {**ids, name: row["id"]})
            keep(named, name, row["id"])


def ask(method: str, path: str, body=None):
    # The demo's own page is one of those its webchat allows.
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Origin": ORIGIN}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ORIGIN + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


@schemathesis.hook
def after_load_schema(context, schema) -> None:
    paths = schema.raw_schema["paths"]
    for path in paths:
        if path.endswith("}") and (parent := path.rsplit("/", 1)[0]) in paths:
            record_of[parent] = path
    for path, methods in paths.items():
        if "get" in methods and "{" not in path and not path.endswith("/stream"):
            learn(path, {}, ask("GET", path))
    if f"{API}/webchat/sessions" in paths:
        webchat = ask("GET", f"{API}/channels?type=webchat")["data"][0]["id"]
        session = ask("POST", f"{API}/webchat/sessions", {"channelId": webchat, "visitor": {"name": "Visitor"}})
        learn(f"{API}/webchat/sessions", {}, session)
        keep(records, API + "/webchat/sessions/{sessionId}", {"sessionId": session["data"]["id"]})
        for text in ("Hello?", "Is anybody there?"):
            ask("POST", f"{API}/webchat/sessions/{session['data']['id']}/messages", {"body": text})
    for job in named.get("jobId", []):
        keep(records, API + "/messages/jobs/{jobId}", {"jobId": job})
    if f"{DOOR}/sessions" in paths:
        door["publicKey"] = ask("GET", "/demo/settings.json")["publicKey"]
        keep(named, "publicKey", door["publicKey"])
        door["token"] = enter()


def enter() -> str:
    """The token of a new visitor."""
    session = ask("POST", f"/webchat/{door['publicKey']}/sessions", {"visitor": {"name": "Visitor"}})
    return session["data"]["token"]


def chosen(pool: list, value):
    """One of the pool, or none: always the same for the same value."""
    number = zlib.crc32(repr(value).encode())
    if not pool or number % UNKNOWN_EVERY == 0:
        return None
    return pool[number // UNKNOWN_EVERY % len(pool)]


def fill(value) -> None:
    """Puts known ids into an object's fields, where ids of that kind were."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        pool = named.get(name, [])
        if pool and type(inner) is type(pool[0]) and inner not in pool:
            known = chosen(pool, inner)
            value[name] = inner if known is None else known
        elif isinstance(inner, dict):
            fill(inner)
        elif isinstance(inner, list):
            for item in inner:
                fill(item)


@schemathesis.auth(refresh_interval=None)
class Token:
    """A visitor shows the token of the session, everybody else the company's."""

    def get(self, case, context) -> str:
        return door["token"] if case.operation.definition.raw.get("security") else TOKEN

    def set(self, case, data, context) -> None:
        case.headers["Authorization"] = f"Bearer {data}"


def knock(case, ids) -> None:
    """Gives requests of visitors an allowed origin, and most of them the public key of the webchat."""
    if case.operation.path.startswith(DOOR) and "publicKey" in ids:
        case.headers["Origin"] = ORIGIN
        ids["publicKey"] = door["publicKey"]


@schemathesis.hook
def before_call(context, case, kwargs) -> None:
    path = case.operation.path
    ids = case.path_parameters or {}
    knock(case, ids)
    for one in [path[: found.end()] for found in re.finditer(r"{\w+}", path)]:
        pool = [known for known in records.get(one, []) if all(ids.get(name) is not None for name in known)]
        known = None if any(ids.items() >= record.items() for record in pool) else chosen(pool, ids)
        for name, value in (known or {}).items():
            # What was made no id on purpose stays none.
            if type(ids[name]) is type(value):
                ids[name] = value
    if isinstance(case.query, dict):
        fill(case.query)
        # Who may wait half a minute waits for every case else.
        if str(case.query.get("wait", "")).isdigit() and int(case.query["wait"]) in range(2, 31):
            case.query["wait"] = 1
    fill(case.body)
    key = (case.headers or {}).get("Idempotency-Key")
    call = next(calls)
    # Another request under a key that was used is a conflict, whatever it is: most get one of their own.
    if key and re.fullmatch("[!-~]{1,180}", key) and (call % REUSED_EVERY or case.method != case.operation.method.upper()):
        case.headers["Idempotency-Key"] = f"{key}-{call}"


@schemathesis.hook
def after_call(context, case, response) -> None:
    ids = dict(case.path_parameters or {})
    path = case.operation.path
    if response.status_code == 204 and case.method == "DELETE":
        for pool in (records.get(path, []), named.get(re.findall(r"{(\w+)}", path)[-1], [])):
            pool[:] = [known for known in pool if known != ids and known not in ids.values()]
    if path == f"{DOOR}/end" and response.status_code == 200:
        door["token"] = enter()
    if 200 <= response.status_code < 300 and response.headers.get("content-type") == ["application/json"]:
        learn(path, ids, json.loads(response.content))
        for job in named.get("jobId", []):
            keep(records, API + "/messages/jobs/{jobId}", {"jobId": job})
