// Reads and writes beyond a block's ends. The attacker wants to change or to know what is in the block beside it, or to
// reach what the allocator keeps there.
#include <cstring>

#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kChangeGain[] = "a neighbour's data is changed";
constexpr char kSecretGain[] = "a neighbour's secret";
// What is written: in the place of a header it would be a larger block's.
constexpr Word kWord = 0x61;

// As many bytes as a block of kSize really has, so that the byte behind them is no slack.
std::size_t whole() {
  char* block = take(kSize);
  const std::size_t bytes = room(block);
  give(block);
  return bytes;
}

// The victims' blocks, and in their middle the attacker's.
struct Field {
  static constexpr std::size_t kBefore = 64;

  explicit Field(std::size_t size) : bytes(size), victims(size, 'v', kBefore) {
    mine = take(size);
    if (mine == nullptr) broken("no block");
    fill(mine, 'm', size < kSize ? size : kSize);
    victims.take(size == kLarge ? 4 : kBefore);
  }

  char* end() const { return mine + room(mine); }

  std::size_t bytes;
  Blocks victims;
  char* mine;
};

// The program uses and frees what was overwritten: the attacker's block, then the one behind it.
Verdict judge(Field* field) {
  if (!field->victims.intact()) gained(kChangeGain);
  after_misuse();
  give(field->mine);
  field->victims.give(field->victims.nearest_behind(field->mine));
  for (std::size_t more : {std::size_t{0}, std::size_t{16}}) {
    const Verdict verdict = go_on(field->bytes + more, {.victims = &field->victims});
    if (verdict.kind != Verdict::Kind::kSurvived) return verdict;
  }
  field->victims.give_all();
  return go_on(field->bytes);
}

Verdict by_one(char byte) {
  Field field(whole());
  char* end = field.end();
  before_access();
  fill(end, byte, 1);
  return judge(&field);
}

Verdict by_words(std::size_t size, std::size_t bytes) {
  Field field(size);
  char* end = field.end();
  before_access();
  fill_words(end, kWord, bytes);
  return judge(&field);
}

Verdict beyond_the_request() {
  Field field(kSize - 3);
  before_access();
  fill(field.mine + kSize - 3, 'x', 1);
  return judge(&field);
}

Verdict by_memcpy() {
  static char text[2 * kSize];
  fill_words(text, kWord, sizeof text);
  Field field(whole());
  before_access();
  memcpy(opaque(field.mine), text, opaque(field.bytes + 16));
  return judge(&field);
}

Verdict before(std::size_t size, std::size_t bytes) {
  Field field(size);
  before_access();
  fill_words(field.mine - bytes, kWord, bytes);
  return judge(&field);
}

// Up to the first two words of the freed block behind, if there is one near.
Verdict into_a_freed_neighbour() {
  static char place[4096];
  Field field(whole());
  const std::size_t behind = field.victims.nearest_behind(field.mine);
  char* neighbour = field.victims.let_go(behind);
  char* end = field.end();
  if (neighbour == nullptr) return survived("nothing lies behind");
  const Word between = address(neighbour) - address(end);
  give(neighbour);
  before_access();
  fill_words(end, address(place + 1024), (between <= 4096 ? between : 0) + 16);
  return go_on(field.bytes, {.place = place, .bytes = sizeof place});
}

Verdict read_behind(std::size_t size, std::size_t bytes) {
  Field field(size);
  char* end = field.end();
  before_access();
  if (holds_any(end, 'v', bytes)) return exploited(kSecretGain);
  return go_on(size);
}

Verdict empty_block(bool write) {
  Blocks victims(8, 'v', 64);
  char* empty = take(0);
  if (empty == nullptr) return refused("malloc(0) is NULL");
  victims.take(64);
  before_access();
  if (!write) return holds_any(empty, 'v', kSize) ? exploited(kSecretGain) : go_on(8);
  fill_words(empty, kWord, kSize);
  if (!victims.intact()) gained(kChangeGain);
  after_misuse();
  give(empty);
  victims.give_all();
  return go_on(8);
}

constexpr Attack kAttacks[] = {
    {"overflow-request", kChangeGain, "a byte behind what was asked for, where the block has some to spare",
     beyond_the_request},
    {"overflow-byte", kChangeGain, "a byte behind the block's last", [] { return by_one(kWord); }},
    {"overflow-null", kChangeGain, "the same with a zero, as a string's end", [] { return by_one(0); }},
    {"overflow-8", kChangeGain, "8 bytes behind the block", [] { return by_words(whole(), 8); }},
    {"overflow-16", kChangeGain, "16 bytes", [] { return by_words(whole(), 16); }},
    {"overflow-block", kChangeGain, "as many bytes as a block has", [] { return by_words(whole(), kSize); }},
    {"overflow-4k", kChangeGain, "4 KiB", [] { return by_words(whole(), 4096); }},
    {"overflow-memcpy", kChangeGain, "16 bytes, by libc's memcpy or what the allocator has put in its place",
     by_memcpy},
    {"overflow-large", kChangeGain, "64 bytes behind 1 MiB", [] { return by_words(kLarge, 64); }},
    {"overflow-large-64k", kChangeGain, "64 KiB behind 1 MiB", [] { return by_words(kLarge, 65536); }},
    {"overflow-freed", "malloc returns the attacker's place", "into the words of the freed block behind",
     into_a_freed_neighbour},
    {"underflow-8", kChangeGain, "8 bytes before the block", [] { return before(whole(), 8); }},
    {"underflow-block", kChangeGain, "64 bytes before the block", [] { return before(whole(), kSize); }},
    {"underflow-large", kChangeGain, "64 bytes before 1 MiB", [] { return before(kLarge, kSize); }},
    {"overread-128", kSecretGain, "128 bytes behind a block are read", [] { return read_behind(whole(), 128); }},
    {"overread-4k", kSecretGain, "4 KiB are", [] { return read_behind(whole(), 4096); }},
    {"overread-large", kSecretGain, "8 KiB behind 1 MiB are", [] { return read_behind(kLarge, 8192); }},
    {"empty-write", kChangeGain, "64 bytes of an empty block are written", [] { return empty_block(true); }},
    {"empty-read", kSecretGain, "64 bytes of an empty block are read", [] { return empty_block(false); }},
};

}  // namespace

const AttackClass kOverflow = {"overflow", kAttacks};

}  // namespace attacks
