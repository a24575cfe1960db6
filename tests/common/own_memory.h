// Memory that a test takes straight from the system: its books must not live in the heap under
// test, where they would disturb it and be disturbed.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <memory_resource>

namespace annex_test {

class OwnMemory : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t) override { munmap(memory, bytes); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace annex_test
