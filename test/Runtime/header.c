/*===- header.c - the C header is C ----------------------------------------===*
 *
 * Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#include "tessera/tessera.h"

/* Linked into EdgeTest: a context made from C. */
int tessera_test_from_c(void);
int tessera_test_from_c(void) {
  tessera_context_options options = {.size = sizeof options, .world = 1};
  tessera_context *context = NULL;
  tessera_status *status = tessera_context_create(&options, &context);
  if (status) {
    tessera_status_free(status);
    return -1;
  }
  int world = tessera_context_world(context);
  tessera_context_destroy(context);
  return world;
}
