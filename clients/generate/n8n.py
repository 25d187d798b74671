"""Writes the generated part of the n8n node: the operations people use, as fields of its form and as requests."""

from __future__ import annotations

import json
import re

from model import Field, Incomplete, Model, Operation, Resource, Type

HEADER = "// Generated from openapi.json by `make clients-generate`. Do not edit.\n"
# The resources of the node; every operation on them is one of the node.
RESOURCES = ("messages", "tickets", "contacts", "cards", "campaigns")
# Optional fields that most calls have: shown at once, and left out of the request while they are empty.
PROMINENT = {"sendMessage": ("body", "ticketId")}
# Words that are not capitalised as others are.
WORDS = {"Id": "ID", "Ids": "IDs", "Url": "URL", "Utm": "UTM", "Lid": "LID", "Csv": "CSV", "Crm": "CRM", "Sku": "SKU", "Pic": "Picture"}
SMALL = {"A", "An", "And", "By", "For", "From", "In", "Of", "On", "Or", "The", "To", "With"}
LABELS = {"crmBoardListId": "Stage ID"}
# Filled by the node itself.
PAGING = ("perPage", "cursor", "page")


def files(model: Model) -> dict[str, str]:
    """The files by path, below the node's `generated`."""
    resources = [one for one in model.resources if one.name in RESOURCES]
    if len(resources) != len(RESOURCES):
        raise Incomplete(f"the n8n node needs the resources {', '.join(RESOURCES)}")
    return {"properties.ts": properties(model, resources), "operations.ts": operations(model, resources), "events.ts": events(model)}


