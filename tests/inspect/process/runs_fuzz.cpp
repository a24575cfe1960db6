// The walk over records in which anything may stand: runs-fuzz ROUNDS. Each round has an arena that is in order, with
// some of its records replaced by noise, or noise alone; parts of it can't be read now and then. Whatever it is, the
// walk ends, what it calls a run lies before the frontier and after the last one, and all else is unclear. Of what is
// in order it finds everything.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "process/runs.h"

using namespace annex;
using inspect::SeenRun;

namespace {

using Random = std::mt19937_64;

uint64_t below(Random& random, uint64_t end) { return random() % end; }

void expect(bool true_of_it, const char* what) {
  if (true_of_it) return;
  std::printf("FAILED: %s\n", what);
  std::exit(1);
}

void noise(Random& random, Granule* record) {
  uint64_t words[sizeof(Granule) / sizeof(uint64_t)];
  for (uint64_t& word : words) word = random();
  memcpy(record, words, sizeof words);
  // Often something that looks right.
  if (below(random, 2) == 0) record->kind = static_cast<Kind>(below(random, 8));
  if (below(random, 2) == 0) record->length = static_cast<uint32_t>(below(random, 9));
  if (below(random, 2) == 0) record->size_class = static_cast<uint8_t>(below(random, kClasses + 8));
}

// Writes a run of some kind; how long it is.
uint32_t put_run(Random& random, Granule* head, size_t room) {
  memset(head, 0, sizeof *head);
  const uint64_t kind = below(random, 4);
  const SizeClass c = static_cast<SizeClass>(below(random, kClasses));
  if (kind == 0 && slab_granules(c) <= room) {
    head->kind = Kind::kSlab;
    head->size_class = c;
    head->length = slab_granules(c);
    for (uint32_t i = 1; i < head->length; ++i) {
      head[i].kind = Kind::kSlabTail;
      head[i].back = static_cast<uint8_t>(i);
    }
    return head->length;
  }
  const uint32_t length = static_cast<uint32_t>(1 + below(random, std::min<size_t>(room, 40)));
  Granule* const last = head + length - 1;
  last->kind = kind == 1 ? Kind::kFree : Kind::kTaken;
  head->kind = kind == 1 ? Kind::kFree : kind == 2 ? Kind::kTaken : Kind::kSpan;
  head->length = last->length = length;
  if (head->kind == Kind::kSpan) static_cast<Span*>(head)->bytes = length * kGranule;
  return length;
}

void round(Random& random) {
  const size_t frontier = below(random, 20000);
  std::vector<Granule> records(frontier);
  const bool in_order = below(random, 4) == 0;
  size_t runs = 0;
  if (below(random, 8) == 0) {
    for (Granule& record : records) noise(random, &record);
  } else {
    for (size_t at = 0; at < frontier; ++runs) at += put_run(random, &records[at], frontier - at);
    const size_t changed = frontier == 0 || in_order ? 0 : below(random, frontier);
    for (size_t i = 0; i < changed; i += 1 + below(random, 64)) noise(random, &records[below(random, frontier)]);
  }
  const bool reads_fail = !in_order && below(random, 4) == 0;
  const auto copy = [&](size_t first, std::span<Granule> to) {
    expect(first + to.size() <= frontier, "nothing is read beyond the frontier");
    if (reads_fail && below(random, 4) == 0) return false;
    std::copy_n(records.begin() + static_cast<ptrdiff_t>(first), to.size(), to.begin());
    return true;
  };
  size_t next = 0, seen = 0, granules = 0;
  const size_t unclear = inspect::walk_runs(copy, frontier, [&](const SeenRun& run) {
    expect(run.granule >= next && run.length > 0 && run.granule + run.length <= frontier, "runs follow each other");
    expect(run.kind != Kind::kSlab || run.head.size_class < kClasses, "a slab has a class");
    next = run.granule + run.length;
    granules += run.length;
    ++seen;
  });
  expect(granules + unclear == frontier, "what is no run is unclear");
  if (in_order && runs > 0) expect(seen == runs && unclear == 0, "what is in order is found");
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 100;
  Random random(1);
  for (int i = 0; i < rounds; ++i) round(random);
  std::printf("%d rounds\n", rounds);
}
