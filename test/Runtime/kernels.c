/*===- kernels.c - what a compiler would make, by hand ---------------------===*
 *
 * Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#include <stdint.h>

/* A strided tensor of rank 2. */
typedef struct {
  float *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
} Matrix;

static float *at(Matrix *m, int64_t i, int64_t j) {
  return m->aligned + m->offset + i * m->strides[0] + j * m->strides[1];
}

/* target = 2 * source + addend */
void twice_plus(void **arguments) {
  Matrix *source = arguments[0], *target = arguments[1];
  int64_t addend = *(int64_t *)arguments[2];
  for (int64_t i = 0; i < target->sizes[0]; ++i)
    for (int64_t j = 0; j < target->sizes[1]; ++j)
      *at(target, i, j) = 2 * *at(source, i, j) + addend;
}

/* target = source + row[j]; row is a matrix of one row */
void add_row(void **arguments) {
  Matrix *source = arguments[0], *row = arguments[1], *target = arguments[2];
  for (int64_t i = 0; i < target->sizes[0]; ++i)
    for (int64_t j = 0; j < target->sizes[1]; ++j)
      *at(target, i, j) = *at(source, i, j) + *at(row, 0, j);
}
