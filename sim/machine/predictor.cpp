#include "machine/predictor.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace annex::sim {

CounterTable::CounterTable(unsigned bits, unsigned history_bits)
    : bits_(bits), history_mask_((uint64_t{1} << std::min(bits, history_bits)) - 1), counters_(size_t{1} << bits, 1) {}

void CounterTable::learn(Address pc, uint64_t history, bool taken) {
  uint8_t& counter = counters_[index(pc, history)];
  if (taken) {
    counter = static_cast<uint8_t>(counter + (counter < 3));
  } else {
    counter = static_cast<uint8_t>(counter - (counter > 0));
  }
}

Tage::Tage(const PredictorParameters& parameters) : base_(parameters.table_bits, 0) {
  // Geometric: the cube root of what is between the shortest, 4, and the longest allowed.
  const double shortest = std::min(4U, parameters.history);
  const double step = std::cbrt(parameters.history / shortest);
  for (unsigned i = 0; i + 1 < kTables; ++i)
    lengths_[i] = static_cast<unsigned>(std::lround(shortest * std::pow(step, i)));
  lengths_[kTables - 1] = parameters.history;

  index_.keep(parameters.table_bits > 3 ? parameters.table_bits - 3 : 1, lengths_);
  tag_.keep(kTagBits, lengths_);
  for (unsigned i = 0; i < kTables; ++i) first_[i] = i << index_.bits;
  entries_.resize(kTables << index_.bits);
}

void Tage::Folded::keep(unsigned kept, const std::array<unsigned, kTables>& lengths) {
  bits = kept;
  mask = Numbers{} + ((1U << bits) - 1);
  for (unsigned i = 0; i < kTables; ++i) leaves_at[i] = 1U << lengths[i] % bits;
}

inline void Tage::Folded::shift(Numbers in, Numbers leaving) {
  const Numbers next = ((value << 1) | in) ^ (leaves_at & leaving);
  value = (next ^ (next >> bits)) & mask;
}

bool Tage::predict_and_learn(Address pc, bool taken) {
  const auto learn = [taken](Entry& entry) {
    const int counter = entry.counter + (taken ? 1 : -1);
    entry.counter = static_cast<int8_t>(std::clamp(counter, -4, 3));
  };
  // 1. Where each table would have this branch with its history, and which do.
  const auto pc_index = static_cast<uint32_t>(pc ^ (pc >> index_.bits) ^ (pc >> (2 * index_.bits)));
  const auto pc_tag = static_cast<uint32_t>(pc ^ (pc >> kTagBits));
  const Numbers places = ((index_.value ^ pc_index) & index_.mask) | first_;
  const Numbers tags = (tag_.value ^ (index_.value << 1) ^ pc_tag) & tag_.mask;
  Numbers found = {};
  for (unsigned i = 0; i < kTables; ++i) found[i] = entries_[places[i]].tag;
  const Numbers knows = static_cast<Numbers>(found == tags) & Numbers{1, 2, 4, 8};
  const unsigned hits = knows[0] | knows[1] | knows[2] | knows[3];

  // 2. The longest history that knows it provides; the next shorter one that does, or the base, is the other.
  const bool base_says = base_.predict(pc, 0);
  bool right = false;
  if (hits == 0) {
    right = base_says == taken;
    base_.learn(pc, 0, taken);
    if (!right) allocate(0, taken, places, tags);
  } else {
    const auto last = static_cast<unsigned>(std::bit_width(hits)) - 1;
    Entry& provider = entries_[places[last]];
    const unsigned others = hits ^ (1U << last);
    Entry* other = nullptr;
    if (others != 0) {
      other = &entries_[places[static_cast<unsigned>(std::bit_width(others)) - 1]];
    }
    // The provider is right, unless it is new and new ones have been wrong of late.
    const bool other_says = other != nullptr ? other->counter >= 0 : base_says;
    const bool provider_says = provider.counter >= 0;
    const bool is_new = provider.useful == 0 && (provider.counter == 0 || provider.counter == -1);
    const bool says = is_new && use_other_ >= 0 ? other_says : provider_says;
    right = says == taken;

    // 3. Those that took part learn; an entry is useful when the shorter history would have been wrong.
    if (provider.useful == 0) {
      if (other != nullptr) {
        learn(*other);
      } else {
        base_.learn(pc, 0, taken);
      }
    }
    if (provider_says != other_says) {
      if (is_new) use_other_ = std::clamp(use_other_ + (other_says == taken ? 1 : -1), -8, 7);
      const int useful = provider.useful + (provider_says == taken ? 1 : -1);
      provider.useful = static_cast<uint8_t>(std::clamp(useful, 0, 3));
    }
    learn(provider);

    // 4. A wrong prediction asks for a longer history, unless the provider knew and was only too new.
    const bool knew = is_new && provider_says == taken;
    if (!right && !knew && last + 1 < kTables) allocate(last + 1, taken, places, tags);
  }

  shift_history(taken);
  // 5. Useful bits fade, so that entries of code that no longer runs can be taken.
  if (++steps_ == kAgeing) {
    steps_ = 0;
    for (Entry& entry : entries_) entry.useful >>= 1;
  }
  return right;
}

