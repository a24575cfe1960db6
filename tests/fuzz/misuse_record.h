// What a trial of the misuse fuzzer says of itself, in memory that it shares with the process that judges it: what it
// says stays there, however the trial ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace annex_test {

// What is wrong with the one wrong call of a trial.
enum class Wrong : std::uint8_t {
  kNothing,         // there is none: the trial must come to its end
  kTwiceAtOnce,     // freed, and freed again
  kTwiceSoon,       // freed again after a few others
  kTwiceLate,       // freed again after many others
  kTwiceAfterTrim,  // freed again after everything free was given back
  kAfterRealloc,    // what realloc has moved away from
  kInterior,        // inside a live block
  kUnmade,          // a slab's end, where no block has been made or none is in use
  kNeverHandedOut,  // right behind the last block that was handed out of a new slab
  kTail,            // behind a slab's last block
  kForeign,         // memory that was never Annex's, or no memory at all
  kArena,           // the arena's metadata, its free runs, its unused end
  kCount,
};

// How the address is handed in.
enum class Call : std::uint8_t {
  kFree,
  kRealloc,
  kUsableSize,
  kDelete,
  kSizedDelete,
  kAlignedDelete,
  kFreeSized,
  kFreeAlignedSized,
  kCfree,
  kCount,
};

enum class Stage : std::uint8_t {
  kNotStarted,
  kTraffic,   // correct use alone
  kMisuse,    // in the wrong call
  kSurvived,  // the wrong call has returned
  kFinished,  // the end of a trial without a wrong call
  kBroken,    // correct use went wrong: `note` says how
};

inline constexpr std::size_t kKinds = static_cast<std::size_t>(Wrong::kCount);
inline constexpr std::size_t kCalls = static_cast<std::size_t>(Call::kCount);

inline constexpr const char* kKindNames[kKinds] = {
    "none",     "twice, at once", "twice, soon", "twice, late",      "twice, after trim", "after realloc",
    "interior", "unmade",         "never out",   "tail of the slab", "foreign",           "arena",
};
inline constexpr const char* kCallNames[kCalls] = {
    "free",           "realloc",    "malloc_usable_size", "delete", "sized delete",
    "aligned delete", "free_sized", "free_aligned_sized", "cfree",
};

struct Record {
  std::atomic<Stage> stage{Stage::kNotStarted};
  Wrong wrong = Wrong::kNothing;
  Call call = Call::kFree;
  const void* address = nullptr;
  std::size_t block_bytes = 0;        // of the block that the address was, or is in; 0 where there is none
  std::uint32_t thread = 0;           // that makes the wrong call; 0 is the main thread
  std::uint32_t threads = 0;          // of the program, at that moment
  std::uint32_t support_threads = 0;  // of Annex, at that moment
  std::uint32_t purging_threads = 0;
  char note[160] = {};
};

}  // namespace annex_test
