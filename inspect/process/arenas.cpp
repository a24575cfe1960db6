// Arenas of another process: see arenas.h.
#include "process/arenas.h"

#include <algorithm>

namespace annex::inspect {

std::vector<ArenaView> read_arenas(const Target& target) {
  const Memory& memory = target.memory;
  const observe::ArenasLayout& layout = target.annex.arenas;
  const uint32_t count = std::min<uint32_t>(memory.get(layout.count), observe::kMostArenas);
  std::vector<ArenaView> arenas;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t arena = number(layout.first) + uint64_t{i} * layout.bytes;
    arenas.push_back({i, memory.get<uint64_t>(arena + layout.start), memory.get<uint64_t>(arena + layout.metadata),
                      memory.get<uint32_t>(arena + layout.frontier)});
  }
  return arenas;
}

size_t walk_arenas(const Target& target, const std::function<void(const SeenRun&)>& visit) {
  size_t unclear = 0;
  for (const ArenaView& arena : read_arenas(target)) {
    const auto copy = [&](size_t first, std::span<Granule> to) {
      return target.memory.read(arena.records + first * sizeof(Granule), to);
    };
    unclear += walk_runs(copy, arena.frontier, visit);
  }
  return unclear;
}

std::optional<RunAt> find_run(const Memory& memory, const std::vector<ArenaView>& arenas, uint64_t address) {
  for (const ArenaView& arena : arenas) {
    if (address < arena.start || (address - arena.start) >> kGranuleShift >= arena.frontier) continue;
    size_t granule = (address - arena.start) >> kGranuleShift;
    Granule record;
    if (!memory.read(arena.records + granule * sizeof record, &record)) return std::nullopt;
    if (record.kind == Kind::kSlabTail && record.back <= granule) {
      granule -= record.back;
      if (!memory.read(arena.records + granule * sizeof record, &record)) return std::nullopt;
    }
    const bool is_run = record.kind == Kind::kSpan || (record.kind == Kind::kSlab && record.size_class < kClasses);
    if (!is_run) return std::nullopt;
    return RunAt{&arena, arena.start + granule * kGranule, granule, record};
  }
  return std::nullopt;
}

}  // namespace annex::inspect
