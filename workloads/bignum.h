// Unsigned integers of any length, each an immutable block of its own, shared by counting references. Every operation
// allocates its result: that is what makes cfrac a test of allocators.

#pragma once

#include <algorithm>
#include <utility>

#include "workload.h"

namespace workload {

class Big {
 public:
  Big() : rep_(nullptr) {}
  explicit Big(uint64_t value) : rep_(allocate(2)) {
    rep_->digits[0] = static_cast<uint32_t>(value);
    rep_->digits[1] = static_cast<uint32_t>(value >> 32);
    trim();
  }
  Big(const Big& other) : rep_(other.rep_) {
    if (rep_ != nullptr) ++rep_->references;
  }
  Big(Big&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Big& operator=(Big other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Big() {
    if (rep_ != nullptr && --rep_->references == 0) free(rep_);
  }

  static Big parse(const std::string& decimal) {
    Big value(0);
    for (const char digit : decimal) value = value * Big(10) + Big(static_cast<uint64_t>(digit - '0'));
    return value;
  }

  bool is_zero() const { return rep_->length == 0; }
  bool is_one() const { return rep_->length == 1 && rep_->digits[0] == 1; }
  bool is_odd() const { return rep_->length > 0 && (rep_->digits[0] & 1) != 0; }
  uint32_t bits() const {
    return rep_->length == 0 ? 0
                             : rep_->length * 32 - static_cast<uint32_t>(__builtin_clz(rep_->digits[rep_->length - 1]));
  }
  uint64_t low64() const { return digit(0) | static_cast<uint64_t>(digit(1)) << 32; }

  // Less than 0, 0 or more than 0, as a - b would be.
  friend int compare(const Big& a, const Big& b) {
    if (a.rep_->length != b.rep_->length) return a.rep_->length < b.rep_->length ? -1 : 1;
    for (uint32_t i = a.rep_->length; i-- > 0;) {
      if (a.rep_->digits[i] != b.rep_->digits[i]) return a.rep_->digits[i] < b.rep_->digits[i] ? -1 : 1;
    }
    return 0;
  }

  friend Big operator+(const Big& a, const Big& b) {
    const uint32_t length = std::max(a.rep_->length, b.rep_->length);
    Big sum(Fresh{allocate(length + 1)});
    uint64_t carry = 0;
    for (uint32_t i = 0; i <= length; ++i) {
      carry += static_cast<uint64_t>(a.digit(i)) + b.digit(i);
      sum.rep_->digits[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    return sum.trim();
  }

  // a must not be less than b.
  friend Big operator-(const Big& a, const Big& b) {
    Big difference(Fresh{allocate(a.rep_->length)});
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a.rep_->length; ++i) {
      borrow += static_cast<int64_t>(a.digit(i)) - b.digit(i);
      difference.rep_->digits[i] = static_cast<uint32_t>(borrow);
      borrow >>= 32;
    }
    require(borrow == 0, "a bignum went below zero");
    return difference.trim();
  }

  friend Big operator*(const Big& a, const Big& b) {
    Big product(Fresh{allocate(a.rep_->length + b.rep_->length)});
    std::fill_n(product.rep_->digits, product.rep_->length, 0u);
    for (uint32_t i = 0; i < a.rep_->length; ++i) {
      uint64_t carry = 0;
      for (uint32_t j = 0; j < b.rep_->length || carry != 0; ++j) {
        carry += static_cast<uint64_t>(a.digit(i)) * b.digit(j) + product.rep_->digits[i + j];
        product.rep_->digits[i + j] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
    }
    return product.trim();
  }

  // Quotient and remainder by a small divisor.
  std::pair<Big, uint32_t> divide_small(uint32_t divisor) const {
    Big quotient(Fresh{allocate(rep_->length)});
    uint64_t rest = 0;
    for (uint32_t i = rep_->length; i-- > 0;) {
      rest = rest << 32 | rep_->digits[i];
      quotient.rep_->digits[i] = static_cast<uint32_t>(rest / divisor);
      rest %= divisor;
    }
    return {quotient.trim(), static_cast<uint32_t>(rest)};
  }

  // Quotient and remainder, by long division (Knuth, The Art of Computer Programming 2, 4.3.1, algorithm D).
  std::pair<Big, Big> divide(const Big& by) const {
    require(!by.is_zero(), "division by zero");
    if (compare(*this, by) < 0) return {Big(0), *this};
    if (by.rep_->length == 1) {
      auto [quotient, rest] = divide_small(by.rep_->digits[0]);
      return {quotient, Big(rest)};
    }
    const auto shift = static_cast<uint32_t>(__builtin_clz(by.rep_->digits[by.rep_->length - 1]));
    const Big divisor = by.shifted_left(shift);
    Big rest = shifted_left(shift);  // has one digit more than *this, perhaps zero
    const uint32_t n = divisor.rep_->length - (divisor.rep_->digits[divisor.rep_->length - 1] == 0 ? 1 : 0);
    const uint32_t m = rep_->length - n;
    Big quotient(Fresh{allocate(m + 1)});
    const uint64_t top = divisor.digit(n - 1);
    for (uint32_t j = m + 1; j-- > 0;) {
      const uint64_t head = static_cast<uint64_t>(rest.rep_->digits[j + n]) << 32 | rest.rep_->digits[j + n - 1];
      uint64_t guess = head / top;
      uint64_t left = head % top;
      while (guess >> 32 != 0 || guess * divisor.digit(n - 2) > (left << 32 | rest.rep_->digits[j + n - 2])) {
        --guess;
        left += top;
        if (left >> 32 != 0) break;
      }
      int64_t borrow = 0;
      uint64_t carry = 0;
      for (uint32_t i = 0; i <= n; ++i) {
        carry += guess * divisor.digit(i);
        borrow += static_cast<int64_t>(rest.rep_->digits[i + j]) - static_cast<int64_t>(carry & 0xffffffffu);
        rest.rep_->digits[i + j] = static_cast<uint32_t>(borrow);
        carry >>= 32;
        borrow >>= 32;
      }
      if (borrow < 0) {  // the guess was one too large
        --guess;
        carry = 0;
        for (uint32_t i = 0; i <= n; ++i) {
          carry += static_cast<uint64_t>(rest.rep_->digits[i + j]) + divisor.digit(i);
          rest.rep_->digits[i + j] = static_cast<uint32_t>(carry);
          carry >>= 32;
        }
      }
      quotient.rep_->digits[j] = static_cast<uint32_t>(guess);
    }
    rest.trim();
    return {quotient.trim(), rest.shifted_right(shift)};
  }

  friend Big operator/(const Big& a, const Big& b) { return a.divide(b).first; }
  friend Big operator%(const Big& a, const Big& b) { return a.divide(b).second; }

 private:
  struct Rep {
    uint32_t references;
    uint32_t length;  // digits in use; the last is not zero
    uint32_t digits[];
  };

  // A result that is being computed: digits not yet written, length not yet trimmed.
  struct Fresh {
    Rep* rep;
  };

  explicit Big(Fresh fresh) : rep_(fresh.rep) {}

  static Rep* allocate(uint32_t length) {
    auto* rep = static_cast<Rep*>(malloc(sizeof(Rep) + length * sizeof(uint32_t)));
    require(rep != nullptr, "malloc returned null");
    rep->references = 1;
    rep->length = length;
    return rep;
  }

  uint32_t digit(uint32_t i) const { return i < rep_->length ? rep_->digits[i] : 0; }

  Big& trim() {
    while (rep_->length > 0 && rep_->digits[rep_->length - 1] == 0) --rep_->length;
    return *this;
  }

  // By less than 32 bits; the result has one digit more and is not trimmed.
  Big shifted_left(uint32_t by) const {
    Big shifted(Fresh{allocate(rep_->length + 1)});
    uint64_t carry = 0;
    for (uint32_t i = 0; i <= rep_->length; ++i) {
      carry |= static_cast<uint64_t>(digit(i)) << by;
      shifted.rep_->digits[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    return shifted;
  }

  Big shifted_right(uint32_t by) const {
    Big shifted(Fresh{allocate(rep_->length)});
    for (uint32_t i = 0; i < rep_->length; ++i) {
      const uint64_t two = static_cast<uint64_t>(digit(i + 1)) << 32 | digit(i);
      shifted.rep_->digits[i] = static_cast<uint32_t>(two >> by);
    }
    return shifted.trim();
  }

  Rep* rep_;
};

// The largest r with r * r <= n.
inline Big square_root(const Big& n) {
  Big guess = Big(1);
  for (uint32_t i = 0; i <= n.bits() / 2; ++i) guess = guess + guess;
  for (;;) {
    Big better = (guess + n / guess).divide_small(2).first;
    if (compare(better, guess) >= 0) return guess;
    guess = better;
  }
}

inline Big greatest_common_divisor(Big a, Big b) {
  while (!b.is_zero()) {
    Big rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

}  // namespace workload
