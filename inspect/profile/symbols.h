// What is at the addresses of a profile: a place for each frame, in modules whose files are read once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profile/module_file.h"
#include "profile/raw.h"

namespace annex::inspect {

class Symbols {
 public:
  explicit Symbols(const std::vector<Module>& modules) : modules_(modules) {}

  // The innermost first, at least one: where nothing is known it is named by its module and offset, or its address.
  std::vector<CodeLine> lines_of(const Frame& frame);

  // Of the modules without symbols: one line for each, for people.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  const ModuleFile* file_of(const Module& module);

  const std::vector<Module>& modules_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<ModuleFile>> files_;  // by path and build id
  std::vector<std::string> problems_;
};

}  // namespace annex::inspect
