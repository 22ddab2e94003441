#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: numbers.py BEFORE.xml BEFORE_INCLUDE AFTER.xml AFTER_INCLUDE
Numbers that programs have compiled in: prints each enumerator, macro and struct member of the public headers that is
gone, or has another value, place or type. Additions are ignored. The XML is abidw's."""
import pathlib
import re
import sys
import xml.etree.ElementTree

GROWS = re.compile(r"\.reserved ")  # later members replace it
MACRO = re.compile(r"^#define (RAPT_\w+) +(\(?(?:U?INT64_C\(|-?\d).*?) *(?:/\*.*)?$", re.MULTILINE)
RISES = re.compile(r"^RAPT_\w*VERSION")


def type_text(types, number):
    node = types[number]
    if node.tag in ("pointer-type-def", "array-type-def", "qualified-type-def"):
        extra = {key: value for key, value in node.items() if key in ("size-in-bits", "const")}
        return f"{node.tag} {extra} {type_text(types, node.get('type-id'))}"
    return node.get("name", node.tag)


def layout(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    types = {node.get("id"): node for node in root.iter() if node.get("id")}
    for node in root.iter("enumerator"):
        if node.get("name").startswith("RAPT_"):
            yield f"{node.get('name')} = {node.get('value')}"
    for node in root.iter("class-decl"):
        if "include/rapt/" in node.get("filepath", ""):
            for member in node.iter("data-member"):
                variable = member.find("var-decl")
                yield (f"{node.get('name')}.{variable.get('name')} at bit {member.get('layout-offset-in-bits')}: "
                       + type_text(types, variable.get("type-id")))


def macros(include):
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(include).glob("rapt/*.h")))
    for name, value in MACRO.findall(text):
        yield f"{name} is {value}"


def numbers(path, include):
    lines = {*layout(path), *macros(include)}
    return {line for line in lines if not GROWS.search(line) and not RISES.search(line)}


before, after = numbers(*sys.argv[1:3]), numbers(*sys.argv[3:5])
if not before:
    sys.exit("numbers: found none")
for line in sorted(before - after):
    print("numbers: gone or changed:", line)
sys.exit(bool(before - after))
