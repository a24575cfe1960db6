// Branch prediction: direction of conditional branches (perfect, bimodal, gshare or TAGE), targets of indirect jumps
// and calls, and a return stack.
//
// Sources: gshare is McFarling's (1993); TAGE is Seznec and Michaud's (2006), here in a modest form: a base table and
// five tagged ones with geometrically longer histories. Simplifications: each branch is predicted and learnt at once,
// with no wrong path and so no history to repair; direct jumps and calls always find their target; histories are the
// core's, and stay across threads and allocator calls.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/parameters.h"
#include "machine/types.h"

namespace annex::sim {

// Two-bit counters by address, or by address and history (gshare).
class CounterTable {
 public:
  CounterTable(unsigned bits, unsigned history_bits);
  bool predict(Address pc, uint64_t history) const { return counters_[index(pc, history)] >= 2; }
  void learn(Address pc, uint64_t history, bool taken);

 private:
  size_t index(Address pc, uint64_t history) const {
    return (pc ^ (pc >> bits_) ^ (history & history_mask_)) & (counters_.size() - 1);
  }

  unsigned bits_;
  uint64_t history_mask_;
  std::vector<uint8_t> counters_;
};

class Tage {
 public:
  explicit Tage(const PredictorParameters& parameters);
  // Predicts, learns and shifts the outcome into its history; true: it was right.
  bool predict_and_learn(Address pc, bool taken);

 private:
  static constexpr unsigned kTables = 4;
  static constexpr unsigned kTagBits = 11;
  static constexpr uint16_t kNoTag = 0xffff;
  static constexpr size_t kMostHistory = 128;  // as the parameter's bound
  static constexpr uint32_t kAgeing = 1U << 18;

  struct Entry {
    uint16_t tag = kNoTag;
    int8_t counter = 0;  // -4 .. 3, taken from 0 on
    uint8_t useful = 0;  // 0 .. 3
  };
  // One number for each table, for operations on all at once.
  using Numbers __attribute__((vector_size(kTables * sizeof(uint32_t)))) = uint32_t;
  // The outcomes of each table's history, exclusive-ored in pieces of so many bits; kept up to date bit by bit.
  struct Folded {
    Numbers value = {};
    Numbers leaves_at = {};  // the bit in which the outcome that leaves the history sits
    Numbers mask = {};       // as many bits as are kept
    unsigned bits = 1;

    void keep(unsigned bits, const std::array<unsigned, kTables>& lengths);
    void shift(Numbers in, Numbers leaving);
  };

  void allocate(unsigned from, bool taken, Numbers places, Numbers tags);
  void shift_history(bool taken);

  CounterTable base_;
  std::vector<Entry> entries_;  // of all tables, one after the other
  std::array<unsigned, kTables> lengths_ = {};
  Folded index_, tag_;
  Numbers first_ = {};                               // of each table's entries
  std::array<uint8_t, kMostHistory> outcomes_ = {};  // of branch `steps_`, at that modulo the size
  int use_other_ = 0;                                // >= 0: a new entry is trusted less than the next shorter history
  uint32_t steps_ = 0;                               // branches since the useful bits were aged
  uint32_t random_ = 0x2545f491;                     // a shift register's state: which of several tables gets an entry
};

// The last target by address, and by address and recent targets, which goes first where it knows the branch.
class TargetTable {
 public:
  explicit TargetTable(uint32_t entries);
  bool predict_and_learn(Address pc, Address target, uint64_t outcomes);

 private:
  struct Entry {
    Address pc = 0;
    Address target = 0;
    uint32_t path = 0;
    bool sure = false;  // right last time: survives one wrong prediction
  };

  std::vector<Entry> by_address_;
  std::vector<Entry> by_path_;
  uint64_t path_ = 0;
};

// Keeps the youngest addresses: a push on a full one loses the oldest.
class ReturnStack {
 public:
  explicit ReturnStack(uint32_t entries) : entries_(entries) {}
  void push(Address address);
  // 0: it is empty.
  Address pop();

 private:
  std::vector<Address> entries_;
  size_t top_ = 0;
  size_t count_ = 0;
};

class Predictor {
 public:
  explicit Predictor(const PredictorParameters& parameters);

  // Each learns, and says whether the prediction was right. `pc` is the branch's own address.
  bool conditional(Address pc, bool taken);
  bool indirect(Address pc, Address target);
  bool returned(Address target);

  void called(Address return_address) { returns_.push(return_address); }

 private:
  enum class Kind : uint8_t { kPerfect, kBimodal, kGshare, kTage };

  Kind kind_;
  uint64_t history_ = 0;  // of conditional branches; youngest in bit 0
  CounterTable table_;
  Tage tage_;
  TargetTable targets_;
  ReturnStack returns_;
};

}  // namespace annex::sim
