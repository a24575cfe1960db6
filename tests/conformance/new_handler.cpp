// Exhausted memory in operator new: the new-handler is called until it helps, gives up or throws.
#include <gtest/gtest.h>

#include <new>

#include "api.h"

using namespace annex_test;

namespace {

constexpr std::size_t kImpossible = kMaxObject - 4096;

// libstdc++'s aligned forms round SIZE_MAX up to zero bytes, which Annex's must not.
std::size_t largest() { return on_glibc() ? SIZE_MAX / 2 + 4096 : SIZE_MAX; }

int calls = 0;
int calls_until_removed = 0;

struct HandlerFailure {};

void removes_itself_after_a_while() {
  if (++calls == calls_until_removed) std::set_new_handler(nullptr);
}

void throws_its_own() {
  ++calls;
  throw HandlerFailure();
}

void throws_bad_alloc() {
  ++calls;
  throw std::bad_alloc();
}

// Sets a handler, and puts back what was there.
class WithHandler {
 public:
  explicit WithHandler(std::new_handler handler) : old_(std::set_new_handler(handler)) { calls = 0; }
  ~WithHandler() { std::set_new_handler(old_); }

 private:
  std::new_handler old_;
};

// Calls `allocate(bytes)` for each throwing form.
template <typename Check>
void each_throwing_form(Check check) {
  constexpr std::align_val_t kAlign{64};
  check("new", [](std::size_t n) { return ::operator new(n); });
  check("new[]", [](std::size_t n) { return ::operator new[](n); });
  check("aligned new", [](std::size_t n) { return ::operator new(n, kAlign); });
  check("aligned new[]", [](std::size_t n) { return ::operator new[](n, kAlign); });
}

template <typename Check>
void each_nothrow_form(Check check) {
  constexpr std::align_val_t kAlign{64};
  check("new", [](std::size_t n) { return ::operator new(n, std::nothrow); });
  check("new[]", [](std::size_t n) { return ::operator new[](n, std::nothrow); });
  check("aligned new", [](std::size_t n) { return ::operator new(n, kAlign, std::nothrow); });
  check("aligned new[]", [](std::size_t n) { return ::operator new[](n, kAlign, std::nothrow); });
}

}  // namespace

TEST(NewHandler, WithoutOneBadAllocIsThrown) {
  const WithHandler none(nullptr);
  each_throwing_form([](const char* form, auto allocate) {
    for (std::size_t bytes : {kImpossible, kMaxObject + 1, largest()}) {
      EXPECT_THROW(opaque(allocate(opaque(bytes))), std::bad_alloc) << form << ' ' << bytes;
    }
  });
}

TEST(NewHandler, WithoutOneNothrowFormsReturnNull) {
  const WithHandler none(nullptr);
  each_nothrow_form([](const char* form, auto allocate) {
    for (std::size_t bytes : {kImpossible, kMaxObject + 1, largest()}) {
      EXPECT_EQ(opaque(allocate(opaque(bytes))), nullptr) << form << ' ' << bytes;
    }
  });
}

TEST(NewHandler, IsCalledAgainAndAgain) {
  each_throwing_form([](const char* form, auto allocate) {
    const WithHandler handler(removes_itself_after_a_while);
    calls_until_removed = 5;
    EXPECT_THROW(opaque(allocate(opaque(kImpossible))), std::bad_alloc) << form;
    EXPECT_EQ(calls, 5) << form;
  });
  each_nothrow_form([](const char* form, auto allocate) {
    const WithHandler handler(removes_itself_after_a_while);
    calls_until_removed = 5;
    EXPECT_EQ(opaque(allocate(opaque(kImpossible))), nullptr) << form;
    EXPECT_EQ(calls, 5) << form;
  });
}

TEST(NewHandler, MayThrow) {
  each_throwing_form([](const char* form, auto allocate) {
    const WithHandler handler(throws_its_own);
    EXPECT_THROW(opaque(allocate(opaque(kImpossible))), HandlerFailure) << form;
    EXPECT_EQ(calls, 1) << form;
  });
}

TEST(NewHandler, NothrowFormsSwallowItsBadAlloc) {
  each_nothrow_form([](const char* form, auto allocate) {
    const WithHandler handler(throws_bad_alloc);
    EXPECT_EQ(opaque(allocate(opaque(kImpossible))), nullptr) << form;
    EXPECT_EQ(calls, 1) << form;
  });
}

TEST(NewHandler, IsNotCalledWhileThereIsMemory) {
  const WithHandler handler(throws_its_own);
  each_throwing_form([](const char*, auto allocate) { ::free(opaque(allocate(100))); });
  EXPECT_EQ(calls, 0);
}

TEST(NewHandler, IsNotCalledByMalloc) {
  const WithHandler handler(throws_its_own);
  EXPECT_NO_MEMORY(malloc(opaque(kImpossible)));
  EXPECT_EQ(calls, 0);
}
