"""N functions, each of which calls the one before twice; the first does nothing.

    python doubling.py N"""
import sys

count = int(sys.argv[1])
print("func.func private @f0(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}")
for i in range(1, count + 1):
    print(f"""func.func {'' if i == count else 'private '}@f{i}(%x: tensor<f32>) -> tensor<f32> {{
  %0 = call @f{i - 1}(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f{i - 1}(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}}""")
