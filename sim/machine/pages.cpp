#include "machine/pages.h"

#include <algorithm>

namespace annex::sim {

namespace {

constexpr uint64_t kPageBytes = uint64_t{1} << kPageShift;

constexpr Address down(Address address) { return address & ~(kPageBytes - 1); }
constexpr Address up(Address address) { return down(address + kPageBytes - 1); }

}  // namespace

bool Pages::Chunk::any() const {
  return std::any_of(bits.begin(), bits.end(), [](uint64_t word) { return word != 0; });
}

Pages::Pages(const Machine& machine)
    : lock(machine.system.mmap_lock),
      policy_(machine.pages.huge_pages == "never"     ? Policy::kNever
              : machine.pages.huge_pages == "madvise" ? Policy::kMadvise
                                                      : Policy::kAlways) {}

Pages::Touched Pages::fault(Address address, Cycles at, Origin origin) {
  pass_time(at);
  const auto* region = region_of(address);
  Chunk& chunk = chunks_.at(address >> kHugePageShift);

  const Address first = address & ~(kHugeBytes - 1);
  const bool huge = region != nullptr && huge_allowed(region->second) && region->first <= first &&
                    first + kHugeBytes <= region->second.to && !chunk.any();
  Fault fault = Fault::kAnonymous;
  if (huge) {
    chunk.bits.fill(~uint64_t{0});
    chunk.huge = true;
    resident_ += kHugeBytes;
    fault = Fault::kHuge;
  } else {
    chunk.set(page_of(address));
    resident_ += kPageBytes;
    if (region == nullptr || region->second.kind == PageKind::kFile) fault = Fault::kFile;
  }
  ++statistics.faults[static_cast<size_t>(origin)][static_cast<size_t>(fault)];
  statistics.peak_resident = std::max(statistics.peak_resident, resident_);
  return {fault, huge};
}

bool Pages::huge_allowed(const Region& region) const {
  if (region.kind != PageKind::kAnonymous || region.advice == Advice::kNoHuge) return false;
  return policy_ == Policy::kAlways || (policy_ == Policy::kMadvise && region.advice == Advice::kHuge);
}

uint64_t Pages::map(Address from, Address to, PageKind kind, Cycles at) {
  from = down(from);
  to = up(to);
  if (from >= to) return 0;
  const uint64_t given_back = unmap(from, to, at);
  insert_region(from, {.to = to, .kind = kind});
  return given_back;
}

uint64_t Pages::unmap(Address from, Address to, Cycles at) {
  from = down(from);
  to = up(to);
  if (from >= to) return 0;
  erase_regions(from, to);
  return give_back(from, to, at);
}

uint64_t Pages::drop(Address from, Address to, Cycles at) { return from < to ? give_back(down(from), up(to), at) : 0; }

void Pages::advise_huge(Address from, Address to, bool huge) {
  from = down(from);
  to = up(to);
  if (from >= to) return;
  cut(from);
  cut(to);
  std::vector<Address> advised;
  for (auto region = regions_.lower_bound(from); region != regions_.end() && region->first < to; ++region) {
    region->second.advice = huge ? Advice::kHuge : Advice::kNoHuge;
    advised.push_back(region->first);
  }
  // From the last, so that those still to be merged keep their first address.
  for (auto first = advised.rbegin(); first != advised.rend(); ++first) merge(regions_.find(*first));
}

uint64_t Pages::remap(Address from, uint64_t from_bytes, Address to, uint64_t to_bytes, Cycles at) {
  from = down(from);
  to = down(to);
  from_bytes = up(from_bytes);
  to_bytes = up(to_bytes);
  const auto* old = region_of(from);
  Region region = old != nullptr ? old->second : Region{};
  region.to = to + to_bytes;

  if (from == to) {
    if (to_bytes <= from_bytes) return unmap(from + to_bytes, from + from_bytes, at);
    const uint64_t given_back = unmap(from + from_bytes, region.to, at);
    insert_region(from + from_bytes, region);
    return given_back;
  }
  uint64_t given_back = unmap(to, region.to, at);
  if (to_bytes < from_bytes) given_back += unmap(from + to_bytes, from + from_bytes, at);
  const uint64_t moved = std::min(from_bytes, to_bytes);
  move_resident(from, to, moved);
  erase_regions(from, from + moved);
  if (to_bytes != 0) insert_region(to, region);
  return given_back;
}

bool Pages::resident(Address address) const {
  const Chunk* chunk = chunks_.find(address >> kHugePageShift);
  return chunk != nullptr && chunk->resident(page_of(address));
}

uint64_t Pages::mapped_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [from, region] : regions_) bytes += region.to - from;
  return bytes;
}

double Pages::average_resident(Cycles until) const {
  until = std::max(until, changed_);
  if (until == since_) return static_cast<double>(resident_);
  const double after = static_cast<double>(resident_) * static_cast<double>(until - changed_);
  return (byte_cycles_ + after) / static_cast<double>(until - since_);
}

