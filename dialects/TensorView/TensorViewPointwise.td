//===- TensorViewPointwise.td - named pointwise ops --------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op here is its scalar function: C++ on the operands by their names, of the
// class Scalar (TensorViewPointwise.h). From it follow the sharding rule, partial
// states, the verifier, the decomposition into tv.map, the gradient and what the
// interpreter computes. docs/extending.md adds one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSORVIEW_POINTWISE_TD
#define TESSERA_TENSORVIEW_POINTWISE_TD

def Scalars : DeclareOpInterfaceMethods<ScalarOpInterface>;

class TensorView_PointwiseOp<string mnemonic, list<string> operands, code function,
                             list<Trait> traits = []>
    : TensorView_CompositeOp<mnemonic, [RuleAndPartial, Pointwise, Scalars] # traits> {
  // What all tensors are of, in checks:: (TensorViewVerify.h): kFloats, kNumbers.
  string elements = "kFloats";
  // For ops whose tensors are not all of one element type.
  code verification =
      "return ::tessera::tv::checks::verifyPointwise(*this, checks::" # elements # ");";
  // Beside the operands, and where they stand in the text.
  dag attributes = (ins);
  string prefix = "";

  let arguments = !con(
      !dag(ins, !listsplat(AnyRankedTensor, !size(operands)), operands), attributes);
  let assemblyFormat = prefix
      # !interleave(!foreach(operand, operands, "$" # operand), " `,` ")
      # " attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition = [{
    ::mlir::Value $cppClass::buildScalar(::mlir::ImplicitLocOpBuilder &builder,
                                         ::mlir::ValueRange operands) {
      return ::tessera::tv::buildScalar<}] # !size(operands) # [{>(
          builder, *this, operands, [&](}]
      # !interleave(!foreach(operand, operands, "Scalar " # operand), ", ")
      # [{) -> Scalar {}] # function # [{});
    }
    ::llvm::LogicalResult $cppClass::verify() {}] # verification # [{}
    ::tessera::layout::Rule $cppClass::getShardingRule() {
      return ::tessera::tv::getPointwiseRule(*this);
    }
    ::llvm::LogicalResult $cppClass::transferPartial(
        ::llvm::ArrayRef<::std::optional<::tessera::layout::Combiner>> operands,
        ::llvm::SmallVectorImpl<::std::optional<::tessera::layout::Combiner>> &results,
        ::std::string &why) {
      return ::tessera::tv::transferScalars(*this, operands, results, why);
    }
    ::llvm::LogicalResult $cppClass::decompose(
        ::mlir::OpBuilder &builder,
        ::llvm::SmallVectorImpl<::mlir::Value> &results) {
      results.push_back(::tessera::tv::buildMap(builder, *this));
      return ::llvm::success();
    }
  }];
}

class TensorView_UnaryOp<string mnemonic, string value>
    : TensorView_PointwiseOp<mnemonic, ["input"], "return " # value # ";">;
class TensorView_BinaryOp<string mnemonic, string value>
    : TensorView_PointwiseOp<mnemonic, ["lhs", "rhs"], "return " # value # ";">;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

let elements = "kNumbers" in {
def TensorView_AddOp : TensorView_BinaryOp<"add", "lhs + rhs"> {
  let summary = "lhs + rhs; integers wrap";
}
def TensorView_SubOp : TensorView_BinaryOp<"sub", "lhs - rhs"> {
  let summary = "lhs - rhs; integers wrap";
}
def TensorView_MulOp : TensorView_BinaryOp<"mul", "lhs * rhs"> {
  let summary = "lhs times rhs; integers wrap";
}
def TensorView_DivOp : TensorView_BinaryOp<"div", "lhs / rhs"> {
  let summary = "lhs over rhs; of integers towards 0, by 0 it is 0";
}
def TensorView_MaxOp : TensorView_BinaryOp<"max", "max(lhs, rhs)"> {
  let summary = "The larger; NaN if one is NaN";
}
def TensorView_MinOp : TensorView_BinaryOp<"min", "min(lhs, rhs)"> {
  let summary = "The smaller; NaN if one is NaN";
}
def TensorView_NegOp : TensorView_UnaryOp<"neg", "-input"> {
  let summary = "-x; integers wrap";
}
def TensorView_AbsOp : TensorView_UnaryOp<"abs", "abs(input)"> {
  let summary = "x without its sign; the least integer is itself";
}
}

//===----------------------------------------------------------------------===//
// Functions of floats
//===----------------------------------------------------------------------===//

def TensorView_ExpOp : TensorView_UnaryOp<"exp", "exp(input)"> {
  let summary = "e to the x";
}
def TensorView_LogOp : TensorView_UnaryOp<"log", "log(input)"> {
  let summary = "The natural logarithm; -inf of 0, NaN below";
}
def TensorView_SqrtOp : TensorView_UnaryOp<"sqrt", "sqrt(input)"> {
  let summary = "The square root; NaN below 0";
}
def TensorView_RsqrtOp : TensorView_UnaryOp<"rsqrt", "rsqrt(input)"> {
  let summary = "1 / sqrt(x); inf of 0, NaN below";
}
def TensorView_TanhOp : TensorView_UnaryOp<"tanh", "tanh(input)"> {
  let summary = "The hyperbolic tangent";
}
def TensorView_SigmoidOp
    : TensorView_UnaryOp<"sigmoid", "1 / (1 + exp(-input))"> {
  let summary = "1 / (1 + exp(-x))";
}
def TensorView_PowOp : TensorView_BinaryOp<"pow", "pow(lhs, rhs)"> {
  let summary = "lhs to the rhs; NaN if lhs < 0 and rhs is no integer";
}

