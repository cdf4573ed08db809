// Arguments from a file of tensors, by name, and exact integers among them.
// RUN: %python -c "import json, struct, sys; h = json.dumps({'a': {'dtype': 'F32', 'shape': [3], 'data_offsets': [0, 12]}, 'n': {'dtype': 'I64', 'shape': [1], 'data_offsets': [12, 20]}}).encode(); h += b' ' * (-len(h) %% 8); open(sys.argv[1], 'wb').write(struct.pack('<Q', len(h)) + h + struct.pack('<3fq', 0.5, -1.25, 3.0, 2**53 + 1))" %t.safetensors
// RUN: tessera-opt %s --interpret=1 --interpret-inputs=%t.safetensors --interpret-print -o /dev/null | FileCheck %s
// RUN: not tessera-opt %s --interpret=1 --interpret-entry=shape --interpret-inputs=%t.safetensors -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not tessera-opt %s --interpret=1 --interpret-entry=name --interpret-inputs=%t.safetensors -o /dev/null 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: tessera-opt %s --interpret=1 --interpret-entry=made --interpret-seed=1 --interpret-print -o /dev/null | FileCheck %s --check-prefix=MADE

// CHECK: result #0: [1, -2.5, 6]
// CHECK: result #1: [9007199254740993]
func.func @main(%a: tensor<3xf32> {tv.name = "a"}, %n: tensor<1xi64> {tv.name = "n"})
    -> (tensor<3xf32>, tensor<1xi64>) {
  %b = tv.add %a, %a : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %b, %n : tensor<3xf32>, tensor<1xi64>
}
// SHAPE: error: tensor 'a' has shape [3] in its file, [4] in the program
func.func @shape(%a: tensor<4xf32> {tv.name = "a"}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
// NAME: error: {{.*}}'b'
func.func @name(%a: tensor<3xf32> {tv.name = "b"}) -> tensor<3xf32> {
  return %a : tensor<3xf32>
}
// Made up within the range.
// MADE: result #0: [5, 5, 5, 5]
func.func @made(%a: tensor<4xi32> {tv.range = [5, 6]}) -> tensor<4xi32> {
  return %a : tensor<4xi32>
}