void Tage::allocate(unsigned from, bool taken, Numbers places, Numbers tags) {
  // Mostly the next longer history, sometimes one further, so that entries spread over the tables.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  if ((random_ & 3) == 0 && from + 1 < kTables) ++from;
  for (unsigned i = from; i < kTables; ++i) {
    Entry& victim = entries_[places[i]];
    if (victim.useful == 0) {
      victim = {.tag = static_cast<uint16_t>(tags[i]), .counter = static_cast<int8_t>(taken ? 0 : -1)};
      return;
    }
  }
  for (unsigned i = from; i < kTables; ++i) --entries_[places[i]].useful;
}

inline void Tage::shift_history(bool taken) {
  static_assert(kAgeing % kMostHistory == 0);
  Numbers leaving = {};
  for (unsigned i = 0; i < kTables; ++i) leaving[i] = outcomes_[(steps_ - lengths_[i]) % kMostHistory];
  outcomes_[steps_ % kMostHistory] = taken;
  const Numbers in = Numbers{} + taken;
  index_.shift(in, -leaving);
  tag_.shift(in, -leaving);
}

TargetTable::TargetTable(uint32_t entries)
    : by_address_(std::max(entries / 2, 1U)), by_path_(std::max(entries / 2, 1U)) {}

bool TargetTable::predict_and_learn(Address pc, Address target, uint64_t outcomes) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto path = static_cast<uint32_t>((path_ ^ (outcomes << 40)) * kOdd >> 32);
  Entry& by_address = by_address_[(pc ^ (pc >> 12)) & (by_address_.size() - 1)];
  Entry& by_path = by_path_[(pc ^ path) & (by_path_.size() - 1)];

  const bool path_knows = by_path.pc == pc && by_path.path == path;
  const bool address_knows = by_address.pc == pc;
  const bool right = path_knows ? by_path.target == target : address_knows && by_address.target == target;

  const auto learn = [&](Entry& entry, bool knows) {
    if (knows && entry.target == target) {
      entry.sure = true;
    } else if (entry.sure) {
      entry.sure = false;
    } else {
      entry = {.pc = pc, .target = target, .path = path};
    }
  };
  learn(by_address, address_knows);
  // Branches with one target need no entry here.
  if (path_knows || !right) learn(by_path, path_knows);

  // Eight bits of each of the last four targets.
  path_ = ((path_ << 8) | ((target * kOdd) >> 56)) & 0xffffffff;
  return right;
}

void ReturnStack::push(Address address) {
  top_ = top_ + 1 == entries_.size() ? 0 : top_ + 1;
  entries_[top_] = address;
  if (count_ < entries_.size()) ++count_;
}

Address ReturnStack::pop() {
  if (count_ == 0) return 0;
  --count_;
  const Address address = entries_[top_];
  top_ = top_ == 0 ? entries_.size() - 1 : top_ - 1;
  return address;
}

namespace {

// What the tables of a kind that isn't used cost should be next to nothing.
PredictorParameters for_tage(PredictorParameters parameters) {
  if (parameters.kind != "tage") parameters.table_bits = 1;
  return parameters;
}

}  // namespace

Predictor::Predictor(const PredictorParameters& parameters)
    : kind_(parameters.kind == "perfect"   ? Kind::kPerfect
            : parameters.kind == "bimodal" ? Kind::kBimodal
            : parameters.kind == "gshare"  ? Kind::kGshare
                                           : Kind::kTage),
      table_(kind_ == Kind::kBimodal || kind_ == Kind::kGshare ? parameters.table_bits : 1,
             kind_ == Kind::kGshare ? parameters.history : 0),
      tage_(for_tage(parameters)),
      targets_(parameters.btb),
      returns_(parameters.return_stack) {}

bool Predictor::conditional(Address pc, bool taken) {
  bool right = true;
  switch (kind_) {
    case Kind::kPerfect:
      break;
    case Kind::kBimodal:
    case Kind::kGshare:
      right = table_.predict(pc, history_) == taken;
      table_.learn(pc, history_, taken);
      break;
    case Kind::kTage:
      right = tage_.predict_and_learn(pc, taken);
      break;
  }
  history_ = (history_ << 1) | uint64_t{taken};
  return right;
}

bool Predictor::indirect(Address pc, Address target) { return targets_.predict_and_learn(pc, target, history_ & 15); }

bool Predictor::returned(Address target) { return returns_.pop() == target; }

}  // namespace annex::sim
