// Memory beyond the last-level cache: channels, banks with open rows, and the channels' data buses.
//
// Models: a read of a line finds its row open (tCAS), its bank closed (tRCD + tCAS) or another row open (tRP + tRCD +
// tCAS, the precharge not before tRAS after the activation); then 64 bytes take the channel's bus. Rows stay open, or
// are closed after each read, the precharge then being hidden. Neighbouring lines go to neighbouring channels, then
// through the row; the bank's number is mixed with the row's. Parameters: DramParameters, in ns; rounded to core cycles
// here, once. Simplifications: a write takes its time on the bus and nothing else, as queues of writes are drained in
// idle times; no refresh, no reordering for open rows, no turn-around of the bus.
//
// Requests come in the order of simulation, which differs from that of simulated time by up to the quantum. The bus is
// a calendar, in which a request takes the first free slot at or after its own time: it is delayed by what holds
// exactly these slots, and never by what comes later. A bank remembers one busy period: a request before it goes at
// once.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/busy_period.h"
#include "machine/parameters.h"
#include "machine/types.h"

namespace annex::sim {

// Slots of a fixed length, each for one transfer; those of the recent past are remembered in a ring of words of 64.
class Calendar {
 public:
  // Remembers at least `horizon` cycles.
  Calendar(Cycles slot, Cycles horizon);

  // Takes the first free slot at or after `at`: when the transfer starts.
  Cycles reserve(Cycles at);

  void clear();

 private:
  struct Word {
    uint64_t number = 0;  // which 64 slots of all time
    uint64_t taken = 0;   // a bit each
  };
  Cycles slot_;
  std::vector<Word> words_;
};

struct DramStatistics {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t row_hits = 0;
  uint64_t row_opens = 0;
  uint64_t row_conflicts = 0;
  uint64_t read_cycles = 0;
  uint64_t bank_cycles = 0;
  uint64_t bus_cycles = 0;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("reads", self.reads, "lines read");
    visit("writes", self.writes, "lines written");
    visit("row_hits", self.row_hits, "reads that found their row open");
    visit("row_opens", self.row_opens, "reads that found their bank closed");
    visit("row_conflicts", self.row_conflicts, "reads that found another row open");
    visit("read_cycles", self.read_cycles, "cycles from request to data, of all reads");
    visit("bank_cycles", self.bank_cycles, "of these: waiting for a busy bank");
    visit("bus_cycles", self.bus_cycles, "of these: waiting for the bus");
  }
};

class Dram {
 public:
  explicit Dram(const Machine& machine);

  // When the line, asked for at `at`, has arrived.
  Cycles read(Address line, Cycles at);
  // When the bus takes the line.
  Cycles write(Address line, Cycles at);
  void clear();

  DramStatistics statistics;

 private:
  static constexpr uint64_t kClosed = ~uint64_t{0};
  static constexpr Cycles kHorizon = 1 << 16;  // of the buses' calendars, beside some quanta

  struct Bank {
    uint64_t row = kClosed;
    Cycles activated = 0;
    BusyPeriod busy;
  };
  struct Place {
    size_t channel;
    size_t bank;  // of all
    uint64_t row;
  };
  Place place_of(Address line) const;

  // Cycles.
  Cycles controller_;
  Cycles tcas_;
  Cycles trcd_;
  Cycles trp_;
  Cycles tras_;
  Cycles burst_;  // 64 bytes on the bus
  bool closes_;   // rows after each read
  // Fields of a line's number, from the lowest.
  unsigned channel_bits_;
  unsigned column_bits_;
  unsigned bank_bits_;  // of all ranks of a channel

  std::vector<Bank> banks_;
  std::vector<Calendar> buses_;  // one a channel
};

}  // namespace annex::sim
