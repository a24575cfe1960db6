// What a program can do wrong with a block, and the way out when a check finds it.
#pragma once

namespace annex {

struct Granule;

inline constexpr char kFreedTwice[] = "a block freed twice (or never allocated):";
inline constexpr char kIntoABlock[] = "a pointer into a block (or misaligned):";
inline constexpr char kNoBlock[] = "a pointer to no allocated block (freed twice?):";
inline constexpr char kWrittenBehind[] = "a block written to behind its end:";
inline constexpr char kWrittenAfterFree[] = "a block written to after it was freed:";

// The process ends, as in os/message.h: with a line of what it was, the address, and what lies there. `there`: the
// record of the granule in which the address lies; nullptr where it lies in no arena.
[[noreturn, gnu::cold, gnu::noinline]] void die(const char* what, const void* address, const Granule* there);
// For who knows no more than the address, which is looked up.
[[noreturn, gnu::cold, gnu::noinline]] void die_at(const char* what, const void* address);

}  // namespace annex
