"""What the clients need of the API document: operations, types and error codes.

Both languages are generated from this one reading, so that they cannot differ in what they know. What the document does
not contain (names of classes, the status of a code) is in `names.json`; a new resource or code without a line there is
an error here, never a gap in a client.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "openapi.json"
NAMES = Path(__file__).with_name("names.json")

# The description by which the document marks a secret that is not repeated.
SHOWN_ONCE = "`null` in the response to a retry"
# The header that makes an operation's retries safe, and the one that makes it conditional.
KEY = "Idempotency-Key"
CONDITION = "If-Match"


class Incomplete(Exception):
    """The document contains what the generator does not know how to name or to read."""


@dataclass(frozen=True)
class Type:
    """A type, as both languages understand it."""

    kind: str
    name: str = ""
    values: tuple[Any, ...] = ()
    parts: tuple[Type, ...] = ()
    fields: tuple[Field, ...] = ()

    @property
    def is_nullable(self) -> bool:
        return self.kind == "union" and any(part.kind == "null" for part in self.parts)


@dataclass(frozen=True)
class Field:
    """A property of an object, or a parameter of a query."""

    name: str
    type: Type
    is_required: bool
    text: str = ""


@dataclass
class Schema:
    """A named type of the document."""

    name: str
    type: Type
    text: str
    is_input: bool = False


@dataclass
class Operation:
    """A call that a company's token may make."""

    id: str
    method: str
    path: str
    resource: str
    name: str
    summary: str
    text: str
    path_fields: list[Field]
    query: list[Field]
    body: str | None = None
    is_body_required: bool = False
    form: str | None = None
    is_keyed: bool = False
    is_conditional: bool = False
    # `data`, `page` (a list with a cursor), `whole` (data beside its own meta), `none` or `stream`.
    result: str = "data"
    type: Type | None = None
    secret: str | None = None
    has_csv: bool = False

    @property
    def is_paged(self) -> bool:
        return self.result == "page"


@dataclass
class Resource:
    """A group of operations: a property of the client."""

    name: str
    noun: str
    operations: list[Operation] = field(default_factory=list)

    @property
    def class_name(self) -> str:
        return self.name[0].upper() + self.name[1:]


@dataclass
class Model:
    """The document, read."""

    version: str
    schemas: dict[str, Schema]
    resources: list[Resource]
    events: list[tuple[str, str, Type]]
    statuses: dict[int, str]
    codes: dict[str, tuple[int, str]]

    @property
    def operations(self) -> list[Operation]:
        return [operation for resource in self.resources for operation in resource.operations]


def read() -> Model:
    """Reads the document."""
    document = json.loads(DOCUMENT.read_text())
    names = json.loads(NAMES.read_text())
    schemas = {name: named_schema(name, schema) for name, schema in document["components"]["schemas"].items()}
    resources = read_resources(document, names["resources"])
    mark_inputs(document, schemas)
    statuses = {int(status): name for status, name in names["statuses"].items()}
    codes = read_codes(document, names["codes"])
    check_statuses(document, statuses)
    return Model(document["info"]["version"], schemas, resources, read_events(document), statuses, codes)


def named_schema(name: str, schema: dict[str, Any]) -> Schema:
    return Schema(name, parse(schema), clean(schema.get("description", "")))


def clean(text: str) -> str:
    return " ".join(text.split())


def ref_name(ref: str) -> str:
    return ref.rsplit("/", 1)[-1]


def union(parts: list[Type]) -> Type:
    unique = list(dict.fromkeys(parts))
    return unique[0] if len(unique) == 1 else Type("union", parts=tuple(unique))


def parse(schema: dict[str, Any]) -> Type:
    """The type of a schema."""
    if "$ref" in schema:
        return Type("ref", name=ref_name(schema["$ref"]))
    if "oneOf" in schema:
        return union([parse(part) for part in schema["oneOf"]])
    types = schema.get("type", "any")
    types = types if isinstance(types, list) else [types]
    if "enum" in schema:
        parts = [Type("enum", values=tuple(value for value in schema["enum"] if value is not None))]
        return union(parts + [Type("null")] * (None in schema["enum"] or "null" in types))
    return union([parse_one(kind, schema) for kind in types])


