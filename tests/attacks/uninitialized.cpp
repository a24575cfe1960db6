// Blocks that are read before they are written, without any other mistake. The attacker wants to find there what their
// last owner has left.
#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kGain[] = "a secret of the block's last owner";

// Victims free `count` blocks with secrets; the attacker allocates `tries` and reads.
Verdict fresh(std::size_t secret_bytes, std::size_t count, std::size_t bytes, std::size_t tries) {
  Blocks secrets(secret_bytes, 's', count);
  Blocks others(secret_bytes, 'v', 4);
  secrets.give_all();
  before_access();
  for (std::size_t i = 0; i < tries; ++i) {
    char* block = take(bytes);
    if (block != nullptr && holds_any(block, 's', bytes)) return exploited(kGain);
  }
  return go_on(bytes);
}

Verdict grown() {
  Blocks small(kSize, 'g', 16);
  Blocks secrets(10 * kSize, 's', 16);
  secrets.give_all();
  before_access();
  for (std::size_t i = 0; i < small.size(); ++i) {
    char* block = static_cast<char*>(resize(small.let_go(i), 10 * kSize));
    if (block != nullptr && holds_any(block, 's', 10 * kSize)) return exploited(kGain);
  }
  return go_on(kSize);
}

Verdict addresses() {
  Blocks freed(kSize, 0, 64);
  freed.give_all();
  before_access();
  for (int i = 0; i < 64; ++i) {
    const char* block = take(kSize);
    for (std::size_t at = 0; at < kSize; at += sizeof(Word)) {
      if (tells(read_word(block + at), block)) return exploited("an address of the heap's");
    }
  }
  return go_on(kSize);
}

constexpr Attack kAttacks[] = {
    {"fresh-secret", kGain, "one block of the size of one freed before", [] { return fresh(kSize, 1, kSize, 1); }},
    {"fresh-secrets", kGain, "2,000 blocks of the size of 64 freed before",
     [] { return fresh(kSize, 64, kSize, 2000); }},
    {"fresh-secret-2000", kGain, "the same with 2,000 bytes, 500 blocks", [] { return fresh(2000, 64, 2000, 500); }},
    {"fresh-secret-large", kGain, "16 of 1 MiB, where one was freed", [] { return fresh(kLarge, 1, kLarge, 16); }},
    {"fresh-secret-other-size", kGain, "2,000 blocks of 1,000 bytes, where 2,000 of 64 were freed",
     [] { return fresh(kSize, 2000, 1000, 2000); }},
    {"grown-secret", kGain, "what realloc has added to a block", grown},
    {"fresh-addresses", "where the heap is", "64 blocks of the size of 64 freed before hold addresses", addresses},
};

}  // namespace

const AttackClass kUninitialized = {"uninitialized read", kAttacks};

}  // namespace attacks
