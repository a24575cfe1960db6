// Where an unmodified allocator begins: the addresses of malloc, free and their family in the program's files, from
// their symbol tables as the files are mapped.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "machine/types.h"

namespace annex::sim {

// kClear: calloc, which allocates and clears. kAlign: those that are given an alignment, or have one of a page.
// kAllocateInto: posix_memalign, whose result goes to memory. kReallocateArray: reallocarray, of two factors. kMarker:
// none of them, but a place in the allocator's code that is marked (decode/markers.h).
enum class Function : uint8_t {
  kNone,
  kAllocate,
  kFree,
  kReallocate,
  kOther,
  kClear,
  kAlign,
  kAllocateInto,
  kReallocateArray,
  kMarker
};

// Calls are counted by kind; those after kOther as what they are a form of.
inline constexpr size_t kCountedFunctions = 5;
constexpr size_t counted_as(Function function) {
  if (function == Function::kReallocateArray) return static_cast<size_t>(Function::kReallocate);
  return static_cast<size_t>(function > Function::kOther ? Function::kAllocate : function);
}

class Functions {
 public:
  // The file is mapped with its byte `offset` at `address`, as executable code. What is no ELF file is passed over.
  void add_file(const std::string& path, Address address, uint64_t offset);

  // The program itself, whose executable code begins at `start`.
  void add_program(const std::string& path, Address start);

  Function at(Address address) const {
    const auto found = entries_.find(address);
    return found == entries_.end() ? Function::kNone : found->second;
  }
  // Files in which any was found.
  const std::vector<std::string>& files() const { return files_; }

 private:
  template <class Wanted>
  void add(const std::string& path, Wanted&& wanted, Address address);

  std::unordered_map<Address, Function> entries_;
  std::vector<std::string> files_;
};

// kNone for a name that is none of the family's.
Function function_named(std::string_view name);

}  // namespace annex::sim
