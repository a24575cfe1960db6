// Reading ELF and "#!" headers: see elf.h.
#include "elf.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>  // ElfW: the ELF types of this machine's own word size
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace annex::cli {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);

constexpr unsigned char kOwnClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

// The machine that this launcher was itself compiled for, from its own header.
uint16_t own_machine() {
  uint16_t machine = EM_NONE;
  const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) return machine;
  Header header;
  if (pread(self, &header, sizeof header, 0) == sizeof header) machine = header.e_machine;
  close(self);
  return machine;
}

void copy(char* to, size_t capacity, const char* from, const char* end) {
  const size_t length = std::min(static_cast<size_t>(end - from), capacity - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

// "#! interpreter argument": one argument, spaces inside it included, as the kernel splits the
// line.
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

Kind read_elf(int file, const Header& header, Executable* result) {
  if (header.e_ident[EI_CLASS] != kOwnClass) return Kind::kOtherClass;
  if (const uint16_t machine = own_machine(); machine != EM_NONE && header.e_machine != machine) {
    return Kind::kOtherMachine;
  }
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Segment segment;
    const auto offset = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (pread(file, &segment, sizeof segment, offset) != sizeof segment) break;
    if (segment.p_type != PT_INTERP) continue;
    const size_t length = std::min<size_t>(segment.p_filesz, sizeof result->interpreter - 1);
    const ssize_t got = pread(file, result->interpreter, length, static_cast<off_t>(segment.p_offset));
    result->interpreter[got > 0 ? got : 0] = '\0';
    return Kind::kDynamic;
  }
  return Kind::kStatic;
}

}  // namespace

Executable inspect(const char* path) {
  Executable result = {Kind::kUnreadable, "", ""};
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
