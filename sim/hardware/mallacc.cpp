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

template <class Act>
void Mallacc::perform(const Place& place, Act&& act) {
  if (place.captured != nullptr) {
    place.captured->add(std::forward<Act>(act));
  } else {
    act(place.core);
  }
}

Cycles Mallacc::run(Core& core, Site site, const Uop& uop, Cycles latency, Cycles from) {
  if (!charged_) return 0;
  const Core::Ran ran = core.run_inside(site.at, uop, from, latency, site.origin);
  if (ran.waited > 0) {
    ++statistics_.blocked;
    statistics_.blocked_cycles += ran.waited;
  }
  return ran.done;
}

// The branch on ZF. Its address is the marker's, so that each place has its own history.
void Mallacc::branch(Core& core, Site site, bool hit) {
  if (!charged_) return;
  branch_.start = branch_.last = site.at;
  branch_.fall_through = site.at + 2;
  core.run(branch_, {}, hit ? branch_.fall_through : site.at + 64, site.origin);
}

Mallacc::Answer<MallocCache::SizeClass> Mallacc::look_up(const Place& place, Operand size) {
  ++statistics_.lookups;
  const auto found = cache_.look_up(size.value);
  statistics_.lookup_hits += found.has_value();
  perform(place, [=, this, site = Site{place.at, place.origin}, hit = found.has_value()](Core& core) {
    const Uop uop = {.kind = UopClass::kAlu, .first = true, .sources = {size.in}, .destinations = {kFlags}};
    done_ = run(core, site, uop, look_up_);
    branch(core, site, hit);
  });
  return {found, done_};
}

void Mallacc::update(const Place& place, uint64_t size, Operand number, Operand bytes) {
  ++statistics_.updates;
  classes_.insert(number_of(number));
  statistics_.evictions += cache_.update(size, {number_of(number), bytes.value});
  perform(place, [=, this, site = Site{place.at, place.origin}](Core& core) {
    run(core, site, {.kind = UopClass::kAlu, .first = true, .sources = {number.in, bytes.in}}, look_up_);
  });
}

// mchdpop and mchdpush: in order, and not while a prefetch is on its way to their entry.
Cycles Mallacc::run_on_list(Core& core, Site site, Uop uop, uint32_t number, uint64_t prefetch) {
  Cycles from = 0;
  if (prefetch != 0) {
    const Arrival& arrival = arrivals_[number];
    if (arrival.prefetch == prefetch) from = arrival.at;
  }
  return run(core, site, uop, parameters_.list, from);
}

Mallacc::Answer<MallocCache::Blocks> Mallacc::pop(const Place& place, Operand number) {
  ++statistics_.pops;
  const uint32_t list = number_of(number);
  const uint64_t prefetch = cache_.filled_by(list);
  const auto found = cache_.pop(list);
  statistics_.pop_hits += found.has_value();
  perform(place, [=, this, site = Site{place.at, place.origin}, hit = found.has_value()](Core& core) {
    const Uop uop = {.kind = UopClass::kAlu,
                     .first = true,
                     .sources = {number.in, kMallocList},
                     .destinations = {kMallocList, kFlags}};
    done_ = run_on_list(core, site, uop, list, prefetch);
    branch(core, site, hit);
  });
  return {found, done_};
}

void Mallacc::put(const Place& place, Operand number, Operand block) {
  const uint32_t list = number_of(number);
  const uint64_t prefetch = cache_.filled_by(list);
  cache_.push(list, block.value);
  perform(place, [=, this, site = Site{place.at, place.origin}](Core& core) {
    const Uop uop = {.kind = UopClass::kAlu,
                     .first = true,
                     .sources = {number.in, kMallocList, block.in},
                     .destinations = {kMallocList}};
    run_on_list(core, site, uop, list, prefetch);
  });
}

void Mallacc::push(const Place& place, Operand number, Operand block) {
  ++statistics_.pushes;
  put(place, number, block);
}

void Mallacc::drop(const Place& place, Operand number) {
  ++statistics_.drops;
  put(place, number, {});
}

void Mallacc::prefetch(const Place& place, Operand number, Operand head, Address next) {
  ++statistics_.prefetches;
  const uint32_t list = number_of(number);
  const bool reads = head.value != 0 && cache_.wants_next(list);
  const uint64_t prefetch = ++prefetches_;
  if (reads) {
    ++statistics_.reads;
    cache_.fill(list, {head.value, next}, prefetch);
  }
  perform(place, [=, this, site = Site{place.at, place.origin}](Core& core) {
    const Uop uop = {.kind = reads ? UopClass::kLoad : UopClass::kAlu,
                     .first = true,
                     .sources = {number.in, kMallocList, head.in},
                     .destinations = {kMallocList}};
    if (!reads) {
      run(core, site, uop, parameters_.list);
    } else if (charged_) {
      const Cycles here = core.read_inside(site.at, uop, head.value, parameters_.list, site.origin);
      arrivals_[list] = {prefetch, here};
    }
  });
}

void Mallacc::count(const Place& place, Operand bytes) {
  statistics_.counted += bytes.value;
  bool samples = false;
  if (parameters_.sample_bytes != 0) {
    samples = bytes.value >= until_sample_;
    until_sample_ = samples ? parameters_.sample_bytes : until_sample_ - bytes.value;
    statistics_.samples += samples;
  }
  perform(place, [=, this, site = Site{place.at, place.origin}](Core& core) {
    run(core, site, {.kind = UopClass::kAlu, .first = true, .sources = {bytes.in}}, 1);
    if (samples) core.spend(parameters_.interrupt, Cause::kSystemCall);
  });
}

void Mallacc::has_result(const Place& place, Register in, bool at_once) {
  perform(place, [=, this](Core& core) { core.set_ready(in, at_once ? 0 : done_); });
}

}  // namespace annex::sim
