// Sampled blocks: see sampled_blocks.h.
#include "sample/sampled_blocks.h"

#include <algorithm>
#include <cstring>

#include "core/die.h"
#include "core/slab_record.h"
#include "os/options.h"
#include "os/pages.h"
#include "os/random.h"
#include "os/system_call.h"
#include "sample/faults.h"
#include "sample/pages.h"

namespace annex::sample {

constinit std::atomic<uint64_t> next_ms{0};
constinit os::Lock lock;

namespace {

constexpr unsigned char kPadding = 0xa5;  // fills the bytes between a block and the end of its page

// Under the lock.
constinit uint64_t random_state = 0;
constinit uint32_t used = 0;  // pages that have had a block: the first ones
constinit Page* first_freed = nullptr;
constinit Page* last_freed = nullptr;

uint64_t next_random() { return os::mixed(random_state++); }

// One that has never had a block, else the one that was freed first. nullptr where all are in use.
Page* take_page() {
  if (used < kPages) return &pages[used++];
  Page* page = first_freed;
  if (page == nullptr) return nullptr;
  first_freed = page->next;
  if (first_freed == nullptr) last_freed = nullptr;
  return page;
}

void put_page(Page* page) {
  page->next = nullptr;
  (last_freed != nullptr ? last_freed->next : first_freed) = page;
  last_freed = page;
}

// Whether this thread is the one to take the sample that is due. If so, the next is due after a random time.
bool claim_sample() {
  const uint64_t now = os::now_ms();
  uint64_t seen = next_ms.load(std::memory_order_relaxed);
  const uint64_t mean = std::max<uint64_t>(1000 / os::options.sample, 1);
  const uint64_t wait = 1 + os::mixed(seen ^ reinterpret_cast<uintptr_t>(&now)) % (2 * mean - 1);
  return now >= seen && next_ms.compare_exchange_strong(seen, now + wait, std::memory_order_relaxed);
}

// A block's page; where it is no block in use, the process ends. Under the lock, which is released for the report.
Page* page_of_live(const void* block) {
  Page* page = page_at(block);
  if (page != nullptr && page->state == State::kLive && page->block() == block) return page;
  lock.unlock();
  const bool twice = page != nullptr && page->state == State::kFreed && page->block() == block;
  end_process(twice ? kFreedTwice : kIntoABlock, block, page);
}

void check_padding(const Page* page) {
  const char* const end = page->start() + os::page_size();
  for (const char* at = page->block() + page->bytes; at < end; ++at) {
    if (static_cast<unsigned char>(*at) == kPadding) continue;
    lock.unlock();
    end_process(kWrittenBehind, page->block(), page);
  }
}

}  // namespace

void start() {
  if (os::page_size() < kMostBytes || !reserve_pages()) return;
  random_state = os::random_word();
  catch_faults();
  // Last, since is_due() looks at this.
  place = {reinterpret_cast<uintptr_t>(first_page), (2 * kPages + 1) * os::page_size()};
}

void* allocate(size_t bytes, size_t alignment) {
  const size_t size = os::page_size();
  if (alignment > size || !claim_sample()) return nullptr;
  os::CallStack stack;
  stack.capture();
  os::Guard guard(lock);
  Page* page = take_page();
  if (page == nullptr) return nullptr;
  if (!os::commit(page->start(), size)) {
    page->state = State::kFreed;
    put_page(page);
    return nullptr;
  }
  const bool at_start = next_random() % 4 == 0;
  page->state = State::kLive;
  page->bytes = bytes;
  page->offset = at_start ? 0 : round_down(size - bytes, std::max(alignment, kMinAlignment));
  page->allocated = {stack, static_cast<pid_t>(os::system_call(SYS_gettid))};
  char* const block = page->block();
  memset(block + bytes, kPadding, size - page->offset - bytes);
  return block;
}

void release(const void* block) {
  os::CallStack stack;
  stack.capture();
  os::Guard guard(lock);
  Page* page = page_of_live(block);
  check_padding(page);
  page->state = State::kFreed;
  page->freed = {stack, static_cast<pid_t>(os::system_call(SYS_gettid))};
  // Where the system refuses, later accesses are not found; it still has to be zero when it is a block's again.
  if (!os::discard(page->start(), os::page_size())) memset(page->start(), 0, os::page_size());
  put_page(page);
}

size_t bytes_of(const void* block) {
  os::Guard guard(lock);
  return page_of_live(block)->bytes;
}

}  // namespace annex::sample
