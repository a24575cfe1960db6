// Runs of another process: see runs.h.
#include "process/runs.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace annex::inspect {

namespace {

// The records, copied a part at a time. What lies inside of long runs is left out.
class Records {
 public:
  Records(const CopyRecords& copy, size_t count) : copy_(copy), count_(count), part_(kPart) {}

  // nullptr where it can't be read.
  const Granule* at(size_t index) {
    if (index - first_ < copied_) return &part_[index - first_];
    copied_ = 0;
    first_ = index;
    const size_t wanted = std::min(kPart, count_ - index);
    if (!copy_(index, std::span(part_).first(wanted))) return nullptr;
    copied_ = wanted;
    return &part_[0];
  }

  // One that may lie far ahead: the part stays.
  bool peek(size_t index, Granule* record) {
    if (index - first_ < copied_) return *record = part_[index - first_], true;
    return copy_(index, std::span(record, 1));
  }

 private:
  static constexpr size_t kPart = 8192;  // 1 MiB

  const CopyRecords& copy_;
  const size_t count_;
  std::vector<Granule> part_;
  size_t first_ = 0;
  size_t copied_ = 0;
};

bool ends_as(Records& records, size_t last, uint32_t length, Kind kind) {
  Granule record;
  return records.peek(last, &record) && record.kind == kind && record.length == length;
}

bool has_tails(Records& records, size_t head, uint32_t length) {
  for (uint32_t i = 1; i < length; ++i) {
    Granule record;
    if (!records.peek(head + i, &record) || record.kind != Kind::kSlabTail || record.back != i) return false;
  }
  return true;
}

// Whether a record is the head of a run whose other records agree. `left`: granules from there to the frontier.
bool is_head(Records& records, size_t index, const Granule& record, size_t left) {
  const uint32_t length = record.length;
  if (length == 0 || length > left) return false;
  const size_t last = index + length - 1;
  switch (record.kind) {
    case Kind::kSlab:
      return record.size_class < kClasses && length == slab_granules(record.size_class) &&
             has_tails(records, index, length);
    case Kind::kSpan: {
      const Span span = std::bit_cast<Span>(record);
      return span.bytes > 0 && span.bytes <= length * kGranule &&
             (length == 1 || ends_as(records, last, length, Kind::kTaken));
    }
    case Kind::kNoBytes:
    case Kind::kSpanWaits:
      return length == 1 || ends_as(records, last, length, Kind::kTaken);
    case Kind::kFree:
    case Kind::kTaken:
      return length == 1 || ends_as(records, last, length, record.kind);
    default:
      return false;
  }
}

}  // namespace

Slab SeenRun::slab() const { return std::bit_cast<Slab>(head); }
Span SeenRun::span() const { return std::bit_cast<Span>(head); }

size_t walk_runs(const CopyRecords& copy, size_t frontier, const std::function<void(const SeenRun&)>& visit) {
  Records records(copy, frontier);
  size_t unclear = 0;
  for (size_t index = 0; index < frontier;) {
    const Granule* const record = records.at(index);
    if (record == nullptr) return unclear + (frontier - index);
    if (is_head(records, index, *record, frontier - index)) {
      visit({index, record->length, record->kind, *record});
      index += record->length;
    } else {
      ++unclear;
      ++index;
    }
  }
  return unclear;
}

}  // namespace annex::inspect
