// attack --list                      all attacks, as JSON
// attack NAME                        one trial of that attack, in this process: attack.h says what it writes
// attack --addresses COUNT BYTES...  where something of libc's is; then for each size COUNT lines: the size, where the
//                                    block is, its room
// attack --library                   the file that serves malloc
#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "aftermath.h"
#include "classes.h"

namespace attacks {
namespace {

constexpr const AttackClass* kClasses[] = {
    &kDoubleFree,    &kUseAfterFree, &kMetadata,      &kOverflow, &kWrongFree, &kRealloc,
    &kSizeConfusion, &kHugeRequest,  &kUninitialized, &kReuse,    &kNeighbour, &kControls,
};
constexpr rlim_t kSeconds = 5;  // of CPU time, for an allocator that goes in circles

void list() {
  const char* separator = "[";
  for (const AttackClass* each : kClasses) {
    for (const Attack& attack : each->attacks) {
      printf("%s\n{\"name\": \"%s\", \"class\": \"%s\", \"gain\": \"%s\", \"what\": \"%s\"}", separator, attack.name,
             each->name, attack.gain, attack.what);
      separator = ",";
    }
  }
  puts("\n]");
}

const Attack* find(const char* name) {
  for (const AttackClass* each : kClasses) {
    for (const Attack& attack : each->attacks) {
      if (strcmp(attack.name, name) == 0) return &attack;
    }
  }
  return nullptr;
}

[[noreturn]] void run(const Attack& attack) {
  const rlimit no_core{0, 0};
  const rlimit cpu{kSeconds, kSeconds};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_CPU, &cpu);
  ordinary_use();  // a heap that has been used
  end(attack.run());
}

void print_addresses(std::size_t count, char** sizes) {
  static char buffer[1 << 16];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);  // else it would be the first block
  printf("%p\n", dlsym(RTLD_DEFAULT, "getpid"));
  for (; *sizes != nullptr; ++sizes) {
    const std::size_t bytes = strtoull(*sizes, nullptr, 10);
    Blocks blocks(bytes);
    blocks.take(count);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      printf("%zu %p %zu\n", bytes, static_cast<void*>(blocks[i]), room(blocks[i]));
    }
  }
}

int print_library() {
  Dl_info info;
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) == 0) return 3;
  puts(info.dli_fname);
  return 0;
}

}  // namespace
}  // namespace attacks

int main(int argc, char** argv) {
  const char* word = argc > 1 ? argv[1] : "";
  if (strcmp(word, "--list") == 0) return attacks::list(), 0;
  if (strcmp(word, "--library") == 0) return attacks::print_library();
  if (strcmp(word, "--addresses") == 0 && argc > 3) {
    return attacks::print_addresses(strtoull(argv[2], nullptr, 10), argv + 3), 0;
  }
  if (const attacks::Attack* attack = attacks::find(word)) attacks::run(*attack);
  fprintf(stderr, "usage: attack --list | NAME | --addresses COUNT BYTES... | --library\n");
  return 2;
}
