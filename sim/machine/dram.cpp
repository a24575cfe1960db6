#include "machine/dram.h"

#include <algorithm>
#include <bit>

namespace annex::sim {

namespace {

unsigned bits_of(uint64_t count) { return static_cast<unsigned>(std::countr_zero(std::bit_ceil(count))); }

uint64_t take(uint64_t& from, unsigned bits) {
  const uint64_t field = from & ((uint64_t{1} << bits) - 1);
  from >>= bits;
  return field;
}

}  // namespace

Calendar::Calendar(Cycles slot, Cycles horizon)
    : slot_(std::max<Cycles>(slot, 1)), words_(std::bit_ceil(horizon / slot_ / 64 + 2)) {}

Cycles Calendar::reserve(Cycles at) {
  const uint64_t first = at / slot_;
  // Of the first word, only slots from the request's own.
  uint64_t allowed = ~uint64_t{0} << first % 64;
  for (uint64_t number = first / 64;; ++number, allowed = ~uint64_t{0}) {
    Word& word = words_[number & (words_.size() - 1)];
    if (word.number < number) word = {.number = number};  // its old slots are long past
    if (word.number > number) return at;                  // these slots are forgotten: taken to have been free
    const uint64_t free = ~word.taken & allowed;
    if (free == 0) continue;
    const auto bit = static_cast<uint64_t>(std::countr_zero(free));
    word.taken |= uint64_t{1} << bit;
    return std::max(at, (number * 64 + bit) * slot_);
  }
}

void Calendar::clear() { std::fill(words_.begin(), words_.end(), Word{}); }

Dram::Dram(const Machine& machine)
    : controller_(machine.from_ns(machine.dram.controller_ns)),
      tcas_(machine.from_ns(machine.dram.tcas_ns)),
      trcd_(machine.from_ns(machine.dram.trcd_ns)),
      trp_(machine.from_ns(machine.dram.trp_ns)),
      tras_(machine.from_ns(machine.dram.tras_ns)),
      burst_(std::max<Cycles>(machine.from_ns(8 * 1000 / machine.dram.bus_mts), 1)),
      closes_(machine.dram.rows == "closed"),
      channel_bits_(bits_of(machine.dram.channels)),
      column_bits_(bits_of(machine.dram.row_bytes >> kLineShift)),
      bank_bits_(bits_of(uint64_t{machine.dram.ranks} * machine.dram.banks)),
      banks_(size_t{1} << (channel_bits_ + bank_bits_)),
      buses_(size_t{1} << channel_bits_, Calendar(burst_, kHorizon + 4 * Cycles{machine.quantum})) {}

Dram::Place Dram::place_of(Address line) const {
  const uint64_t channel = take(line, channel_bits_);
  take(line, column_bits_);
  uint64_t bank = take(line, bank_bits_);
  const uint64_t row = line;
  // Else addresses a power of two apart would all meet in one bank.
  bank ^= row & ((uint64_t{1} << bank_bits_) - 1);
  return {channel, channel << bank_bits_ | bank, row};
}

Cycles Dram::read(Address line, Cycles at) {
  const Place place = place_of(line);
  Bank& bank = banks_[place.bank];
  const Cycles arrived = at + controller_;
  const Cycles start = bank.busy.start(arrived);

  Cycles column = start;  // when the column is read
  if (bank.row == place.row) {
    ++statistics.row_hits;
  } else {
    Cycles activate = start;
    if (bank.row == kClosed) {
      ++statistics.row_opens;
    } else {
      ++statistics.row_conflicts;
      // Not before tRAS after the activation, unless that lies in the future, in a leading core's time.
      activate = (bank.activated <= start ? std::max(start, bank.activated + tras_) : start) + trp_;
    }
    bank.row = closes_ ? kClosed : place.row;
    bank.activated = activate;
    column = activate + trcd_;
  }
  bank.busy.occupy(arrived, column + burst_ - start);

  const Cycles data = column + tcas_;
  const Cycles transfer = buses_[place.channel].reserve(data);
  const Cycles ready = transfer + burst_;
  ++statistics.reads;
  statistics.read_cycles += ready - at;
  statistics.bank_cycles += start - arrived;
  statistics.bus_cycles += transfer - data;
  return ready;
}

Cycles Dram::write(Address line, Cycles at) {
  ++statistics.writes;
  return buses_[place_of(line).channel].reserve(at + controller_);
}

void Dram::clear() {
  std::fill(banks_.begin(), banks_.end(), Bank{});
  for (Calendar& bus : buses_) bus.clear();
  statistics = {};
}

}  // namespace annex::sim
