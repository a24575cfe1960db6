// What cores share: the last-level cache, the directory in its lines, and memory beyond it.
//
// Models: one cache that contains all that the cores' own caches have; in each of its lines a directory entry: which
// cores have the line, and which of them may have written it (MESI). A directory protocol of three hops: a request goes
// to the directory, from there to the owner, whose answer goes to the requester.
//
// A line is its owner's until the owner's access is done: until its data have arrived and, of a locked instruction,
// until that has written them. A request that finds a line so busy waits in the directory, which takes it up when the
// owner's word that it is done has come: from there on it takes what a new one does, the look-up and the transfer. So
// lines that cores fight for change hands every `llc.latency + coherence.transfer` cycles beside what each owner does
// with them. With `coherence.retry` the directory does not keep such requests but refuses them, and they come again.
// Support cores may be elsewhere, near memory (NextGen-Malloc 3.2): further from here, and nearer to memory.
// How far its slices are from the cores, and how busy a slice is: interconnect.h; usually all is equally far, and
// nothing but single lines is ever busy. Parameters: llc, coherence, interconnect, dram of Machine; support_core.far
// and near. Simplifications: evictions and write-backs take no time, and the directory knows of each.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/attribution.h"
#include "machine/busy_period.h"
#include "machine/cache.h"
#include "machine/core_set.h"
#include "machine/dram.h"
#include "machine/interconnect.h"
#include "machine/parameters.h"
#include "machine/prefetcher.h"
#include "machine/request.h"
#include "machine/types.h"

namespace annex::sim {

struct CoherenceStatistics {
  PerRequester upgrades = {};
  PerRequester transfers = {};
  PerRequester invalidated = {};
  PerRequester far = {};
  PerRequester queue_cycles = {};
  uint64_t contended = 0;
  uint64_t received = 0;
  uint64_t asked = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("upgrades", self.upgrades, "stores to lines that this core had shared");
    visit("transfers", self.transfers, "lines that came from another core's cache");
    visit("invalidated", self.invalidated, "copies in other cores that this core's stores took away");
    visit("far", self.far, "locked instructions of this core that the last level did");
    visit("queue_cycles", self.queue_cycles, "cycles that requests waited for earlier transactions of the same line");
    visit("contended", self.contended, "of the invalidated: copies that the other had got less than a quantum before");
    visit("received", self.received, "of the transfers: lines that the other had got less than a quantum before");
    visit("asked", self.asked, "requests of other cores that this core's caches had to answer");
  }
};

// What the directory asks of a core's caches that have a line.
class Holder {
 public:
  struct Answer {
    bool modified;  // the last level's copy is older
    Cycles got;     // when the line, or the rights to it, had come
  };
  virtual ~Holder() = default;
  virtual Answer take(Address line, uint8_t word) = 0;  // it has the line no more, of which another writes this word
  virtual Answer share(Address line) = 0;               // it may only read it from now on
};

class LastLevel {
 public:
  LastLevel(const Machine& machine, Attribution& attribution);
  LastLevel(const LastLevel&) = delete;
  LastLevel& operator=(const LastLevel&) = delete;

  // The next core's caches, from core 0 on.
  void attach(Holder& holder);

  // A core's own caches want a line, or more rights to it; `at` is before the look-up here. It has the line then, with
  // fill.state as its rights, until it says evicted() or its Holder is asked.
  Fill request(unsigned core, const Request& request, Cycles at);
  // A core's caches gave a line up, of which they knew the slot here; `kept`: one of them still has it, for reading.
  void evicted(unsigned core, Slot slot, bool modified, bool kept = false);
  // The core's locked instruction has the line from `from` to `until`.
  void keep(unsigned core, Address line, Cycles from, Cycles until);
  // A locked instruction done here: no core has the line afterwards. `at` is before the look-up.
  Fill far(unsigned core, const Request& request, Cycles at);
  // A write of a line that no cache is to have, to memory: when it is on its way.
  Cycles write_around(Address line, Cycles at);
  // A read of such a line: when it is there.
  Cycles read_around(Address line, Cycles at) { return dram_.read(line, at); }

