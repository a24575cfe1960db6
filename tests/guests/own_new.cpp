// A program that replaces operator new and delete, each block of its own with a header in front: own_new
// With OWN_ARRAYS also the array forms, which its other forms then must call.
//
// The forms that it leaves are the library's, and end in those that it replaces. Exit status 0, or 1 and a line for
// each that does not.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kHeader = 64;

struct Calls {
  int single = 0, aligned = 0, array = 0, aligned_array = 0;
  bool operator==(const Calls&) const = default;
};
Calls made, ended;
bool fails = false;

void* make(std::size_t bytes, std::size_t alignment) {
  if (fails) throw std::bad_alloc();
  char* block = static_cast<char*>(std::aligned_alloc(alignment, (kHeader + bytes + alignment - 1) & ~(alignment - 1)));
  if (block == nullptr) throw std::bad_alloc();
  *reinterpret_cast<std::size_t*>(block) = 4711;
  return block + kHeader;
}
void end(void* address) {
  if (address == nullptr) return;
  char* const block = static_cast<char*>(address) - kHeader;
  if (*reinterpret_cast<std::size_t*>(block) != 4711) std::abort();
  std::free(block);
}

}  // namespace

void* operator new(std::size_t n) { return ++made.single, make(n, 16); }
void operator delete(void* p) noexcept { ++ended.single, end(p); }
void* operator new(std::size_t n, std::align_val_t) { return ++made.aligned, make(n, kHeader); }
void operator delete(void* p, std::align_val_t) noexcept { ++ended.aligned, end(p); }
#ifdef OWN_ARRAYS
void* operator new[](std::size_t n) { return ++made.array, make(n, 16); }
void operator delete[](void* p) noexcept { ++ended.array, end(p); }
void* operator new[](std::size_t n, std::align_val_t) { return ++made.aligned_array, make(n, kHeader); }
void operator delete[](void* p, std::align_val_t) noexcept { ++ended.aligned_array, end(p); }
constexpr Calls kArray{.array = 1}, kAlignedArray{.aligned_array = 1};
#else
constexpr Calls kArray{.single = 1}, kAlignedArray{.aligned = 1};
#endif
constexpr Calls kSingle{.single = 1}, kAligned{.aligned = 1};

namespace {

bool failed = false;

template <class Allocate, class Release>
void expect(const char* form, Calls calls, Allocate allocate, Release release) {
  made = ended = {};
  void* volatile block = allocate();
  release(block);
  if (made == calls && ended == calls) return;
  failed = true;
  std::printf("%s does not end in the program's own\n", form);
}

template <class Allocate>
void expect_null(const char* form, Allocate allocate) {
  void* volatile block = allocate();
  if (block == nullptr) return;
  failed = true;
  std::printf("%s: not nullptr where the program's own throws\n", form);
}

}  // namespace

int main() {
  constexpr std::size_t n = 40;
  constexpr std::align_val_t a{kHeader};
  constexpr const std::nothrow_t& q = std::nothrow;
  expect(
      "new", kSingle, [] { return ::operator new(n); }, [](void* p) { ::operator delete(p); });
  expect(
      "sized", kSingle, [] { return ::operator new(n); }, [](void* p) { ::operator delete(p, n); });
  expect(
      "nothrow", kSingle, [] { return ::operator new(n, q); }, [](void* p) { ::operator delete(p, q); });
  expect(
      "array", kArray, [] { return ::operator new[](n); }, [](void* p) { ::operator delete[](p); });
  expect(
      "sized array", kArray, [] { return ::operator new[](n); }, [](void* p) { ::operator delete[](p, n); });
  expect(
      "nothrow array", kArray, [] { return ::operator new[](n, q); }, [](void* p) { ::operator delete[](p, q); });
  expect(
      "aligned", kAligned, [] { return ::operator new(n, a); }, [](void* p) { ::operator delete(p, a); });
  expect(
      "sized aligned", kAligned, [] { return ::operator new(n, a); }, [](void* p) { ::operator delete(p, n, a); });
  expect(
      "nothrow aligned", kAligned, [] { return ::operator new(n, a, q); }, [](void* p) { ::operator delete(p, a, q); });
  expect(
      "aligned array", kAlignedArray, [] { return ::operator new[](n, a); },
      [](void* p) { ::operator delete[](p, a); });
  expect(
      "sized aligned array", kAlignedArray, [] { return ::operator new[](n, a); },
      [](void* p) { ::operator delete[](p, n, a); });
  expect(
      "nothrow aligned array", kAlignedArray, [] { return ::operator new[](n, a, q); },
      [](void* p) { ::operator delete[](p, a, q); });
  fails = true;
  expect_null("nothrow", [] { return ::operator new(n, q); });
  expect_null("nothrow array", [] { return ::operator new[](n, q); });
  expect_null("nothrow aligned", [] { return ::operator new(n, a, q); });
  expect_null("nothrow aligned array", [] { return ::operator new[](n, a, q); });
  return failed ? 1 : 0;
}