def parse_one(kind: str, schema: dict[str, Any]) -> Type:
    if kind == "string" and schema.get("format") == "date-time":
        return Type("time")
    if kind == "string" and schema.get("format") == "binary":
        return Type("file")
    if kind in ("string", "integer", "number", "boolean", "null", "any"):
        return Type(kind)
    if kind == "array":
        return Type("array", parts=(parse(schema["items"]),))
    if kind != "object":
        raise Incomplete(f"a type {kind}: {json.dumps(schema)[:200]}")
    if "properties" in schema:
        required = schema.get("required", [])
        properties = schema["properties"].items()
        return Type("object", fields=tuple(read_field(name, value, name in required) for name, value in properties))
    values = schema.get("additionalProperties")
    return Type("map", parts=(parse(values) if isinstance(values, dict) and values else Type("any"),))


def read_field(name: str, schema: dict[str, Any], is_required: bool) -> Field:
    return Field(name, parse(schema), is_required, clean(schema.get("description", "")))


def references(kind: Type) -> set[str]:
    """The names that a type refers to."""
    found = {kind.name} if kind.kind == "ref" else set()
    for part in kind.parts:
        found |= references(part)
    for one in kind.fields:
        found |= references(one.type)
    return found


def mark_inputs(document: dict[str, Any], schemas: dict[str, Schema]) -> None:
    """Marks what only requests contain: there a time may be given as the language's own."""
    given: set[str] = set()
    for operation in all_operations(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            given.add(ref_name(content["schema"]["$ref"]))
    reached = {name for name, schema in schemas.items() if name not in given for name in references(schema.type)}
    for name in given - reached:
        schemas[name].is_input = True


def all_operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for methods in document["paths"].values() for operation in methods.values()]


def may_call(document: dict[str, Any], operation: dict[str, Any]) -> bool:
    """Whether a company's token is what the operation asks for."""
    return {"token": []} in operation.get("security", document["security"])


def read_resources(document: dict[str, Any], nouns: dict[str, str]) -> list[Resource]:
    resources: dict[str, Resource] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not may_call(document, operation):
                continue
            noun = noun_of(path, nouns)
            resource = resources.setdefault(noun, Resource(lower(plural(noun)), noun))
            resource.operations.append(read_operation(document, path, method.upper(), operation, resource))
    for resource in resources.values():
        names = [operation.name for operation in resource.operations]
        if len(set(names)) != len(names):
            raise Incomplete(f"two operations of {resource.name} have one name: {sorted(names)}")
    return sorted(resources.values(), key=lambda resource: resource.name)


def noun_of(path: str, nouns: dict[str, str]) -> str:
    segments = path.removeprefix("/api/v1").strip("/").split("/")
    for count in (2, 1):
        if noun := nouns.get("/".join(segments[:count])):
            return noun
    raise Incomplete(f"no resource for {path}: add it to {NAMES.name}")


def plural(noun: str) -> str:
    if noun.endswith("y"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith("s") else "s")


def lower(name: str) -> str:
    return name[0].lower() + name[1:]


def method_name(operation_id: str, noun: str) -> str:
    """`closeTicket` is `close` of tickets, `listQueueUsers` is `listUsers` of queues."""
    for part in (plural(noun), noun):
        shorter = re.sub(rf"(?<=[a-z]){part}(?=[A-Z]|$)", "", operation_id, count=1)
        if shorter != operation_id:
            return shorter
    return lower(re.sub(rf"^{lower(noun)}(?=[A-Z])", "", operation_id))


