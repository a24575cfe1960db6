// Which function is at an address, and which are inlined there: by the tree of DWARF's dies.
#pragma once

#include <elfutils/libdw.h>

#include <vector>

namespace annex::inspect {

// Compilation units or functions by their addresses.
class Ranges {
 public:
  void add(Dwarf_Die* die);
  // Before the first at().
  void sort();
  // nullptr where there is none.
  Dwarf_Die* at(Dwarf_Addr address);

 private:
  struct Range {
    Dwarf_Addr start, end;
    Dwarf_Die die;
  };
  std::vector<Range> ranges_;
};

// The functions below a die, with those of its namespaces, classes and functions.
void add_functions(Dwarf_Die* die, Ranges* functions);

// The inlined functions of a function at an address, from the outermost in.
void add_inlined(Dwarf_Die* die, Dwarf_Addr address, std::vector<Dwarf_Die>* inlined);

}  // namespace annex::inspect
