// Frames to functions and lines: see symbols.h.
#include "profile/symbols.h"

#include <fmt/format.h>

#include "profile/names.h"

namespace annex::inspect {

std::vector<CodeLine> Symbols::lines_of(const Frame& frame) {
  CodeLine unknown;
  if (frame.module == kNoModule) {
    unknown.function = fmt::format("0x{:x}", frame.return_address);
    return {unknown};
  }
  // A return address is behind its call, which may be the last thing of a function.
  const Module& module = modules_[frame.module];
  const uint64_t offset = frame.return_address - 1 - module.start + module.offset;
  if (const ModuleFile* file = file_of(module); file != nullptr) {
    if (auto lines = file->lines_at(offset); !lines.empty()) return lines;
  }
  unknown.function = fmt::format("{}+0x{:x}", base_name(module.path), offset);
  return {unknown};
}

const ModuleFile* Symbols::file_of(const Module& module) {
  const auto [place, first] = files_.try_emplace({module.path, module.build_id});
  if (first && module.path.starts_with('/')) {  // others have no file, as [vdso]
    std::string problem;
    place->second = ModuleFile::open(module.path, module.build_id, &problem);
    if (!place->second)
      problems_.push_back(fmt::format("{}: {}; its functions have no names here", module.path, problem));
  }
  return place->second.get();
}

}  // namespace annex::inspect
