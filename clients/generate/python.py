"""Writes the generated part of the Python client, blocking and asynchronous."""

from __future__ import annotations

import json
import keyword
import re
import textwrap

from model import Field, Incomplete, Model, Operation, Resource, Schema, Type

HEADER = "# Generated from openapi.json by `make clients-generate`. Do not edit.\n"
NATIVE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "any": "Any"}
# Arguments that every method of their kind has.
CALL = ("timeout: float | None = None", "max_retries: int | None = None")
KEYED = ("idempotency_key: str | None = None",)
CONDITIONAL = ("if_match: str | None = None",)


def files(model: Model) -> dict[str, str]:
    """The files by path, below the package's `generated`."""
    return {
        "__init__.py": f"{HEADER}",
        "types.py": types(model),
        "errors.py": errors(model),
        "operations.py": operations(model),
        "resources.py": resources(model, is_async=False),
        "async_resources.py": resources(model, is_async=True),
        "version.py": f'{HEADER}\nAPI_VERSION = "{model.version}"\n"""The version of the API document that the client was made from."""\n',
    }


def snake(name: str) -> str:
    text = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)
    return text + "_" if keyword.iskeyword(text) else text


def upper(name: str) -> str:
    return name[0].upper() + name[1:]


class Types:
    """Spells types; objects inside of others become types of their own."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.lifted: list[str] = []

    def spell(self, kind: Type, owner: str, *, is_input: bool) -> str:
        match kind.kind:
            case "ref":
                return kind.name
            case "time":
                return "Union[str, datetime]" if is_input else "str"
            case "file":
                return "Upload"
            case "enum":
                return f"Literal[{', '.join(json.dumps(value) for value in kind.values)}]"
            case "array":
                inner = self.spell(kind.parts[0], owner, is_input=is_input)
                return f"Sequence[{inner}]" if is_input else f"List[{inner}]"
            case "map":
                return f"Dict[str, {self.spell(kind.parts[0], owner, is_input=is_input)}]"
            case "object":
                return self.lift(kind, owner, is_input=is_input)
            case "union":
                return f"Union[{', '.join(self.spell(part, owner, is_input=is_input) for part in kind.parts)}]"
            case other:
                return NATIVE[other]

    def lift(self, kind: Type, owner: str, *, is_input: bool) -> str:
        if owner in self.known:
            raise Incomplete(f"two types are named {owner}")
        self.known.add(owner)
        text = self.dictionary(owner, kind, f"A part of `{owner}`.", is_input=is_input)
        self.lifted.append(text)
        return owner

    def dictionary(self, name: str, kind: Type, text: str, *, is_input: bool) -> str:
        """A type of dictionaries; by a call where a key is no name of Python's."""
        fields = [(one, self.field(one, name, is_input)) for one in kind.fields]
        if any(keyword.iskeyword(one.name) or not one.name.isidentifier() for one, _ in fields):
            items = "".join(f"        {json.dumps(one.name)}: {json.dumps(spelled)},\n" for one, spelled in fields)
            return f'{name} = TypedDict(\n    "{name}",\n    {{\n{items}    }},\n)\n"""{text}"""\n'
        lines = "".join(f"{note(one.text)}    {one.name}: {spelled}\n" for one, spelled in fields)
        return f'class {name}(TypedDict):\n    """{text}"""\n\n{lines}'

    def field(self, one: Field, owner: str, is_input: bool) -> str:
        spelled = self.spell(one.type, owner + upper(one.name), is_input=is_input)
        return spelled if one.is_required else f"NotRequired[{spelled}]"


def note(text: str) -> str:
    return "".join(f"    # {line}\n" for line in textwrap.wrap(text, 110))


def types(model: Model) -> str:
    spelling = Types(set(model.schemas))
    named: list[str] = []
    for schema in model.schemas.values():
        if schema.name not in ("CompanyEvent", "EventData"):
            named.append(schema_text(spelling, schema))
    events = [event_text(spelling, model.schemas["CompanyEvent"], *event) for event in model.events]
    titles = ", ".join(f'"{title}"' for _, title, _ in model.events)
    codes = ", ".join(json.dumps(code) for code in model.codes)
    return "\n\n".join(
        [
            HEADER + "from __future__ import annotations\n\n"
            "from datetime import datetime\n"
            "from typing import Any, Dict, List, Literal, Sequence, Union\n\n"
            "from typing_extensions import NotRequired, TypedDict\n\n"
            "from hotline.files import Upload\n",
            # What others refer to at once comes first.
            *[text for text in named if " = " in text.split("\n", 1)[0] and "TypedDict(" not in text.split("\n", 1)[0]],
            *spelling.lifted,
            *[text for text in named if " = " not in text.split("\n", 1)[0] or "TypedDict(" in text.split("\n", 1)[0]],
            *events,
            f'CompanyEvent = Union[{titles}]\n"""A change of a record: `type` determines the type of `data`."""\n',
            f'ErrorCode = Literal[{codes}]\n"""A stable identifier of an error."""\n',
        ]
    )


