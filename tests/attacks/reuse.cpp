// How soon a freed block is handed out again. No mistake is made here: these are the odds of every use after free. The
// attacker wants a block where the victim's was, to which the victim still has a pointer.
#include "aftermath.h"
#include "classes.h"
#include "worker.h"

namespace attacks {
namespace {

constexpr char kGain[] = "a block at the address of the victim's, which is freed";

bool spray(const char* freed, std::size_t freed_bytes, std::size_t bytes, std::size_t tries) {
  for (std::size_t i = 0; i < tries; ++i) {
    const char* block = take(bytes);
    if (block != nullptr && share_bytes(block, bytes, freed, freed_bytes)) return true;
  }
  return false;
}

Verdict judge(bool hit) {
  after_misuse();
  return hit ? exploited("the freed block is the attacker's") : survived("the attacker has missed it");
}

Verdict same_size(std::size_t bytes, std::size_t tries) {
  Blocks others(bytes, 'v', 16);
  char* freed = others.let_go(8);
  give(freed);
  before_access();
  return judge(spray(freed, bytes, bytes, tries));
}

Verdict freed_by_another_thread() {
  Worker worker;
  Blocks others(kSize, 'v', 16);
  char* freed = others.let_go(8);
  before_access();
  bool hit = false;
  worker.run([&] {
    give(freed);
    hit = spray(freed, kSize, kSize, 2000);
  });
  return judge(hit);
}

// All blocks around the victim's are freed as well, so that the memory may serve another size.
Verdict another_size(std::size_t tries) {
  Blocks others(kSize, 'v', Blocks::kMost);
  char* freed = others[Blocks::kMost / 2];
  others.give_all();
  before_access();
  return judge(spray(freed, kSize, 320, tries));
}

constexpr Attack kAttacks[] = {
    {"reuse-first", kGain, "the next block of the size", [] { return same_size(kSize, 1); }},
    {"reuse-16", kGain, "one of the next 16", [] { return same_size(kSize, 16); }},
    {"reuse-256", kGain, "one of the next 256", [] { return same_size(kSize, 256); }},
    {"reuse-10000", kGain, "one of the next 10,000", [] { return same_size(kSize, 10000); }},
    {"reuse-2000-bytes", kGain, "2,000 bytes: one of the next 256", [] { return same_size(2000, 256); }},
    {"reuse-large", kGain, "1 MiB: one of the next 16", [] { return same_size(kLarge, 16); }},
    {"reuse-other-thread", kGain, "one of the next 2,000 of a thread that has freed another's block",
     freed_by_another_thread},
    {"reuse-other-size", kGain, "one of 10,000 blocks of another size, after all around it were freed",
     [] { return another_size(10000); }},
};

}  // namespace

const AttackClass kReuse = {"reuse", kAttacks};

}  // namespace attacks