def TensorView_SiluOp : TensorView_UnaryOp<"silu", "input / (1 + exp(-input))"> {
  let summary = "x / (1 + exp(-x))";
}

def TensorView_GeluOp : TensorView_PointwiseOp<"gelu", ["input"], [{
    if (getTanh()) {
      // (1 + tanh(y)) / 2 is 1 / (1 + exp(-2y)): shorter, and nothing cancels.
      const double slope = -2 * std::sqrt(2 / M_PI);
      Scalar factor = input * input * (slope * 0.044715) + slope;
      return input / (exp(input * factor) + 1);
    }
    Scalar inner = erf(input * std::sqrt(0.5));
    return input * 0.5 * (inner + 1);
  }], [Differentiable]> {
  let summary = "x times the normal distribution function of x";
  let description = [{
    Exact (erf), or with `tanh` the approximation of Hendrycks and Gimpel:
    0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
  }];
  let attributes = (ins UnitAttr:$tanh);
  let prefix = "`` custom<Flag>($tanh, \"\\\"tanh\\\"\") ";
}

def TensorView_GeluGradOp
    : TensorView_PointwiseOp<"gelu_grad", ["grad", "input"], [{
    // Farther out the slope is 0 or 1, and an exp or a square may be infinite.
    const double bound = getTanh() ? 10 : 32;
    Scalar x = max(min(input, bound), -bound);
    Scalar square = x * x;
    if (getTanh()) {
      // As gelu is x s, s = 1 / (1 + e), e = exp(-z), it is s (1 + x e s z').
      const double two = 2 * std::sqrt(2 / M_PI);
      Scalar e = exp(x * (square * (-two * 0.044715) - two));
      Scalar s = 1 / (e + 1);
      Scalar rise = square * (two * 3 * 0.044715) + two;
      return grad * (s * (x * (e * s) * rise + 1));
    }
    Scalar inner = erf(x * std::sqrt(0.5));
    Scalar density = exp(square * -0.5) * (1 / std::sqrt(2 * M_PI));
    return grad * ((inner + 1) * 0.5 + x * density);
  }]> {
  let summary = "A gradient times the slope of tv.gelu";
  let description = [{
    ```mlir
    %dx = tv.gelu_grad tanh %dy, %x : (!t, !t) -> !t
    ```
    dy gelu'(x), x being what went into the gelu. Exact: gelu'(x) = Phi(x) + x phi(x),
    of the normal distribution's function Phi and density phi. With `tanh`, the slope of
    its approximation: 0.5 (1 + t) + 0.5 x (1 - t^2) sqrt(2/pi) (1 + 0.134145 x^2), where
    t = tanh(sqrt(2/pi) (x + 0.044715 x^3)).
  }];
  let attributes = (ins UnitAttr:$tanh);
  let prefix = "`` custom<Flag>($tanh, \"\\\"tanh\\\"\") ";
}

//===----------------------------------------------------------------------===//
// Choices and conversions
//===----------------------------------------------------------------------===//

def TensorView_CompareOp : TensorView_PointwiseOp<"compare", ["lhs", "rhs"], [{
    return compare(getPredicate(), lhs, rhs);
  }]> {
  let summary = "Whether elements are equal, less and so on";
  let description = [{
    ```mlir
    %c = tv.compare lt %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    ```
    `eq`, `ne`, `lt`, `le`, `gt` or `ge`. A NaN is unequal to everything, and not less
    nor greater.
  }];
  let attributes = (ins TensorView_Predicate:$predicate);
  let prefix = "$predicate ";
  let verification = [{
    if (failed(checks::verifyElement(*this, getResult(), "result",
                                     checks::kConditions)))
      return ::llvm::failure();
    return checks::verifyPointwise(*this, checks::kNumbers, getOperands());
  }];
}

def TensorView_WhereOp
    : TensorView_PointwiseOp<"where", ["condition", "lhs", "rhs"], [{
    return select(condition, lhs, rhs);
  }]> {
  let summary = "lhs where the condition holds, else rhs";
  let description = [{
    ```mlir
    %r = tv.where %c, %a, %b
       : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
    Of any element type.
  }];
  let verification = [{
    if (failed(checks::verifyElement(*this, getCondition(), "condition",
                                     checks::kConditions)))
      return ::llvm::failure();
    return checks::verifyPointwise(*this, checks::kStored,
                                   {getLhs(), getRhs(), getResult()});
  }];
}

def TensorView_CastOp : TensorView_PointwiseOp<"cast", ["input"], [{
    return convert(input, getResult().getType().getElementType());
  }], [Differentiable]> {
  let summary = "The same number in another element type";
  let description = [{
    ```mlir
    %h = tv.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
    ```
    From each element type to each. To a float: to the nearest, ties to even; to those
    of less than 32 bits from f64 and integers by way of f32. From a float to an integer:
    towards 0, to the least or largest of the type beyond them, a NaN is 0. Between
    integers the last bits stay. To i1: whether it is not 0; from i1: 0 or 1.
  }];
  let verification =
      "return checks::verifyPointwise(*this, checks::kStored, {getResult()});";
}

#endif // TESSERA_TENSORVIEW_POINTWISE_TD
