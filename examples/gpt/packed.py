"""The step of program.py on documents that are packed into rows.

cu_seqlens has where each document of a row begins, and where the last one ends; one that
begins where it ends is empty. A token sees its own document, and its position counts from
there; what is behind the last one is a document, too. The block mask is made once and
serves all layers, forward and backward. Over dp each device has the documents of all
rows, as what a mask_mod loads is whole.
"""

import dataclasses

import numpy as np
from program import GPT, Program
from reference import loss_and_gradients

# Whether two tokens are of one document.
SAME = """\
      %i = tv.load %documents[%b, %qi] : !documents -> i32
      %j = tv.load %documents[%b, %ki] : !documents -> i32
      %same = arith.cmpi eq, %i, %j : i32"""


@dataclasses.dataclass(frozen=True)
class PackedGPT(GPT):
    length: int = 192  #: of a row
    batch: int = 4
    documents: int = 5  #: of a row
    tile: int = 64  #: queries and keys of the block mask's blocks

    @property
    def blocks(self):
        return -(-self.length // self.tile)


class PackedProgram(Program):
    given = {"%ids": "!batch", "%labels": "!batch", "%step": "!step", "%documents": "!documents",
             "%positions_of": "!places", "%kinds": "!kinds"}
    shared = {"%step": "!step", "%documents": "!documents", "%kinds": "!kinds"}

    def __init__(self, model, **options):
        super().__init__(model, 0, **options)

    def data(self):
        m = self.model
        return {"ends": self.tensor(m.batch, m.documents + 1, of="i32", view=["_", "_"]),
                "documents": self.tensor(m.batch, m.length, of="i32", view=["_", "_"]),
                "begun": self.tensor(m.batch, m.length, m.documents + 1, of="i32"),
                "kinds": self.tensor(m.batch, 1, m.blocks, m.blocks, of="i8")}

    def inputs(self):
        tokens = [f'%{name}: !batch {{tv.name = "{name}", '
                  f"tv.range = [0, {self.model.vocabulary}]}}" for name in ("ids", "labels")]
        return tokens + ['%cu_seqlens: !ends {tv.name = "cu_seqlens", '
                         f"tv.range = [0, {self.model.length}]}}"]

    def draw(self):
        m = self.model
        self.add(f"""\
  %ends = tv.broadcast %cu_seqlens dims [0, 2] : (!ends) -> !begun
  %token = tv.iota 1 : () -> !begun
  %begun = tv.map %ends, %token : (!begun, !begun) -> !begun (%end: i32, %t: i32) {{
    %is = arith.cmpi sle, %end, %t : i32
    %r = arith.extui %is : i1 to i32
    tv.yield %r : i32
  }}
  %documents = tv.reduce sum %begun dims [2] : (!begun) -> !documents
  %row = tv.iota 0 : () -> !places
  %column = tv.iota 1 : () -> !places
  %positions_of = tv.map %row, %column, %documents : (!places, !places, !documents) -> !places (%b: i32, %t: i32, %d: i32) {{
    %one = arith.constant 1 : i32
    %own = arith.subi %d, %one : i32
    %i = arith.index_cast %b : i32 to index
    %j = arith.index_cast %own : i32 to index
    %begin = tv.load %cu_seqlens[%i, %j] : !ends -> i32
    %r = arith.subi %t, %begin : i32
    tv.yield %r : i32
  }}
  %kinds = tv.block_mask of [{m.length}, {m.length}] blocks [{m.tile}, {m.tile}] : () -> !kinds
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {{
{SAME}
      %past = arith.cmpi sle, %ki, %qi : index
      %seen = arith.andi %same, %past : i1
      tv.yield %seen : i1
    }}""")

    def attend(self):
        tile = self.model.tile
        self.add(f"""\
  %a, %lse = tv.attention %q, %k, %v scale({self.scale()}) causal block_mask(%kinds) blocks [{tile}, {tile}]
    : (!head, !head, !head, !kinds) -> (!head, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {{
{SAME}
      tv.yield %same : i1
    }}""")

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


def of_documents(model, weights, data, step, scale):
    """The loss and its gradients in NumPy: each document is a batch of its own."""
    total, found = 0, {name: np.zeros_like(value) for name, value in weights.items()}
    for ids, labels, cu_seqlens in zip(data["ids"], data["labels"], data["cu_seqlens"]):
        for begin, end in zip(cu_seqlens, cu_seqlens[1:]):
            if begin == end:
                continue
            own = weights | {"positions": weights["positions"][:end - begin]}
            loss, gradients = loss_and_gradients(
                model, own, ids[None, begin:end], labels[None, begin:end], step, scale)
            share = (end - begin) / data["ids"].size
            total += share * loss
            for name, gradient in gradients.items():
                found[name][:len(gradient)] += share * gradient
    return total, found
