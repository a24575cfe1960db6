// Factors a number by continued fractions, on bignums of which every result is a fresh small block.
// Stands for: cfrac (Barrett), used by Zorn and Grunwald and by the mimalloc, SpeedMalloc and Exgen-Malloc papers:
// almost only blocks of 16 to 48 bytes that live for microseconds. The method is Morrison and Brillhart's (1975).
//
// A run with less work finds fewer relations, of numbers as large, and splits none that lacks some.

#include <bitset>

#include "bignum.h"

using workload::Big;

namespace {

constexpr uint32_t kBase = 220;             // primes in the factor base, with -1
constexpr uint32_t kRelations = kBase + 8;  // a few more than needed, so that some combination splits n

struct Relation {
  Big root;                         // root * root = product of the base's primes to their exponents, mod n
  std::vector<uint32_t> exponents;  // one for each entry of the base; entry 0 is -1
  std::bitset<kRelations> history;  // which relations were multiplied into this one
};

uint32_t power_mod(uint64_t base, uint32_t exponent, uint32_t modulus) {
  uint64_t result = 1;
  for (base %= modulus; exponent > 0; exponent >>= 1, base = base * base % modulus) {
    if ((exponent & 1) != 0) result = result * base % modulus;
  }
  return static_cast<uint32_t>(result);
}

bool is_prime(uint32_t n) {
  for (uint32_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

// -1 (as 0) and the primes modulo which n is a square: no other can divide a Q of the expansion.
std::vector<uint32_t> factor_base(const Big& n) {
  std::vector<uint32_t> base = {0, 2};
  for (uint32_t p = 3; base.size() < kBase; p += 2) {
    if (is_prime(p) && power_mod(n.divide_small(p).second, (p - 1) / 2, p) <= 1) base.push_back(p);
  }
  return base;
}

// The exponents of q over the base, or nothing where q has another factor.
bool smooth(Big q, const std::vector<uint32_t>& base, std::vector<uint32_t>& exponents) {
  for (size_t i = 1; i < base.size(); ++i) {
    for (;;) {
      auto [quotient, rest] = q.divide_small(base[i]);
      if (rest != 0) break;
      ++exponents[i];
      q = quotient;
    }
    if (q.is_one()) return true;
  }
  return false;
}

// Expands sqrt(n) until so many relations are found; counts the steps of the expansion.
std::vector<Relation> collect(const Big& n, const std::vector<uint32_t>& base, uint64_t wanted, uint64_t& steps) {
  std::vector<Relation> relations;
  const Big root = workload::square_root(n);
  Big p(0);
  Big q(1);
  Big quotient = root;
  Big older(1);  // numerators of the convergents, mod n
  Big newer = root;
  for (bool negative = true; relations.size() < wanted; negative = !negative) {
    ++steps;
    p = quotient * q - p;
    q = (n - p * p) / q;
    std::vector<uint32_t> exponents(base.size());
    exponents[0] = negative ? 1 : 0;
    if (smooth(q, base, exponents)) {
      Relation relation{newer, std::move(exponents), {}};
      relation.history.set(relations.size());
      relations.push_back(std::move(relation));
    }
    quotient = (root + p) / q;
    Big next = (quotient * newer + older) % n;
    older = newer;
    newer = next;
  }
  return relations;
}

bool holds(const Relation& relation, const Big& n, const std::vector<uint32_t>& base) {
  Big product(1);
  for (size_t i = 1; i < base.size(); ++i) {
    for (uint32_t e = 0; e < relation.exponents[i]; ++e) product = product * Big(base[i]) % n;
  }
  if (relation.exponents[0] % 2 != 0) product = n - product;
  return compare(relation.root * relation.root % n, product) == 0;
}

// The relations' product as x * x = y * y mod n: a factor of n, unless x is y or -y.
Big split(const Big& n, const std::vector<uint32_t>& base, const std::vector<Relation>& relations,
          const std::bitset<kRelations>& chosen) {
  Big x(1);
  std::vector<uint32_t> exponents(base.size());
  for (size_t r = 0; r < relations.size(); ++r) {
    if (!chosen.test(r)) continue;
    x = x * relations[r].root % n;
    for (size_t i = 0; i < base.size(); ++i) exponents[i] += relations[r].exponents[i];
  }
  Big y(1);
  for (size_t i = 1; i < base.size(); ++i) {
    for (uint32_t e = 0; e < exponents[i] / 2; ++e) y = y * Big(base[i]) % n;
  }
  const Big difference = compare(x, y) >= 0 ? x - y : y - x;
  return workload::greatest_common_divisor(n, difference);
}

// Gaussian elimination over GF(2): tries every dependency among the relations until one splits n.
Big solve(const Big& n, const std::vector<uint32_t>& base, const std::vector<Relation>& relations) {
  std::vector<Relation> rows = relations;
  std::vector<bool> used(rows.size());
  for (size_t column = 0; column < base.size(); ++column) {
    size_t pivot = rows.size();
    for (size_t r = 0; r < rows.size(); ++r) {
      if ((rows[r].exponents[column] & 1) == 0) continue;
      if (pivot == rows.size() && !used[r]) {
        pivot = r;
        used[r] = true;
      }
    }
    if (pivot == rows.size()) continue;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (r == pivot || (rows[r].exponents[column] & 1) == 0) continue;
      for (size_t i = 0; i < base.size(); ++i) rows[r].exponents[i] += rows[pivot].exponents[i];
      rows[r].history ^= rows[pivot].history;
    }
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    if (used[r]) continue;
    Big factor = split(n, base, relations, rows[r].history);
    if (!factor.is_one() && compare(factor, n) != 0) return factor;
  }
  return Big(1);
}

}  // namespace

int main(int argc, char** argv) {
  workload::Options options(argc, argv, "Factorization by continued fractions (cfrac).", workload::Chance::kNone);
  options.one_thread();
  const uint64_t wanted = options.work("--relations", 2 * kRelations, "relations to find: 228 split a number");
  const uint32_t digits = options.count("--digits", 34, "of each number: 34 or 23");
  options.done();
  workload::Options::accept(digits == 34 || digits == 23, "--digits must be 34 or 23");

  // Products of two primes each.
  using Primes = std::pair<uint64_t, uint64_t>;
  const Primes numbers[] = {{20000000000000003u, 50000000000000051u}, {30000000000000029u, 70000000000000003u}};
  const Primes small = {200000000041u, 500000000023u};
  uint64_t steps = 0;
  uint64_t checksum = 0;
  const double seconds = workload::seconds_of([&] {
    for (uint64_t found = 0; found < wanted; found += kRelations) {
      const auto& [p, q] = digits == 23 ? small : numbers[found / kRelations % 2];
      const Big n = Big(p) * Big(q);
      const std::vector<uint32_t> base = factor_base(n);
      const std::vector<Relation> relations = collect(n, base, std::min<uint64_t>(wanted - found, kRelations), steps);
      if (relations.size() == kRelations) {
        const Big factor = solve(n, base, relations);
        workload::require(factor.low64() == p || factor.low64() == q, "the factors are wrong");
      } else {
        for (const Relation& relation : relations) workload::require(holds(relation, n, base), "a relation is wrong");
      }
      checksum += steps;
    }
  });
  workload::report("cfrac", steps, seconds, checksum);
}