def schema_text(spelling: Types, schema: Schema) -> str:
    if schema.type.kind == "object":
        return spelling.dictionary(schema.name, schema.type, schema.text, is_input=schema.is_input)
    return f'{schema.name} = {spelling.spell(schema.type, schema.name, is_input=schema.is_input)}\n"""{schema.text}"""\n'


def event_text(spelling: Types, event: Schema, kind: str, title: str, data: Type) -> str:
    fields = tuple(
        Field(one.name, data if one.name == "data" else Type("enum", values=(kind,)) if one.name == "type" else one.type, True)
        for one in event.type.fields
    )
    return spelling.dictionary(title, Type("object", fields=fields), f"`{kind}`", is_input=False)


def errors(model: Model) -> str:
    parts = [HEADER + "from __future__ import annotations\n\nfrom hotline.errors import ApiError\n"]
    for status, name in model.statuses.items():
        parts.append(f'class {name}(ApiError):\n    """The status {status}."""\n')
    general = set(model.statuses.values())
    for code, (status, name) in model.codes.items():
        if name not in general:
            parts.append(f'class {name}({model.statuses[status]}):\n    """`{code}`"""\n')
    by_status = "".join(f"    {status}: {name},\n" for status, name in model.statuses.items())
    by_code = "".join(f'    "{code}": ({status}, {name}),\n' for code, (status, name) in model.codes.items())
    parts.append(f"ERRORS_BY_STATUS: dict[int, type[ApiError]] = {{\n{by_status}}}\n")
    parts.append(
        f"ERRORS_BY_CODE: dict[str, tuple[int, type[ApiError]]] = {{\n{by_code}}}\n"
        '"""Every code of the document, the status it comes with, and its class."""\n'
    )
    return "\n\n".join(parts)


def operations(model: Model) -> str:
    lines = "".join(
        f'    "{one.id}": ("{snake(one.resource)}", "{snake(one.name)}", "{one.method}", "{one.path}"),\n' for one in model.operations
    )
    return (
        f"{HEADER}\nOPERATIONS: dict[str, tuple[str, str, str, str]] = {{\n{lines}}}\n"
        '"""Every operation of the document that a token may call: its resource, method, HTTP method and path."""\n'
    )


def resources(model: Model, *, is_async: bool) -> str:
    base, pages = ("AsyncResource", "AsyncPages") if is_async else ("Resource", "Pages")
    transport = "AsyncTransport" if is_async else "Transport"
    iterator = "AsyncIterator" if is_async else "Iterator"
    parts = [
        HEADER + "from __future__ import annotations\n\n"
        "from datetime import datetime\n"
        f"from typing import Any, Dict, {iterator}, List, Literal, Sequence, Union\n\n"
        "from hotline.files import Upload\n"
        f"from hotline.pages import {pages}\n"
        "from hotline.request import NOT_GIVEN, Given, Options, Request, segment\n"
        f"from hotline.transport import {base}, {transport}\n\n"
        "from . import types as t\n"
    ]
    prefix = "Async" if is_async else ""
    parts += [resource_class(model, one, is_async) for one in model.resources]
    fields = "".join(f"        self.{snake(one.name)} = {prefix}{one.class_name}(transport)\n" for one in model.resources)
    parts.append(
        f'class {prefix}Resources:\n    """The resources of the API."""\n\n'
        f"    def __init__(self, transport: {transport}) -> None:\n{fields}"
    )
    return "\n\n".join(parts)


def resource_class(model: Model, resource: Resource, is_async: bool) -> str:
    prefix, base = ("Async", "AsyncResource") if is_async else ("", "Resource")
    methods = "\n".join(method(model, one, is_async) for one in resource.operations)
    return f'class {prefix}{resource.class_name}({base}):\n    """The operations on {resource.name}."""\n\n{methods}'


def spell(kind: Type, owner: str, *, is_input: bool) -> str:
    """A type of an argument or a result; named ones are those of `t`."""
    spelled = Types(set())
    text = spelled.spell(kind, owner, is_input=is_input)
    own = {"Union", "List", "Dict", "Sequence", "Literal", "Any", "None", "Upload"}
    outside = re.split(r'("[^"]*")', text)
    return "".join(
        part if part.startswith('"') else re.sub(r"\b[A-Z]\w*", lambda match: match[0] if match[0] in own else "t." + match[0], part)
        for part in outside
    )


