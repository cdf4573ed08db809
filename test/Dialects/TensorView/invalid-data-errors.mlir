// Sequences and pages of which no errors can be told.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics

func.func @sequences(%b: tensor<1x5xi64>) {
  // expected-error@+1 {{'tv.sequence_errors' op begins has element type 'i64'; it must be i32}}
  %e = tv.sequence_errors %b tokens(300) : (tensor<1x5xi64>) -> tensor<1x5xi64>
  return
}

// -----

func.func @sequences(%b: tensor<5xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op begins has rank 1; it must be 2}}
  %e = tv.sequence_errors %b tokens(300) : (tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @sequences(%b: tensor<1x0xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op begins has no column; it has one more than sequences}}
  %e = tv.sequence_errors %b tokens(300) : (tensor<1x0xi32>) -> tensor<1x0xi32>
  return
}

// -----

func.func @sequences(%b: tensor<1x5xi32>, %u: tensor<1x4xi64>) {
  // expected-error@+1 {{'tv.sequence_errors' op used has element type 'i64'; it must be i32}}
  %e = tv.sequence_errors %b used(%u) tokens(300) : (tensor<1x5xi32>, tensor<1x4xi64>) -> tensor<1x5xi32>
  return
}

// -----

func.func @sequences(%b: tensor<1x5xi32>, %u: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op used is for 5 sequences of 1 batches; there are 4 of 1}}
  %e = tv.sequence_errors %b used(%u) tokens(300) : (tensor<1x5xi32>, tensor<1x5xi32>) -> tensor<1x5xi32>
  return
}

// -----

func.func @sequences(%b: tensor<2x5xi32>, %u: tensor<1x4xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op used is for 4 sequences of 1 batches; there are 4 of 2}}
  %e = tv.sequence_errors %b used(%u) tokens(300) : (tensor<2x5xi32>, tensor<1x4xi32>) -> tensor<2x5xi32>
  return
}

// -----

func.func @sequences(%b: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op result has element type 'i64'; it must be i32}}
  %e = tv.sequence_errors %b tokens(300) : (tensor<1x5xi32>) -> tensor<1x5xi64>
  return
}

// -----

func.func @sequences(%b: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op has a result of 1 x 4; begins are 1 x 5}}
  %e = tv.sequence_errors %b tokens(300) : (tensor<1x5xi32>) -> tensor<1x4xi32>
  return
}

// -----

func.func @sequences(%b: tensor<?x5xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op has a result of 1 x 5; begins are ? x 5}}
  %e = tv.sequence_errors %b tokens(300) : (tensor<?x5xi32>) -> tensor<1x5xi32>
  return
}

// -----

func.func @sequences(%b: tensor<1x?xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op has begins of dynamically many sequences; their number must be static}}
  %e = tv.sequence_errors %b tokens(300) : (tensor<1x?xi32>) -> tensor<1x?xi32>
  return
}

// -----

func.func @sequences(%b: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op has -1 tokens; there must be at least 0, below 2^31}}
  %e = tv.sequence_errors %b tokens(-1) : (tensor<1x5xi32>) -> tensor<1x5xi32>
  return
}

// -----

func.func @sequences(%b: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.sequence_errors' op has 2147483648 tokens; there must be at least 0, below 2^31}}
  %e = tv.sequence_errors %b tokens(2147483648) : (tensor<1x5xi32>) -> tensor<1x5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi64>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op table has element type 'i64'; it must be i32}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x3xi64>, tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<15xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op table has rank 1; it must be 2}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<15xi32>, tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi64>) {
  // expected-error@+1 {{'tv.page_errors' op lengths has element type 'i64'; it must be i32}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x3xi32>, tensor<5xi64>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5x1xi32>) {
  // expected-error@+1 {{'tv.page_errors' op lengths has rank 2; it must be 1}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x3xi32>, tensor<5x1xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<4xi32>) {
  // expected-error@+1 {{'tv.page_errors' op lengths is for 4 sequences; the table has 5}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x3xi32>, tensor<4xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<?x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op lengths is for 5 sequences; the table has ?}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<?x3xi32>, tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op result has element type 'i8'; it must be i32}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<5xi8>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op result has rank 2; it must be 1}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<5x3xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op result is for 4 sequences; the table has 5}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op has 0 positions a page; there must be at least 1, below 2^31}}
  %e = tv.page_errors %t lengths(%l) page(0) pages(16) : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op has -1 pages; there must be at least 1, below 2^31}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(-1) : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op has 2147483648 pages; there must be at least 1, below 2^31}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(2147483648) : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x?xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op has a table of dynamically many pages a sequence; their number must be static}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<5x?xi32>, tensor<5xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pages(%t: tensor<5x3xi32>, %l: tensor<5xi32>) {
  // expected-error@+1 {{'tv.page_errors' op has rows of 3 pages of 715827883 positions; lengths are below 2^31}}
  %e = tv.page_errors %t lengths(%l) page(715827883) pages(16) : (tensor<5x3xi32>, tensor<5xi32>) -> tensor<5xi32>
  return
}
