// Every pair of views of small tensors, partial sources too, equals the source in
// the interpreter.
//
// RUN: %python %S/all_moves.py tessera-opt | FileCheck %s
// CHECK: {{[1-9][0-9][0-9][0-9]}} moves
