// Finding Annex in a process: see target.h.
#include "process/target.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "message.h"
#include "process/proc.h"

namespace annex::inspect {

namespace {

using observe::Inspection;

// What may hold the constant: the data of the library, or of a program that is linked with it.
bool may_hold_it(const Mapping& mapping) { return mapping.readable && !mapping.executable && mapping.inode != 0; }

bool is_library(const Mapping& mapping) {
  const std::string_view path = mapping.path;
  return path.substr(path.rfind('/') + 1).starts_with("libannex");
}

// All copies of the constant that lie where they say they do: those that the loader has put there.
void search(const Memory& memory, const Mapping& mapping, std::vector<Inspection>* found) {
  constexpr size_t kPiece = size_t{1} << 20;
  constexpr size_t kAligned = alignof(Inspection);
  std::vector<char> piece(kPiece);
  for (uint64_t at = mapping.start; at < mapping.end; at += kPiece) {
    const size_t bytes = memory.read_some(at, piece.data(), std::min<uint64_t>(kPiece, mapping.end - at));
    for (size_t i = 0; i + sizeof observe::kMagic <= bytes; i += kAligned) {
      if (memcmp(&piece[i], observe::kMagic, sizeof Inspection::magic) != 0) continue;
      Inspection inspection;
      // Of another version it may be longer or shorter, but begins with the same three.
      if (memory.read(at + i, &inspection) && number(inspection.self) == at + i) found->push_back(inspection);
    }
    if (bytes < kPiece) break;
  }
}

std::vector<Inspection> search_all(const Memory& memory, const std::vector<Mapping>& mappings, bool libraries) {
  std::vector<Inspection> found;
  for (const Mapping& mapping : mappings) {
    if (may_hold_it(mapping) && is_library(mapping) == libraries) search(memory, mapping, &found);
  }
  return found;
}

// Of several (a program that is linked with one, and had another preloaded) the one that has a heap.
Inspection choose(const Memory& memory, const std::vector<Inspection>& found, pid_t process) {
  const Inspection* unknown = nullptr;
  const Inspection* known = nullptr;
  for (const Inspection& one : found) {
    if (one.layout != observe::layout_number()) {
      unknown = &one;
    } else if (known == nullptr || memory.get(one.arenas.count) > 0) {
      known = &one;
    }
  }
  if (known != nullptr) return *known;
  std::string version(unknown->version, strnlen(unknown->version, sizeof unknown->version));
  throw Failure(kNoAnnex, fmt::format("process {} runs on another version of Annex ({}), which this program can't read",
                                      process, version));
}

}  // namespace

Target open_target(pid_t process) {
  const ProcStatus status = read_status(process);
  process = status.process;
  if (status.state == 'Z' || status.state == 'X') {
    throw Failure(kNoProcess, fmt::format("process {} ({}) has ended: it is a zombie", process, status.name));
  }
  const std::vector<Mapping> mappings = read_mappings(process);
  if (!status.has_memory || mappings.empty()) {
    throw Failure(kNoAnnex, fmt::format("process {} ({}) has no memory of its own: it is the kernel's, or ending",
                                        process, status.name));
  }
  const Memory memory(process);
  std::vector<Inspection> found = search_all(memory, mappings, true);
  if (found.empty()) found = search_all(memory, mappings, false);
  if (found.empty()) {
    throw Failure(kNoAnnex, fmt::format("process {} ({}) does not run on Annex (annex run starts programs on it)",
                                        process, status.name));
  }
  return {memory, status.name, choose(memory, found, process)};
}

}  // namespace annex::inspect
