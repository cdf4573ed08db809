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

    def test_sizes(self):
        """Sizes say how many blocks there are, and are those of the program."""
        kinds = np.int8([[[[1, 0, 0], [2, 1, 0]]]])  # 100 queries, 300 keys
        lists = flex.from_block_mask(kinds, compact=True)
        sizes = {"seq_lengths": (100, 300), "BLOCK_SIZE": (64, 128)}
        np.testing.assert_array_equal(flex.to_block_mask(**lists, **sizes), kinds)
        np.testing.assert_array_equal(flex.to_block_mask(**lists, **sizes, blocks=3), kinds)
        np.testing.assert_array_equal(
            flex.to_block_mask(**lists, seq_lengths=(128, 180), BLOCK_SIZE=64), kinds)
        for error, change in {
            "blocks is missing; without it, give seq_lengths and BLOCK_SIZE":
                {"seq_lengths": None},
            "blocks is -1; it must be a number, and not below 0": {"blocks": -1},
            "blocks is 5; there are 3 blocks of 128 of the 300 keys": {"blocks": 5},
            "kv_num_blocks has 2 counts; there are 1 blocks of 128 of the 100 queries":
                {"BLOCK_SIZE": 128},
            r"BLOCK_SIZE is \(100, 128\); tv.attention has blocks of multiples of 64":
                {"BLOCK_SIZE": (100, 128)},
            r"BLOCK_SIZE is \(64,\); it must be two integers": {"BLOCK_SIZE": (64,)},
            r"seq_lengths is \(-1, 300\); it must be two numbers": {"seq_lengths": (-1, 300)},
            "seq_lengths goes with BLOCK_SIZE": {"BLOCK_SIZE": None},
        }.items():
            with self.subTest(error), self.assertRaisesRegex(ValueError, error):
                flex.to_block_mask(**lists, **sizes | change)
        with self.assertRaisesRegex(ValueError, "kv_indices has lists of 3 places; there are 2"):
            flex.to_block_mask(**flex.from_block_mask(kinds), blocks=2)

    def test_transposed(self):
        generator = np.random.default_rng(2)
        for shape in ((1, 1, 1, 1), (2, 3, 5, 7), (1, 1, 3, 0)):
            kinds = generator.integers(0, 3, shape).astype(np.int8)
            for compact, spt in ((False, None), (True, False), (True, True)):
                lists = flex.from_block_mask(kinds, compact=compact, transposed=True, spt=spt)
                np.testing.assert_array_equal(flex.to_block_mask(**lists, blocks=shape[3]), kinds)
        kinds = np.int8([[[[1, 0], [2, 1]]]])
        lists = flex.from_block_mask(kinds, transposed=True, spt=False)
        other = flex.from_block_mask(kinds[..., ::-1], transposed=True)
        for error, change in {
            r"another mask than kv_indices: block \[0, 0, 0, 0\] is 0 there, and 1 here":
                {name: other[name] for name in other if "q_" in name},
            "q_num_blocks has 1 counts; there are 2 columns of blocks":
                {"q_num_blocks": [[[1]]]},
            "q_num_blocks and q_indices must both be given": {"q_indices": None},
            "go with q_num_blocks and q_indices": {"q_num_blocks": None, "q_indices": None},
            r"dq_write_order\[0, 0, 1\] is \[1\]; of this mask, with spt, it is \[0\]":
                {"dq_kv_order_spt": True},
            "dq_kv_order is an order of columns": {"dq_kv_order": [[[0, 1]]]},
            "there is no dq_write_order_full, and its list has blocks":
                {"dq_write_order_full": None},
        }.items():
            with self.subTest(error), self.assertRaisesRegex(ValueError, error):
                flex.to_block_mask(**lists | change, blocks=2)
        with self.assertRaisesRegex(ValueError, "goes with transposed lists"):
            flex.from_block_mask(kinds, spt=True)


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

    def test_fields(self):
        """All fields of theirs, block sizes too."""
        kinds = np.int8([[[[1, 0, 0], [2, 1, 0]]]])
        for by in ("query", "key"):
            fields = {"cu_total_m_blocks": None, "cu_block_idx_offsets": None,
                      "dq_write_order": None, "dq_write_order_full": None, "spt": None,
                      **flex.to_sparse_tensors(kinds, by=by, compact=True, block_size=(64, 128))}
            self.assertEqual(fields["block_size"], (64, 128))
            np.testing.assert_array_equal(
                flex.from_sparse_tensors(**fields, seq_lengths=(100, 300), by=by), kinds)
            for error, change in {
                f"mask_block_cnt has {2 if by == 'query' else 3} counts; there are":
                    {"block_size": 256},
                "block_size is 'all'; it must be two integers": {"block_size": "all"},
                "cu_total_m_blocks is of packed sequences": {"cu_total_m_blocks": [0, 2]},
                "cu_block_idx_offsets is of packed": {"cu_block_idx_offsets": [0, 2]},
            }.items():
                with self.subTest(error), self.assertRaisesRegex(ValueError, error):
                    flex.from_sparse_tensors(**fields | change, seq_lengths=(100, 300), by=by)

    def test_other_orders(self):
        """Without spt, any order of a row's columns is one, but none twice."""
        kinds = np.int8([[[[1, 1, 2]]]])
        lists = flex.to_sparse_tensors(kinds, by="key", compact=True, spt=True)
        lists |= {"spt": None, "dq_write_order": [[[[1], [2], [0]]]],
                  "dq_write_order_full": [[[[0], [0], [0]]]]}
        np.testing.assert_array_equal(
            flex.from_sparse_tensors(**lists, blocks=1, by="key"), kinds)
        for wrong in (0, 2, 3, -1):
            error = (rf"dq_write_order_full\[0, 0, 2\] has {wrong} for row 0; of this mask, the "
                     "3 columns of that row have each one of the numbers from 0 on")
            order = np.int32([[[[1], [2], [0]]]])
            if wrong == 0:
                order = np.int32([[[[1], [0], [0]]]])
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, error):
                flex.from_sparse_tensors(
                    **lists | {"dq_write_order": order, "dq_write_order_full": [[[[0], [0],
                                                                                [wrong]]]]},
                    blocks=1, by="key")

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
            ("spt is of a write order, and there is none",
             {"dq_write_order": None, "dq_write_order_full": None, "spt": True}, "key"),
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