  // What its own prefetcher wants after a demand access that met `event` here.
  void prefetch_after(const Request& request, Event event, Cycles at);
  // Whether a prefetch could go on here.
  bool available(Cycles at) const { return cache_.mshrs.available(at); }

  // The host may fetch its records.
  void prepare(Address line) const { cache_.prepare(line); }
  void prepare(Slot slot) const {
    __builtin_prefetch(&cache_[slot], 1);
    __builtin_prefetch(&directory_[slot], 1);
  }

  Slot find(Address line) const { return cache_.find(line); }
  Address line_in(Slot slot) const { return cache_.line_in(slot); }
  const Cache& cache() const { return cache_; }
  const Prefetcher& prefetcher() const { return prefetcher_; }
  const Dram& dram() const { return dram_; }
  const Interconnect& interconnect() const { return interconnect_; }
  // Requests, so far, for lines that another core had got, or worked on here, less than a quantum before: through them
  // threads communicate.
  uint64_t communications() const { return communications_; }
  const CoherenceStatistics& coherence(unsigned core) const { return coherence_[core]; }
  CoherenceStatistics& coherence(unsigned core) { return coherence_[core]; }
  // For tests: the cores that the directory says have a line, and which may write it (kNobody: none).
  static constexpr int kNobody = -1;
  const CoreSet& sharers(Slot slot) const { return directory_[slot].sharers; }
  int owner(Slot slot) const { return directory_[slot].owner; }

  void clear();
  void reset_statistics();

 private:
  // Beside each line of the cache.
  struct Entry {
    CoreSet sharers;      // cores that have the line
    int owner = kNobody;  // the only sharer, which may write it without asking: its state is E or M
    int last = kNobody;   // whose locked instruction was the last that was done here
    BusyPeriod busy;      // with the owner's access, or others' on their way to it
  };
  // The line is in the slot when? And what the look-up met.
  struct Found {
    Slot slot;
    Cycles there;
    Event event;
  };

  Found look_up(const Request& request, Cycles at);
  // Asks other cores as needed. `at`: when the line is there; the answer is at the core when it is ready.
  Fill from_cores(unsigned core, Slot slot, const Request& request, Cycles at);
  Cycles turn(const BusyPeriod& busy, Cycles at) const;
  // Until no other core has the line; `answered`: where their answers go.
  Cycles taking(const Entry& entry, const CoreSet& others, unsigned slice, unsigned answered) const;
  Cycles take_from(unsigned core, Slot slot, uint8_t word = kAllWords);
  void take_from_all(Slot slot, uint8_t word = kAllWords);
  Slot from_memory(const Request& request, Cycles at);
  void evict(Slot slot, const Request& cause, Cycles at);

  // Beside those of a main core: a core's way to here, and what its way to memory is shorter.
  bool near_memory(unsigned core) const { return core - first_near_ < near_cores_; }
  Cycles further(unsigned core) const { return near_memory(core) ? further_away_ : 0; }
  Cycles nearer(unsigned core) const { return near_memory(core) ? further_away_ + nearer_memory_ : 0; }

  const Cycles transfer_, invalidate_, further_, retry_, far_, quantum_;
  const unsigned first_near_, near_cores_;  // the support cores, where they are not beside the others
  const Cycles further_away_, nearer_memory_;
  Attribution& attribution_;
  std::vector<Holder*> holders_;  // by core
  std::vector<CoherenceStatistics> coherence_;
  uint64_t communications_ = 0;
  Cache cache_;
  std::vector<Entry> directory_;  // by slot of cache_
  Prefetcher prefetcher_;
  Interconnect interconnect_;
  Dram dram_;
};

}  // namespace annex::sim
