// A request of a program thread to the support core. The same object carries the answer back.
#pragma once

#include <cstddef>
#include <cstdint>

namespace annex::support {

class SegregatedHeap;

struct Request {
  enum class What : uint32_t { kAllocate, kRelease, kResize };
  What what;
  bool zeroed = false;  // answer of kAllocate: the block reads as zero
  size_t bytes = 0;
  size_t alignment = 0;
  SegregatedHeap* heap = nullptr;  // kAllocate: the heap for a small block; nullptr: the block is large
  void* block = nullptr;           // kRelease, kResize: the program's block; answer: the block, or nullptr
};

}  // namespace annex::support
