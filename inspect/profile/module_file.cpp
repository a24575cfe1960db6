// Functions and lines of an ELF file by libdw: see module_file.h.
#include "profile/module_file.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

#include "profile/code_ranges.h"
#include "profile/names.h"

namespace annex::inspect {
namespace {

char* debug_path = nullptr;  // the system's own, /usr/lib/debug
constexpr Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_build_id_find_elf,
                                       .find_debuginfo = dwfl_standard_find_debuginfo,
                                       .section_address = dwfl_offline_section_address,
                                       .debuginfo_path = &debug_path};

struct EndSession {
  void operator()(Dwfl* session) const { dwfl_end(session); }
};

struct Scopes {
  ~Scopes() { free(dies); }
  Dwarf_Die* dies = nullptr;
  int count = 0;
};

std::string hexadecimal(const unsigned char* bytes, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  }
  return text;
}

std::string text_of(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute found;
  const char* text = dwarf_formstring(dwarf_attr_integrate(die, attribute, &found));
  return text == nullptr ? "" : text;
}

uint64_t number_of(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Word number = 0;
  return dwarf_formudata(dwarf_attr(die, attribute, &found), &number) == 0 ? number : 0;
}

// The die that a definition, or an inlined call, is of.
Dwarf_Die declaration_of(Dwarf_Die die) {
  for (const unsigned attribute : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Attribute found;
    Dwarf_Die other;
    if (dwarf_formref_die(dwarf_attr(&die, attribute, &found), &other) != nullptr) die = other;
  }
  return die;
}

// How a namespace, class or function is called within its scope. gcc calls a lambda "<lambda(int)>".
std::string name_in_scope(Dwarf_Die* die) {
  std::string name = text_of(die, DW_AT_name);
  if (name.starts_with("<lambda")) return fmt::format("{{{}}}", name.substr(1, name.size() - 2));
  if (!name.empty()) return name;
  return dwarf_tag(die) == DW_TAG_namespace ? "(anonymous namespace)" : "{lambda}";  // or another class without a name
}

// With namespaces and classes, of a function whose symbol isn't told since no other file can call it. Looks through the
// whole unit.
std::string qualified_name(Dwarf_Die* die) {
  Dwarf_Die declaration = declaration_of(*die);
  std::string name = text_of(&declaration, DW_AT_name);
  if (name.empty()) return name;
  Scopes scopes;
  scopes.count = dwarf_getscopes_die(&declaration, &scopes.dies);
  for (int i = 1; i < scopes.count; ++i) {
    switch (dwarf_tag(&scopes.dies[i])) {
      case DW_TAG_namespace:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
      case DW_TAG_subprogram:
        name = fmt::format("{}::{}", name_in_scope(&scopes.dies[i]), name);
    }
  }
  return name;
}

void set_function(Dwarf_Die* die, CodeLine* line) {
  line->symbol = text_of(die, DW_AT_linkage_name);
  line->function = line->symbol.empty() ? qualified_name(die) : demangled(line->symbol);
  int first_line = 0;
  if (dwarf_decl_line(die, &first_line) == 0) line->first_line = first_line;
}

// Where the inlined function was called.
void set_caller(Dwarf_Die* unit, Dwarf_Die* inlined, CodeLine* line) {
  line->line = number_of(inlined, DW_AT_call_line);
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0) return;
  const char* file = dwarf_filesrc(files, number_of(inlined, DW_AT_call_file), nullptr, nullptr);
  if (file != nullptr) line->file = file;
}

}  // namespace

struct ModuleFile::Parts {
  std::unique_ptr<Dwfl, EndSession> session;
  Dwfl_Module* module = nullptr;
  Dwarf_Addr bias = 0;  // of the session's addresses, over those of the debugging information
  Ranges units;
  std::map<void*, Ranges> functions;  // by the address of the unit
  std::map<void*, CodeLine> known;    // by that of the declaration; without a line

  void find_units();
  Ranges& functions_of(Dwarf_Die* unit);
  const CodeLine& described(Dwarf_Die* function);
  bool address_of(uint64_t file_offset, Dwarf_Addr* address) const;
  std::vector<CodeLine> lines_at(Dwarf_Addr address);
};

