// Modules: see modules.h.
#include "profile/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

#include "os/lock.h"
#include "os/text.h"
#include "profile/records.h"

#ifdef __GLIBC__
// glibc 2.35 and newer: takes no lock.
#pragma weak _dl_find_object
#endif

namespace annex::profile {

namespace {

// What the loader says of an address.
struct Loaded {
  const char* path;  // "": the program
  uintptr_t base;    // what is added to the addresses in the file
  const ElfW(Phdr) * headers;
  size_t header_count;
};

// By the loader's list, which it locks; for C libraries that have nothing better.
bool find_in_list(uintptr_t address, Loaded* loaded) {
  struct Search {
    uintptr_t address;
    Loaded* loaded;
  } search = {address, loaded};
  const auto look = [](dl_phdr_info* info, size_t, void* of) {
    Search* const search = static_cast<Search*>(of);
    for (size_t i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      if (header.p_type != PT_LOAD || search->address - (info->dlpi_addr + header.p_vaddr) >= header.p_memsz) continue;
      *search->loaded = {info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
      return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(look, &search) != 0;
}

bool find(uintptr_t address, Loaded* loaded) {
#ifdef __GLIBC__
  dl_find_object found;
  if (_dl_find_object != nullptr) {
    if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
    const auto* const file = static_cast<const ElfW(Ehdr)*>(found.dlfo_map_start);
    // Where the headers are not at the file's start (BOLT moves them), they need not be in memory beside it.
    if (memcmp(file->e_ident, ELFMAG, SELFMAG) != 0 || file->e_phoff != sizeof *file)
      return find_in_list(address, loaded);
    const char* const start = static_cast<const char*>(found.dlfo_map_start);
    *loaded = {found.dlfo_link_map->l_name, found.dlfo_link_map->l_addr,
               reinterpret_cast<const ElfW(Phdr)*>(start + file->e_phoff), file->e_phnum};
    return true;
  }
#endif
  return find_in_list(address, loaded);
}

// Fills in the module's build id, from the notes of a program header.
void read_build_id(const char* notes, size_t bytes, Module* module) {
  const auto padded = [](size_t length) { return (length + 3) / 4 * 4; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(notes);
    const size_t whole = sizeof *note + padded(note->n_namesz) + padded(note->n_descsz);
    if (whole > bytes) return;
    const char* const name = notes + sizeof *note;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
      module->build_id_bytes = static_cast<uint32_t>(std::min<size_t>(note->n_descsz, kMaxBuildId));
      memcpy(module->build_id, name + padded(note->n_namesz), module->build_id_bytes);
      return;
    }
    notes += whole;
    bytes -= whole;
  }
}

// Of the executable segment in which the address lies.
const ElfW(Phdr) * segment_of(uintptr_t address, const Loaded& loaded) {
  for (size_t i = 0; i < loaded.header_count; ++i) {
    const ElfW(Phdr)& header = loaded.headers[i];
    if (header.p_type == PT_LOAD && address - (loaded.base + header.p_vaddr) < header.p_memsz) return &header;
  }
  return nullptr;
}

const Module* known(uintptr_t start, const char* path) {
  for (const Module* module = __atomic_load_n(&tables.modules, __ATOMIC_ACQUIRE); module != nullptr;
       module = module->next) {
    if (module->start == start && os::same_text(module->path, path)) return module;
  }
  return nullptr;
}

const Module* add_module(const ElfW(Phdr) & segment, const Loaded& loaded) {
  const size_t path_bytes = os::length_of(loaded.path) + 1;
  const os::Guard guard(lock);
  // Another thread may have been faster.
  if (const Module* other = known(loaded.base + segment.p_vaddr, loaded.path)) return other;
  Module* const module = static_cast<Module*>(new_record(sizeof(Module) + path_bytes));
  if (module == nullptr) return nullptr;
  module->next = tables.modules;
  module->number = module->next == nullptr ? 1 : module->next->number + 1;
  module->start = loaded.base + segment.p_vaddr;
  module->end = module->start + segment.p_memsz;
  module->offset = segment.p_offset;
  memcpy(module->path, loaded.path, path_bytes);
  for (size_t i = 0; i < loaded.header_count; ++i) {
    const ElfW(Phdr)& header = loaded.headers[i];
    const char* const notes = reinterpret_cast<const char*>(loaded.base + header.p_vaddr);
    if (header.p_type == PT_NOTE) read_build_id(notes, header.p_memsz, module);
  }
  __atomic_store_n(&tables.modules, module, __ATOMIC_RELEASE);
  return module;
}

}  // namespace

uint16_t module_of(uintptr_t address) {
  Loaded loaded;
  if (!find(address, &loaded)) return 0;
  const ElfW(Phdr)* const segment = segment_of(address, loaded);
  if (segment == nullptr) return 0;
  const Module* module = known(loaded.base + segment->p_vaddr, loaded.path);
  if (module == nullptr) module = add_module(*segment, loaded);
  return module == nullptr || module->number > UINT16_MAX ? 0 : static_cast<uint16_t>(module->number);
}

}  // namespace annex::profile
