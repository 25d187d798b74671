"""Writes a page for each resource of the API, from `openapi.json`: operations, parameters, fields, errors and examples.

The names of methods are those of the clients' generator, so that the examples are calls of the clients.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients" / "generate"))
sys.dont_write_bytecode = True

import model  # noqa: E402
from python import snake  # noqa: E402

ERRORS = "errors.md"
# Texts that a client sends as a time are shown so.
TIME = "2026-01-31T12:00:00Z"


class Pages:
    """The pages by path, below the site's root."""

    def __init__(self):
        self.document = json.loads(model.DOCUMENT.read_text())
        self.schemas = self.document["components"]["schemas"]
        self.model = model.read()
        self.raw = {one["operationId"]: one for methods in self.document["paths"].values() for one in methods.values()}

    def all(self):
        """The pages in the order of the navigation."""
        pages = {"api/README.md": self.index(), f"api/{ERRORS}": self.errors()}
        for resource in self.model.resources:
            pages[f"api/{file_of(resource)}"] = self.resource(resource)
        return pages

    def index(self):
        rows = "".join(
            f"| [{heading(one.name)}]({file_of(one)}) | {', '.join(f'[{op.name}]({file_of(one)}#{anchor(op.summary)})' for op in one.operations)} |\n"
            for one in self.model.resources
        )
        count = len(self.model.operations)
        return (
            f"# API\n\nThe {count} operations that a token may call, by resource. This is generated from the [API "
            "document](https://github.com/hotline-hq/hotline/blob/main/openapi.json), which a running service has at "
            "`/api/v1/openapi.json`, beside a page to read and try it at `/docs`. What visitors' browsers call is in "
            "[webchat](../webchat.md), what Hotline sends in [events](../events.md).\n\n"
            "Requests need `Authorization: Bearer TOKEN`. A successful response is `{\"data\": …}`, an error "
            f"`{{\"error\": {{code, message, details}}}}` ([codes]({ERRORS})). [Clients](../clients.md) for TypeScript and "
            "Python have a method for each operation.\n\n"
            f"| resource | operations |\n|---|---|\n{rows}"
        )

    def errors(self):
        rows = "".join(
            f"| {status} | `{code}` | `{name}` |\n" for code, (status, name) in sorted(self.model.codes.items(), key=lambda item: (item[1][0], item[0]))
        )
        return (
            "# Error codes\n\nDecide by `code`; `message` is for developers and may change. How to react to each status: [errors and "
            "retries](../guide/integrator.md#errors-and-retries).\n\n"
            f"| status | code | class in the clients |\n|---|---|---|\n{rows}"
        )

    def resource(self, resource):
        parts = [f"# {heading(resource.name)}\n"]
        tags = {tag["name"]: tag["description"] for tag in self.document["tags"]}
        if text := tags.get(self.raw[resource.operations[0].id]["tags"][0]):
            parts.append(text + "\n")
        reached = []
        for one in resource.operations:
            parts.append(self.operation(one, reached))
        records = [name for name in self.closure(reached) if self.schemas[name].get("properties")]
        parts += [self.record(name, records) for name in records]
        return "\n".join(parts)

    def closure(self, names):
        found = list(dict.fromkeys(names))
        for name in found:
            found += [one for one in refs(self.schemas[name]) if one not in found]
        return found

    def operation(self, one, reached):
        raw = self.raw[one.id]
        lines = [f"## {one.summary}\n", f"`{one.method} {one.path}`\n", one.text + "\n"]
        lines.append(self.needs(one))
        parameters = [each for each in raw.get("parameters", []) if each["in"] != "header"]
        if parameters:
            rows = "".join(
                f"| `{each['name']}` | {each['in']} | {self.type(each['schema'])} | {cell(each.get('description') or each['schema'].get('description', ''))}"
                f"{' Required.' if each.get('required') and each['in'] == 'query' else ''} |\n"
                for each in parameters
            )
            lines.append(f"| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}")
        if one.body:
            rows = "".join(self.rows(self.schemas[one.body]))
            lines.append(f"| field of the body | type | meaning |\n|---|---|---|\n{rows}")
        lines.append(self.result(one, raw, reached))
        lines.append(self.statuses(raw))
        lines.append(self.examples(one))
        return "\n".join(line for line in lines if line.strip())+ "\n"

    def needs(self, one):
        notes = ["Takes effect once with an `Idempotency-Key`."] * one.is_keyed
        notes += ["`If-Match` makes it depend on the record's state."] * one.is_conditional
        notes += ["`Accept: text/csv` gives CSV."] * one.has_csv
        return "".join(f"- {note}\n" for note in notes)

    def result(self, one, raw, reached):
        status, response = next((status, each) for status, each in raw["responses"].items() if status[0] == "2")
        if one.result == "none":
            return f"Response: `{status}`, without a body.\n"
        if one.result == "stream":
            return f"Response: `{status}`, a stream of [events](../events.md).\n"
        envelope = self.schemas[model.ref_name(response["content"]["application/json"]["schema"]["$ref"])]
        data = envelope["properties"]["data"]
        reached += refs(data)
        kind = self.type(data, is_linked=True)
        meta = envelope["properties"].get("meta")
        if meta and refs(meta) != ["PageMeta"]:
            reached += refs(meta)
            return f"Response: `{status}`, `data` is {kind}, and `meta` {self.type(meta, is_linked=True)}.\n"
        return f"Response: `{status}`, `data` is {kind}{', with `meta.nextCursor`' if one.is_paged else ''}.\n"

    def statuses(self, raw):
        known = {status for status, _ in self.model.codes.values()}
        shown = [f"[`{status}`]({ERRORS})" for status in raw["responses"] if status[0] in "45" and int(status) in known]
        return f"Errors: {', '.join(shown)}.\n" if shown else ""

    def record(self, name, records):
        schema = self.schemas[name]
        rows = "".join(self.rows(schema, records=records))
        return f"## {name}\n\n{text_of(schema)}\n\n| field | type | meaning |\n|---|---|---|\n{rows}"

    def rows(self, schema, prefix="", records=None):
        """A row for each field; those of an object within follow it."""
        required = schema.get("required", []) if records is None else []
        for name, value in schema.get("properties", {}).items():
            note = " Required." if name in required else ""
            yield f"| `{prefix}{name}` | {self.type(value, is_linked=records is not None)} | {cell(value.get('description', ''))}{note} |\n"
            inner, suffix = (value.get("items", {}), "[].") if "items" in value else (value, ".")
            if inner.get("properties"):
                yield from self.rows(inner, prefix + name + suffix, records)

    def type(self, schema, is_linked=False):
        """What a value is, in words."""
        if "$ref" in schema:
            name = model.ref_name(schema["$ref"])
            target = self.schemas[name]
            if target.get("properties"):
                return f"[{name}](#{name.lower()})" if is_linked else name
            return self.type(target, is_linked)
        if "oneOf" in schema:
            return " or ".join(dict.fromkeys(self.type(part, is_linked) for part in schema["oneOf"]))
        if "enum" in schema:
            return " or ".join("`null`" if value is None else f"`{value}`" for value in schema["enum"])
        kinds = schema.get("type", "any value")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        names = []
        for kind in kinds:
            if kind == "array":
                names.append(f"array of {self.type(schema['items'], is_linked)}")
            elif kind == "string":
                names.append({"date-time": "time", "binary": "file"}.get(schema.get("format"), "string"))
            else:
                names.append("`null`" if kind == "null" else kind)
        return " or ".join(names)

    def example_of(self, schema):
        """A value that the schema allows."""
        if "$ref" in schema:
            return self.example_of(self.schemas[model.ref_name(schema["$ref"])])
        for name in ("example", "default"):
            if name in schema:
                return schema[name]
        if "examples" in schema:
            return schema["examples"][0]
        if "enum" in schema:
            return schema["enum"][0]
        if "oneOf" in schema:
            return self.example_of(schema["oneOf"][0])
        kind = schema.get("type", "string")
        kind = next(each for each in kind if each != "null") if isinstance(kind, list) else kind
        if kind == "array":
            return [self.example_of(schema["items"])]
        if kind == "object":
            return self.body(schema)
        return {"integer": 7, "number": 1, "boolean": True}.get(kind, TIME if schema.get("format") == "date-time" else "…")

    def body(self, schema):
        """The required fields; if there are none, the first."""
        properties = schema.get("properties", {})
        names = schema.get("required") or list(properties)[:1]
        return {name: self.example_of(properties[name]) for name in names}

    def body_example(self, one):
        if not one.body:
            return None
        content = self.raw[one.id]["requestBody"]["content"]["application/json"]
        if given := content.get("examples"):
            return (given.get("text") or next(iter(given.values())))["value"]
        return content["example"]

    def examples(self, one):
        body = self.body_example(one)
        path = {field.name: self.path_example(one, field.name) for field in one.path_fields}
        query = {each["name"]: self.example_of(each["schema"]) for each in self.raw[one.id].get("parameters", []) if each["in"] == "query" and each.get("required")}
        curl = curl_of(one, path, query, body)
        return f"```sh\n{curl}```\n\n```js\n{typescript_of(one, path, query, body)}```\n\n```python\n{python_of(one, path, query, body)}```\n"

    def path_example(self, one, name):
        raw = next(each for each in self.raw[one.id]["parameters"] if each["name"] == name)
        return raw.get("example") or self.example_of(raw["schema"])


