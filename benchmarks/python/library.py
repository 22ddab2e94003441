# SPDX-License-Identifier: MIT
"""rapt and the peaks through benchmarks/call.h."""
import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

import numpy

from truth import numbers_of

# rapt_dtype
DTYPES = {"f32": 1, "f16": 3, "bf16": 4, "q8_0": 5, "q4_0": 6, "q4_1": 7, "q5_0": 8, "q5_1": 9, "iq4_nl": 10,
          "f8_e4m3": 11, "f8_e5m2": 12, "i8": 13}

UNITS = ("amx", "avx512_bf16")  # of order 2


class CallShape(ctypes.Structure):
    """struct call_shape of benchmarks/call.h."""
    _fields_ = [(name, ctypes.c_int32) for name in ("isa", "threads", "key_value", "causal", "numerics", "zero")] + \
               [(name, c_int64) for name in ("batch", "query_heads", "kv_heads", "query_length", "kv_length",
                                             "head_dim", "value_dim", "window", "page_tokens")] + \
               [("pages", c_void_p)]


def call_shape(problem, isa, threads):
    case = problem.case
    pages = case.page_tokens and problem.pages.ctypes.data
    return CallShape(isa, threads, DTYPES[case.dtype], case.causal, case.numerics, 0, case.batch, case.query_heads,
                     case.kv_heads, case.query_length, case.kv_length, case.head_dim, case.value_dim, case.window,
                     case.page_tokens, pages or None)


def stored(query, case):
    """As rapt's order 2 has it: in the type of keys and values."""
    if case.numerics == 0:
        return query
    return query.astype(numpy.float16) if case.dtype == "f16" else (query.view(numpy.uint32) >> 16).astype(numpy.uint16)


class Library:
    def __init__(self, path):
        self.calls = ctypes.CDLL(path)
        signatures = {
            "call_new": (c_void_p, [POINTER(CallShape)] + 4 * [c_void_p] + [c_char_p, c_size_t]),
            "call_free": (None, [c_void_p]),
            "call_isa": (c_int, [c_void_p]),
            "call_run": (c_int, [POINTER(c_void_p), c_int64, c_int64, c_int64, POINTER(c_double)]),
            "call_memory": (c_void_p, [POINTER(c_size_t)]),
            "call_fma": (c_double, [c_int, c_int, c_int64, POINTER(c_double)]),
            "call_stream": (c_double, [c_int, c_int, c_int64, c_int64, POINTER(c_double)]),
            "rapt_isa_name": (c_char_p, [c_int]),
            "rapt_isa_available": (c_int, [c_int]),
            "rapt_isa_chosen": (c_int, [POINTER(c_int)]),
            "rapt_version": (c_char_p, []),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self.calls, name)
            function.restype, function.argtypes = result, arguments
        self.memory = self._memory()

    def _memory(self):
        size = c_size_t()
        base = self.calls.call_memory(ctypes.byref(size))
        if not base:
            raise MemoryError("no memory for the arrays")
        return numpy.ctypeslib.as_array(ctypes.cast(base, POINTER(ctypes.c_float)), (size.value // 4,))

    @property
    def version(self):
        return self.calls.rapt_version().decode()

    def isa_name(self, isa):
        return self.calls.rapt_isa_name(isa).decode()

    def chosen_isa(self):
        isa = c_int()
        if self.calls.rapt_isa_chosen(ctypes.byref(isa)) != 0:
            raise ValueError("the environment's RAPT_ISA names no instruction set of this machine")
        return isa.value

    def isas(self):
        """The numbers of those with a peak to hold them against, best first; units are none for float32."""
        seconds = c_double()
        found = [isa for isa in range(15, 0, -1) if self.calls.rapt_isa_available(isa)
                 and self.isa_name(isa) not in UNITS and self.calls.call_fma(isa, 1, 1, ctypes.byref(seconds)) > 0]
        if not found:
            raise SystemExit("bench: this build has no instruction set with a peak to compare with (-Disas=scalar)")
        return found


class Rapt:
    """A problem planned and ready to run."""

    def __init__(self, library, problem, isa, threads):
        self.library, self.problem = library.calls, problem
        query = self.query = stored(problem.query, problem.case)
        self.out = numpy.zeros((*query.shape[:-1], problem.case.value_dim), query.dtype)
        why = ctypes.create_string_buffer(256)
        self.plans = (c_void_p * len(problem.caches))()
        shape = call_shape(problem, isa, threads)
        for i, (key, value) in enumerate(problem.caches):
            self.plans[i] = self.library.call_new(
                ctypes.byref(shape), query.ctypes.data, key.ctypes.data, value.ctypes.data, self.out.ctypes.data, why,
                len(why))
            if not self.plans[i]:
                raise ValueError(why.value.decode())

    def sample(self, times):
        """The seconds of so many runs."""
        seconds = (c_double * times)()
        first = self.problem.take(times)
        self._check(self.library.call_run(self.plans, first, len(self.plans), times, seconds))
        return list(seconds)

    def result(self):
        """Of the first cache."""
        self._check(self.library.call_run(self.plans, 0, 1, 1, (c_double * 1)()))
        return numbers_of(self.out, self.problem.case.dtype) if self.problem.case.numerics else self.out

    @property
    def isa(self):
        """What an automatic choice became."""
        return self.library.call_isa(self.plans[0])

    @staticmethod
    def _check(status):
        if status != 0:
            raise RuntimeError(f"rapt failed with status {status}")

    def __del__(self):
        for plan in self.plans:
            self.library.call_free(plan)


class FmaPeak:
    """A peak as a contender; work is what one run does."""

    def __init__(self, library, isa, threads):
        self.library, self.arguments, self.work = library.calls, (isa, threads), 0

    def sample(self, times):
        seconds = (c_double * times)()
        self.work = self.library.call_fma(*self.arguments, times, seconds)
        return list(seconds)

    def rate(self, times):
        return self.work / times.best if self.work else None


class StreamPeak(FmaPeak):
    """Goes on where the cursor of a problem stands."""

    def __init__(self, library, isa, threads, cursor):
        super().__init__(library, isa, threads)
        self.cursor = cursor

    def sample(self, times):
        seconds = (c_double * times)()
        eighth = self.cursor.take(self.cursor.memory_bytes // 8, times)
        self.work = self.library.call_stream(*self.arguments, eighth, times, seconds)
        return list(seconds)
