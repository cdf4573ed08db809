//===- TestPasses.h - passes of tessera-opt for tests ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_LIB_TESTPASSES_H
#define TESSERA_TEST_LIB_TESTPASSES_H

namespace tessera::test {

/// `test-gradients`: see GradientTest.cpp.
void registerGradientTestPass();
/// `test-placement`: see PlacementTest.cpp.
void registerPlacementTestPass();
/// `tv-print-rules`: see PrintRules.cpp.
void registerPrintRulesPass();
/// `test-sharding-rules`: see RuleTest.cpp.
void registerRuleTestPass();

} // namespace tessera::test

#endif // TESSERA_TEST_LIB_TESTPASSES_H
