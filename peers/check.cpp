// Says which object serves malloc in this process, and exits 1 unless it is the one named on the command line.
//   LD_PRELOAD=build/peers/jemalloc.so check build/peers/jemalloc.so
//   check libc.so.6
// Two proofs are asked for. By name: every entry of the malloc family resolves into that object. By effect: glibc's own
// heap does not grow while this process allocates (or does grow, when glibc is the one named).

#include <dlfcn.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

// Every one of these must come from the allocator under test: a pointer from one and a free from another is corruption.
constexpr const char* kMustServe[] = {"malloc",        "free",           "calloc",   "realloc",
                                      "aligned_alloc", "posix_memalign", "memalign", "malloc_usable_size"};
// These may stay in libstdc++, which then calls malloc.
constexpr const char* kMayServe[] = {"_Znwm", "_ZdlPv", "_ZdlPvm", "_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t"};

std::string object_of(const char* symbol) {
  void* address = dlsym(RTLD_DEFAULT, symbol);
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) return "";
  return info.dli_fname;
}

bool same_object(const std::string& path, const char* wanted) {
  char real_path[4096];
  char real_wanted[4096];
  const bool both = realpath(path.c_str(), real_path) != nullptr && realpath(wanted, real_wanted) != nullptr;
  if (both) return strcmp(real_path, real_wanted) == 0;
  const size_t slash = path.rfind('/');
  return path.substr(slash == std::string::npos ? 0 : slash + 1) == wanted;
}

// Bytes in use in glibc's main heap, asked of glibc itself even where a peer replaces mallinfo2.
size_t glibc_bytes_in_use() {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  auto* info = reinterpret_cast<struct mallinfo2 (*)()>(dlsym(libc, "mallinfo2"));
  return info == nullptr ? 0 : info().uordblks;
}

// Allocates in every way a program may, frees half, and returns glibc's growth meanwhile.
size_t growth_of_glibc() {
  constexpr int kBlocks = 20000;
  const size_t before = glibc_bytes_in_use();
  std::vector<void*> blocks;
  blocks.reserve(kBlocks * 5);
  for (int i = 0; i < kBlocks; ++i) {
    const size_t size = 16 + static_cast<size_t>(i % 300);
    blocks.push_back(malloc(size));
    blocks.push_back(calloc(1, size));
    blocks.push_back(realloc(malloc(8), size));
    blocks.push_back(aligned_alloc(64, 64));
    blocks.push_back(strdup("a string that libc itself allocates"));
    ::operator delete(::operator new(size));
  }
  for (void* block : blocks) {
    if (block == nullptr || malloc_usable_size(block) == 0) {
      fprintf(stderr, "check: an allocation failed or has no usable size\n");
      exit(1);
    }
  }
  const size_t after = glibc_bytes_in_use();
  for (void* block : blocks) free(block);
  return after > before ? after - before : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: check OBJECT   (a path, or libc.so.6)\n");
    return 2;
  }
  const char* wanted = argv[1];
  bool good = true;
  for (const char* symbol : kMustServe) {
    const std::string object = object_of(symbol);
    const bool right = same_object(object, wanted);
    good = good && right;
    if (!right) fprintf(stderr, "check: %s is served by '%s', not by %s\n", symbol, object.c_str(), wanted);
  }
  int ours = 0;
  for (const char* symbol : kMayServe) ours += same_object(object_of(symbol), wanted) ? 1 : 0;

  const bool glibc_wanted = strcmp(wanted, "libc.so.6") == 0;
  const size_t growth = growth_of_glibc();
  constexpr size_t kNoise = 256 * 1024;  // the loader, stdio and locale may use a little of glibc's heap
  if (glibc_wanted ? growth < kNoise : growth > kNoise) {
    fprintf(stderr, "check: glibc's heap grew by %zu bytes while %s was to serve malloc\n", growth, wanted);
    good = false;
  }
  printf("%s: %s malloc; operator new/delete: %s\n", wanted, good ? "serves" : "DOES NOT serve",
         ours == 5 ? "its own" : (ours == 0 ? "libstdc++, over malloc" : "mixed"));
  return good ? 0 : 1;
}
