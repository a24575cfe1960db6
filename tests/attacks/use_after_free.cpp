// A block is read or written after it was freed. The attacker wants to know what was or is in it, or to change what the
// next owner puts there.
#include <cstdlib>

#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kSecretGain[] = "a secret of the victim's";
constexpr char kChangeGain[] = "data of the victim's is changed";

// A victim's block is at the freed one's address again, or malloc has handed out 2,048 without that.
void reuse(Blocks* victims, const char* freed) {
  while (!victims->covers(freed, 1) && victims->take()) {
  }
}

Verdict write_after_reuse(std::size_t bytes) {
  char* freed = take(bytes);
  give(freed);
  Blocks victims(bytes, 'v');
  if (bytes == kLarge) {
    victims.take(16);
  } else {
    reuse(&victims, freed);
  }
  before_access();
  fill(freed, 'x', kSize);
  if (!victims.intact()) gained(kChangeGain);
  return go_on(bytes, {.victims = &victims});
}

Verdict read_after_reuse() {
  char* freed = take(kSize);
  give(freed);
  Blocks victims(kSize, 's');
  reuse(&victims, freed);
  before_access();
  if (holds_any(freed, 's', kSize)) return exploited(kSecretGain);
  return go_on(kSize);
}

Verdict read_secret(std::size_t bytes) {
  Blocks others(bytes, 'v', 4);
  char* freed = take(bytes);
  fill(freed, 's', bytes);
  give(freed);
  before_access();
  if (holds_any(freed, 's', bytes)) return exploited(kSecretGain);
  return go_on(bytes);
}

Verdict read_after_other_threads_free() {
  Worker worker;
  char* freed = take(kSize);
  fill(freed, 's', kSize);
  worker.run([&] { give(freed); });
  before_access();
  if (holds_any(freed, 's', kSize)) return exploited(kSecretGain);
  return go_on(kSize);
}

Verdict read_addresses() {
  Blocks blocks(kSize, 'v', 8);
  char* freed[] = {blocks.let_go(2), blocks.let_go(4), blocks.let_go(6)};
  for (char* block : freed) give(block);
  before_access();
  for (const char* block : freed) {
    for (std::size_t at = 0; at < kSize; at += sizeof(Word)) {
      if (tells(read_word(block + at), block)) return exploited("an address of the heap's");
    }
  }
  return go_on(kSize);
}

Verdict written_before_calloc(std::size_t bytes) {
  char* freed = take(bytes);
  give(freed);
  before_access();
  fill(freed, 'x', kSize);
  after_misuse();
  for (std::size_t i = 0; i < (bytes == kLarge ? 16 : Blocks::kMost); ++i) {
    const char* zeros = static_cast<const char*>(opaque(calloc(opaque(bytes), 1)));
    if (zeros != nullptr && !holds_only(zeros, 0, kSize)) return exploited("calloc's memory is not zero");
  }
  return go_on(bytes);
}

// The victim goes on to call a function through an object that is freed; the attacker has text of its size.
Verdict called_function() {
  Blocks others(kSize, 'v', 4);
  char* object = take(kSize);
  write_word(object, address(others[0]));  // stands for the right function
  give(object);
  Blocks text(kSize, 'x', 256);
  before_access();
  if (holds_only(object, 'x', sizeof(Word))) return exploited("the attacker chooses which function is called");
  return go_on(kSize);
}

constexpr Attack kAttacks[] = {
    {"stale-write", kChangeGain, "a freed block is written to when a victim has it",
     [] { return write_after_reuse(kSize); }},
    {"stale-write-large", kChangeGain, "the same with 1 MiB", [] { return write_after_reuse(kLarge); }},
    {"stale-read", kSecretGain, "a freed block is read when a victim has it", read_after_reuse},
    {"freed-secret", kSecretGain, "a freed block is read: is what was in it still there?",
     [] { return read_secret(kSize); }},
    {"freed-secret-2000", kSecretGain, "the same with 2,000 bytes", [] { return read_secret(2000); }},
    {"freed-secret-large", kSecretGain, "the same with 1 MiB", [] { return read_secret(kLarge); }},
    {"freed-secret-other-thread", kSecretGain, "the same where another thread has freed it",
     read_after_other_threads_free},
    {"freed-addresses", "where the heap is", "freed blocks are read: do they hold addresses?", read_addresses},
    {"written-before-calloc", "calloc's memory is not zero", "a freed block is written to, then calloc is called",
     [] { return written_before_calloc(kSize); }},
    {"written-before-calloc-large", "calloc's memory is not zero", "the same with 1 MiB",
     [] { return written_before_calloc(kLarge); }},
    {"freed-object-called", "control over the program",
     "a freed object's function is called when the attacker has allocated 256 texts of its size", called_function},
};

}  // namespace

const AttackClass kUseAfterFree = {"use after free", kAttacks};

}  // namespace attacks