def heading(name):
    """`wrapupTypes` is Wrapup types."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return words[0].upper() + words[1:]


def file_of(resource):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", resource.name).lower() + ".md"


def anchor(text):
    """As the site makes it of a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def cell(text):
    return model.clean(text).replace("|", "\\|")


def text_of(schema):
    return model.clean(schema.get("description", ""))


def refs(value):
    """The names a schema refers to, in order."""
    if isinstance(value, dict):
        own = [model.ref_name(value["$ref"])] if "$ref" in value else []
        return own + [name for each in value.values() for name in refs(each)]
    return [name for each in value for name in refs(each)] if isinstance(value, list) else []


def curl_of(one, path, query, body):
    url = one.path
    for name, value in path.items():
        url = url.replace("{" + name + "}", str(value))
    if query:
        url += "?" + "&".join(f"{name}={value}" for name, value in query.items())
    lines = [f'curl "$HOTLINE_URL{url}" -H "Authorization: Bearer $HOTLINE_API_KEY"']
    if one.method not in ("GET", "POST") or (one.method == "POST" and body is None):
        lines[0] = lines[0].replace("curl ", f"curl -X {one.method} ", 1)
    if one.is_keyed:
        lines.append(f"-H 'Idempotency-Key: {one.id}-1'")
    if body is not None:
        text = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
        lines += ["-H 'Content-Type: application/json'", f"-d '{text}'"]
    return " \\\n  ".join(lines) + "\n"


