# SPDX-License-Identifier: MIT
"""All pictures of docs/pictures that are drawn from a recording. Text stays text, so it can be searched and read aloud."""
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

import pictures_of_bits
import pictures_of_peers
import pictures_of_sweeps

PICTURES = pictures_of_sweeps.PICTURES | pictures_of_peers.PICTURES | pictures_of_bits.PICTURES


def set_style():
    plt.style.use("petroff10")  # its colours are told apart by the colour-blind
    plt.rcParams.update({
        "figure.dpi": 100, "font.size": 11, "axes.grid": True, "grid.alpha": 0.35, "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "lines.markersize": 4,
        "axes.titlesize": 11, "figure.titlesize": 12, "svg.hashsalt": "rapt", "svg.fonttype": "none"})


def draw_all(results, folder, only=None):
    set_style()
    for name, draw in PICTURES.items():
        if only in (None, name):
            figure = draw(results)
            figure.savefig(folder / f"{name}.svg", bbox_inches="tight", facecolor="white",
                           metadata={"Date": None, "Source": results.source(name)})
            plt.close(figure)
            print(folder / f"{name}.svg")
