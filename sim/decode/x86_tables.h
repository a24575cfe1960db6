// Tables for the x86-64 decoder: Capstone's registers as ours, and the class of an instruction by its name. For x86.cpp
// only.
#pragma once

#include <capstone/capstone.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "machine/uop.h"

namespace annex::sim::x86 {

inline constexpr auto kStackPointer = static_cast<Register>(kFirstInteger + 4);
inline constexpr auto kFramePointer = static_cast<Register>(kFirstInteger + 5);

// Capstone's registers as ours; none for what doesn't carry data here (segments, instruction pointer, control).
inline constexpr auto kRegisterOf = [] {
  std::array<Register, X86_REG_ENDING> table = {};
  constexpr x86_reg kOld[8][5] = {
      {X86_REG_AL, X86_REG_AH, X86_REG_AX, X86_REG_EAX, X86_REG_RAX},
      {X86_REG_CL, X86_REG_CH, X86_REG_CX, X86_REG_ECX, X86_REG_RCX},
      {X86_REG_DL, X86_REG_DH, X86_REG_DX, X86_REG_EDX, X86_REG_RDX},
      {X86_REG_BL, X86_REG_BH, X86_REG_BX, X86_REG_EBX, X86_REG_RBX},
      {X86_REG_SPL, X86_REG_SPL, X86_REG_SP, X86_REG_ESP, X86_REG_RSP},
      {X86_REG_BPL, X86_REG_BPL, X86_REG_BP, X86_REG_EBP, X86_REG_RBP},
      {X86_REG_SIL, X86_REG_SIL, X86_REG_SI, X86_REG_ESI, X86_REG_RSI},
      {X86_REG_DIL, X86_REG_DIL, X86_REG_DI, X86_REG_EDI, X86_REG_RDI},
  };
  for (unsigned i = 0; i < 8; ++i) {
    for (const x86_reg reg : kOld[i]) table[reg] = static_cast<Register>(kFirstInteger + i);
  }
  const auto range = [&table](unsigned first, unsigned count, unsigned to) {
    for (unsigned i = 0; i < count; ++i) table[first + i] = static_cast<Register>(to + i);
  };
  for (const x86_reg first : {X86_REG_R8, X86_REG_R8B, X86_REG_R8W, X86_REG_R8D}) range(first, 8, kFirstInteger + 8);
  for (const x86_reg first : {X86_REG_XMM0, X86_REG_YMM0, X86_REG_ZMM0}) range(first, 32, kFirstVector);
  // QEMU has no AVX-512, so the upper vector registers are free for those of MMX and the masks.
  range(X86_REG_MM0, 8, kFirstVector + 16);
  range(X86_REG_K0, 8, kFirstVector + 24);
  for (unsigned i = 0; i < 8; ++i) table[X86_REG_ST0 + i] = kX87;
  table[X86_REG_FPSW] = kX87;
  table[X86_REG_EFLAGS] = kFlags;
  return table;
}();

constexpr bool is_vector(Register reg) { return reg >= kFirstVector && reg < kX87; }
constexpr bool is_integer(Register reg) { return reg >= kFirstInteger && reg < kFlags; }

struct Rule {
  std::string_view name;  // how it begins
  UopClass kind;
};

// The first that fits counts.
inline constexpr Rule kIntegerRules[] = {
    {"nop", UopClass::kNop},
    {"endbr", UopClass::kNop},
    {"prefetch", UopClass::kNop},
    {"clflush", UopClass::kNop},
    {"vzeroupper", UopClass::kNop},
    {"sfence", UopClass::kNop},
    {"syscall", UopClass::kNop},
    {"wait", UopClass::kNop},
    {"mfence", UopClass::kFence},
    {"lfence", UopClass::kFence},
    {"pause", UopClass::kPause},
    {"imul", UopClass::kMul},
    {"mul", UopClass::kMul},
    {"popcnt", UopClass::kMul},
    {"lzcnt", UopClass::kMul},
    {"tzcnt", UopClass::kMul},
    {"bsf", UopClass::kMul},
    {"bsr", UopClass::kMul},
    {"crc32", UopClass::kMul},
    {"pdep", UopClass::kMul},
    {"pext", UopClass::kMul},
    {"idiv", UopClass::kDiv},
    {"div", UopClass::kDiv},
    {"sh", UopClass::kShift},
    {"sal", UopClass::kShift},
    {"sar", UopClass::kShift},
    {"ro", UopClass::kShift},
    {"rcl", UopClass::kShift},
    {"rcr", UopClass::kShift},
    {"bt", UopClass::kShift},
    {"cpuid", UopClass::kMicrocode},
    {"rdtsc", UopClass::kMicrocode},
    {"xgetbv", UopClass::kMicrocode},
    {"xsave", UopClass::kMicrocode},
    {"xrstor", UopClass::kMicrocode},
    {"fxsave", UopClass::kMicrocode},
    {"fxrstor", UopClass::kMicrocode},
    {"ldmxcsr", UopClass::kMicrocode},
    {"stmxcsr", UopClass::kMicrocode},
    {"vldmxcsr", UopClass::kMicrocode},
    {"vstmxcsr", UopClass::kMicrocode},
    {"vzeroall", UopClass::kMicrocode},
    {"rdrand", UopClass::kMicrocode},
    {"rdseed", UopClass::kMicrocode},
    {"enter", UopClass::kMicrocode},
    {"pushf", UopClass::kMicrocode},
    {"popf", UopClass::kMicrocode},
    {"cld", UopClass::kMicrocode},
    {"std", UopClass::kMicrocode},
    {"emms", UopClass::kMicrocode},
    {"iret", UopClass::kMicrocode},
    {"int", UopClass::kMicrocode},
    {"", UopClass::kAlu},
};
inline constexpr Rule kX87Rules[] = {
    {"fadd", UopClass::kFpAdd},        {"fiadd", UopClass::kFpAdd},       {"fsub", UopClass::kFpAdd},
    {"fisub", UopClass::kFpAdd},       {"fcom", UopClass::kFpAdd},        {"ficom", UopClass::kFpAdd},
    {"fucom", UopClass::kFpAdd},       {"ftst", UopClass::kFpAdd},        {"fmul", UopClass::kFpMul},
    {"fimul", UopClass::kFpMul},       {"fdiv", UopClass::kFpDiv},        {"fidiv", UopClass::kFpDiv},
    {"fsqrt", UopClass::kFpDiv},       {"fldcw", UopClass::kMicrocode},   {"fldenv", UopClass::kMicrocode},
    {"fnstenv", UopClass::kMicrocode}, {"fnsave", UopClass::kMicrocode},  {"frstor", UopClass::kMicrocode},
    {"fninit", UopClass::kMicrocode},  {"fnclex", UopClass::kMicrocode},  {"fsin", UopClass::kMicrocode},
    {"fcos", UopClass::kMicrocode},    {"fptan", UopClass::kMicrocode},   {"fpatan", UopClass::kMicrocode},
    {"f2xm1", UopClass::kMicrocode},   {"fyl2x", UopClass::kMicrocode},   {"fprem", UopClass::kMicrocode},
    {"fscale", UopClass::kMicrocode},  {"frndint", UopClass::kMicrocode}, {"fxtract", UopClass::kMicrocode},
    {"fb", UopClass::kMicrocode},      {"fnop", UopClass::kNop},          {"", UopClass::kVectorAlu},
};
// Without the v of AVX.
inline constexpr Rule kVectorRules[] = {
    {"div", UopClass::kFpDiv},    {"sqrt", UopClass::kFpDiv},    {"rsqrt", UopClass::kFpMul},
    {"rcp", UopClass::kFpMul},    {"mul", UopClass::kFpMul},     {"fm", UopClass::kFpMul},
    {"fnm", UopClass::kFpMul},    {"pmul", UopClass::kFpMul},    {"pmadd", UopClass::kFpMul},
    {"psadbw", UopClass::kFpMul}, {"mpsadbw", UopClass::kFpMul}, {"dpp", UopClass::kFpMul},
    {"aes", UopClass::kFpMul},    {"pclmul", UopClass::kFpMul},  {"pcmpe", UopClass::kVectorAlu},
    {"pcmpi", UopClass::kFpMul},  {"add", UopClass::kFpAdd},     {"sub", UopClass::kFpAdd},
    {"cvt", UopClass::kFpAdd},    {"cmp", UopClass::kFpAdd},     {"min", UopClass::kFpAdd},
    {"max", UopClass::kFpAdd},    {"round", UopClass::kFpAdd},   {"hadd", UopClass::kFpAdd},
    {"hsub", UopClass::kFpAdd},   {"ucomi", UopClass::kFpAdd},   {"comi", UopClass::kFpAdd},
    {"", UopClass::kVectorAlu},
};

template <size_t kRules>
constexpr UopClass first_fit(const Rule (&rules)[kRules], std::string_view name) {
  for (const Rule& rule : rules) {
    if (name.starts_with(rule.name)) return rule.kind;
  }
  return UopClass::kAlu;
}

constexpr bool begins(std::string_view name, std::initializer_list<std::string_view> with) {
  return std::any_of(with.begin(), with.end(), [name](std::string_view start) { return name.starts_with(start); });
}

constexpr bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Names that mean that a register combined with itself gives the same whatever was in it.
constexpr bool forgets(std::string_view name) {
  return is_one_of(name, {"xor", "sub", "pxor", "xorps", "xorpd", "psubb", "psubw", "psubd", "psubq", "pcmpeqb",
                          "pcmpeqw", "pcmpeqd", "pcmpeqq", "pcmpgtb", "pcmpgtw", "pcmpgtd", "pcmpgtq"});
}

// Names of what writes a first operand in memory without reading it.
constexpr bool writes_first_operand(std::string_view name) {
  return begins(name, {"mov", "fst", "fist", "fnst", "fnsave", "fbst", "stmxcsr", "vstmxcsr"});
}

// Names (without the v of AVX) of what only moves data between memory and registers, or widens it.
constexpr bool only_moves(std::string_view name) {
  return begins(name, {"mov", "lddqu", "broadcast", "pbroadcast", "fld", "fild", "fst", "fist", "fnst"});
}

}  // namespace annex::sim::x86