def read_operation(
    document: dict[str, Any], path: str, method: str, operation: dict[str, Any], resource: Resource
) -> Operation:
    parameters = operation.get("parameters", [])
    headers = {parameter["name"] for parameter in parameters if parameter["in"] == "header"}
    read = Operation(
        id=operation["operationId"],
        method=method,
        path=path,
        resource=resource.name,
        name=method_name(operation["operationId"], resource.noun),
        summary=clean(operation["summary"]),
        text=clean(operation.get("description", "")),
        path_fields=[read_parameter(parameter) for parameter in parameters if parameter["in"] == "path"],
        query=[read_parameter(parameter) for parameter in parameters if parameter["in"] == "query"],
        is_keyed=KEY in headers,
        is_conditional=CONDITION in headers,
    )
    read_body(read, operation.get("requestBody"))
    read_result(document, read, operation)
    if read.is_paged:
        read.query = [parameter for parameter in read.query if parameter.name != "page"]
    return read


def read_parameter(parameter: dict[str, Any]) -> Field:
    text = clean(parameter.get("description") or parameter["schema"].get("description", ""))
    kind = parse(parameter["schema"])
    if parameter["name"] == "types":
        kind = Type("array", parts=(Type("ref", name="EventKind"),))
    return Field(parameter["name"], kind, parameter.get("required", False), text)


def read_body(read: Operation, body: dict[str, Any] | None) -> None:
    if body is None:
        return
    content = {kind: ref_name(value["schema"]["$ref"]) for kind, value in body["content"].items()}
    read.body = content["application/json"]
    read.form = content.get("multipart/form-data")
    read.is_body_required = body.get("required", False)


def read_result(document: dict[str, Any], read: Operation, operation: dict[str, Any]) -> None:
    status, response = next((status, one) for status, one in operation["responses"].items() if status[0] == "2")
    if "content" not in response:
        read.result = "none"
        return
    if "text/event-stream" in response["content"]:
        read.result, read.type = "stream", Type("ref", name="CompanyEvent")
        return
    read.has_csv = "text/csv" in response["content"]
    envelope = document["components"]["schemas"][ref_name(response["content"]["application/json"]["schema"]["$ref"])]
    data = parse(envelope["properties"]["data"])
    meta = envelope["properties"].get("meta", {}).get("$ref")
    if any(parameter.name == "cursor" for parameter in read.query):
        read.result, read.type = "page", data.parts[0]
    elif meta and ref_name(meta) != "PageMeta":
        read.result, read.type = "whole", parse(response["content"]["application/json"]["schema"])
    else:
        read.type = data
        # A session has its token only in the response to its opening.
        read.secret = secret_of(document, data, is_created=status == "201")


def secret_of(document: dict[str, Any], data: Type, *, is_created: bool) -> str | None:
    """The field of a record that a replayed response lacks."""
    schema = document["components"]["schemas"].get(data.name, {})
    for name, value in schema.get("properties", {}).items():
        if SHOWN_ONCE in value.get("description", "") and (is_created or name in schema["required"]):
            return name
    return None


def read_events(document: dict[str, Any]) -> list[tuple[str, str, Type]]:
    """The type, the name and the data of each event."""
    events = []
    for kind, methods in document["webhooks"].items():
        schema = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
        events.append((kind, schema["title"], parse(schema["properties"]["data"])))
    return events


def read_codes(document: dict[str, Any], known: dict[str, int]) -> dict[str, tuple[int, str]]:
    """The status and the class of each code."""
    error = document["components"]["schemas"]["ApiError"]["properties"]["error"]
    documented = error["properties"]["code"]["enum"]
    if missing := sorted(set(documented) - set(known)):
        raise Incomplete(f"no status for {', '.join(missing)}: add it to {NAMES.name}")
    if unknown := sorted(set(known) - set(documented)):
        raise Incomplete(f"{', '.join(unknown)}: no longer in the document, remove it from {NAMES.name}")
    return {code: (known[code], class_of(code)) for code in documented}


def class_of(code: str) -> str:
    return "".join(word.capitalize() for word in code.removeprefix("ERR_API_").split("_")) + "Error"


def check_statuses(document: dict[str, Any], statuses: dict[int, str]) -> None:
    documented = {status for operation in all_operations(document) for status in operation["responses"]}
    answered = {int(status) for status in documented if status[0] in "45"}
    if missing := sorted(answered - set(statuses)):
        raise Incomplete(f"no class for the statuses {missing}: add them to {NAMES.name}")
