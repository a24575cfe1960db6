// The file of a module: which function and which line are at a place in it. Through libdw.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace annex::inspect {

// A line of source on the way to an address. Functions that were inlined have one each.
struct CodeLine {
  std::string function;     // as people write it
  std::string symbol;       // as the linker knows it; "" where it doesn't
  std::string file;         // "" where it isn't known
  uint64_t line = 0;        // 0 then
  uint64_t first_line = 0;  // of the function

  bool operator==(const CodeLine&) const = default;
};

class ModuleFile {
 public:
  // None where the file can't be read as ELF, or has another build id (hexadecimal; "" is any): `problem` says which.
  static std::unique_ptr<ModuleFile> open(const std::string& path, const std::string& build_id, std::string* problem);
  ~ModuleFile();

  // The innermost first. None where nothing is known of the place.
  std::vector<CodeLine> lines_at(uint64_t file_offset) const;

 private:
  struct Parts;
  explicit ModuleFile(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace annex::inspect
