// Symbols of the malloc family: see functions.h.
#include "guest/functions.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <span>

namespace annex::sim {

namespace {

struct Name {
  std::string_view name;
  Function function;
};

constexpr Name kNames[] = {
    {"malloc", Function::kAllocate},
    {"calloc", Function::kClear},
    {"memalign", Function::kAlign},
    {"aligned_alloc", Function::kAlign},
    {"posix_memalign", Function::kAllocateInto},
    {"valloc", Function::kAlign},
    {"pvalloc", Function::kAlign},
    {"realloc", Function::kReallocate},
    {"reallocarray", Function::kReallocateArray},
    {"free", Function::kFree},
    {"cfree", Function::kFree},
    {"free_sized", Function::kFree},
    {"free_aligned_sized", Function::kFree},
    {"malloc_usable_size", Function::kOther},
    {"malloc_trim", Function::kOther},
};

constexpr Address page_start(Address address) { return address & ~((Address{1} << kPageShift) - 1); }

// A file's bytes, or none.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0) return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      size_ = static_cast<size_t>(status.st_size);
      void* map = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
      data_ = map == MAP_FAILED ? nullptr : static_cast<const char*>(map);
    }
    close(fd);
  }
  ~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // `count` of T at the offset; empty where the file has not so many.
  template <class T>
  std::span<const T> at(uint64_t offset, uint64_t count) const {
    if (data_ == nullptr || offset > size_ || count > (size_ - offset) / sizeof(T)) return {};
    return {reinterpret_cast<const T*>(data_ + offset), count};
  }
  std::string_view string_at(uint64_t offset) const {
    if (data_ == nullptr || offset >= size_) return {};
    return {data_ + offset, strnlen(data_ + offset, size_ - offset)};
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace

Function function_named(std::string_view name) {
  for (const Name& known : kNames) {
    if (name == known.name) return known.function;
  }
  // C++: operator new and new[], delete and delete[], in all their variants.
  if (name.starts_with("_Znwm") || name.starts_with("_Znam")) {
    return name.find("align_val_t") == std::string_view::npos ? Function::kAllocate : Function::kAlign;
  }
  if (name.starts_with("_ZdlPv") || name.starts_with("_ZdaPv")) return Function::kFree;
  return Function::kNone;
}

void Functions::add_file(const std::string& path, Address address, uint64_t offset) {
  add(
      path, [=](const Elf64_Phdr& segment) { return page_start(segment.p_offset) == offset; }, address);
}

void Functions::add_program(const std::string& path, Address start) {
  add(
      path, [](const Elf64_Phdr&) { return true; }, page_start(start));
}

// `wanted` says which executable segment it is whose first page is at the address.
template <class Wanted>
void Functions::add(const std::string& path, Wanted&& wanted, Address address) {
  const MappedFile file(path);
  const auto header = file.at<Elf64_Ehdr>(0, 1);
  if (header.empty() || memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 || header[0].e_ident[EI_CLASS] != ELFCLASS64) {
    return;
  }
  // What must be added to the file's own addresses.
  Address bias = 0;
  for (const Elf64_Phdr& segment : file.at<Elf64_Phdr>(header[0].e_phoff, header[0].e_phnum)) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || !wanted(segment)) continue;
    bias = address - page_start(segment.p_vaddr);
    break;
  }
  bool any = false;
  const auto sections = file.at<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_SYMTAB) continue;
    if (section.sh_link >= sections.size()) continue;
    const uint64_t names = sections[section.sh_link].sh_offset;
    for (const Elf64_Sym& symbol : file.at<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
      const Function function = function_named(file.string_at(names + symbol.st_name));
      if (function == Function::kNone) continue;
      entries_[bias + symbol.st_value] = function;
      any = true;
    }
  }
  if (any) files_.push_back(path);
}

}  // namespace annex::sim
