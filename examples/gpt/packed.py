"""The step of program.py on documents that are packed into rows.

cu_seqlens has where each document of a row begins, and where the last one ends; one that
begins where it ends is empty. A token sees its own document, and its position counts from
there. On GPUs, where a device has one row, kernels of attention take a list of the documents'
tiles, which is made once for all layers, forward and backward. `wrong`, which train.py checks,
is 1 where a document would begin before the one before, and 2 where it is not in the row.
"""

import dataclasses

import numpy as np
from program import GPT, Program


@dataclasses.dataclass(frozen=True)
class PackedGPT(GPT):
    length: int = 192  #: of a row
    batch: int = 4
    documents: int = 5  #: of a row


class PackedProgram(Program):
    given = {"%ids": "!batch", "%labels": "!batch", "%step": "!step", "%cu_seqlens": "!ends",
             "%positions_of": "!places"}
    shared = {"%step": "!step", "%cu_seqlens": "!ends"}
    checks = {"wrong": ("!ends", "cu_seqlens fall (1), or are not among the tokens (2)")}
    structure = " sequences(%cu_seqlens)", ", !ends"

    def __init__(self, model, **options):
        super().__init__(model, 0, **options)

    def data(self):
        m = self.model
        return {"ends": self.tensor(m.batch, m.documents + 1, of="i32", view=["_", "_"]),
                "begun": self.tensor(m.batch, m.length, m.documents + 1, of="i32")}

    def inputs(self):
        tokens = [f'%{name}: !batch {{tv.name = "{name}", '
                  f"tv.range = [0, {self.model.vocabulary}]}}" for name in ("ids", "labels")]
        return tokens + ['%cu_seqlens: !ends {tv.name = "cu_seqlens", '
                         f"tv.range = [0, {self.model.length}]}}"]

    def draw(self):
        self.add("""\
  %ends = tv.broadcast %cu_seqlens dims [0, 2] : (!ends) -> !begun
  %token = tv.iota 1 : () -> !begun
  %begun = tv.map %ends, %token : (!begun, !begun) -> !begun (%end: i32, %t: i32) {
    %is = arith.cmpi sle, %end, %t : i32
    %before = arith.subi %t, %end : i32
    %far = arith.constant 2147483647 : i32
    %r = arith.select %is, %before, %far : i32
    tv.yield %r : i32
  }
  %positions_of = tv.reduce min %begun dims [2] : (!begun) -> !places""")
        self.add("  %wrong = tv.sequence_errors %cu_seqlens "
                 f"tokens({self.model.length}) : (!ends) -> !ends")

    def place(self, positions, type):
        self.add(f"  %p = tv.gather {positions}, %positions_of dim 0 : ({type}, !places) -> !x")


def pack(model, tokens):
    """A batch of it: rows of documents of many lengths, 0 and 1 among them."""
    random = np.random.default_rng(0)
    ids, labels = (tokens[shift:][:model.batch * model.length].reshape(model.batch, -1)
                   for shift in (0, 1))
    cuts = np.sort(random.integers(0, model.length + 1, (model.batch, model.documents - 1)))
    cuts[0] = model.length  # one document, the others empty
    cuts[-1, :2] = 64, 65  # one of a whole block, one of a token
    cuts = np.sort(cuts)
    edge = np.ones((model.batch, 1), cuts.dtype)
    cu_seqlens = np.concatenate([0 * edge, cuts, model.length * edge], axis=1)
    return {"ids": ids, "labels": labels, "cu_seqlens": cu_seqlens.astype(np.int32)}
