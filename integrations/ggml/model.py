# SPDX-License-Identifier: MIT
"""A whole model by llama.cpp, with and without the backend of rapt; ./dev ggml model calls it.

model.py BIN LIBRARY FOLDER [--model FILE.gguf] [--threads N]

Without a file it makes a model of a Llama's shape with random weights, in FOLDER. Then:
use: the backend's own counter says how many nodes it computed.
logits: llama-perplexity stores the logits of the CPU backend, and compares those of others with them. What ggml's own
two ways to compute attention (-fa on and off) differ by is the yardstick.
greedy: the text of llama-completion for several batch sizes and numbers of threads.
speed: llama-bench, tokens per second."""
import argparse
import json
import os
import re
import subprocess
import sys

LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN, CONTEXT = 4, 512, 8, 2, 1024, 16384
PROMPT = "Attention is a weighted mean of values, and the weights are a softmax of scores. "


def make_model(path):
    """Scales weights so that logits differ enough for a meaningful greedy choice."""
    import gguf
    import numpy
    random = numpy.random.default_rng(1)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + ["▁"]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)

    def add(name, rows, columns, scale):
        numbers = random.standard_normal((rows, columns), dtype=numpy.float32) * scale / columns**0.5
        writer.add_tensor(name + ".weight", numbers.astype(numpy.float16))

    kv_width = WIDTH // HEADS * KV_HEADS
    add("token_embd", len(tokens), WIDTH, WIDTH**0.5)
    add("output", len(tokens), WIDTH, 1)
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, dtype=numpy.float32))
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(block + norm + ".weight", numpy.ones(WIDTH, dtype=numpy.float32))
        for name, rows, columns, scale in (
                ("attn_q", WIDTH, WIDTH, 1.5), ("attn_k", kv_width, WIDTH, 1.5), ("attn_v", kv_width, WIDTH, 1),
                ("attn_output", WIDTH, WIDTH, 3), ("ffn_gate", HIDDEN, WIDTH, 1), ("ffn_up", HIDDEN, WIDTH, 1),
                ("ffn_down", WIDTH, HIDDEN, 1)):
            add(block + name, rows, columns, scale)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Runs:
    def __init__(self, arguments, model):
        self.arguments, self.model, self.calls = arguments, model, 0

    def run(self, program, *options, rapt=False, until=""):
        """Standard output and error of a program; counts the backend's nodes. On a busy machine llama.cpp may exit
        before its log is written: the program is run again until the log's end appears."""
        for _ in range(20):
            out, error = self.run_once(program, options, rapt)
            if re.search(until, out + error):
                return out, error
        raise SystemExit(f"model: {program} did not print '{until}'\n{(out + error)[-4000:]}")

    def run_once(self, program, options, rapt):
        environment = {name: value for name, value in os.environ.items() if name != "GGML_BACKEND_PATH"}
        if rapt:
            environment.update(GGML_BACKEND_PATH=self.arguments.library, RAPT_GGML="stats")
        command = [os.path.join(self.arguments.bin, program), "-m", self.model, *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
            raise SystemExit(f"model: {' '.join(command)} ended with {done.returncode}")
        found = re.findall(r"rapt: (\d+) calls", done.stderr)
        if rapt and (not found or int(found[-1]) == 0):
            raise SystemExit(f"model: {program} did not use the backend")
        self.calls += int(found[-1]) if found else 0
        return done.stdout, done.stderr


def compare_logits(runs, folder, threads):
    text, base = os.path.join(folder, "text.txt"), os.path.join(folder, "logits.bin")
    with open(text, "w") as file:
        file.write("".join(f"{i}. {PROMPT}" for i in range(60)))
    common = ["-f", text, "-c", 512, "-t", threads, "--kl-divergence-base", base]
    runs.run("llama-perplexity", *common, "-fa", "on")
    for name, rapt, mode in (("ggml, -fa off", False, "off"), ("rapt", True, "on")):
        out, error = runs.run("llama-perplexity", *common, "--kl-divergence", "-fa", mode, rapt=rapt,
                              until="Same top p *:")
        found = re.findall(r"(Mean +KLD|Maximum KLD|Same top p) *: *([-0-9.e]+)", out + error)
        print(f"logits, beside ggml with -fa on: {name:13}", *(f"{key.lower()} {value}" for key, value in found),
              sep=", ")


def compare_greedy(runs, threads):
    texts = {}
    for cache in ("f16", "q8_0"):
        for batch in (512, 64, 7):
            for count in sorted({1, threads}):
                out, _ = runs.run("llama-completion", "-p", PROMPT * 12, "-n", 48, "--temp", 0, "-no-cnv", "-c", 4096,
                                  "-fa", "on", "-ctk", cache, "-ctv", cache, "-ub", batch, "-b", batch, "-t", count,
                                  "--no-warmup", rapt=True, until="graphs reused")
                texts.setdefault(cache, set()).add(out)
    for cache, different in texts.items():
        print(f"greedy, cache {cache}: {len(different)} text{'s' * (len(different) > 1)} from 3 batch sizes and "
              f"{len({1, threads})} numbers of threads")


def compare_speed(runs, threads):
    for name, options in (("prompt of 4096", ["-p", 4096, "-n", 0]), ("generation at 8192", ["-p", 0, "-n", 32, "-d", 8192])):
        for cache in ("f16", "q8_0"):
            speeds = []
            for rapt in (False, True):
                out, _ = runs.run("llama-bench", "-fa", 1, "-t", threads, "-r", 3, "-ctk", cache, "-ctv", cache, "-o",
                                  "json", *options, rapt=rapt)
                speeds.append(json.loads(out)[0]["avg_ts"])
            print(f"speed, {name}, cache {cache}, {threads} threads: {speeds[0]:.1f} tokens/s by ggml, {speeds[1]:.1f} with "
                  f"rapt, {speeds[1] / speeds[0]:.2f} x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="the folder of llama.cpp's programs")
    parser.add_argument("library", help="libggml-rapt.so")
    parser.add_argument("folder", help="for the model and what is stored of it")
    parser.add_argument("--model", help="a real model")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=["make", "logits", "greedy", "speed"])
    arguments = parser.parse_args()
    model = arguments.model or os.path.join(arguments.folder, "random.gguf")
    if not os.path.exists(model):
        make_model(model)
    runs = Runs(arguments, model)
    if arguments.only in (None, "logits"):
        compare_logits(runs, arguments.folder, arguments.threads)
    if arguments.only in (None, "greedy"):
        compare_greedy(runs, arguments.threads)
    if arguments.only in (None, "speed"):
        compare_speed(runs, arguments.threads)
    print(f"use: the backend computed {runs.calls} nodes")


main()
