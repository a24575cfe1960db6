// What plugin_host loads: every form of operator new where memory is exhausted. The C++ runtime comes with it, and the
// program had none when it started.
#include <cstddef>
#include <cstdio>
#include <new>

namespace {

constexpr std::size_t kImpossible = std::size_t{1} << 62;
constexpr std::align_val_t kAlign{64};

bool failed = false;
int handled = 0;
struct OfHandler {};

void gives_up_at_last() {
  if (++handled == 3) std::set_new_handler(nullptr);
}
[[noreturn]] void throws_bad_alloc() {
  ++handled;
  throw std::bad_alloc();
}
[[noreturn]] void throws_its_own() {
  ++handled;
  throw OfHandler();
}

void expect(const char* form, const char* what, bool so, int calls) {
  if (so && handled == calls) return;
  failed = true;
  std::printf("%s: %s is %s; the handler was called %d times, not %d\n", form, what, so ? "there" : "not there",
              handled, calls);
}

template <class Thrown, class Allocate>
bool throws_it(Allocate allocate) {
  try {
    [[maybe_unused]] void* volatile block = allocate(kImpossible);
    return false;
  } catch (const Thrown&) {
    return true;
  }
}

void start(std::new_handler handler) {
  handled = 0;
  std::set_new_handler(handler);
}

template <class Allocate>
void throwing(const char* form, Allocate allocate) {
  start(nullptr);
  expect(form, "bad_alloc", throws_it<std::bad_alloc>(allocate), 0);
  start(gives_up_at_last);
  expect(form, "bad_alloc", throws_it<std::bad_alloc>(allocate), 3);
  start(throws_its_own);
  expect(form, "what the handler throws", throws_it<OfHandler>(allocate), 1);
}

template <class Allocate>
void nothrow(const char* form, Allocate allocate) {
  const struct {
    std::new_handler handler;
    int calls;
  } cases[] = {{nullptr, 0}, {gives_up_at_last, 3}, {throws_bad_alloc, 1}};
  for (const auto& with : cases) {
    start(with.handler);
    void* volatile block = allocate(kImpossible);
    expect(form, "nullptr", block == nullptr, with.calls);
  }
}

}  // namespace

extern "C" int run() {
  throwing("new", [](std::size_t n) { return ::operator new(n); });
  throwing("new[]", [](std::size_t n) { return ::operator new[](n); });
  throwing("aligned new", [](std::size_t n) { return ::operator new(n, kAlign); });
  throwing("aligned new[]", [](std::size_t n) { return ::operator new[](n, kAlign); });
  nothrow("new", [](std::size_t n) { return ::operator new(n, std::nothrow); });
  nothrow("new[]", [](std::size_t n) { return ::operator new[](n, std::nothrow); });
  nothrow("aligned new", [](std::size_t n) { return ::operator new(n, kAlign, std::nothrow); });
  nothrow("aligned new[]", [](std::size_t n) { return ::operator new[](n, kAlign, std::nothrow); });
  return failed ? 1 : 0;
}
