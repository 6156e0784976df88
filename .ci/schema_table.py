#!/usr/bin/env python3
"""Makes src/wire/guard/table.rs: the layout of every request, and of the answers that this broker asks others for, as data, from the JSON schemas inside Kafka's clients jar.

    .ci/schema_table.py kafka-clients-4.3.1.jar > src/wire/guard/table.rs

Needs nothing but Python's standard library. Only numbers and names come over; the schemas' texts do not.
"""
import json, re, sys, zipfile

ALWAYS = 32767
KINDS = {"bool": "BOOL", "int8": "I8", "int16": "I16", "uint16": "I16", "int32": "I32", "uint32": "I32", "int64": "I64", "float64": "I64",
         "uuid": "UUID", "string": "STR", "bytes": "BYTES", "records": "BYTES"}


def versions(text):
    """A version range as (first, last), or None."""
    if text in (None, "none"):
        return None
    first, _, last = text.partition("-")
    if text.endswith("+"):
        return int(text[:-1]), ALWAYS
    return int(first), int(last or first)


# What brokers and controllers ask each other: the answers to these are walked, too.
ASKED = {1, 18, 52, 53, 54, 59}


def schemas(jar, kind):
    with zipfile.ZipFile(jar) as z:
        for name in z.namelist():
            if re.fullmatch(rf"common/message/\w+{kind}\.json", name):
                text = re.sub(r"^\s*//.*$", "", z.read(name).decode(), flags=re.M)
                yield json.loads(text)


class Table:
    def __init__(self):
        self.structs, self.known, self.apis, self.answers = [], {}, [], []

    def struct(self, fields, commons, limits):
        """Number of the struct with these fields; equal structs are one."""
        rows = []
        for f in fields:
            assert "flexibleVersions" not in f, f"{f['name']}: a field that is flexible on its own terms is not provided for"
            here = versions(f["versions"])
            here = max(here[0], limits[0]), min(here[1], limits[1])
            if here[0] > here[1]:
                continue
            null, tagged = versions(f.get("nullableVersions")), versions(f.get("taggedVersions"))
            if null:
                assert null[1] == ALWAYS or null[1] >= here[1], f"{f['name']}: null is forbidden again later"
            kind, sub, array = f["type"], 0, f["type"].startswith("[]")
            if array:
                kind = kind[2:]
            if kind in KINDS:
                shape = KINDS[kind]
            else:
                shape, sub = "STRUCT", self.struct(f.get("fields") or commons[kind], commons, here)
            null_from = null[0] if null else ALWAYS
            tag_from = tagged[0] if tagged else ALWAYS
            if tagged:
                assert tagged[1] == ALWAYS or tagged[1] >= here[1], f"{f['name']}: tagged, then not"
            if here[0] < tag_from:
                rows.append((shape, array, here[0], min(here[1], tag_from - 1), null_from, -1, sub))
            if tag_from <= here[1]:
                rows.append((shape, array, max(here[0], tag_from), here[1], null_from, f["tag"], sub))
        rows = tuple(rows)
        if rows not in self.known:
            self.known[rows] = len(self.structs)
            self.structs.append(rows)
        return self.known[rows]

    def add(self, schema, into):
        valid, flexible = versions(schema["validVersions"]), versions(schema.get("flexibleVersions"))
        if not valid:
            return
        commons = {c["name"]: c["fields"] for c in schema.get("commonStructs", [])}
        root = self.struct(schema["fields"], commons, valid)
        name = schema["name"].removesuffix("Request").removesuffix("Response")
        into.append((schema["apiKey"], name, *valid, flexible[0] if flexible else ALWAYS, root))


def rust(table):
    out = ["""//! What every request looks like on the wire, as data. Made by `.ci/schema_table.py` from the schemas of Apache Kafka 4.3.1; do not edit.
//!
//! A field: `f(shape, first version, last version, null from version, tag, struct)`, where `N` means never, or no tag.

use super::schema::{Api, Field, N, a, f};
use super::schema::Shape::{ArrayOf, One};
use super::schema::Kind::*;
""".rstrip()]
    kinds = {"BOOL": "Bool", "I8": "I8", "I16": "I16", "I32": "I32", "I64": "I64", "UUID": "Uuid", "STR": "Str", "BYTES": "Bytes", "STRUCT": "Struct"}
    num = lambda v: "N" if v in (ALWAYS, -1) else str(v)
    out.append("\n/// The fields of each struct, in wire order.\n#[rustfmt::skip]\npub(super) static STRUCTS: &[&[Field]] = &[")
    for i, rows in enumerate(table.structs):
        cells = [f"f({'ArrayOf' if array else 'One'}({kinds[shape]}), {first}, {num(last)}, {num(null)}, {num(tag)}, {sub})"
                 for shape, array, first, last, null, tag, sub in rows]
        line = f"    /* {i} */ &["
        for cell in cells:
            if len(line) + len(cell) > 136:
                out.append(line.rstrip())
                line = "        "
            line += cell + ", "
        out.append(line.removesuffix(", ") + "],")
    out.append("];\n\n/// The requests, by API key: `a(key, name, first version, last version, first flexible version, struct)`.")
    out.append("#[rustfmt::skip]\npub(super) static APIS: &[Api] = &[")
    for key, name, first, last, flexible, root in sorted(table.apis):
        out.append(f'    a({key}, "{name}", {first}, {last}, {num(flexible)}, {root}),')
    out.append("];\n\n/// The answers to what this broker asks others, in the same form.")
    out.append("#[rustfmt::skip]\npub(super) static ANSWERS: &[Api] = &[")
    for key, name, first, last, flexible, root in sorted(table.answers):
        out.append(f'    a({key}, "{name}", {first}, {last}, {num(flexible)}, {root}),')
    out.append("];")
    return "\n".join(out)


if __name__ == "__main__":
    table = Table()
    for schema in sorted(schemas(sys.argv[1], "Request"), key=lambda s: s["apiKey"]):
        table.add(schema, table.apis)
    for schema in sorted(schemas(sys.argv[1], "Response"), key=lambda s: s["apiKey"]):
        if schema["apiKey"] in ASKED:
            table.add(schema, table.answers)
    assert len(table.structs) < 255, "struct numbers are bytes in the table"
    print(rust(table))
