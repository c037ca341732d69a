"""Array: the buffer protocol, indices, DLPack and Arrow, and refused buffers."""

import array
import gc
import unittest

import sesame
from common import has, needs_numpy
from sesame import Array, _sesame


def matrix():
    return Array(memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3)))


class Arrays(unittest.TestCase):
    def test_attributes(self):
        a = matrix()
        self.assertEqual((a.shape, a.dtype, a.ndim, a.size, a.nbytes, len(a)), ((2, 3), "float32", 2, 6, 24, 2))
        self.assertEqual(repr(a), "sesame.Array(shape=(2, 3), dtype='float32')")
        self.assertEqual(a.tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_buffer(self):
        a = matrix()
        view = memoryview(a)
        self.assertEqual((view.format, view.shape, view.strides, view.readonly), ("f", (2, 3), (12, 4), False))
        del a
        gc.collect()
        self.assertEqual(view.tolist(), [[0, 1, 2], [3, 4, 5]])

    def test_indices(self):
        a = matrix()
        self.assertEqual((a[1].tolist(), a[-1, 0], a[0:1].tolist(), a[1, 1:].tolist()), ([3, 4, 5], 3, [[0, 1, 2]], [4, 5]))
        self.assertEqual([row.tolist() for row in a], a.tolist())
        self.assertEqual(a[2:].shape, (0, 3))
        self.assertEqual((a[-1:].tolist(), a[-9:].tolist()), ([[3, 4, 5]], a.tolist()))
        memoryview(a[1])[0] = 9  # a view of the same memory
        self.assertEqual(a[1, 0], 9)
        row = a[0]
        del a
        self.assertEqual(row.tolist(), [0, 1, 2])
        for wrong, error in [(2, IndexError), (-3, IndexError), ((0, 3), IndexError), ("x", TypeError),
                             (slice(0, 2, 2), ValueError), ((slice(0, 1), 0), TypeError), ((0, 0, 0), TypeError)]:
            with self.assertRaises(error, msg=repr(wrong)):
                matrix()[wrong]

    def test_dtypes(self):
        for code, name in zip("fdqibB", ["float32", "float64", "int64", "int32", "int8", "uint8"]):
            a = Array(array.array(code, [1, 2]))
            self.assertEqual((a.dtype, a.tolist()), (name, [1, 2]))
        with self.assertRaisesRegex(TypeError, "buffer protocol"):
            Array([1.0])
        with self.assertRaises(TypeError):
            Array(array.array("H", [1]))

    def test_refused(self):
        good = Array(array.array("f", [1, 2]))
        with self.assertRaisesRegex(TypeError, "float32, not of format \"d\""):
            _sesame.similarity(good, Array(array.array("d", [1, 2])), "dot")
        with self.assertRaisesRegex(ValueError, "strided"):
            _sesame.similarity(good, memoryview(array.array("f", [1, 2, 3]))[::2], "dot")
        with self.assertRaisesRegex(ValueError, "cannot be compared"):
            _sesame.similarity(good, Array(array.array("f", [1, 2, 3])), "dot")
        with self.assertRaisesRegex(ValueError, "similarity must be"):
            _sesame.similarity(good, good, "l3")

    def test_dlpack_capsules(self):
        a = matrix()
        self.assertEqual(a.__dlpack_device__(), (1, 0))
        self.assertIn('"dltensor"', repr(a.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(a.__dlpack__(max_version=(1, 0))))
        self.assertIn("dltensor", repr(a.__dlpack__(copy=True, dl_device=(1, 0))))
        with self.assertRaises(BufferError):
            a.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(BufferError):
            a.__dlpack__(stream=1)
        schema, data = a.__arrow_c_array__()
        self.assertIn('"arrow_schema"', repr(schema))
        self.assertIn('"arrow_array"', repr(data))

    @needs_numpy
    def test_numpy(self):
        import numpy

        a = matrix()
        x = numpy.asarray(a)
        x[0, 0] = 7
        self.assertEqual((a[0, 0], a.numpy().shape), (7, (2, 3)))
        self.assertEqual(numpy.asarray(a, dtype="float64").dtype, numpy.float64)
        self.assertFalse(numpy.shares_memory(numpy.array(a), x))
        if hasattr(numpy, "from_dlpack"):
            self.assertTrue(numpy.shares_memory(numpy.from_dlpack(a), x))
        with self.assertRaisesRegex(TypeError, "astype"):
            _sesame.similarity(x.astype("float64"), x, "dot")
        with self.assertRaisesRegex(ValueError, "ascontiguousarray"):
            _sesame.similarity(numpy.asfortranarray(x), x, "dot")
        with self.assertRaises(TypeError):
            Array(numpy.array(["text"]))

    @unittest.skipUnless(has("pyarrow"), "pyarrow is not installed")
    def test_arrow(self):
        import pyarrow

        a = matrix()
        x = pyarrow.array(a)
        self.assertEqual((x.to_pylist(), x.type.list_size), (a.tolist(), 3))
        self.assertEqual(pyarrow.array(a[0]).to_pylist(), [0, 1, 2])
        del a
        gc.collect()
        self.assertEqual(x.flatten().to_pylist(), [0, 1, 2, 3, 4, 5])

    @unittest.skipUnless(has("torch"), "PyTorch is not installed")
    def test_torch(self):
        import torch

        a = matrix()
        x = torch.from_dlpack(a)
        x[0, 0] = 8
        self.assertEqual((a[0, 0], tuple(x.shape)), (8, (2, 3)))


class Similarity(unittest.TestCase):
    def test_functions(self):
        a, b = Array(array.array("f", [3, 4])), Array(array.array("f", [4, 3]))
        for name, expected in [("dot", 24), ("cosine", 24 / 25), ("euclidean", -(2**0.5)), ("manhattan", -2)]:
            self.assertAlmostEqual(_sesame.similarity(a, b, name)[0, 0], expected, 6)
            self.assertAlmostEqual(_sesame.similarity(a, b, name, True)[0], expected, 6)

    def test_trim(self):
        self.assertEqual(_sesame.trim(matrix(), 2, False).tolist(), [[0, 1], [3, 4]])
        self.assertEqual(_sesame.trim(Array(array.array("f", [3, 4])), 0, True).tolist()[0][1], array.array("f", [0.8])[0])

    def test_quantize(self):
        a = Array(memoryview(array.array("f", [0, -1, 2, 1, 1, 2])).cast("B").cast("f", (3, 2)))
        self.assertEqual(_sesame.quantize(a, "uint8").tolist(), [[0, 0], [254, 170], [127, 255]])
        self.assertEqual(_sesame.quantize(a, "int8").tolist(), [[-128, -128], [126, 42], [-1, 127]])
        self.assertEqual(_sesame.quantize(a, "ubinary").tolist(), [[0], [192], [192]])
        self.assertEqual(_sesame.quantize(a, "binary").tolist(), [[-128], [64], [64]])
        with self.assertRaisesRegex(ValueError, "several texts"):
            _sesame.quantize(a[0], "int8")
        with self.assertRaisesRegex(ValueError, "precision must be"):
            _sesame.quantize(a, "int4")


if __name__ == "__main__":
    unittest.main()
