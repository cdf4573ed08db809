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
            lists = flex.from_block_mask(kinds, compact=True)
            for name in ("kv", "full_kv"):
                self.assertEqual(lists[f"{name}_indices"].shape[3],
                                 lists[f"{name}_num_blocks"].max(initial=0))
            np.testing.assert_array_equal(flex.to_block_mask(**lists, blocks=shape[3]), kinds)

    def test_partial_alone(self):
        kinds = flex.to_block_mask([[[2, 0]]], [[[[0, 3], [9, 9]]]], blocks=4)
        np.testing.assert_array_equal(kinds, [[[[1, 0, 0, 1], [0, 0, 0, 0]]]])

    def test_one_for_all(self):
        """An extent 1 of batch or heads stands for all, in each list on its own."""
        kinds = flex.to_block_mask([[[1]], [[0]]], [[[[2]]]], [[[1], [2]]],
                                   [[[[0, 1]], [[0, 1]]]], blocks=3)
        np.testing.assert_array_equal(kinds, [[[[2, 0, 1]], [[2, 2, 1]]],
                                              [[[2, 0, 0]], [[2, 2, 0]]]])

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


def written(kinds, spt):
    """Of each pair of a row and a column: how many columns add to the row before, counted
    one by one."""
    order = np.full(kinds.shape, -1)
    for b, h, row in np.ndindex(*kinds.shape[:3]):
        columns = [n for n in range(kinds.shape[3]) if kinds[b, h, row, n]]
        for rank, n in enumerate(reversed(columns) if spt else columns):
            order[b, h, row, n] = rank
    return order


class SparseTensors(unittest.TestCase):
    def test_there_and_back(self):
        generator = np.random.default_rng(1)
        for shape in ((1, 1, 1, 1), (2, 3, 5, 7), (1, 4, 8, 2), (1, 2, 3, 0)):
            kinds = generator.integers(0, 3, shape).astype(np.int8)
            for compact in (False, True):
                own = flex.to_sparse_tensors(kinds, compact=compact)
                np.testing.assert_array_equal(
                    flex.from_sparse_tensors(**own, blocks=shape[3]), kinds)
                theirs = flex.from_block_mask(kinds, compact=compact)
                for name, flexs in (("mask_block_cnt", "kv_num_blocks"),
                                    ("mask_block_idx", "kv_indices"),
                                    ("full_block_cnt", "full_kv_num_blocks"),
                                    ("full_block_idx", "full_kv_indices")):
                    np.testing.assert_array_equal(own[name], theirs[flexs])
                for spt in (None, False, True):
                    lists = flex.to_sparse_tensors(kinds, by="key", compact=compact, spt=spt)
                    np.testing.assert_array_equal(
                        flex.from_sparse_tensors(**lists, blocks=shape[2], by="key"), kinds)
                    if spt is not None:
                        self.check_order(lists, written(kinds, spt))

    def check_order(self, lists, ranks):
        for name, of in (("dq_write_order", "mask"), ("dq_write_order_full", "full")):
            order, indices = lists[name], lists[f"{of}_block_idx"]
            self.assertEqual((order.shape, order.dtype), (indices.shape, np.int32))
            for place in np.ndindex(*indices.shape[:3]):
                b, h, n = place
                for i in range(lists[f"{of}_block_cnt"][place]):
                    self.assertEqual(order[(*place, i)], ranks[b, h, indices[(*place, i)], n])

    def test_causal(self):
        """Three blocks, by hand: column n has the diagonal of row n and all of those below."""
        kinds = np.int8([[[[1, 0, 0], [2, 1, 0], [2, 2, 1]]]])
        lists = flex.to_sparse_tensors(kinds, by="key", compact=True, spt=True)
        np.testing.assert_array_equal(lists["mask_block_idx"], [[[[0], [1], [2]]]])
        np.testing.assert_array_equal(lists["dq_write_order"], [[[[0], [0], [0]]]])
        np.testing.assert_array_equal(lists["full_block_idx"][0, 0, 0], [1, 2])
        np.testing.assert_array_equal(lists["dq_write_order_full"][0, 0, 0], [1, 2])
        self.assertEqual(lists["dq_write_order_full"][0, 0, 1, 0], 1)

    def test_wrong(self):
        kinds = np.int8([[[[1, 0], [2, 1]]]])
        lists = flex.to_sparse_tensors(kinds, by="key", spt=False)
        other = flex.to_sparse_tensors(kinds[..., ::-1], by="key", spt=False)
        for error, change, by in (
            (r"mask_block_cnt\[0, 0, 0\] is 3; the list has 2 places, a row 2 blocks",
             {"mask_block_cnt": [[[3, 1]]]}, "key"),
            (r"mask_block_idx\[0, 0, 1\] has block 2; there are 2",
             {"mask_block_idx": [[[[0, 1], [2, 0]]]]}, "key"),
            (r"full_block_idx\[0, 0, 0\] must ascend, not be \[1, 0\]",
             {"full_block_idx": [[[[1, 0], [0, 1]]]], "full_block_cnt": [[[2, 0]]]}, "key"),
            (r"block 0 of row \[0, 0, 0\] is in both lists",
             {"full_block_idx": [[[[0, 1], [0, 1]]]]}, "key"),
            ("full_block_cnt and full_block_idx must both be given, or neither",
             {"full_block_cnt": None}, "key"),
            (r"dq_write_order\[0, 0, 1\] is \[0\]; of this mask, without spt, it is \[1\]",
             {"dq_write_order": other["dq_write_order"]}, "key"),
            (r"dq_write_order\[0, 0, 1\] is \[1\]; of this mask, with spt, it is \[0\]",
             {"spt": True}, "key"),
            (r"dq_write_order has the shape \[1, 1, 2, 1\]; it must be \[1, 1, 2, 2\]",
             {"dq_write_order": lists["dq_write_order"][..., :1]}, "key"),
            ("dq_write_order_full goes with lists of its blocks, of which there are none",
             {"full_block_cnt": None, "full_block_idx": None, "dq_write_order": None}, "key"),
            ('dq_write_order goes with lists by="key"', {}, "query"),
            ("""lists are by="query" or by="key", not 'row'""", {}, "row"),
        ):
            with self.subTest(error), self.assertRaisesRegex(ValueError, error):
                flex.from_sparse_tensors(**lists | change, blocks=2, by=by)
        with self.assertRaisesRegex(ValueError, 'goes with lists by="key"'):
            flex.to_sparse_tensors(kinds, spt=True)
        with self.assertRaisesRegex(ValueError, "elements 0, 1 and 2"):
            flex.to_sparse_tensors(np.full((1, 1, 1, 1), 3))


if __name__ == "__main__":
    unittest.main()
