"""Writes the generated part of the TypeScript client."""

from __future__ import annotations

import json
import re

from model import Field, Model, Operation, Resource, Schema, Type

HEADER = "// Generated from openapi.json by `make clients-generate`. Do not edit.\n"
NATIVE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
# Names of schemas that would hide a type of the language, or say too little outside of this file.
RESERVED = {"Position": "WidgetPosition"}


def files(model: Model) -> dict[str, str]:
    """The files by path, below the package's `src/generated`."""
    return {
        "types.ts": types(model),
        "errors.ts": errors(model),
        "resources.ts": resources(model),
        "operations.ts": operations(model),
        "version.ts": f'{HEADER}\n/** The version of the API document that the client was made from. */\nexport const API_VERSION = "{model.version}";\n',
    }


def type_name(name: str) -> str:
    return RESERVED.get(name, name)


def spell(kind: Type, *, is_input: bool, prefix: str = "") -> str:
    """A type in TypeScript; names are those of `prefix`."""
    match kind.kind:
        case "ref":
            return prefix + type_name(kind.name)
        case "time":
            return "string | Date" if is_input else "string"
        case "file":
            return prefix + "Upload"
        case "enum":
            return " | ".join(json.dumps(value) for value in kind.values)
        case "array":
            inner = spell(kind.parts[0], is_input=is_input, prefix=prefix)
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case "map":
            return f"{{ [key: string]: {spell(kind.parts[0], is_input=is_input, prefix=prefix)} }}"
        case "object":
            return "{ " + " ".join(property_line(one, is_input, prefix) for one in kind.fields) + " }"
        case "union":
            return " | ".join(spell(part, is_input=is_input, prefix=prefix) for part in kind.parts)
        case "any":
            return "unknown"
        case other:
            return NATIVE[other]


def property_line(one: Field, is_input: bool, prefix: str = "") -> str:
    name = one.name if re.fullmatch(r"[A-Za-z_]\w*", one.name) else json.dumps(one.name)
    return f"{name}{'' if one.is_required else '?'}: {spell(one.type, is_input=is_input, prefix=prefix)};"


def comment(text: str, indent: str = "") -> str:
    """A comment of lines that are not too long."""
    if not text:
        return ""
    text = text.replace("*/", "* /")
    if len(text) + len(indent) <= 108:
        return f"{indent}/** {text} */\n"
    lines, line = [], ""
    for word in text.split():
        if line and len(indent) + len(line) + len(word) > 108:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    body = "".join(f"{indent} * {one}\n" for one in [*lines, line])
    return f"{indent}/**\n{body}{indent} */\n"


def types(model: Model) -> str:
    parts = [HEADER, 'import type { Upload } from "../files.js";\n']
    for schema in model.schemas.values():
        if schema.name not in ("CompanyEvent", "EventData"):
            parts.append(schema_text(schema))
    for kind, title, data in model.events:
        parts.append(
            comment(f"`{kind}`")
            + f"export interface {title} extends EventBase {{\n  type: {json.dumps(kind)};\n"
            + f"  /** The record at that time. */\n  data: {spell(data, is_input=False)};\n}}\n"
        )
    parts.append(event_base(model.schemas["CompanyEvent"]))
    titles = "".join(f"\n  | {title}" for _, title, _ in model.events)
    parts.append(f"/** A change of a record: `type` determines the type of `data`. */\nexport type CompanyEvent ={titles};\n")
    codes = "".join(f"\n  | {json.dumps(code)}" for code in model.codes)
    parts.append(f"/** A stable identifier of an error. */\nexport type ErrorCode ={codes};\n")
    return "\n".join(parts)


def schema_text(schema: Schema) -> str:
    if schema.type.kind != "object":
        body = spell(schema.type, is_input=schema.is_input)
        return comment(schema.text) + f"export type {type_name(schema.name)} = {body};\n"
    lines = "".join(
        comment(one.text, "  ") + f"  {property_line(one, schema.is_input)}\n" for one in schema.type.fields
    )
    return comment(schema.text) + f"export interface {type_name(schema.name)} {{\n{lines}}}\n"


def event_base(event: Schema) -> str:
    fields = [one for one in event.type.fields if one.name not in ("type", "data")]
    lines = "".join(comment(one.text, "  ") + f"  {property_line(one, False)}\n" for one in fields)
    return f"/** The fields of every event. */\nexport interface EventBase {{\n{lines}}}\n"


def errors(model: Model) -> str:
    parts = [HEADER, 'import { ApiError } from "../errors.js";\n']
    general = set(model.statuses.values())
    for status, name in model.statuses.items():
        parts.append(f"/** The status {status}. */\nexport class {name} extends ApiError {{}}\n")
    for code, (status, name) in model.codes.items():
        if name not in general:
            parts.append(f"/** `{code}` */\nexport class {name} extends {model.statuses[status]} {{}}\n")
    by_status = "".join(f"  {status}: {name},\n" for status, name in model.statuses.items())
    parts.append(f"export const ERRORS_BY_STATUS: Readonly<Record<number, typeof ApiError>> = {{\n{by_status}}};\n")
    by_code = "".join(f"  {code}: {{ status: {status}, error: {name} }},\n" for code, (status, name) in model.codes.items())
    parts.append(
        "/** Every code of the document, the status it comes with, and its class. */\n"
        f"export const ERRORS_BY_CODE: Readonly<Record<string, {{ status: number; error: typeof ApiError }}>> = {{\n{by_code}}};\n"
    )
    return "\n".join(parts)


