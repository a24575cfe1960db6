// realloc and malloc_usable_size of what is freed, or was never returned by malloc. The attacker wants a block that is
// somebody else's, or a wrong answer.
#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kOwnersGain[] = "one block for two owners";
constexpr char kPlaceGain[] = "malloc returns memory that is not the heap's";
constexpr char kInsideGain[] = "malloc returns the inside of a block";
constexpr char kSizeGain[] = "an answer that is too large";
constexpr Word kHeader = 0x51;

Verdict of_freed(std::size_t bytes, std::size_t wanted) {
  Blocks others(bytes, 'v', 4);
  char* block = take(bytes);
  give(block);
  before_call();
  Blocks got(wanted, 'g');
  if (void* moved = resize(block, wanted)) got.add(static_cast<char*>(moved));
  return go_on(bytes, {.victims = &got});
}

// The victim has got the freed block's address; the attacker resizes the old pointer, which frees or moves it.
Verdict of_reused() {
  char* block = take(kSize);
  give(block);
  Blocks victims(kSize, 'v');
  while (!victims.covers(block, 1) && victims.take()) {
  }
  before_call();
  resize(block, 10 * kSize);
  return go_on(kSize, {.victims = &victims});
}

Verdict freed_after_move(bool write) {
  char* old = take(kSize);
  Blocks others(kSize, 'v', 4);
  char* moved = static_cast<char*>(resize(old, 100 * kSize));
  if (moved == nullptr || moved == old) broken("realloc did not move the block");
  if (write) {
    Blocks victims(kSize, 'v');
    while (!victims.covers(old, 1) && victims.take()) {
    }
    before_access();
    fill(old, 'x', kSize);
    if (!victims.intact()) gained("data of the victim's is changed");
    return go_on(kSize, {.victims = &victims});
  }
  before_call();
  give(old);
  return go_on(kSize);
}

Verdict to_nothing_and_freed() {
  Blocks others(kSize, 'v', 4);
  char* block = take(kSize);
  char* moved = static_cast<char*>(resize(block, 0));
  before_call();
  if (moved != block) give(block);
  return go_on(kSize);
}

Verdict of_the_inside() {
  Blocks victims(1000, 'v', 4);
  fill_words(victims[2], kHeader, 1000);
  before_call();
  resize(victims[2] + kSize, 10 * kSize);
  return go_on(kSize, {.victims = &victims});
}

Verdict of_static_memory() {
  alignas(64) static char place[4096];
  fill_words(place, kHeader, sizeof place);
  before_call();
  resize(place + 1024, 10 * kSize);
  return go_on(kSize, {.place = place, .bytes = sizeof place});
}

Verdict room_of_freed() {
  Blocks others(kSize, 'v', 4);
  char* block = take(kSize);
  give(block);
  before_call();
  return room(block) > 2 * kSize ? exploited(kSizeGain) : go_on(kSize);
}

Verdict room_of_the_inside() {
  Blocks victims(1000, 'v', 4);
  fill_words(victims[2], 0x10001, 1000);
  before_call();
  return room(victims[2] + kSize) > 1024 ? exploited(kSizeGain) : go_on(kSize);
}

Verdict room_of_static_memory() {
  alignas(64) static char place[4096];
  fill_words(place, 0x10001, sizeof place);
  before_call();
  return room(place + 1024) > sizeof place ? exploited(kSizeGain) : go_on(kSize);
}

constexpr Attack kAttacks[] = {
    {"realloc-freed", kOwnersGain, "a freed block is resized to as many bytes", [] { return of_freed(kSize, kSize); }},
    {"realloc-freed-grown", kOwnersGain, "a freed block is made larger", [] { return of_freed(kSize, 10 * kSize); }},
    {"realloc-freed-large", kOwnersGain, "a freed block of 1 MiB is made larger",
     [] { return of_freed(kLarge, 2 * kLarge); }},
    {"realloc-reused", kOwnersGain, "a freed block is made larger when a victim has its address", of_reused},
    {"realloc-moved-freed", kOwnersGain, "what realloc moved away from is freed",
     [] { return freed_after_move(false); }},
    {"realloc-moved-written", "data of the victim's is changed",
     "what realloc moved away from is written to when a victim has it", [] { return freed_after_move(true); }},
    {"realloc-zero-freed", kOwnersGain, "a block is freed after it was resized to nothing", to_nothing_and_freed},
    {"realloc-inside", kInsideGain, "64 bytes into a block of 1,000", of_the_inside},
    {"realloc-static", kPlaceGain, "a static array", of_static_memory},
    {"usable-size-freed", kSizeGain, "malloc_usable_size of a freed block", room_of_freed},
    {"usable-size-inside", kSizeGain, "malloc_usable_size of the inside of a block", room_of_the_inside},
    {"usable-size-static", kSizeGain, "malloc_usable_size of a static array", room_of_static_memory},
};

}  // namespace

const AttackClass kRealloc = {"realloc", kAttacks};

}  // namespace attacks