void Pages::reset_statistics(Cycles at) {
  statistics = {};
  statistics.peak_resident = resident_;
  byte_cycles_ = 0;
  since_ = at;
  changed_ = at;
}

const Pages::Regions::value_type* Pages::region_of(Address address) const {
  auto next = regions_.upper_bound(address);
  if (next == regions_.begin()) return nullptr;
  --next;
  return address < next->second.to ? &*next : nullptr;
}

void Pages::cut(Address at) {
  const auto* found = region_of(at);
  if (found == nullptr || found->first == at) return;
  const Region after = found->second;
  regions_[found->first].to = at;
  regions_[at] = after;
}

void Pages::merge(Regions::iterator region) {
  const auto alike = [](const Region& a, const Region& b) { return a.kind == b.kind && a.advice == b.advice; };
  const auto next = std::next(region);
  if (next != regions_.end() && next->first == region->second.to && alike(region->second, next->second)) {
    region->second.to = next->second.to;
    regions_.erase(next);
  }
  if (region == regions_.begin()) return;
  const auto before = std::prev(region);
  if (before->second.to == region->first && alike(before->second, region->second)) {
    before->second.to = region->second.to;
    regions_.erase(region);
  }
}

void Pages::erase_regions(Address from, Address to) {
  cut(from);
  cut(to);
  regions_.erase(regions_.lower_bound(from), regions_.lower_bound(to));
}

void Pages::insert_region(Address from, const Region& region) { merge(regions_.emplace(from, region).first); }

template <class Visit>
void Pages::each_chunk(Address from, Address to, Visit&& visit) {
  const auto part_of = [&](Address number, Chunk& chunk) {
    if (!chunk.any()) return;
    const Address base = number << (kHugePageShift - kPageShift);
    visit(chunk, std::max(page_of(from), base), std::min(page_of(to), base + kPagesInChunk));
  };
  const Address first = from >> kHugePageShift;
  const Address last = (to - 1) >> kHugePageShift;
  if (last - first < chunks_.count()) {
    for (Address number = first; number <= last; ++number) {
      if (Chunk* chunk = chunks_.find(number)) part_of(number, *chunk);
    }
  } else {
    chunks_.each([&](Address number, Chunk& chunk) {
      if (number >= first && number <= last) part_of(number, chunk);
    });
  }
}

uint64_t Pages::give_back(Address from, Address to, Cycles at) {
  if (!owed_.empty())
    std::erase_if(owed_, [&](auto& entry) { return entry.first - page_of(from) < page_of(to - from); });
  pass_time(at);
  uint64_t pages = 0;
  each_chunk(from, to, [&](Chunk& chunk, Address first, Address last) {
    if (chunk.huge) {
      if (last - first == kPagesInChunk) {
        chunk = {};
        ++pages;
        resident_ -= kHugeBytes;
        statistics.given_back += kHugeBytes;
        return;
      }
      split(chunk);
    }
    for (Address page = first; page < last; ++page) {
      if (!chunk.resident(page)) continue;
      chunk.clear(page);
      ++pages;
      resident_ -= kPageBytes;
      statistics.given_back += kPageBytes;
    }
  });
  return pages;
}

uint64_t Pages::resident_pages(Address from, Address to) {
  uint64_t pages = 0;
  if (down(from) >= up(to)) return 0;
  each_chunk(down(from), up(to), [&](const Chunk& chunk, Address first, Address last) {
    if (chunk.huge) ++pages;
    for (Address page = first; page < last && !chunk.huge; ++page) pages += chunk.resident(page) ? 1 : 0;
  });
  return pages;
}

void Pages::split(Chunk& chunk) {
  chunk.huge = false;
  ++statistics.huge_splits;
}

void Pages::move_resident(Address from, Address to, uint64_t bytes) {
  for (uint64_t offset = 0; offset < bytes;) {
    const Address source = from + offset;
    const Address target = to + offset;
    Chunk* chunk = chunks_.find(source >> kHugePageShift);
    const uint64_t left = std::min(bytes - offset, kHugeBytes - source % kHugeBytes);  // in this chunk
    if (chunk == nullptr || !chunk->any()) {
      offset += left;
      continue;
    }
    if (chunk->huge && left == kHugeBytes && target % kHugeBytes == 0) {
      const Chunk moved = std::exchange(*chunk, Chunk{});
      chunks_.at(target >> kHugePageShift) = moved;
      offset += left;
      continue;
    }
    if (chunk->huge) split(*chunk);
    if (chunk->resident(page_of(source))) {
      chunk->clear(page_of(source));
      chunks_.at(target >> kHugePageShift).set(page_of(target));
    }
    offset += kPageBytes;
  }
}

void Pages::pass_time(Cycles at) {
  if (at <= changed_) return;
  byte_cycles_ += static_cast<double>(resident_) * static_cast<double>(at - changed_);
  changed_ = at;
}

}  // namespace annex::sim
