// operator new and delete, all forms. Where memory is exhausted, new calls the new-handler until it finds memory, there
// is no handler, or the handler throws; then it throws bad_alloc (or returns nullptr in the nothrow forms).
//
// The library needs libc only, so what it uses of the C++ runtime (also behind try and catch: this file is compiled
// with exceptions) it refers to weakly: a program that calls operator new has one.
#include <cstdlib>
#include <new>

#include "entry/family.h"
#include "entry/visibility.h"
#include "os/message.h"

asm(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch");

namespace std {
[[gnu::weak]] new_handler get_new_handler() noexcept;
__attribute__((noreturn, weak)) void __throw_bad_alloc();
}  // namespace std

using namespace annex;

namespace {

void* try_allocate(size_t bytes, size_t alignment) {
  return alignment == 0 ? Front::allocate(bytes) : entry::allocate_aligned(alignment, bytes);
}

std::new_handler handler() { return std::get_new_handler != nullptr ? std::get_new_handler() : nullptr; }

[[gnu::cold, gnu::noinline]] void* exhausted(size_t bytes, size_t alignment) {
  while (const std::new_handler call = handler()) {
    call();
    if (void* block = try_allocate(bytes, alignment)) return block;
  }
  if (std::__throw_bad_alloc == nullptr)
    os::fatal("out of memory in operator new, and no C++ runtime to say so to:", nullptr);
  std::__throw_bad_alloc();
}

[[gnu::cold, gnu::noinline]] void* exhausted_nothrow(size_t bytes, size_t alignment) noexcept {
  try {
    return exhausted(bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}

// The slow paths, so that the fast one is malloc's.
[[gnu::noinline]] void* allocate_slow(size_t bytes) {
  void* block = Front::allocate_slow(bytes);
  return block != nullptr ? block : exhausted(bytes, 0);
}
[[gnu::noinline]] void* allocate_slow_nothrow(size_t bytes) noexcept {
  void* block = Front::allocate_slow(bytes);
  return block != nullptr ? block : exhausted_nothrow(bytes, 0);
}
void* allocate(size_t bytes, std::align_val_t alignment) {
  void* block = try_allocate(bytes, static_cast<size_t>(alignment));
  return block != nullptr ? block : exhausted(bytes, static_cast<size_t>(alignment));
}
void* allocate_nothrow(size_t bytes, std::align_val_t alignment) {
  void* block = try_allocate(bytes, static_cast<size_t>(alignment));
  return block != nullptr ? block : exhausted_nothrow(bytes, static_cast<size_t>(alignment));
}

void release(void* block, size_t bytes, std::align_val_t alignment) {
  Front::release(block, bytes, static_cast<size_t>(alignment));
}

}  // namespace

ANNEX_EXPORT void* operator new(size_t n) { return Front::allocate<allocate_slow>(n); }
ANNEX_EXPORT void* operator new[](size_t n) { return Front::allocate<allocate_slow>(n); }
ANNEX_EXPORT void* operator new(size_t n, const std::nothrow_t&) noexcept {
  return Front::allocate<allocate_slow_nothrow>(n);
}
ANNEX_EXPORT void* operator new[](size_t n, const std::nothrow_t&) noexcept {
  return Front::allocate<allocate_slow_nothrow>(n);
}
ANNEX_EXPORT void* operator new(size_t n, std::align_val_t a) { return allocate(n, a); }
ANNEX_EXPORT void* operator new[](size_t n, std::align_val_t a) { return allocate(n, a); }
ANNEX_EXPORT void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_nothrow(n, a);
}
ANNEX_EXPORT void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_nothrow(n, a);
}

ANNEX_EXPORT void operator delete(void* p) noexcept { Front::release(p); }
ANNEX_EXPORT void operator delete[](void* p) noexcept { Front::release(p); }
ANNEX_EXPORT void operator delete(void* p, const std::nothrow_t&) noexcept { Front::release(p); }
ANNEX_EXPORT void operator delete[](void* p, const std::nothrow_t&) noexcept { Front::release(p); }
ANNEX_EXPORT void operator delete(void* p, size_t n) noexcept { Front::release(p, n, 0); }
ANNEX_EXPORT void operator delete[](void* p, size_t n) noexcept { Front::release(p, n, 0); }
ANNEX_EXPORT void operator delete(void* p, std::align_val_t a) noexcept { release(p, 0, a); }
ANNEX_EXPORT void operator delete[](void* p, std::align_val_t a) noexcept { release(p, 0, a); }
ANNEX_EXPORT void operator delete(void* p, size_t n, std::align_val_t a) noexcept { release(p, n, a); }
ANNEX_EXPORT void operator delete[](void* p, size_t n, std::align_val_t a) noexcept { release(p, n, a); }
ANNEX_EXPORT void operator delete(void* p, std::align_val_t a, const std::nothrow_t&) noexcept { release(p, 0, a); }
ANNEX_EXPORT void operator delete[](void* p, std::align_val_t a, const std::nothrow_t&) noexcept { release(p, 0, a); }
