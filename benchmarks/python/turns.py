# SPDX-License-Identifier: MIT
"""Contenders measured in turns: a slow moment of the machine meets all of them, and their ratios hold."""
import statistics
import time


class Times:
    def __init__(self, seconds):
        self.best = min(seconds)
        self.median = statistics.median(seconds)
        low, _, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else 3 * seconds
        self.spread = (high - low) / self.median
        self.samples = len(seconds)


def measure(contenders, seconds, rounds, threads=1, turn_seconds=0.004):
    """Returns the Times of each. A turn is one run, or as many short ones as fill turn_seconds; beside a long run, of
    which there are few rounds, an eighth of it, since a peak has to reach its best in them. Goes on for up to three
    times as long where other programs had part of the processor."""
    estimates, kept = [], [[] for _ in contenders]
    for contender in contenders:
        first = contender.sample(1)[0]
        estimates.append(first if first > turn_seconds else min(contender.sample(3)))
    turn_seconds = max(turn_seconds, max(estimates) / 8)
    times_per_turn = [max(1, min(1000, int(turn_seconds / max(estimate, 1e-7)))) for estimate in estimates]
    for _ in range(3):
        begin, processor_begin = time.monotonic(), time.process_time()
        take_turns(contenders, times_per_turn, kept, begin + seconds, rounds, threads)
        if threads > 1 or time.process_time() - processor_begin > 0.9 * (time.monotonic() - begin):
            break
    return [Times(samples) for samples in kept]


def take_turns(contenders, times_per_turn, kept, end, rounds, threads):
    done = 0
    while done < rounds or time.monotonic() < end:
        for contender, times, samples in zip(contenders, times_per_turn, kept):
            if threads > 1:
                time.sleep(0.005)  # the threads of the one before may still spin
            samples.extend(contender.sample(times))
        done += 1