// Not by .debug_aranges, as dwfl_module_addrdie does it: clang writes none.
void ModuleFile::Parts::find_units() {
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr;) units.add(unit);
  units.sort();
}

Ranges& ModuleFile::Parts::functions_of(Dwarf_Die* unit) {
  const auto [place, first] = functions.try_emplace(unit->addr);
  if (first) {
    add_functions(unit, &place->second);
    place->second.sort();
  }
  return place->second;
}

const CodeLine& ModuleFile::Parts::described(Dwarf_Die* function) {
  Dwarf_Die declaration = declaration_of(*function);
  const auto [place, first] = known.try_emplace(declaration.addr);
  if (first) set_function(function, &place->second);
  return place->second;
}

bool ModuleFile::Parts::address_of(uint64_t file_offset, Dwarf_Addr* address) const {
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module, &bias);
  size_t count = 0;
  if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
    if (file_offset < segment.p_offset || file_offset - segment.p_offset >= segment.p_filesz) continue;
    *address = file_offset - segment.p_offset + segment.p_vaddr + bias;
    return true;
  }
  return false;
}

std::vector<CodeLine> ModuleFile::Parts::lines_at(Dwarf_Addr address) {
  Dwarf_Die* unit = units.at(address - bias);
  Dwarf_Die* function = unit == nullptr ? nullptr : functions_of(unit).at(address - bias);
  if (function == nullptr) return {};
  std::vector<Dwarf_Die> dies = {*function};
  add_inlined(function, address - bias, &dies);

  std::vector<CodeLine> lines;
  CodeLine where;
  if (Dwarf_Line* source = dwarf_getsrc_die(unit, address - bias); source != nullptr) {
    int number = 0;
    if (const char* file = dwarf_linesrc(source, nullptr, nullptr)) where.file = file;
    if (dwarf_lineno(source, &number) == 0) where.line = number;
  }
  for (auto die = dies.rbegin(); die != dies.rend(); ++die) {
    CodeLine line = described(&*die);
    line.file = where.file;
    line.line = where.line;
    if (!line.function.empty()) lines.push_back(line);
    where = CodeLine();
    set_caller(unit, &*die, &where);
  }
  return lines;
}

ModuleFile::ModuleFile(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ModuleFile::~ModuleFile() = default;

std::unique_ptr<ModuleFile> ModuleFile::open(const std::string& path, const std::string& build_id,
                                             std::string* problem) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    *problem = strerror(errno);
    return nullptr;
  }
  auto parts = std::make_unique<Parts>();
  parts->session.reset(dwfl_begin(&kCallbacks));
  dwfl_report_begin(parts->session.get());
  parts->module = dwfl_report_offline(parts->session.get(), path.c_str(), path.c_str(), file);
  dwfl_report_end(parts->session.get(), nullptr, nullptr);
  if (parts->module == nullptr) {
    close(file);
    *problem = dwfl_errmsg(-1);
    return nullptr;
  }
  GElf_Addr bias = 0;
  dwfl_module_getelf(parts->module, &bias);
  const unsigned char* bytes = nullptr;
  GElf_Addr where = 0;
  const int count = dwfl_module_build_id(parts->module, &bytes, &where);
  if (!build_id.empty() && hexadecimal(bytes, std::max(count, 0)) != build_id) {
    *problem = "the file is another one now than the one that ran";
    return nullptr;
  }
  parts->find_units();
  return std::unique_ptr<ModuleFile>(new ModuleFile(std::move(parts)));
}

std::vector<CodeLine> ModuleFile::lines_at(uint64_t file_offset) const {
  Dwarf_Addr address = 0;
  if (!parts_->address_of(file_offset, &address)) return {};
  if (auto lines = parts_->lines_at(address); !lines.empty()) return lines;
  const char* symbol = dwfl_module_addrname(parts_->module, address);
  if (symbol == nullptr) return {};
  CodeLine line;
  line.symbol = symbol;
  line.function = demangled(symbol);
  return {line};
}

}  // namespace annex::inspect
