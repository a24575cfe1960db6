// Blocks that are freed as something they are not: with another size or alignment, by the other family's function. The
// attacker wants a block to be handed out for a size that it does not have.
#include <cstdlib>
#include <new>

#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kGain[] = "a block is handed out for a size that it does not have";
constexpr std::align_val_t kAlignment{256};

char* take_new(std::size_t bytes) { return static_cast<char*>(opaque(::operator new(opaque(bytes)))); }

// One of several blocks from new is freed by `wrong`; then blocks of its size, and of the size that was claimed, must
// not overlap the others.
template <typename Wrong>
Verdict freed_by(std::size_t bytes, std::size_t claimed, Wrong wrong) {
  Blocks victims(bytes, 'v');
  const std::size_t half = bytes == kLarge ? 2 : 16;
  for (std::size_t i = 0; i < half; ++i) victims.add(take_new(bytes));
  char* block = take_new(bytes);
  for (std::size_t i = 0; i < half; ++i) victims.add(take_new(bytes));
  before_call();
  wrong(opaque(block));
  for (std::size_t size : {claimed, bytes}) {
    const Verdict verdict = go_on(size, {.victims = &victims});
    if (verdict.kind != Verdict::Kind::kSurvived) return verdict;
  }
  return survived("nothing came of it");
}

Verdict sized(std::size_t bytes, std::size_t claimed) {
  return freed_by(bytes, claimed, [&](void* block) { ::operator delete(block, opaque(claimed)); });
}

// An array of objects with destructors begins behind its count; delete without [] frees from there.
Verdict array_deleted_as_object() {
  Blocks victims(kSize, 'v', 16);
  char* array = take_new(kSize);
  write_word(array, 0x51);
  before_call();
  ::operator delete(opaque(static_cast<void*>(array + sizeof(std::size_t))));
  victims.add(array);
  return go_on(kSize, {.victims = &victims});
}

Verdict malloc_deleted() {
  Blocks victims(kSize, 'v', 16);
  char* block = take(kSize);
  before_call();
  ::operator delete(opaque(static_cast<void*>(block)));
  return go_on(kSize, {.victims = &victims});
}

Verdict aligned_deleted_plainly() {
  Blocks victims(kSize, 'v', 16);
  void* block = opaque(::operator new(opaque(kSize), kAlignment));
  before_call();
  ::operator delete(opaque(block));
  return go_on(kSize, {.victims = &victims});
}

constexpr Attack kAttacks[] = {
    {"sized-delete-smaller", kGain, "512 bytes deleted as 16", [] { return sized(512, 16); }},
    {"sized-delete-larger", kGain, "16 bytes deleted as 512", [] { return sized(16, 512); }},
    {"sized-delete-large-as-small", kGain, "1 MiB deleted as 32 bytes", [] { return sized(kLarge, 32); }},
    {"sized-delete-small-as-large", kGain, "32 bytes deleted as 1 MiB", [] { return sized(32, kLarge); }},
    {"aligned-delete-of-plain", kGain, "a plain block deleted as one aligned to 256",
     [] { return freed_by(kSize, kSize, [](void* block) { ::operator delete(block, kAlignment); }); }},
    {"plain-delete-of-aligned", kGain, "a block aligned to 256 deleted as a plain one", aligned_deleted_plainly},
    {"array-deleted-as-object", kGain, "a block deleted from behind its array's count", array_deleted_as_object},
    {"new-then-free", kGain, "free of a block from new",
     [] { return freed_by(kSize, kSize, [](void* block) { free(block); }); }},
    {"malloc-then-delete", kGain, "delete of a block from malloc", malloc_deleted},
    {"array-new-then-delete", kGain, "delete[] of a block from new",
     [] { return freed_by(kSize, kSize, [](void* block) { ::operator delete[](block); }); }},
};

}  // namespace

const AttackClass kSizeConfusion = {"size confusion", kAttacks};

}  // namespace attacks