def body_fields(model: Model, one: Operation) -> list[Field]:
    if one.body is None:
        return []
    return list(model.schemas[one.form or one.body].type.fields)


def arguments(model: Model, one: Operation) -> list[str]:
    positional = ["self"] + [f"{snake(item.name)}: {spell(item.type, '', is_input=True)}" for item in one.path_fields]
    body = body_fields(model, one)
    named = [argument(item, one.form or one.body or "", is_required=item.is_required) for item in sorted(body, key=lambda item: not item.is_required)]
    named += [f"{snake(item.name)}: {spell(item.type, '', is_input=True)} | None = None" for item in one.query]
    named += (KEYED if one.is_keyed else ()) + (CONDITIONAL if one.is_conditional else ()) + CALL
    names = [text.split(":")[0] for text in positional[1:] + named]
    if len(set(names)) != len(names):
        raise Incomplete(f"two arguments of {one.id} have one name: {names}")
    return [*positional, "*", *named]


def argument(item: Field, owner: str, *, is_required: bool) -> str:
    kind = spell(item.type, owner + upper(item.name), is_input=True)
    return f"{snake(item.name)}: {kind}" if is_required else f"{snake(item.name)}: Given[{kind}] = NOT_GIVEN"


def docstring(one: Operation, described: list[Field]) -> str:
    text = f"{one.summary}. {one.text}" if one.text else one.summary + "."
    lines = textwrap.wrap(text, 110, initial_indent="        ", subsequent_indent="        ")
    lines[0] = '        """' + lines[0].strip()
    for item in described:
        if item.text:
            entry = f":param {snake(item.name)}: {item.text}"
            lines += [""] * (item is described[0]) + textwrap.wrap(entry, 110, initial_indent="        ", subsequent_indent="            ")
    return "\n".join(lines).replace("\\", "\\\\") + '\n        """\n'


def method(model: Model, one: Operation, is_async: bool) -> str:
    kind = "None" if one.result == "none" else spell(one.type, "", is_input=False) if one.type else "Any"
    pages, iterator = ("AsyncPages", "AsyncIterator") if is_async else ("Pages", "Iterator")
    body = body_fields(model, one)
    head = docstring(one, body + one.query)
    signature = ", ".join(arguments(model, one))
    definition = "async def" if is_async and one.result not in ("page", "stream") else "def"
    wait = "await " if definition == "async def" else ""
    request = call(one, body)
    match one.result:
        case "page":
            kind, statements = f"{pages}[{kind}]", [f"return self._transport.pages(request, {options(one)})"]
        case "stream":
            kind, statements = f"{iterator}[{kind}]", [f"return self._transport.stream(request, {options(one)})"]
        case "none":
            statements = [f"{wait}self._transport.nothing(request, {options(one)})"]
        case other:
            statements = [f"result: {kind} = {wait}self._transport.{other}(request, {options(one)})", "return result"]
    lines = "".join(f"        {line}\n" for line in [f"request = {request}", *statements])
    text = f"    {definition} {snake(one.name)}({signature}) -> {kind}:\n{head}{lines}"
    if one.has_csv:
        line = f"        return {wait}self._transport.text({request}, \"text/csv\", {options(one)})\n"
        text += f'\n    {definition} {snake(one.name)}_csv({signature}) -> str:\n        """The same as CSV. {one.summary}."""\n{line}'
    return text


def call(one: Operation, body: list[Field]) -> str:
    """The description of the request, for the transport."""
    path = re.sub(r"\{(\w+)\}", lambda match: "{segment(" + snake(match[1]) + ")}", one.path)
    parts = [f'"{one.id}"', f'"{one.method}"', f'f"{path}"' if one.path_fields else f'"{path}"']
    if one.query:
        parts.append("query={" + ", ".join(f'"{item.name}": {snake(item.name)}' for item in one.query) + "}")
    if one.body:
        parts.append("body={" + ", ".join(f'"{item.name}": {snake(item.name)}' for item in body) + "}")
    parts += ["keyed=True"] * one.is_keyed
    if one.secret:
        parts.append(f'secret="{one.secret}"')
    return f"Request({', '.join(parts)})"


def options(one: Operation) -> str:
    parts = ["timeout", "max_retries"] + ["idempotency_key"] * one.is_keyed + ["if_match"] * one.is_conditional
    return f"Options({', '.join(f'{part}={part}' for part in parts)})"
