// The stores of a core that loads after them may need before they are written, and the guess of each load about those
// whose address isn't known yet.
//
// Stores are found by the words of eight bytes that they touch: the youngest of a word, and from each the next older
// one whose word has the same place in the table. A load that guessed wrong waits the next times for the addresses of
// all older stores, until it has done so in vain often enough: a counter for each load, as Intel's Core has.
//
// Simplifications: the last kWords words that were stored to are known, which is more than most cores' store queues
// have. Loads are told apart by a hash, and may share a counter.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "machine/types.h"
#include "machine/uop.h"

namespace annex::sim {

class UnwrittenStores {
 public:
  struct Store {
    Address address = 0;
    Cycles known = 0;    // when the address is
    Cycles data = 0;     // when its data is there
    Cycles written = 0;  // when it is, in L1; not before any older one
    uint32_t bytes = 0;
    uint32_t before = 0;  // the next older one at the same place

    bool contains(const MemoryAccess& load) const {
      return address <= load.address && last_byte_of(load) < address + bytes;
    }
    bool overlaps(const MemoryAccess& load) const {
      return address <= last_byte_of(load) && load.address < address + bytes;
    }
  };

  // Whether loads guess at all, or know every store's address.
  explicit UnwrittenStores(bool guess) : guess_(guess) {}

  void add(const MemoryAccess& store, Cycles known, Cycles data, Cycles written) {
    if (guess_) addresses_known_ = std::max(addresses_known_, known);
    const Address last = last_byte_of(store) >> 3;
    for (Address word = store.address >> 3; word <= last; ++word) {
      Place& place = places_[word % kWords];
      stores_[next_ % kWords] = {store.address, guess_ ? known : 0, data, written, store.bytes, place.youngest};
      place = {written, next_++};
    }
  }

  // Whether they can matter to this load at all: quick, and rarely wrong where nothing does. A load of more than one
  // word is not looked at here.
  bool may_matter(const MemoryAccess& load, Cycles at) const {
    const Cycles written = places_[(load.address >> 3) % kWords].written;
    return at < std::max(written, addresses_known_) || (load.address & 7) + load.bytes > 8;
  }

  // The youngest to some of the load's bytes that isn't written by then; null: none.
  const Store* youngest_to(const MemoryAccess& load, Cycles at) const {
    uint32_t found = 0;
    for (Address word = load.address >> 3; word <= last_byte_of(load) >> 3; ++word) {
      uint32_t number = places_[word % kWords].youngest;
      while (next_ - number <= kWords) {
        const Store& store = stores_[number % kWords];
        if (store.written <= at) break;  // as are all before it
        if (store.overlaps(load)) {
          if (found == 0 || number - found < kWords) found = number;
          break;
        }
        number = store.before;
      }
    }
    return found == 0 ? nullptr : &stores_[found % kWords];
  }

  // When this load, which could go now, does: now, or when the addresses of all stores before it are known.
  Cycles goes_at(Address load, Cycles at) {
    uint8_t& wary = wary_[load % kLoads];
    if (at >= addresses_known_ || wary == 0) return at;
    --wary;
    return addresses_known_;
  }
  // Going at once was wrong, or would have been.
  void beware(Address load) { wary_[load % kLoads] = kMostWary; }

 private:
  static constexpr uint32_t kWords = 128;
  static constexpr size_t kLoads = 512;
  static constexpr uint8_t kMostWary = 15;

  struct Place {
    Cycles written = 0;  // the youngest's
    uint32_t youngest = 0;
  };

  static Address last_byte_of(const MemoryAccess& access) {
    return access.address + access.bytes - (access.bytes != 0);
  }

  const bool guess_;
  Cycles addresses_known_ = 0;  // of all stores
  uint32_t next_ = 1;           // number of the next; 0 is none
  std::array<Store, kWords> stores_ = {};
  std::array<Place, kWords> places_ = {};  // by word
  std::array<uint8_t, kLoads> wary_ = {};  // how often a load still waits
};

}  // namespace annex::sim
