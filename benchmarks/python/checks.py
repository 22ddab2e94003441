# SPDX-License-Identifier: MIT
"""Types of arguments for argparse: what cannot be used is refused before anything is measured, which takes minutes."""
import argparse
import os


def seconds(text):
    number = float(text)
    if not 0 <= number <= 3600:
        raise argparse.ArgumentTypeError("0 ... 3600")
    return number


def at_least_one(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def file_to_write(text):
    place = text if os.path.exists(text) else os.path.dirname(text) or "."
    if os.path.isdir(text) or not os.access(place, os.W_OK):
        raise argparse.ArgumentTypeError(f"no file can be written to '{text}'")
    return text
