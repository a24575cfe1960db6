// A request: what a program thread asks of the support core, and the answer, in one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::support {

class SegregatedHeap;

struct Request {
  enum class What : uint32_t { kAllocate, kRelease, kResize };
  What what;
  bool zeroed = false;  // kAllocate, answered: the block reads as zero
  size_t bytes = 0;
  size_t alignment = 0;
  SegregatedHeap* heap = nullptr;  // kAllocate: where a small block is to be from; nullptr: a large one
  void* block = nullptr;           // kRelease, kResize: of the program's; answered: the block, or nullptr
};

}  // namespace annex::support
