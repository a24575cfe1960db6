// operator new and delete, all forms.
//
// A program may replace some of them and leave the others, which then must call those it has replaced
// ([new.delete.single], [new.delete.array]): an array form calls the single one, a nothrow form the throwing one, and a
// sized delete the one without a size. So the forms below call each other as the program sees them, or find out first
// that what it sees is defined here. All are weak: a program that is linked with the archive brings its own beside
// them.
//
// Where memory is exhausted, new calls the new-handler until it finds memory, there is no handler, or the handler
// throws; then it throws bad_alloc (or returns nullptr in the nothrow forms).
//
// The library needs libc only, so what it uses of the C++ runtime (also behind try and catch: this file is compiled
// with exceptions) it refers to weakly: a C++ program has one. A C program may load one later, with what is written in
// C++: then the forms of that runtime itself go on where memory is exhausted.
#include <dlfcn.h>

#include <cstdlib>
#include <new>

#include "entry/family.h"
#include "entry/visibility.h"
#include "os/message.h"

asm(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch");
#pragma weak dlsym

namespace std {
[[gnu::weak]] new_handler get_new_handler() noexcept;
__attribute__((noreturn, weak)) void __throw_bad_alloc();
}  // namespace std

#define ANNEX_FORM ANNEX_EXPORT [[gnu::weak]]
#define ANNEX_OURS(form) [[gnu::alias(form), gnu::visibility("hidden")]]

// The forms that others call, and the definitions of this file under names that nothing replaces.
ANNEX_FORM void* operator new(size_t);
ANNEX_FORM void* operator new[](size_t);
ANNEX_FORM void* operator new(size_t, std::align_val_t);
ANNEX_FORM void* operator new[](size_t, std::align_val_t);
ANNEX_FORM void operator delete(void*) noexcept;
ANNEX_FORM void operator delete[](void*) noexcept;
ANNEX_FORM void operator delete(void*, std::align_val_t) noexcept;
ANNEX_FORM void operator delete[](void*, std::align_val_t) noexcept;

extern "C" {
ANNEX_OURS("_Znwm") void* annex_new(size_t);
ANNEX_OURS("_Znam") void* annex_new_array(size_t);
ANNEX_OURS("_ZnwmSt11align_val_t") void* annex_new_aligned(size_t, std::align_val_t);
ANNEX_OURS("_ZnamSt11align_val_t") void* annex_new_array_aligned(size_t, std::align_val_t);
ANNEX_OURS("_ZdlPv") void annex_delete(void*) noexcept;
ANNEX_OURS("_ZdaPv") void annex_delete_array(void*) noexcept;
ANNEX_OURS("_ZdlPvSt11align_val_t") void annex_delete_aligned(void*, std::align_val_t) noexcept;
ANNEX_OURS("_ZdaPvSt11align_val_t") void annex_delete_array_aligned(void*, std::align_val_t) noexcept;
}

using namespace annex;

namespace {

// Whether the program sees our forms under their names.
using New = void*(size_t);
using NewAligned = void*(size_t, std::align_val_t);
using Delete = void(void*) noexcept;
using DeleteAligned = void(void*, std::align_val_t) noexcept;
inline bool new_is_ours() { return static_cast<New*>(::operator new) == annex_new; }
inline bool new_array_is_ours() { return new_is_ours() && static_cast<New*>(::operator new[]) == annex_new_array; }
inline bool new_aligned_is_ours() { return static_cast<NewAligned*>(::operator new) == annex_new_aligned; }
inline bool new_array_aligned_is_ours() {
  return new_aligned_is_ours() && static_cast<NewAligned*>(::operator new[]) == annex_new_array_aligned;
}
inline bool delete_is_ours() { return static_cast<Delete*>(::operator delete) == annex_delete; }
// Of the rarer ones, only where sizes and alignments are checked: else calling is as good.
inline bool delete_array_is_ours() {
  return Front::kKnowsSizes && delete_is_ours() && static_cast<Delete*>(::operator delete[]) == annex_delete_array;
}
inline bool delete_aligned_is_ours() {
  return Front::kKnowsSizes && static_cast<DeleteAligned*>(::operator delete) == annex_delete_aligned;
}
inline bool delete_array_aligned_is_ours() {
  return delete_aligned_is_ours() && static_cast<DeleteAligned*>(::operator delete[]) == annex_delete_array_aligned;
}

// A form as a runtime that was loaded after the program's start defines it. It asks malloc, and does what is to be done
// when that fails. nullptr where there is no such runtime.
template <class Form>
Form* form_of_late_runtime(const char* name) {
  if (dlsym == nullptr) return nullptr;
  // By name: programs that are linked statically would be warned of a dlopen.
  const auto open = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_DEFAULT, "dlopen"));
  const auto close = reinterpret_cast<decltype(&dlclose)>(dlsym(RTLD_DEFAULT, "dlclose"));
  if (open == nullptr || close == nullptr) return nullptr;
  for (const char* library : {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"}) {
    void* const runtime = open(library, RTLD_LAZY | RTLD_NOLOAD);
    if (runtime == nullptr) continue;
    void* const form = dlsym(runtime, name);
    close(runtime);
    if (form != nullptr) return reinterpret_cast<Form*>(form);
  }
  return nullptr;
}

bool has_runtime() { return std::get_new_handler != nullptr && std::__throw_bad_alloc != nullptr; }

void* try_allocate(size_t bytes, size_t alignment) {
  return alignment == 0 ? Front::allocate(bytes) : entry::allocate_aligned(alignment, bytes);
}

[[gnu::cold, gnu::noinline]] void* exhausted_without_runtime(size_t bytes, size_t alignment) {
  if (alignment == 0) {
    if (const auto form = form_of_late_runtime<New>("_Znwm")) return form(bytes);
  } else {
    if (const auto form = form_of_late_runtime<NewAligned>("_ZnwmSt11align_val_t"))
      return form(bytes, std::align_val_t{alignment});
  }
  os::fatal("out of memory in operator new, and no C++ runtime to say so to");
}

[[gnu::cold, gnu::noinline]] void* exhausted(size_t bytes, size_t alignment) {
  if (!has_runtime()) return exhausted_without_runtime(bytes, alignment);
  while (const std::new_handler call = std::get_new_handler()) {
    call();
    if (void* block = try_allocate(bytes, alignment)) return block;
  }
  std::__throw_bad_alloc();
}

[[gnu::cold, gnu::noinline]] void* exhausted_nothrow_without_runtime(size_t bytes, size_t alignment) {
  if (alignment == 0) {
    const auto form = form_of_late_runtime<void*(size_t, const std::nothrow_t&)>("_ZnwmRKSt9nothrow_t");
    return form != nullptr ? form(bytes, std::nothrow_t{}) : nullptr;
  }
  const auto form = form_of_late_runtime<void*(size_t, std::align_val_t, const std::nothrow_t&)>(
      "_ZnwmSt11align_val_tRKSt9nothrow_t");
  return form != nullptr ? form(bytes, std::align_val_t{alignment}, std::nothrow_t{}) : nullptr;
}

[[gnu::cold, gnu::noinline]] void* exhausted_nothrow(size_t bytes, size_t alignment) noexcept {
  if (!has_runtime()) return exhausted_nothrow_without_runtime(bytes, alignment);
  try {
    return exhausted(bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}

// What a program's own form returns, or nullptr where it throws.
template <class... Arguments>
[[gnu::cold, gnu::noinline]] void* call_nothrow(void* form(Arguments...), Arguments... arguments) noexcept {
  try {
    return form(arguments...);
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

ANNEX_FORM void* operator new(size_t n) { return Front::allocate<allocate_slow>(n); }
ANNEX_FORM void* operator new[](size_t n) { return ::operator new(n); }
ANNEX_FORM void* operator new(size_t n, const std::nothrow_t&) noexcept {
  if (!new_is_ours()) [[unlikely]]
    return call_nothrow<size_t>(::operator new, n);
  return Front::allocate<allocate_slow_nothrow>(n);
}
ANNEX_FORM void* operator new[](size_t n, const std::nothrow_t&) noexcept {
  if (!new_array_is_ours()) [[unlikely]]
    return call_nothrow<size_t>(::operator new[], n);
  return Front::allocate<allocate_slow_nothrow>(n);
}
ANNEX_FORM void* operator new(size_t n, std::align_val_t a) { return allocate(n, a); }
ANNEX_FORM void* operator new[](size_t n, std::align_val_t a) { return ::operator new(n, a); }
ANNEX_FORM void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  if (!new_aligned_is_ours()) [[unlikely]]
    return call_nothrow<size_t, std::align_val_t>(::operator new, n, a);
  return allocate_nothrow(n, a);
}
ANNEX_FORM void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  if (!new_array_aligned_is_ours()) [[unlikely]]
    return call_nothrow<size_t, std::align_val_t>(::operator new[], n, a);
  return allocate_nothrow(n, a);
}

ANNEX_FORM void operator delete(void* p) noexcept { Front::release(p); }
ANNEX_FORM void operator delete[](void* p) noexcept { ::operator delete(p); }
ANNEX_FORM void operator delete(void* p, const std::nothrow_t&) noexcept { ::operator delete(p); }
ANNEX_FORM void operator delete[](void* p, const std::nothrow_t&) noexcept { ::operator delete[](p); }
ANNEX_FORM void operator delete(void* p, size_t n) noexcept {
  if (!delete_is_ours()) [[unlikely]]
    return ::operator delete(p);
  Front::release(p, n, 0);
}
ANNEX_FORM void operator delete[](void* p, size_t n) noexcept {
  delete_array_is_ours() ? Front::release(p, n, 0) : ::operator delete[](p);
}
ANNEX_FORM void operator delete(void* p, std::align_val_t a) noexcept { release(p, 0, a); }
ANNEX_FORM void operator delete[](void* p, std::align_val_t a) noexcept { ::operator delete(p, a); }
ANNEX_FORM void operator delete(void* p, size_t n, std::align_val_t a) noexcept {
  delete_aligned_is_ours() ? release(p, n, a) : ::operator delete(p, a);
}
ANNEX_FORM void operator delete[](void* p, size_t n, std::align_val_t a) noexcept {
  delete_array_aligned_is_ours() ? release(p, n, a) : ::operator delete[](p, a);
}
ANNEX_FORM void operator delete(void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
  ::operator delete(p, a);
}
ANNEX_FORM void operator delete[](void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
  ::operator delete[](p, a);
}
