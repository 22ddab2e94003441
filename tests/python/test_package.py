# SPDX-License-Identifier: MIT
"""The package itself: its command, its types, threads, forks."""
import concurrent.futures
import ctypes
import inspect
import os
import subprocess
import sys

import numpy
import pytest
import rapt


def run(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True, text=True,
                          capture_output=True, timeout=100).stdout.strip()


def test_info():
    text = subprocess.run([sys.executable, "-m", "rapt", "info"], check=True, text=True, capture_output=True).stdout
    assert "isa " in text and rapt.__version__ in text
    assert subprocess.run([sys.executable, "-m", "rapt"], capture_output=True).returncode == 2
    assert "rapt info" in subprocess.run([sys.executable, "-m", "rapt", "--help"], check=True, text=True,
                                         capture_output=True).stdout
    assert set(rapt.info()) >= {"version", "numerics", "isa", "cpu_features", "threads", "threads_kind"}


def test_documented():
    for thing in (rapt.attention, rapt.Plan, rapt.Cache, rapt.Cache.append, rapt.Cache.attend, rapt.Rotary, rapt.info):
        assert inspect.getdoc(thing)
    names = set(inspect.signature(rapt.attention).parameters)
    assert names - {"self"} == set(inspect.signature(rapt.Plan).parameters)
    assert all(name in rapt.attention.__doc__ for name in names)
    assert not [p for p in inspect.signature(rapt.attention).parameters.values() if p.annotation is p.empty]


LARGE = """
import numpy, os, rapt, threading
generator = numpy.random.default_rng(1)
query, key, value = (generator.standard_normal((1, 8, 512, 64), numpy.float32) for _ in range(3))
expected = rapt.attention(query, key, value, causal=True, threads=1)
assert (rapt.attention(query, key, value, causal=True) == expected).all()
"""


def test_forks():
    """After a process computed with many threads, its forked child computes, too, and then the parent again."""
    fork = LARGE + """
child = os.fork()
if child == 0:
    same = all((rapt.attention(query, key, value, causal=True, threads=n) == expected).all() for n in (None, 2))
    os._exit(0 if same and rapt.info()["threads_kind"] == "fork" else 1)
assert os.waitpid(child, 0)[1] == 0
assert (rapt.attention(query, key, value, causal=True) == expected).all()
print("ok")
"""
    assert run(fork) == "ok"


def test_pool_is_limited_by_the_environment():
    code = "import rapt; print(rapt.info()['threads_kind'], rapt.info()['threads'])"
    assert run(code, OMP_NUM_THREADS="3") == "pool 3"


THREADS = """
import ctypes, numpy, os, rapt
if os.environ["LOADED"]:
    ctypes.CDLL(os.environ["LOADED"], mode=ctypes.RTLD_GLOBAL)
query = numpy.ones((64, 64, 1, 8), numpy.float32)
with open("/proc/self/status", encoding="utf-8") as status:
    before = status.read().split("Threads:")[1].split()[0]
expected = rapt.attention(query, query, query, threads=1)
assert (rapt.attention(query, query, query, threads=1000) == expected).all()
cache = rapt.Cache(64, 64, 8)
cache.append(query, query, threads=1000)
with open("/proc/self/status", encoding="utf-8") as status:
    after = status.read().split("Threads:")[1].split()[0]
print(rapt.info()["threads_kind"], int(after) - int(before) < max(3, len(os.sched_getaffinity(0))))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="threads are counted by Linux")
@pytest.mark.parametrize("library", ["", "libgomp.so.1"])
def test_there_are_no_more_threads_than_processors(library):
    """Or than OpenMP is set to. libgomp ends the process if it cannot start one."""
    if library:
        try:
            ctypes.CDLL(library)
        except OSError:
            pytest.skip(library + " is not there")
    text = run(THREADS, LOADED=library, OMP_NUM_THREADS="3", OPENBLAS_NUM_THREADS="1")
    assert text == ("openmp" if library else "pool") + " True"


def test_threads(random):
    """Concurrent calls from several threads, also of one plan."""
    query, key, value = random(1, 8, 300, 64), random(1, 2, 300, 64), random(1, 2, 300, 64)
    expected = rapt.attention(query, key, value, causal=True)
    plan = rapt.Plan(query, key, value, causal=True)

    def work(i):
        call = plan if i % 2 else lambda *arrays: rapt.attention(*arrays, causal=True, threads=1 + i % 3)
        return all((call(query, key, value) == expected).all() for _ in range(10))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(12)))


def test_the_lock_is_released():
    """While one thread computes, others run Python."""
    count = LARGE + """
key = value = numpy.concatenate([key] * 8, 2)
query = numpy.concatenate([query] * 4, 2)
computing = threading.Thread(target=rapt.attention, args=(query, key, value), kwargs=dict(threads=1))
turns = 0
computing.start()
while computing.is_alive():
    computing.join(0.001)
    turns += 1
print(turns)
"""
    assert int(run(count)) > 10


def test_no_memory_is_lost(random):
    query, key, value = random(1, 2, 8, 16), random(1, 2, 8, 16), random(1, 2, 8, 16)
    before = sys.getrefcount(query), sys.getrefcount(key)
    for _ in range(100):
        rapt.attention(query, key, value)
        rapt.Plan(query, key, value)(query, key, value)
        try:
            rapt.attention(query, key, value[:, :, 1:])
        except ValueError:
            pass
    assert (sys.getrefcount(query), sys.getrefcount(key)) == before
    query.resize((2, 2, 8, 16), refcheck=False)  # fails while a buffer is held


def test_seconds_of_call_has_room_for_its_result():
    """In its own process: a result written with a view's strides would corrupt the heap."""
    views = """
import numpy, rapt
query = numpy.zeros((1, 1, 4000, 64), numpy.float32)
print(min(rapt._core.seconds_of_call(view, 1) for view in (query[..., :1], query[..., :64], query[:, :, ::-1])) > 0)
"""
    assert run(views) == "True"


def test_seconds_of_call_gives_back_what_it_refuses(random):
    wrong = random(1, 2, 8, 16).astype(numpy.float64)
    before = sys.getrefcount(wrong)
    for query, error in ((wrong, TypeError), (None, ValueError), (random(1, 1, 2, 2000), ValueError)):
        with pytest.raises(error, match="query|head_dim"):
            rapt._core.seconds_of_call(query, 1)
    assert sys.getrefcount(wrong) == before


def test_results_are_new_arrays(random):
    query = random(1, 2, 8, 16)
    assert not numpy.shares_memory(rapt.attention(query, query, query), query)
