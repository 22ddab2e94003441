# SPDX-License-Identifier: MIT
"""DLPack capsules as packages other than NumPy and PyTorch may make them, by ctypes."""
import ctypes

import numpy
import pytest
import rapt


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Foreign:
    """A float32 array whose data begin offset bytes after the capsule's address; changes: of its fields."""

    def __init__(self, array, offset, kind, has_strides=True, **changes):
        numbers = ctypes.c_int64 * array.ndim
        self.array, self.shape, self.kind = array, array.shape, kind
        self.sizes, self.steps = numbers(*array.shape), numbers(*(step // 4 for step in array.strides))
        self.managed = Managed() if kind == b"dltensor" else Versioned(major=1)
        self.managed.tensor = Tensor(array.ctypes.data - offset, 1, 0, array.ndim, 2, 32, 1, self.sizes,
                                     self.steps if has_strides else None, offset)
        for name, value in changes.items():
            setattr(self.managed if hasattr(self.managed, name) else self.managed.tensor, name, value)

    def __dlpack__(self, **options):
        return new_capsule(ctypes.addressof(self.managed), self.kind, None)

    def __dlpack_device__(self):
        return 1, 0


NAMES = [b"dltensor", b"dltensor_versioned"]


@pytest.fixture
def arrays(random):
    return random(2, 4, 5, 32), random(2, 2, 5, 32), random(2, 2, 5, 32)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("offset", [0, 64, 4096])
def test_byte_offset(arrays, kind, offset):
    query, key, value = arrays
    expected = rapt.attention(query, key, value)
    others = Foreign(key, offset, kind), Foreign(value, offset, kind, has_strides=False)
    assert (rapt.attention(query, *others) == expected).all()
    swapped = Foreign(key.swapaxes(1, 2), offset, kind), Foreign(value.swapaxes(1, 2), offset, kind)
    assert (rapt.attention(query.swapaxes(1, 2), *swapped, layout="bshd") == expected.swapaxes(1, 2)).all()
    out = numpy.zeros_like(query)
    rapt.attention(query, key, value, out=Foreign(out, offset, kind))
    assert (out == expected).all()


@pytest.mark.parametrize("kind, changes, text", [
    (NAMES[0], dict(device_type=2), "key: a dense tensor in the memory of the CPU is required"),
    (NAMES[1], dict(lanes=4), "key: its elements are vectors"),
    (NAMES[0], dict(bits=64), "key: its elements are float64"),
    (NAMES[1], dict(code=5), "key: its elements are of 4 bytes of another type"),
    (NAMES[1], dict(major=2), "key: its DLPack is too recent")])
def test_refusals(arrays, kind, changes, text):
    query, key, value = arrays
    with pytest.raises(TypeError, match=text):
        rapt.attention(query, Foreign(key, 0, kind, **changes), value)


def test_results_are_not_written_to_what_is_read_only(arrays):
    out = numpy.zeros_like(arrays[0])
    with pytest.raises(TypeError, match="out: it is read-only"):
        rapt.attention(*arrays, out=Foreign(out, 0, NAMES[1], flags=1))
    assert (out == 0).all()
