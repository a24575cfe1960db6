// Blocks in use: see block_use.h.
#include "process/block_use.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace annex::inspect {

namespace {

uint64_t page_size() {
  static const uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

BlockUse::BlockUse(const Target& target, const RunAt& slab)
    : start_(slab.start), block_bytes_(block_size(slab.head.size_class)), slab_(std::bit_cast<Slab>(slab.head)) {
  used_.assign(std::min<uint32_t>(slab_.carved, slab_capacity(slab_.size_class)), true);
  for (uint32_t i = 0; i < used_.size(); ++i) {
    if (in_hole(i)) used_[i] = false;
  }
  if (target.annex.marks == observe::Marks::kState) {
    read_states(target, slab.arena->number);
  } else {
    uint64_t key = slab_.key;
    if (target.annex.marks == observe::Marks::kMapKey && read_map_key(target, slab, &key)) read_bitmap(target);
    read_marks(target, key);
  }
}

bool BlockUse::is_used(uint64_t block) const {
  const uint64_t offset = block - start_;
  return offset % block_bytes_ == 0 && offset / block_bytes_ < used_.size() && used_[offset / block_bytes_];
}

uint32_t BlockUse::count_on_page(uint64_t page) const {
  if (page + page_size() <= start_) return 0;
  const uint64_t first = page > start_ ? (page - start_) / block_bytes_ : 0;
  const uint64_t end = (page + page_size() - start_ + block_bytes_ - 1) / block_bytes_;
  uint32_t count = 0;
  for (uint64_t i = first; i < end && i < used_.size(); ++i) count += used_[i] ? 1 : 0;
  return count;
}

bool BlockUse::in_hole(uint32_t number) const {
  const uint64_t first = number * block_bytes_ / page_size();
  const uint64_t last = ((number + 1) * block_bytes_ - 1) / page_size();
  for (uint64_t page = first; page <= last; ++page) {
    if (page < 64 && (slab_.holes >> page & 1) != 0) return true;
  }
  return false;
}

void BlockUse::read_marks(const Target& target, uint64_t key) {
  // Not a page more than those in which blocks begin, which were written to when the blocks were made: one that never
  // was would be in the process's page table from then on, and look resident.
  std::vector<char> piece(page_size());
  uint64_t piece_at = 0, piece_end = 0;  // what it has of the slab
  for (uint32_t i = 0; i < used_.size(); ++i) {
    const uint64_t at = i * block_bytes_;
    if (!used_[i]) continue;
    if (at + sizeof(Block) > piece_end) {
      piece_at = at;
      const uint64_t page_end = (at / page_size() + 1) * page_size();
      piece_end = at + target.memory.read_some(start_ + at, piece.data(), page_end - at);
      if (at + sizeof(Block) > piece_end) continue;
    }
    Block words;
    memcpy(&words, &piece[at - piece_at], sizeof words);
    if (words.mark == (key ^ (start_ + at))) used_[i] = false;
  }
}

// False where the process has no class map.
bool BlockUse::read_map_key(const Target& target, const RunAt& slab, uint64_t* key) const {
  const observe::ClassMapLayout& layout = target.annex.class_map;
  const Memory& memory = target.memory;
  uint64_t map = 0;
  uint64_t word = 0;
  if (!memory.read(number(layout.first) + slab.arena->number * layout.bytes + layout.map, &map) || map == 0)
    return false;
  if (!memory.read(map + slab.granule * sizeof word, &word)) return false;
  *key = (word & ~layout.other_bits) >> layout.key_shift;
  return true;
}

void BlockUse::read_bitmap(const Target& target) {
  std::vector<uint64_t> words((used_.size() + 63) / 64);
  target.memory.read(number(slab_.bitmap), std::span(words));
  for (uint32_t i = 0; i < used_.size(); ++i) {
    if ((words[i / 64] >> i % 64 & 1) != 0) used_[i] = false;
  }
}

void BlockUse::read_states(const Target& target, uint32_t arena) {
  const observe::StatesLayout& layout = target.annex.states;
  const bool tiny = block_bytes_ <= layout.largest_tiny;
  const uint32_t shift = tiny ? layout.tiny_shift : layout.larger_shift;
  const uint64_t parts = number(tiny ? layout.tiny : layout.larger);
  const uint64_t part = target.memory.get<uint64_t>(parts + arena * sizeof(uint64_t));
  const uint64_t first = start_ >> shift;
  std::vector<uint8_t> states(((start_ + used_.size() * block_bytes_) >> shift) - first + 1);
  target.memory.read_some(part + first, states.data(), states.size());
  for (uint32_t i = 0; i < used_.size(); ++i) {
    if (states[((start_ + i * block_bytes_) >> shift) - first] == 0) used_[i] = false;
  }
}

}  // namespace annex::inspect
