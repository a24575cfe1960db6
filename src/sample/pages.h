// The pages of sampled blocks, each between two guard pages, and what is known of each.
//
// Synchronization: sample::lock; reports read without it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "os/call_stack.h"
#include "os/pages.h"

namespace annex::sample {

inline constexpr uint32_t kPages = 256;

enum class State : uint8_t { kUnused, kLive, kFreed };

// Who allocated or freed a block, and from where.
struct Event {
  os::CallStack stack;
  pid_t thread = 0;
};

struct Page {
  State state;
  size_t offset;  // of the block in the page
  size_t bytes;   // what the program asked for
  Page* next;     // in the list of freed pages, the oldest first
  Event allocated;
  Event freed;

  char* start() const;
  char* block() const { return start() + offset; }
};

extern constinit char* first_page;  // address of the first guard page
extern constinit Page* pages;       // kPages of them

inline char* Page::start() const { return first_page + static_cast<size_t>(2 * (this - pages) + 1) * os::page_size(); }

// False where the system refuses.
bool reserve_pages();

// Of an address in the range; nullptr where it lies on a guard page.
inline Page* page_at(const void* address) {
  const size_t index = static_cast<size_t>(static_cast<const char*>(address) - first_page) / os::page_size();
  return index % 2 == 1 ? &pages[index / 2] : nullptr;
}

}  // namespace annex::sample
