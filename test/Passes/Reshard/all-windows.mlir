// Slices, pads and concatenations across shard edges on 2, 3, 4 and 6 devices move
// exactly what the devices lack.
//
// RUN: %python %S/all_windows.py tessera-opt | FileCheck %s
// CHECK: {{[1-9][0-9][0-9]}} programs move what they need
