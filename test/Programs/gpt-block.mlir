// GPT-3-style blocks (examples/gpt), with dropout, whose numbers depend on the global
// index alone: the interpreter compares each with the unsharded program.
//
// Tensor parallel: one all-reduce after attention, one after the MLP. 4 heads are
// uneven on 3 devices.
// RUN: tessera-opt %examples/gpt/block_tp.mlir --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s --check-prefix=TP %no_other_collective
// RUN: tessera-opt %examples/gpt/block_tp.mlir --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s --check-prefix=TP %no_other_collective
// RUN: tessera-opt %examples/gpt/block_tp.mlir --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s --check-prefix=TP %no_other_collective
// TP: tv.layer_norm
// TP: tv.attention
// TP: comm.all_reduce
// TP: tv.dropout
// TP: tv.add
// TP: tv.layer_norm
// TP: tv.gelu
// TP: comm.all_reduce
// TP: tv.dropout
// TP: tv.add
// TP: return

// Sequence parallel: norms, dropouts and sums run on the shards of the sequence; an
// all-gather before and a reduce-scatter after each half. 8 positions on 3 devices
// are 3, 3, 2.
// (Op by op, as what is larger is placed by default, too: of so few bytes, fewer steps
// that move as many or more take less time.)
// RUN: tessera-opt %examples/gpt/block_sp.mlir --tessera="mesh=tp=2 to=local op-by-op" --interpret=2 | FileCheck %s --check-prefix=SP %no_other_collective
// RUN: tessera-opt %examples/gpt/block_sp.mlir --tessera="mesh=tp=3 to=local op-by-op" --interpret=3 | FileCheck %s --check-prefix=SP %no_other_collective
// RUN: tessera-opt %examples/gpt/block_sp.mlir --tessera="mesh=tp=4 to=local op-by-op" --interpret=4 | FileCheck %s --check-prefix=SP %no_other_collective
// SP: tv.layer_norm
// SP: comm.all_gather
// SP: tv.attention
// SP: comm.reduce_scatter
// SP: tv.dropout
// SP: tv.add
// SP: tv.layer_norm
// SP: comm.all_gather
// SP: tv.gelu
// SP: comm.reduce_scatter
// SP: tv.dropout
// SP: tv.add
// SP: return

// Batch over dp as well, in both orders of the axes: the same two all-reduces, over tp
// alone.
// RUN: tessera-opt %examples/gpt/block_dp_tp.mlir --tessera=to=local --interpret=4 | FileCheck %s --check-prefix=DP %no_other_collective
// RUN: tessera-opt %examples/gpt/block_dp_tp.mlir --tessera="mesh=tp=3 to=local" --interpret=6 | FileCheck %s --check-prefix=DP %no_other_collective
// RUN: sed 's/dp = 2, tp = 2/tp = 2, dp = 2/' %examples/gpt/block_dp_tp.mlir | tessera-opt --tessera=to=local --interpret=4 | FileCheck %s --check-prefix=DP %no_other_collective
// RUN: sed 's/dp = 2, tp = 2/tp = 2, dp = 2/' %examples/gpt/block_dp_tp.mlir | tessera-opt --tessera="mesh=dp=3,tp=2 to=local" --interpret=6 | FileCheck %s --check-prefix=DP %no_other_collective
// DP: tv.attention
// DP: comm.all_reduce {{.*}} over #{{[a-z]*}} [tp]
// DP: tv.layer_norm
// DP: tv.gelu
// DP: comm.all_reduce {{.*}} over #{{[a-z]*}} [tp]
// DP: return

// Narrow types, each value rounded.
// RUN: sed s/xf32/xbf16/g %examples/gpt/block_sp.mlir | sed 's/tensor<2x4x8xbf16>)/tensor<2x4x8xf32>)/' | tessera-opt --tessera="mesh=tp=3 to=local op-by-op" --interpret=3 --interpret-precision=program | FileCheck %s --check-prefix=SP %no_other_collective
// RUN: sed s/xf32/xf16/g %examples/gpt/block_tp.mlir | sed 's/tensor<2x4x8xf16>)/tensor<2x4x8xf32>)/' | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s --check-prefix=TP %no_other_collective
