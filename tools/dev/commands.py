#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The compile commands of a Meson build folder, where several targets may share a source.

usage: commands.py BUILD all [PART]  commands that read the sources whose path has PART and generate no code, each
                                     ended by a zero byte
       commands.py BUILD others      the same, without the first command of each C source
       commands.py BUILD once        writes BUILD/once/compile_commands.json with this first one, and prints the paths
"""
import json
import os
import sys


def main(build, verb, part=""):
    with open(f"{build}/compile_commands.json") as file:
        commands = json.load(file)
    first = {}
    for command in commands:
        if command["file"].endswith(".c"):
            first.setdefault(command["file"], command)
    if verb == "once":
        os.makedirs(f"{build}/once", exist_ok=True)
        with open(f"{build}/once/compile_commands.json", "w") as file:
            json.dump(list(first.values()), file)
        for command in first.values():
            print(os.path.relpath(os.path.join(command["directory"], command["file"])))
        return
    for command in commands:
        if part in command["file"] and (verb == "all" or command is not first.get(command["file"])):
            sys.stdout.write('cd "{directory}" && {command} -fsyntax-only\0'.format(**command))


main(*sys.argv[1:])
