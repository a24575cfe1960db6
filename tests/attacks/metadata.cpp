// What allocators keep in and around blocks is overwritten: the words of freed blocks, where a list may run, and the
// words before and behind a block in use, where a header may be. The attacker wants malloc to return a place of the
// attacker's choice, or a block that is somebody else's. Nothing is known of the allocator; each attack guesses one
// form.
#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr char kPlaceGain[] = "malloc returns the attacker's place";
constexpr char kBlockGain[] = "malloc returns a block that is in use";

// The attacker's place: static memory, before which stands what may pass for the header of a block of kSize.
alignas(64) char place[4096];
constexpr std::size_t kPlaceBytes = 1024;
constexpr Word kHeader = 0x51;

char* target() {
  write_word(place + 1024 - sizeof(Word), kHeader);
  return place + 1024;
}

// Blocks of which some are freed, each between two that stay.
struct Field {
  static constexpr std::size_t kFreed = 6;
  static constexpr std::size_t kInUse = 9;  // one that stays

  Field() : blocks(kSize, 'v', 5 * kFreed + 5) {
    for (std::size_t i = 0; i < kFreed; ++i) {
      freed[i] = blocks.let_go(5 * i + 2);
      give(freed[i]);
    }
  }

  char* in_use() const { return blocks[kInUse]; }
  char* newest() const { return freed[kFreed - 1]; }
  char* before_newest() const { return freed[kFreed - 2]; }

  Blocks blocks;
  char* freed[kFreed];
};

Verdict judge(const Field& field, std::size_t bytes = kSize) {
  return go_on(bytes, {.victims = &field.blocks, .place = place, .bytes = sizeof place});
}

Verdict link_at(std::size_t offset) {
  const Field field;
  before_access();
  write_word(field.newest() + offset, address(target()));
  return judge(field);
}

// If the word is the next block's address exclusive-or some key, the same key is put upon the target's.
Verdict relinked_at(std::size_t offset) {
  const Field field;
  before_access();
  char* link = field.newest() + offset;
  write_word(link, read_word(link) ^ address(field.before_newest()) ^ address(target()));
  return judge(field);
}

// The low bytes of an address are known without knowing where the heap is.
Verdict low_byte() {
  const Field field;
  before_access();
  char* link = field.newest();
  fill(link, static_cast<char>(read_word(link) + 0x20), 1);
  return judge(field);
}

Verdict all_words(std::size_t bytes) {
  const Field field;
  before_access();
  for (char* block : field.freed) fill_words(block, address(target()), bytes);
  return judge(field);
}

Verdict zeroed() {
  const Field field;
  before_access();
  for (char* block : field.freed) fill(block, 0, kSize);
  return judge(field);
}

// Another thread's blocks, whose freeing that thread has not heard of yet: they wait in a queue, which runs somewhere.
Verdict on_their_way(std::size_t offset, std::size_t bytes) {
  Worker owner;
  Blocks blocks(kSize, 'v');
  owner.run([&] { blocks.take(64); });
  char* freed[Field::kFreed];
  for (std::size_t i = 0; i < Field::kFreed; ++i) {
    freed[i] = blocks.let_go(5 * i + 2);
    give(freed[i]);
  }
  before_access();
  for (char* block : freed) fill_words(block + offset, address(target()), bytes);
  return go_on(kSize, {.victims = &blocks, .place = place, .bytes = sizeof place}, &owner);
}

// A block in use, whose surroundings are overwritten before it is freed.
Verdict header(Word word, std::size_t bytes_then) {
  Field field;
  char* block = field.in_use();
  before_access();
  write_word(block - sizeof word, word);
  after_misuse();
  field.blocks.give(Field::kInUse);
  return judge(field, bytes_then);
}

Verdict header_pair() {
  Field field;
  char* block = field.in_use();
  before_access();
  fill_words(block - 2 * sizeof(Word), address(target()), 2 * sizeof(Word));
  after_misuse();
  field.blocks.give(Field::kInUse);
  return judge(field);
}

Verdict trailer() {
  Field field;
  char* block = field.in_use();
  char* end = block + room(block);
  before_access();
  fill_words(end, kHeader + 0x40, 2 * sizeof(Word));
  after_misuse();
  field.blocks.give(Field::kInUse);
  return judge(field, kSize + 0x40);
}

// What lies at the start of the aligned region around a block may describe it.
Verdict region_start(std::size_t alignment) {
  Field field;
  char* start = pointer(address(field.in_use()) & ~(alignment - 1));
  before_access();
  fill_words(start, address(target()), 128);
  after_misuse();
  field.blocks.give(Field::kInUse);
  return judge(field);
}

constexpr Attack kAttacks[] = {
    {"link-first-word", kPlaceGain, "the first word of a freed block becomes the target's address",
     [] { return link_at(0); }},
    {"link-second-word", kPlaceGain, "its second word does", [] { return link_at(sizeof(Word)); }},
    {"link-last-word", kPlaceGain, "its last word does", [] { return link_at(kSize - sizeof(Word)); }},
    {"link-first-word-decoded", kPlaceGain,
     "the first word is read, and the target put in for the block freed before, whatever the key",
     [] { return relinked_at(0); }},
    {"link-second-word-decoded", kPlaceGain, "the same with the second word", [] { return relinked_at(sizeof(Word)); }},
    {"link-low-byte", kBlockGain, "the lowest byte of a freed block's first word is raised by 32", low_byte},
    {"links-many", kPlaceGain, "the first words of six freed blocks become the target's address",
     [] { return all_words(sizeof(Word)); }},
    {"links-everywhere", kPlaceGain, "all words of six freed blocks do", [] { return all_words(kSize); }},
    {"links-zeroed", kBlockGain, "six freed blocks are filled with zeros", zeroed},
    {"links-remote-first", kPlaceGain,
     "the first words of six blocks on their way to the thread that allocated them do",
     [] { return on_their_way(0, sizeof(Word)); }},
    {"links-remote-second", kPlaceGain, "their second words do",
     [] { return on_their_way(sizeof(Word), sizeof(Word)); }},
    {"links-remote-everywhere", kPlaceGain, "all their words do", [] { return on_their_way(0, kSize); }},
    {"header-grown", kBlockGain, "the word before a block becomes the header of a larger one, and the block is freed",
     [] { return header(kHeader + 0x40, kSize + 0x40); }},
    {"header-zeroed", kBlockGain, "the word before a block becomes zero, and the block is freed",
     [] { return header(0, kSize); }},
    {"header-pair", kPlaceGain, "two words before a block become the target's address, and the block is freed",
     header_pair},
    {"trailer", kBlockGain, "two words behind a block become the header of a larger one, and the block is freed",
     trailer},
    {"region-start-4k", kPlaceGain, "the first 128 bytes of a block's 4 KiB become the target's address",
     [] { return region_start(4096); }},
    {"region-start-64k", kPlaceGain, "the first 128 bytes of its 64 KiB do", [] { return region_start(65536); }},
    {"region-start-4m", kPlaceGain, "the first 128 bytes of its 4 MiB do", [] { return region_start(4 << 20); }},
};

}  // namespace

const AttackClass kMetadata = {"metadata", kAttacks};

}  // namespace attacks