def script(value):
    """A value in JavaScript: names without quotes."""
    return re.sub(r'"([A-Za-z_]\w*)":', r"\1:", json.dumps(value, ensure_ascii=False))


def typescript_of(one, path, query, body):
    arguments = [json.dumps(value) for value in path.values()]
    arguments += [script(body)] if body is not None else []
    arguments += [script(query)] if query else []
    call = f"hotline.{one.resource}.{one.name}({', '.join(arguments)})"
    if one.result in ("page", "stream"):
        return f"for await (const record of {call}) console.log(record);\n"
    return f"await {call};\n" if one.result == "none" else f"const result = await {call};\n"


def python_of(one, path, query, body):
    arguments = [repr(value) for value in path.values()]
    arguments += [f"{snake(name)}={value!r}" for name, value in {**(body or {}), **query}.items()]
    call = f"hotline.{snake(one.resource)}.{snake(one.name)}({', '.join(arguments)})"
    if one.result in ("page", "stream"):
        return f"for record in {call}:\n    print(record)\n"
    return f"{call}\n" if one.result == "none" else f"result = {call}\n"


def examples_of(language):
    """The examples of every page in one language, as one file: `clients/test.sh` checks their types."""
    text = "\n".join(Pages().all().values())
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if language == "python":
        bodies = ["".join(f"    {line}\n" for line in block.splitlines()) for block in blocks]
        functions = "".join(f"\n\ndef example{number}() -> None:\n{body}" for number, body in enumerate(bodies))
        return f"from hotline import Hotline\n\nhotline = Hotline()\n{functions}"
    functions = ""
    for number, block in enumerate(blocks):
        body = block.replace("const result = ", "return ") if "const result" in block else block + "return undefined;\n"
        functions += f"export async function example{number}(): Promise<unknown> {{\n{body}}}\n"
    return f'import {{ Hotline }} from "../src/index.js";\n\nconst hotline = new Hotline();\n{functions}'


def bodies():
    """The examples of bodies as requests of JSON: `clients/examples/test.mjs` sends them to the service."""
    pages = Pages()
    requests = []
    for one in pages.model.operations:
        if one.body:
            url = one.path
            for field in one.path_fields:
                url = url.replace("{" + field.name + "}", str(pages.path_example(one, field.name)))
            requests.append({"id": one.id, "method": one.method, "path": url, "body": pages.body_example(one)})
    return json.dumps(requests, ensure_ascii=False)


if __name__ == "__main__":
    print(bodies() if sys.argv[1] == "bodies" else examples_of(sys.argv[1]), end="")
