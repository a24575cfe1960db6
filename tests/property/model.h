// A shadow of the heap: what every live block must look like, kept beside the allocator and
// compared with it.
//
// Each operation calls the allocator, checks what it returned, and notes it. What is checked:
//
//   alignment   16, and what was asked for
//   extent      usable >= asked, and [block, block + usable) overlaps no other live block
//   contents    the pattern written at the last operation is still there, over the usable bytes
//   calloc      every byte asked for is zero
//   realloc     the first min(old usable, new size) bytes are kept; a failure leaves the block
//   walk        every live block lies in exactly one region in use, which counts at least its live
//   blocks
//
// The first violation is kept as text and ends the sequence: later operations do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

#include "common/own_memory.h"

namespace annex_test {

class Model {
 public:
  // Operations that would bring the live blocks over `max_bytes` or `max_blocks` do nothing.
  explicit Model(std::size_t max_bytes, std::size_t max_blocks = 100000);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void allocate(std::size_t bytes);
  void allocate_zeroed(std::size_t count, std::size_t bytes);
  void allocate_aligned(std::size_t alignment, std::size_t bytes);
  void reallocate(std::size_t index, std::size_t bytes);
  void release(std::size_t index);
  void check(std::size_t index);

  // Requests that must fail, in every form.
  void impossible(std::size_t bytes);
  void check_all();
  void check_walk();
  void check_stats();
  void purge();
  void release_all();

  std::size_t blocks() const { return live_.size(); }
  std::size_t bytes() const { return live_bytes_; }

  // Null while all is well.
  const char* failure() const { return failed_ ? failure_ : nullptr; }

 private:
  struct Block {
    char* start;
    std::size_t bytes;
    std::size_t usable;
    std::size_t alignment;
    std::uint64_t key;
  };

  bool room_for(std::size_t bytes) const;
  void admit(void* start, std::size_t bytes, std::size_t alignment, const char* how);
  void forget(const Block& block);
  void write(const Block& block);
  bool intact(const Block& block, std::size_t upto, const char* when);
  [[gnu::format(printf, 2, 3)]] void fail(const char* format, ...);

  OwnMemory system_;
  std::pmr::unsynchronized_pool_resource pool_{&system_};
  std::pmr::vector<Block> live_{&pool_};
  std::pmr::map<std::uintptr_t, std::uintptr_t> extents_{&pool_};  // start -> end, of live blocks
  std::size_t live_bytes_ = 0;
  std::size_t max_bytes_;
  std::size_t max_blocks_;
  std::uint64_t next_key_ = 1;
  bool failed_ = false;
  char failure_[512];
};

}  // namespace annex_test
