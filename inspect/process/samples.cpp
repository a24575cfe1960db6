// Samples in use: see samples.h.
#include "process/samples.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "message.h"
#include "process/arenas.h"
#include "process/block_use.h"

namespace annex::inspect {

namespace {

using profile::Sample;

uint64_t now_ms() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_nsec) / 1000000;
}

// What is known of blocks: slabs are looked at once.
class Blocks {
 public:
  explicit Blocks(const Target& target) : target_(target), arenas_(read_arenas(target)) {}

  // False where the block is not in use.
  bool look_at(LiveCopy* block) {
    const auto run = find_run(target_.memory, arenas_, block->block);
    if (!run) return false;
    block->is_span = run->head.kind == Kind::kSpan;
    // What says how long it is may have been half written.
    const uint64_t most = block->is_span ? run->head.length * kGranule : block_size(run->head.size_class);
    block->size = std::min(block->size, most);
    if (block->is_span) return block->block == run->start;
    const BlockUse& use = slabs_.try_emplace(run->start, target_, *run).first->second;
    if (!use.is_used(block->block)) return false;
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (uint64_t at = block->block / page * page; at < block->block + block->size; at += page) {
      block->shares.push_back(use.count_on_page(at));
    }
    return true;
  }

 private:
  const Target& target_;
  const std::vector<ArenaView> arenas_;
  std::unordered_map<uint64_t, BlockUse> slabs_;  // by their start
};

std::vector<Sample> read_chunk(const Memory& memory, const profile::Tables& tables, uint32_t chunk) {
  const uint32_t first = chunk * profile::kSamplesInChunk;
  std::vector<Sample> samples(std::min<uint32_t>(tables.places - first, profile::kSamplesInChunk));
  if (!memory.read(number(tables.chunks[chunk]), std::span(samples))) samples.clear();
  return samples;
}

}  // namespace

Samples copy_samples(const Target& target) {
  Samples all = {std::make_unique<profile::Tables>(), {}};
  profile::Tables& tables = *all.tables;
  tables = target.memory.get(target.annex.profile);
  const uint64_t now = now_ms();
  Blocks blocks(target);
  for (uint32_t chunk = 0; chunk < profile::kMostChunks && chunk * profile::kSamplesInChunk < tables.places; ++chunk) {
    for (const Sample& sample : read_chunk(target.memory, tables, chunk)) {
      if (sample.block == 0) continue;
      LiveCopy live = {0,
                       sample.block,
                       sample.asked,
                       sample.size,
                       now > sample.born_ms ? now - sample.born_ms : 0,
                       sample.weight,
                       sample.thread,
                       false,
                       {}};
      const bool in_use = blocks.look_at(&live);
      all.all.push_back({number(sample.site), in_use, std::move(live)});
    }
  }
  return all;
}

}  // namespace annex::inspect
