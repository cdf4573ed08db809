"""tessera.flex: lists of blocks there and back, and what it says about wrong ones."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from tessera import flex


class Lists(unittest.TestCase):
    def test_there_and_back(self):
        generator = np.random.default_rng(0)
        for shape in ((1, 1, 1, 1), (2, 3, 5, 7), (1, 4, 8, 2), (1, 1, 3, 0)):
            kinds = generator.integers(0, 3, shape).astype(np.int8)
            lists = flex.from_block_mask(kinds)
            for name in ("kv", "full_kv"):  # every list names every block once
                self.assertTrue((np.sort(lists[f"{name}_indices"]) == np.arange(shape[3])).all())
            again = flex.to_block_mask(**lists, blocks=shape[3])
            np.testing.assert_array_equal(again, kinds)
            self.assertEqual(again.dtype, np.int8)
            # Compact: no longer than the longest needs.
            for name in ("kv", "full_kv"):
                longest = lists[f"{name}_num_blocks"].max(initial=0)
                lists[f"{name}_indices"] = lists[f"{name}_indices"][..., :longest]
            np.testing.assert_array_equal(flex.to_block_mask(**lists, blocks=shape[3]), kinds)

    def test_partial_alone(self):
        kinds = flex.to_block_mask([[[2, 0]]], [[[[0, 3], [9, 9]]]], blocks=4)
        np.testing.assert_array_equal(kinds, [[[[1, 0, 0, 1], [0, 0, 0, 0]]]])

    def test_wrong(self):
        for error, arguments in {
            r"kv_num_blocks has the shape \[1\]; it must be": ([1], [[[[0]]]]),
            r"kv_num_blocks\[0, 0, 0\] is 3; the list has 2 places, a row 4 blocks":
                ([[[3]]], [[[[0, 1]]]]),
            r"kv_num_blocks\[0, 0, 0\] is -1": ([[[-1]]], [[[[0, 1]]]]),
            r"kv_indices\[0, 0, 0\] has block 4; there are 4": ([[[2]]], [[[[0, 4]]]]),
            r"kv_indices\[0, 0, 0\] has block -1; there are 4": ([[[2]]], [[[[-1, 2]]]]),
            r"kv_indices\[0, 0, 0\] must ascend, not be \[2, 1\]": ([[[2]]], [[[[2, 1]]]]),
            r"kv_indices\[0, 0, 0\] must ascend, not be \[1, 1\]": ([[[2]]], [[[[1, 1]]]]),
            r"kv_indices has the shape \[1, 1, 2\]": ([[[2]]], [[[0, 1]]]),
            r"kv_num_blocks has elements of float64": ([[[1.0]]], [[[[0]]]]),
            r"block 1 of row \[0, 0, 0\] is in both lists":
                ([[[1]]], [[[[1]]]], [[[2]]], [[[[0, 1]]]]),
            r"must both be given, or neither": ([[[1]]], [[[[1]]]], [[[1]]]),
            r"full_kv_num_blocks has the shape \[1, 1, 2\]; it must be \[1, 1, 1\]":
                ([[[1]]], [[[[1]]]], [[[1, 1]]], [[[[0]]]]),
        }.items():
            with self.subTest(error), self.assertRaisesRegex(ValueError, error):
                flex.to_block_mask(*arguments, blocks=4)
        with self.assertRaisesRegex(ValueError, "elements 0, 1 and 2"):
            flex.from_block_mask(np.full((1, 1, 1, 1), 3))


if __name__ == "__main__":
    unittest.main()
