// Allocates at call sites of which all is known, and says how many bytes of each are in use when it ends:
// known_sites PLUGIN-ONE PLUGIN-TWO. "site FUNCTION BYTES", and at the end whether the second library was loaded where
// the first one was.
//
// Two threads allocate, and each one frees a half of what the other has.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <thread>
#include <vector>

namespace {

struct Kept {
  void* block;
  std::size_t bytes;
  void (*release)(void*);
};
using Blocks = std::vector<Kept>;

constexpr std::size_t kBytes = 8 << 20;  // of each site and thread, before half is freed
constexpr int kThreads = 2;

// From 24 bytes to 500, then and when some KiB.
std::size_t next_size(unsigned* state) {
  *state = *state * 1664525 + 1013904223;
  const unsigned number = *state >> 8;
  return number % 50 == 0 ? 1000 + number % 9000 : 24 + number % 477;
}

void release_new(void* block) { operator delete(block); }

}  // namespace

// The sites. Their names are looked for in the profile.
extern "C" {
void* by_malloc(std::size_t bytes) { return malloc(bytes); }
void* by_calloc(std::size_t bytes) { return calloc(1, bytes); }
void* by_realloc(std::size_t bytes) { return realloc(malloc(8), bytes); }  // another size class: the block moves
void* by_new(std::size_t bytes) { return operator new(bytes); }
void* by_aligned_alloc(std::size_t bytes) { return aligned_alloc(64, bytes); }
void* by_span(std::size_t bytes) { return malloc(100 * bytes + (64 << 10)); }
}

namespace {

struct SiteOf {
  const char* name;
  void* (*allocate)(std::size_t);
  void (*release)(void*);
  std::size_t (*asked)(std::size_t);
  std::size_t bytes;
};
std::size_t as_it_is(std::size_t bytes) { return bytes; }
std::size_t of_span(std::size_t bytes) { return 100 * bytes + (64 << 10); }

constexpr SiteOf kSites[] = {
    {"by_malloc", &by_malloc, &free, &as_it_is, kBytes},
    {"by_calloc", &by_calloc, &free, &as_it_is, kBytes},
    {"by_realloc", &by_realloc, &free, &as_it_is, kBytes},
    {"by_new", &by_new, &release_new, &as_it_is, kBytes},
    {"by_aligned_alloc", &by_aligned_alloc, &free, &as_it_is, kBytes},
    {"by_span", &by_span, &free, &of_span, 8 * kBytes},
};
constexpr int kSiteCount = sizeof kSites / sizeof kSites[0];

void fill(const SiteOf& site, unsigned seed, Blocks* blocks) {
  for (std::size_t sum = 0; sum < site.bytes;) {
    const std::size_t argument = next_size(&seed), bytes = site.asked(argument);
    void* const block = site.allocate(argument);
    if (block == nullptr) abort();
    memset(block, 1, bytes);
    blocks->push_back({block, bytes, site.release});
    sum += bytes;
  }
}

// Every other one.
void free_half(Blocks* blocks) {
  Blocks left;
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    if (i % 2 == 0) {
      left.push_back((*blocks)[i]);
    } else {
      (*blocks)[i].release((*blocks)[i].block);
    }
  }
  blocks->swap(left);
}

void in_threads(const std::function<void(int)>& work) {
  std::thread threads[kThreads];
  for (int t = 0; t < kThreads; ++t) threads[t] = std::thread(work, t);
  for (std::thread& thread : threads) thread.join();
}

void say(const char* name, const Blocks& blocks) {
  std::size_t sum = 0;
  for (const Kept& one : blocks) sum += one.bytes;
  printf("site %s %zu\n", name, sum);
}

// Loads a library, has it allocate, and unloads it again; what it allocated stays. Where its function was.
const void* use_library(const char* path, const char* function, Blocks* blocks) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  void* const symbol = dlsym(library, function);
  if (symbol == nullptr) exit(1);
  fill({function, reinterpret_cast<void* (*)(std::size_t)>(symbol), &free, &as_it_is, kBytes}, 5, blocks);
  free_half(blocks);
  dlclose(library);
  if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != nullptr) exit(1);
  return symbol;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  static Blocks all[kThreads][kSiteCount], one, two;
  in_threads([](int t) {
    for (int i = 0; i < kSiteCount; ++i) fill(kSites[i], 100 * i + t, &all[t][i]);
  });
  in_threads([](int t) {
    for (int i = 0; i < kSiteCount; ++i) free_half(&all[1 - t][i]);
  });
  const void* const first = use_library(argv[1], "plugin_one", &one);
  const void* const second = use_library(argv[2], "plugin_two", &two);
  for (int i = 0; i < kSiteCount; ++i) {
    all[0][i].insert(all[0][i].end(), all[1][i].begin(), all[1][i].end());
    Blocks().swap(all[1][i]);
    say(kSites[i].name, all[0][i]);
  }
  say("plugin_one", one);
  say("plugin_two", two);
  printf("same place %d\n", first == second);
}