def title(name: str) -> str:
    """`ticketId` is Ticket ID."""
    if name in LABELS:
        return LABELS[name]
    words = [word[0].upper() + word[1:] for word in re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[ _.-]+", " ", name).split()]
    words = [WORDS.get(word, word) for word in words]
    return " ".join(word.lower() if word in SMALL and 0 < index < len(words) - 1 else word for index, word in enumerate(words))


def sentence(text: str) -> str:
    """Descriptions of n8n are without markup, and end in a full stop only if they are several sentences."""
    text = text.replace("`", "").strip()
    is_one = not re.search(r"[.:;] [A-Z0-9]", text)
    return text.rstrip(".") if is_one else text if text.endswith(".") else text + "."


def body_of(model: Model, one: Operation) -> list[Field]:
    return list(model.schemas[one.body].type.fields) if one.body else []


def filters_of(one: Operation) -> list[Field]:
    return [item for item in one.query if item.name not in PAGING]


def parts(model: Model, kind: Type) -> list[Type]:
    """The types that a value may have, but for null."""
    if kind.kind == "ref":
        return parts(model, model.schemas[kind.name].type)
    if kind.kind == "union":
        return [inner for part in kind.parts for inner in parts(model, part)]
    return [] if kind.kind == "null" else [kind]


def kind_of(model: Model, field: Field) -> tuple[str, tuple[str, ...]]:
    """What the form shows for a field, and the values it offers."""
    found = parts(model, field.type)
    if len(found) != 1:
        return "json", ()
    kind = found[0]
    if kind.kind == "enum":
        return "options", kind.values
    if kind.kind == "array":
        inner = parts(model, kind.parts[0])
        if len(inner) == 1 and inner[0].kind == "enum":
            return "multiOptions", inner[0].values
        return ("list" if len(inner) == 1 and inner[0].kind == "integer" else "json"), ()
    return {"integer": "number", "number": "number", "boolean": "boolean", "time": "dateTime", "string": "string"}.get(kind.kind, "json"), ()


def field_property(model: Model, field: Field, *, is_required: bool = False) -> dict:
    shown, values = kind_of(model, field)
    text = sentence(field.text)
    if shown == "boolean" and not text.startswith("Whether"):
        text = "Whether it " + text[0].lower() + text[1:] if text else f"Whether {title(field.name).lower()}"
    if shown == "list":
        text = (text + ", " if text else "") + "as IDs separated by commas"
    made: dict = {"displayName": title(field.name), "name": field.name, "type": "string" if shown == "list" else shown}
    if values:
        made["options"] = [{"name": title(str(value)), "value": value} for value in sorted(values, key=lambda value: title(str(value)))]
    if is_required:
        made["required"] = True
    made["default"] = default_of(shown, values)
    if field.name == "body":
        made["typeOptions"] = {"rows": 4}
    if text and text.lower() != title(field.name).lower():
        made["description"] = text
    return made


def default_of(shown: str, values: tuple[str, ...]):
    if shown == "options":
        return sorted(values, key=lambda value: title(str(value)))[0] if "text" not in values else "text"
    return {"number": 0, "boolean": False, "multiOptions": [], "json": "{}"}.get(shown, "")


def collection(model: Model, name: str, label: str, add: str, fields: list[Field], show: dict) -> list[dict]:
    if not fields:
        return []
    options = sorted((field_property(model, item) for item in fields), key=lambda item: item["displayName"].lower())
    return [{"displayName": label, "name": name, "type": "collection", "placeholder": add, "default": {}, "displayOptions": show, "options": options}]


def operation_properties(model: Model, resource: Resource, one: Operation) -> list[dict]:
    show = {"show": {"resource": [lower_noun(resource)], "operation": [one.name]}}
    body = body_of(model, one)
    prominent = PROMINENT.get(one.id, ())
    made = [field_property(model, item, is_required=True) for item in one.path_fields]
    made += [field_property(model, item, is_required=True) for item in body if item.is_required]
    made += [{**field_property(model, item), "default": ""} for item in body if item.name in prominent]
    made = [{**item, "displayOptions": show} for item in made]
    if one.is_paged:
        made += paging(show)
    if one.form:
        made.append({
            "displayName": "Input Binary Fields", "name": "binaryFields", "type": "string", "default": "data",
            "hint": "Names of the input's binary fields with the files, separated by commas",
            "displayOptions": {"show": {**show["show"], "type": ["media"]}},
        })
    optional = [item for item in body if not item.is_required and item.name not in prominent]
    is_update = one.name.startswith("update")
    made += collection(model, "fields", "Update Fields" if is_update else "Additional Fields", "Add Field", optional, show)
    made += collection(model, "filters", "Filters", "Add Filter", filters_of(one), show)
    if one.is_keyed:
        made.append(key_option(show))
    return made


def paging(show: dict) -> list[dict]:
    return [
        {"displayName": "Return All", "name": "returnAll", "type": "boolean", "default": False, "displayOptions": show,
         "description": "Whether to return all results or only up to a given limit"},
        {"displayName": "Limit", "name": "limit", "type": "number", "default": 50, "typeOptions": {"minValue": 1},
         "displayOptions": {"show": {**show["show"], "returnAll": [False]}}, "description": "Max number of results to return"},
    ]


def key_option(show: dict) -> dict:
    text = (
        "Within 24 hours, calls with the same key take effect once. By default, one of the execution, the node and the input: "
        "another attempt of the node repeats nothing."
    )
    key = {"displayName": "Idempotency Key", "name": "idempotencyKey", "type": "string", "default": "", "description": text}
    return {"displayName": "Options", "name": "options", "type": "collection", "placeholder": "Add Option", "default": {}, "displayOptions": show, "options": [key]}


def lower_noun(resource: Resource) -> str:
    return resource.noun[0].lower() + resource.noun[1:]


def label(one: Operation) -> str:
    if one.name == "list":
        return "Get Many"
    return title(re.sub(r"^list(?=[A-Z])", "getMany", one.name))


def properties(model: Model, resources: list[Resource]) -> str:
    nouns = sorted(resources, key=lambda one: one.noun)
    made: list[dict] = [{
        "displayName": "Resource", "name": "resource", "type": "options", "noDataExpression": True, "default": "message",
        "options": [{"name": title(one.noun), "value": lower_noun(one)} for one in nouns],
    }]
    for resource in nouns:
        known = sorted(resource.operations, key=label)
        first = next((one.name for one in known if one.name in ("send", "list")), known[0].name)
        made.append({
            "displayName": "Operation", "name": "operation", "type": "options", "noDataExpression": True, "default": first,
            "displayOptions": {"show": {"resource": [lower_noun(resource)]}},
            "options": [
                {"name": label(one), "value": one.name, "action": action(one), "description": sentence(one.text.split(" Requires ")[0] or one.summary)}
                for one in known
            ],
        })
    made += [item for resource in nouns for one in resource.operations for item in operation_properties(model, resource, one)]
    text = json.dumps(made, indent=2, ensure_ascii=False)
    return f'{HEADER}\nimport type {{ INodeProperties }} from "n8n-workflow";\n\n/** The form of the node. */\nexport const PROPERTIES: INodeProperties[] = {text};\n'


def action(one: Operation) -> str:
    text = re.sub(r"^List (the )?", "Get many ", one.summary)
    return text[0].upper() + text[1:]


def operations(model: Model, resources: list[Resource]) -> str:
    made = {}
    for resource in resources:
        for one in resource.operations:
            body = {item.name: kind_of(model, item)[0] for item in body_of(model, one)}
            query = {item.name: kind_of(model, item)[0] for item in filters_of(one)}
            made[f"{lower_noun(resource)}.{one.name}"] = {
                "id": one.id, "method": one.method, "path": one.path,
                "required": [item.name for item in body_of(model, one) if item.is_required],
                "prominent": list(PROMINENT.get(one.id, ())), "body": body, "query": query,
                "result": "page" if one.is_paged else one.result, "isKeyed": one.is_keyed,
            }
    text = json.dumps(made, indent=2)
    return f'{HEADER}\nimport type {{ Operation }} from "../operation";\n\n/** The request of each operation, by resource and operation. */\nexport const OPERATIONS: Readonly<Record<string, Operation>> = {text};\n'


def events(model: Model) -> str:
    kinds = sorted((kind for kind, _, _ in model.events if kind != "webhook.test"), key=title)
    options = json.dumps([{"name": title(kind), "value": kind} for kind in kinds], indent=2)
    return f'{HEADER}\nimport type {{ INodePropertyOptions }} from "n8n-workflow";\n\n/** The types of events. */\nexport const EVENTS: INodePropertyOptions[] = {options};\n'
