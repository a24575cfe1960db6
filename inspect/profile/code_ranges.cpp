// Which function is at an address: see code_ranges.h.
#include "profile/code_ranges.h"

#include <dwarf.h>

#include <algorithm>
#include <iterator>

namespace annex::inspect {

void Ranges::add(Dwarf_Die* die) {
  Dwarf_Addr base = 0, start = 0, end = 0;
  for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &start, &end)) > 0;) {
    if (start < end) ranges_.push_back({start, end, *die});
  }
}

void Ranges::sort() {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
}

Dwarf_Die* Ranges::at(Dwarf_Addr address) {
  const auto above = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](Dwarf_Addr wanted, const Range& range) { return wanted < range.start; });
  if (above == ranges_.begin() || address >= std::prev(above)->end) return nullptr;
  return &std::prev(above)->die;
}

void add_functions(Dwarf_Die* die, Ranges* functions) {
  Dwarf_Die child;
  if (dwarf_child(die, &child) != 0) return;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        functions->add(&child);
        [[fallthrough]];
      case DW_TAG_namespace:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
        add_functions(&child, functions);
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

void add_inlined(Dwarf_Die* die, Dwarf_Addr address, std::vector<Dwarf_Die>* inlined) {
  Dwarf_Die child;
  if (dwarf_child(die, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) continue;
    if (dwarf_haspc(&child, address) <= 0) continue;
    if (tag == DW_TAG_inlined_subroutine) inlined->push_back(child);
    add_inlined(&child, address, inlined);
    return;
  } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace annex::inspect
