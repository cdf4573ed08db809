//===- LinkerTargets.cpp - what lld names and a module never needs --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// lld's driver starts all targets that LLVM was built with, for link-time
// optimization, which we do not use. Empty functions in their place keep every
// target but x86 out of our programs. Likewise Polly, which the distribution
// does not ship.
//
//===----------------------------------------------------------------------===//

#include "llvm/Plugins/PassPlugin.h"

#define TARGET(NAME)                                                           \
  extern "C" void LLVMInitialize##NAME##Target() {}                            \
  extern "C" void LLVMInitialize##NAME##TargetInfo() {}                        \
  extern "C" void LLVMInitialize##NAME##TargetMC() {}                          \
  extern "C" void LLVMInitialize##NAME##AsmPrinter() {}                        \
  extern "C" void LLVMInitialize##NAME##AsmParser() {}

TARGET(AArch64)
TARGET(AMDGPU)
TARGET(ARM)
TARGET(AVR)
TARGET(BPF)
TARGET(Hexagon)
TARGET(Lanai)
TARGET(LoongArch)
TARGET(M68k)
TARGET(MSP430)
TARGET(Mips)
TARGET(NVPTX)
TARGET(PowerPC)
TARGET(RISCV)
TARGET(SPIRV)
TARGET(Sparc)
TARGET(SystemZ)
TARGET(VE)
TARGET(WebAssembly)
TARGET(XCore)
TARGET(Xtensa)

llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {}; }
