# SPDX-License-Identifier: MIT
"""Draws what ./dev bench sweep and ./dev bench peers wrote."""
import argparse
import json
import os

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

import pictures_of_peers
import pictures_of_sweeps


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def set_style():
    plt.style.use("petroff10")  # its colours are told apart by the colour-blind
    plt.rcParams.update({
        "figure.dpi": 100, "font.size": 10, "axes.grid": True, "grid.alpha": 0.35, "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "lines.markersize": 4,
        "svg.hashsalt": "rapt"})


def save(figure, folder, name, form):
    path = os.path.join(folder, f"{name}.{form}")
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None} if form == "svg" else None)
    plt.close(figure)
    print(path)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench plot", description=__doc__)
    parser.add_argument("sweep", help="file of ./dev bench sweep")
    parser.add_argument("peers", nargs="?", help="file of ./dev bench peers")
    parser.add_argument("--into", default="docs/pictures", help="folder, default docs/pictures")
    parser.add_argument("--only", help="one picture of sweeps: " + ", ".join(pictures_of_sweeps.PICTURES))
    parser.add_argument("--format", default="svg", choices=["svg", "png"])
    arguments = parser.parse_args()
    set_style()
    os.makedirs(arguments.into, exist_ok=True)
    sweep = load(arguments.sweep)
    for name, draw in pictures_of_sweeps.PICTURES.items():
        if arguments.only in (None, name):
            save(draw(sweep), arguments.into, name, arguments.format)
    if arguments.peers:
        save(pictures_of_peers.peers(load(arguments.peers)), arguments.into, "peers", arguments.format)


if __name__ == "__main__":
    main()
