// Reading ELF and "#!" headers: see elf.h.
#include "elf.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>  // ElfW: the ELF types of this machine's own word size
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace annex::cli {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using SectionHeader = ElfW(Shdr);
using Symbol = ElfW(Sym);
using Dynamic = ElfW(Dyn);

constexpr unsigned char kOwnClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

// This launcher's own header, which its first segment has in memory: no file is read for it.
extern "C" [[gnu::visibility("hidden")]] const Header __ehdr_start;

void copy(char* to, size_t capacity, const char* from, const char* end) {
  const size_t length = std::min(static_cast<size_t>(end - from), capacity - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

// "#! interpreter argument": one argument, spaces inside it included, as the kernel splits the line.
void read_script(const char* line, const char* end, Executable* result) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  end = std::find(line, end, '\n');
  line += 2;
  while (line < end && blank(*line)) ++line;
  while (line < end && blank(end[-1])) --end;
  const char* word = std::find_if(line, end, blank);
  copy(result->interpreter, sizeof result->interpreter, line, word);
  while (word < end && blank(*word)) ++word;
  copy(result->argument, sizeof result->argument, word, end);
}

// A file in memory, of which only what lies inside it is given out.
class MappedFile {
 public:
  explicit MappedFile(int file) {
    struct stat status;
    if (fstat(file, &status) != 0 || status.st_size <= 0) return;
    void* const start = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (start == MAP_FAILED) return;
    start_ = static_cast<const char*>(start);
    size_ = static_cast<size_t>(status.st_size);
  }
  ~MappedFile() {
    if (start_ != nullptr) munmap(const_cast<char*>(start_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // An array of `count` elements; nullptr where not all of it is inside the file.
  template <class T>
  const T* at(uint64_t offset, uint64_t count) const {
    const bool inside = offset % alignof(T) == 0 && offset <= size_ && count <= (size_ - offset) / sizeof(T);
    return inside ? reinterpret_cast<const T*>(start_ + offset) : nullptr;
  }
  // A string; "" where it does not end inside the file.
  const char* text(uint64_t offset) const {
    return offset < size_ && memchr(start_ + offset, '\0', size_ - offset) != nullptr ? start_ + offset : "";
  }

 private:
  const char* start_ = nullptr;
  size_t size_ = 0;
};

// How a sanitizer is known: by a symbol that each program built with it has, or by its library, where the program
// itself is not changed.
struct Sanitizer {
  const char* name;
  const char* symbol;
  const char* library;
};
constexpr Sanitizer kSanitizers[] = {
    {"AddressSanitizer", "__asan_init", "libasan.so"}, {"HWAddressSanitizer", "__hwasan_init", "libhwasan.so"},
    {"ThreadSanitizer", "__tsan_init", "libtsan.so"},  {"MemorySanitizer", "__msan_init", "libmsan.so"},
    {"LeakSanitizer", "__lsan_init", "liblsan.so"},
};

void read_symbols(const MappedFile& file, const SectionHeader& section, uint64_t names, Executable* result) {
  const uint64_t count = section.sh_size / sizeof(Symbol);
  const Symbol* const symbols = file.at<Symbol>(section.sh_offset, count);
  for (uint64_t i = 0; symbols != nullptr && i < count; ++i) {
    const char* const name = file.text(names + symbols[i].st_name);
    if (strcmp(name, "malloc") == 0 && symbols[i].st_shndx != SHN_UNDEF) result->own_malloc = true;
    for (const Sanitizer& sanitizer : kSanitizers) {
      if (strcmp(name, sanitizer.symbol) == 0) result->sanitizer = sanitizer.name;
    }
  }
}

void read_needed(const MappedFile& file, const SectionHeader& section, uint64_t names, Executable* result) {
  const uint64_t count = section.sh_size / sizeof(Dynamic);
  const Dynamic* const entries = file.at<Dynamic>(section.sh_offset, count);
  for (uint64_t i = 0; entries != nullptr && i < count; ++i) {
    if (entries[i].d_tag != DT_NEEDED) continue;
    const char* const name = file.text(names + entries[i].d_un.d_val);
    for (const Sanitizer& sanitizer : kSanitizers) {
      if (strncmp(name, sanitizer.library, strlen(sanitizer.library)) == 0) result->sanitizer = sanitizer.name;
    }
  }
}

// What the program's dynamic symbols and needed libraries tell. They are found by the section headers: of a program
// without those, nothing is known.
void read_names(int descriptor, const Header& header, Executable* result) {
  const MappedFile file(descriptor);
  const auto* const sections = file.at<SectionHeader>(header.e_shoff, header.e_shnum);
  for (size_t i = 0; sections != nullptr && i < header.e_shnum; ++i) {
    if (sections[i].sh_link >= header.e_shnum) continue;
    const uint64_t names = sections[sections[i].sh_link].sh_offset;
    if (sections[i].sh_type == SHT_DYNSYM) read_symbols(file, sections[i], names, result);
    if (sections[i].sh_type == SHT_DYNAMIC) read_needed(file, sections[i], names, result);
  }
}

Kind read_elf(int file, const Header& header, Executable* result) {
  if (header.e_ident[EI_CLASS] != kOwnClass) return Kind::kOtherClass;
  if (header.e_machine != __ehdr_start.e_machine) return Kind::kOtherMachine;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Segment segment;
    const auto offset = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (pread(file, &segment, sizeof segment, offset) != sizeof segment) break;
    if (segment.p_type != PT_INTERP) continue;
    const size_t length = std::min<size_t>(segment.p_filesz, sizeof result->interpreter - 1);
    const ssize_t got = pread(file, result->interpreter, length, static_cast<off_t>(segment.p_offset));
    result->interpreter[got > 0 ? got : 0] = '\0';
    read_names(file, header, result);
    return Kind::kDynamic;
  }
  return Kind::kStatic;
}

}  // namespace

Executable inspect(const char* path) {
  Executable result = {Kind::kUnreadable, "", "", nullptr, false};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return result;
  union {
    Header header;
    char bytes[512];  // a script's first line; the kernel reads 256
  } start = {};
  const ssize_t got = pread(file, start.bytes, sizeof start.bytes, 0);
  if (got >= 2 && memcmp(start.bytes, "#!", 2) == 0) {
    result.kind = Kind::kScript;
    read_script(start.bytes, start.bytes + got, &result);
  } else if (got >= EI_NIDENT && memcmp(start.bytes, ELFMAG, SELFMAG) == 0) {
    result.kind = read_elf(file, start.header, &result);
  } else if (got >= 0) {
    result.kind = Kind::kText;
  }
  close(file);
  return result;
}

}  // namespace annex::cli
