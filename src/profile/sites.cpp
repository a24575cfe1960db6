// Sites: see sites.h.
#include "profile/sites.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "os/call_stack.h"
#include "os/random.h"
#include "pages/page_heap.h"
#include "profile/modules.h"
#include "profile/records.h"

namespace annex::profile {

namespace {

constexpr size_t kBuckets = 8192;

uint64_t hash_of(const Stack& stack, uint32_t labels) {
  uint64_t hash = labels;
  for (uint32_t i = 0; i < stack.depth; ++i)
    hash = os::mixed(hash * 31 + stack.frames[i] + (uint64_t{stack.modules[i]} << 48));
  return hash;
}

bool is_of(const Site* site, const Stack& stack, uint32_t labels, uint64_t hash) {
  return site->hash == hash && site->labels == labels && site->depth == stack.depth &&
         memcmp(site->frames, stack.frames, stack.depth * sizeof stack.frames[0]) == 0 &&
         memcmp(site->modules(), stack.modules, stack.depth * sizeof stack.modules[0]) == 0;
}

// The library's own module; 0 where the library is a part of the program, as it is linked statically.
uint16_t own_module() {
  static constinit std::atomic<int> known{-1};
  int number_known = known.load(std::memory_order_relaxed);
  if (number_known < 0) {
    const uint16_t number = module_of(reinterpret_cast<uintptr_t>(&own_module));
    const Module* module = __atomic_load_n(&tables.modules, __ATOMIC_ACQUIRE);
    while (module != nullptr && module->number != number) module = module->next;
    number_known = module != nullptr && !is_program(module) ? number : 0;
    if (number != 0) known.store(number_known, std::memory_order_relaxed);
  }
  return static_cast<uint16_t>(number_known);
}

}  // namespace

void Stack::capture() {
  constexpr int kMostOwn = 12;  // the library's own functions come first
  void* all[kMaxFrames + kMostOwn];
  const int count = os::capture_stack(all, kMaxFrames + kMostOwn);
  const uint16_t own = own_module();
  for (int i = 0; i < count && depth < kMaxFrames; ++i) {
    add(all[i]);
    if (depth == 1 && own != 0 && modules[0] == own) depth = 0;
  }
}

void Stack::add(const void* return_address) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(return_address);
  frames[depth] = address;
  // Where a function ends with a call, the return address is behind it.
  modules[depth++] = module_of(address - 1);
}

Site* site_of(const Stack& stack, uint32_t labels) {
  static constinit Site** buckets = nullptr;
  if (buckets == nullptr) buckets = static_cast<Site**>(page_heap.map_metadata(kBuckets * sizeof(Site*)));
  if (buckets == nullptr) return nullptr;
  const uint64_t hash = hash_of(stack, labels);
  Site** const bucket = &buckets[hash % kBuckets];
  Site* site = *bucket;
  while (site != nullptr && !is_of(site, stack, labels, hash)) site = site->bucket;
  if (site != nullptr) return site;
  const size_t frames_bytes = stack.depth * sizeof stack.frames[0];
  const size_t modules_bytes = stack.depth * sizeof stack.modules[0];
  site = static_cast<Site*>(new_record(sizeof(Site) + frames_bytes + modules_bytes));
  if (site == nullptr) return nullptr;
  site->hash = hash;
  site->labels = labels;
  site->depth = stack.depth;
  memcpy(site->frames, stack.frames, frames_bytes);
  memcpy(site->frames + stack.depth, stack.modules, modules_bytes);
  site->bucket = *bucket;
  *bucket = site;
  site->next = tables.sites;
  site->number = site->next == nullptr ? 1 : site->next->number + 1;
  __atomic_store_n(&tables.sites, site, __ATOMIC_RELEASE);
  return site;
}

}  // namespace annex::profile
