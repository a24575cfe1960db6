// Every form of operator new and operator delete: plain, array, nothrow, sized, aligned, and their
// mixtures.
#include <gtest/gtest.h>

#include <new>

#include "api.h"

using namespace annex_test;

namespace {

int owned(const void* block) { return on_glibc() ? 1 : annex_owns(block); }

void check(void* block, std::size_t bytes, std::size_t alignment) {
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(owned(block));
  EXPECT_TRUE(is_aligned(block, alignment)) << block << ' ' << alignment;
  EXPECT_GE(malloc_usable_size(block), bytes);
  fill(block, bytes, bytes);
  EXPECT_EQ(mismatch(block, bytes, bytes), kNoMismatch);
}

constexpr std::size_t kSizes[] = {0, 1, 24, 1000, 100 * kKiB, 3 * kMiB};

}  // namespace

TEST(OperatorNew, PlainForms) {
  for (std::size_t bytes : kSizes) {
    void* block = opaque(::operator new(bytes));
    check(block, bytes, kFundamental);
    ::operator delete(block);
    block = opaque(::operator new(bytes));
    check(block, bytes, kFundamental);
    ::operator delete(block, bytes);
    block = opaque(::operator new[](bytes));
    check(block, bytes, kFundamental);
    ::operator delete[](block);
    block = opaque(::operator new[](bytes));
    check(block, bytes, kFundamental);
    ::operator delete[](block, bytes);
  }
  ::operator delete(opaque(nullptr));
  ::operator delete[](opaque(nullptr));
  ::operator delete (opaque(nullptr), std::size_t{10});
  ::operator delete[](opaque(nullptr), std::size_t{10});
}

TEST(OperatorNew, NothrowForms) {
  for (std::size_t bytes : kSizes) {
    void* block = opaque(::operator new(bytes, std::nothrow));
    check(block, bytes, kFundamental);
    ::operator delete(block, std::nothrow);
    block = opaque(::operator new[](bytes, std::nothrow));
    check(block, bytes, kFundamental);
    ::operator delete[](block, std::nothrow);
  }
}

TEST(OperatorNew, AlignedForms) {
  for (std::size_t alignment = 1; alignment <= 4 * kMiB; alignment *= 2) {
    const std::align_val_t align{alignment};
    for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{70000}}) {
      void* block = opaque(::operator new(bytes, align));
      check(block, bytes, alignment);
      ::operator delete(block, align);
      block = opaque(::operator new(bytes, align));
      check(block, bytes, alignment);
      ::operator delete(block, bytes, align);
      block = opaque(::operator new[](bytes, align));
      check(block, bytes, alignment);
      ::operator delete[](block, align);
      block = opaque(::operator new[](bytes, align));
      check(block, bytes, alignment);
      ::operator delete[](block, bytes, align);
      block = opaque(::operator new(bytes, align, std::nothrow));
      check(block, bytes, alignment);
      ::operator delete(block, align, std::nothrow);
      block = opaque(::operator new[](bytes, align, std::nothrow));
      check(block, bytes, alignment);
      ::operator delete[](block, align, std::nothrow);
    }
  }
  ::operator delete (opaque(nullptr), std::align_val_t{64});
  ::operator delete[](opaque(nullptr), std::align_val_t{64});
}

TEST(OperatorNew, ZeroBytesGiveDistinctBlocks) {
  void* a = opaque(::operator new(0));
  void* b = opaque(::operator new(0));
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  ::operator delete(a);
  ::operator delete(b);
}

TEST(OperatorNew, DeletePreservesErrno) {
  for (std::size_t bytes : kSizes) {
    void* block = opaque(::operator new(bytes));
    errno = 4242;
    ::operator delete(block, bytes);
    EXPECT_EQ(errno, 4242);
  }
}

TEST(OperatorNew, NewExpressionsOfOverAlignedTypes) {
  struct alignas(256) Wide {
    char bytes[300];
  };
  for (int i = 0; i < 20; ++i) {
    Wide* one = new Wide;
    EXPECT_TRUE(is_aligned(opaque(one), 256));
    Wide* many = new Wide[5];
    EXPECT_TRUE(is_aligned(opaque(many), 256));
    delete one;
    delete[] many;
  }
}