def operations(model: Model) -> str:
    lines = "".join(
        f"  {one.id}: {{ resource: {json.dumps(one.resource)}, name: {json.dumps(one.name)}, "
        f"method: {json.dumps(one.method)}, path: {json.dumps(one.path)} }},\n"
        for one in model.operations
    )
    return (
        f"{HEADER}\n/** Every operation of the document that a token may call, and the method that calls it. */\n"
        f"export const OPERATIONS = {{\n{lines}}} as const;\n"
    )


def resources(model: Model) -> str:
    parts = [
        HEADER,
        'import type { List } from "../list.js";\n'
        'import { Resource, segment } from "../resource.js";\n'
        'import type { CallOptions, ConditionalOptions, ConditionalWriteOptions, WriteOptions } from "../options.js";\n'
        'import type { Transport } from "../transport.js";\n'
        'import type { Upload } from "../files.js";\n'
        'import type * as t from "./types.js";\n',
    ]
    for resource in model.resources:
        parts += [query_type(one) for one in resource.operations if one.query]
        parts += [form_type(one) for one in resource.operations if one.form]
        parts.append(resource_class(resource))
    fields = "".join(f"  readonly {one.name}: {one.class_name};\n" for one in model.resources)
    made = "".join(f"    this.{one.name} = new {one.class_name}(transport);\n" for one in model.resources)
    parts.append(
        f"/** The resources of the API. */\nexport class Resources {{\n{fields}\n"
        f"  constructor(transport: Transport) {{\n{made}  }}\n}}\n"
    )
    return "\n".join(parts)


def query_name(one: Operation) -> str:
    return one.id[0].upper() + one.id[1:] + "Query"


def query_type(one: Operation) -> str:
    lines = "".join(comment(item.text, "  ") + f"  {property_line(item, True, 't.')}\n" for item in one.query)
    return f"/** What `{one.resource}.{one.name}` may be narrowed by. */\nexport interface {query_name(one)} {{\n{lines}}}\n"


def form_name(one: Operation) -> str:
    return one.id[0].upper() + one.id[1:] + "Body"


def form_type(one: Operation) -> str:
    return (
        f"/** What `{one.resource}.{one.name}` sends; with files, as a form. */\n"
        f"export interface {form_name(one)} extends t.{one.body} {{\n"
        "  /** Files to send: contents, streams, or `fromPath` of `@hotline/client/node`. */\n  medias?: Upload[];\n}\n"
    )


def resource_class(resource: Resource) -> str:
    methods = "\n".join(method(one) for one in resource.operations)
    return f"/** The operations on {resource.name}. */\nexport class {resource.class_name} extends Resource {{\n{methods}}}\n"


def options_type(one: Operation) -> str:
    if one.is_keyed:
        return "ConditionalWriteOptions" if one.is_conditional else "WriteOptions"
    return "ConditionalOptions" if one.is_conditional else "CallOptions"


def returned(one: Operation) -> str:
    if one.result == "none":
        return "void"
    assert one.type is not None
    return spell(one.type, is_input=False, prefix="t.")


def arguments(one: Operation) -> str:
    given = [f"{item.name}: {spell(item.type, is_input=True, prefix='t.')}" for item in one.path_fields]
    if one.body:
        body = form_name(one) if one.form else f"t.{one.body}"
        given.append(f"body: {body}" if one.is_body_required else f"body: {body} = {{}}")
    if one.query:
        given.append(f"query: {query_name(one)} = {{}}")
    given.append(f"options: {options_type(one)} = {{}}")
    return ", ".join(given)


def call(one: Operation) -> str:
    """The description of the request, for the transport."""
    path = re.sub(r"\{(\w+)\}", r"${segment(\1)}", one.path)
    parts = [f"id: {json.dumps(one.id)}", f"method: {json.dumps(one.method)}"]
    parts.append(f"path: `{path}`" if one.path_fields else f"path: {json.dumps(path)}")
    parts += ["query"] * bool(one.query) + ["body"] * bool(one.body)
    parts += ["keyed: true"] * one.is_keyed
    if one.secret:
        parts.append(f"secret: {json.dumps(one.secret)}")
    return "{ " + ", ".join(parts) + " }"


def method(one: Operation) -> str:
    kind = returned(one)
    head = comment(f"{one.summary}. {one.text}" if one.text else one.summary, "  ")
    if one.is_paged:
        return f"{head}  {one.name}({arguments(one)}): List<{kind}> {{\n    return this.transport.list<{kind}>({call(one)}, options);\n  }}\n"
    if one.result == "stream":
        return (
            f"{head}  {one.name}({arguments(one)}): AsyncGenerator<{kind}, void, undefined> {{\n"
            f"    return this.transport.stream<{kind}>({call(one)}, options);\n  }}\n"
        )
    transport = {"none": "nothing", "whole": "whole", "data": "data"}[one.result]
    generic = "" if one.result == "none" else f"<{kind}>"
    text = (
        f"{head}  {one.name}({arguments(one)}): Promise<{kind}> {{\n"
        f"    return this.transport.{transport}{generic}({call(one)}, options);\n  }}\n"
    )
    if one.has_csv:
        text += (
            f"\n{comment(f'The same as CSV. {one.summary}.', '  ')}  {one.name}Csv({arguments(one)}): Promise<string> {{\n"
            f"    return this.transport.text({call(one)}, \"text/csv\", options);\n  }}\n"
        )
    return text
