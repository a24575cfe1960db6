// Which blocks of a slab are in use, in another process: the block itself says so, or what its flavour keeps about it.
#pragma once

#include <cstdint>
#include <vector>

#include "process/arenas.h"
#include "process/target.h"

namespace annex::inspect {

class BlockUse {
 public:
  // Of a slab, as it is now.
  BlockUse(const Target& target, const RunAt& slab);

  bool is_used(uint64_t block) const;
  // How many blocks in use lie on a page, or on a part of it.
  uint32_t count_on_page(uint64_t page) const;

 private:
  bool in_hole(uint32_t number) const;
  void read_marks(const Target& target, uint64_t key);
  void read_states(const Target& target, uint32_t arena);
  bool read_map_key(const Target& target, const RunAt& slab, uint64_t* key) const;
  void read_bitmap(const Target& target);

  uint64_t start_;
  uint64_t block_bytes_;
  Slab slab_;
  std::vector<bool> used_;  // by number, of those that were ever made
};

}  // namespace annex::inspect
