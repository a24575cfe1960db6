// Mallacc's instructions: see mallacc.h.
#include "hardware/mallacc.h"

namespace annex::sim {

namespace {

MallocCache::Keys keys_of(const MallaccParameters& parameters) {
  return parameters.keys == "indices" ? MallocCache::Keys::kIndices : MallocCache::Keys::kSizes;
}

uint32_t number_of(Mallacc::Operand number) { return static_cast<uint32_t>(number.value); }

}  // namespace

Mallacc::Mallacc(const MallaccParameters& parameters)
    : parameters_(parameters),
      look_up_(parameters.lookup + (parameters.keys == "indices" ? parameters.index : 0)),
      charged_(parameters.instructions == "charged"),
      cache_(parameters.entries, keys_of(parameters)),
      until_sample_(parameters.sample_bytes) {
  branch_.end = BlockEnd::kConditional;
  branch_.instructions = 1;
  branch_.slots = 1;
  branch_.uops = {{.kind = UopClass::kBranch, .first = true, .sources = {kFlags}}};
}

Cycles Mallacc::run(const Place& place, const Uop& uop, Cycles latency, Cycles from) {
  if (!charged_) return 0;
  const Core::Ran ran = place.core.run_inside(place.at, uop, from, latency, place.origin);
  if (ran.waited > 0) {
    ++statistics_.blocked;
    statistics_.blocked_cycles += ran.waited;
  }
  return ran.done;
}

// The branch on ZF. Its address is the marker's, so that each place has its own history.
void Mallacc::branch(const Place& place, bool hit) {
  if (!charged_) return;
  branch_.start = branch_.last = place.at;
  branch_.fall_through = place.at + 2;
  place.core.run(branch_, {}, hit ? branch_.fall_through : place.at + 64, place.origin);
}

Mallacc::Answer<MallocCache::SizeClass> Mallacc::look_up(const Place& place, Operand size) {
  ++statistics_.lookups;
  const Cycles done =
      run(place, {.kind = UopClass::kAlu, .first = true, .sources = {size.in}, .destinations = {kFlags}}, look_up_);
  const auto found = cache_.look_up(size.value);
  statistics_.lookup_hits += found.has_value();
  branch(place, found.has_value());
  return {found, done};
}

void Mallacc::update(const Place& place, uint64_t size, Operand number, Operand bytes) {
  ++statistics_.updates;
  classes_.insert(number_of(number));
  run(place, {.kind = UopClass::kAlu, .first = true, .sources = {number.in, bytes.in}}, look_up_);
  statistics_.evictions += cache_.update(size, {number_of(number), bytes.value});
}

// mchdpop and mchdpush: in order, and not while a prefetch is on its way to their entry.
Cycles Mallacc::run_on_list(const Place& place, Operand number, Register block, bool sets_flags) {
  const Uop uop = {.kind = UopClass::kAlu,
                   .first = true,
                   .sources = {number.in, kMallocList, block},
                   .destinations = {kMallocList, sets_flags ? kFlags : kNoRegister}};
  return run(place, uop, parameters_.list, cache_.blocked_until(number_of(number)));
}

Mallacc::Answer<MallocCache::Blocks> Mallacc::pop(const Place& place, Operand number) {
  ++statistics_.pops;
  const Cycles done = run_on_list(place, number, kNoRegister, true);
  const auto found = cache_.pop(number_of(number));
  statistics_.pop_hits += found.has_value();
  branch(place, found.has_value());
  return {found, done};
}

void Mallacc::push(const Place& place, Operand number, Operand block) {
  ++statistics_.pushes;
  run_on_list(place, number, block.in, false);
  cache_.push(number_of(number), block.value);
}

void Mallacc::drop(const Place& place, Operand number) {
  ++statistics_.drops;
  run_on_list(place, number, kNoRegister, false);
  cache_.push(number_of(number), 0);
}

void Mallacc::prefetch(const Place& place, Operand number, Operand head, Address next) {
  ++statistics_.prefetches;
  const bool reads = head.value != 0 && cache_.wants_next(number_of(number));
  const Uop uop = {.kind = reads ? UopClass::kLoad : UopClass::kAlu,
                   .first = true,
                   .sources = {number.in, kMallocList, head.in},
                   .destinations = {kMallocList}};
  if (!reads) {
    run(place, uop, parameters_.list);
    return;
  }
  ++statistics_.reads;
  const Cycles here = charged_ ? place.core.read_inside(place.at, uop, head.value, parameters_.list, place.origin) : 0;
  cache_.fill(number_of(number), {head.value, next}, here);
}

void Mallacc::count(const Place& place, Operand bytes) {
  statistics_.counted += bytes.value;
  run(place, {.kind = UopClass::kAlu, .first = true, .sources = {bytes.in}}, 1);
  if (parameters_.sample_bytes == 0) return;
  if (bytes.value < until_sample_) {
    until_sample_ -= bytes.value;
    return;
  }
  until_sample_ = parameters_.sample_bytes;
  ++statistics_.samples;
  place.core.spend(parameters_.interrupt, Cause::kSystemCall);
}

}  // namespace annex::sim
