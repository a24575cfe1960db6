// Plugins that allocate, loaded into a process on Annex; and Annex itself loaded into a process
// that runs on the C library's malloc, also when hardly any static TLS is left.
//
// The program links no allocator: ctest preloads one for the first part. Arguments: plugins FILE |
// library FILE | tls FILE EATER-OF-64-BYTES EATER-OF-8-BYTES | keys FILE
#include <annex/annex.h>
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

// What the library calls is this one: so the program can let it fail, as it does where memory is exhausted.
static std::atomic<bool> nothing_thread_specific{false};
extern "C" int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(pthread_key_t, const void*)>(dlsym(RTLD_NEXT, "pthread_setspecific"));
  return nothing_thread_specific ? ENOMEM : real(key, value);
}

namespace {

#define DEMAND(condition, detail)                                                               \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%s:%d: %s does not hold: %s\n", __FILE__, __LINE__, #condition, detail); \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (false)

const char* loader_error() {
  const char* text = dlerror();
  return text == nullptr ? "" : text;
}

template <typename Function>
Function* symbol(void* library, const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  DEMAND(found != nullptr, name);
  return found;
}

template <typename Body>
void in_threads(int count, Body body) {
  std::vector<pthread_t> threads(static_cast<std::size_t>(count));
  for (pthread_t& thread : threads) {
    const auto run = [](void* argument) -> void* {
      (*static_cast<Body*>(argument))();
      return nullptr;
    };
    DEMAND(pthread_create(&thread, nullptr, run, &body) == 0, "");
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

int plugins(const std::string& file) {
  auto* version = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "annex_version"));
  DEMAND(version != nullptr, "the library is not preloaded");
  for (int round = 0; round < 40; ++round) {
    void* plugin = dlopen(file.c_str(), RTLD_NOW | (round % 2 == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
    DEMAND(plugin != nullptr, loader_error());
    auto* run = symbol<char*(int)>(plugin, "plugin_run");
    char* kept = run(round);
    in_threads(4, [&] {
      for (int i = 0; i < 50; ++i) {
        char* text = run(i);
        DEMAND(strlen(text) > 8000, text);
        free(text);
      }
    });
    // One thread is still ending, with the plugin's destructors to run, when the plugin is closed.
    pthread_t last;
    const auto body = [](void* function) -> void* {
      free(reinterpret_cast<char* (*)(int)>(function)(1));
      return nullptr;
    };
    DEMAND(pthread_create(&last, nullptr, body, reinterpret_cast<void*>(run)) == 0, "");
    if (round % 3 == 0) pthread_join(last, nullptr);
    DEMAND(dlclose(plugin) == 0, loader_error());
    if (round % 3 != 0) pthread_join(last, nullptr);
    DEMAND(strlen(kept) > 8000, kept);
    free(kept);
  }
  return 0;
}

// The library's own malloc through its names, beside the C library's, in several threads that
// outlive the handle.
void use(void* library) {
  auto* allocate = symbol<void*(std::size_t)>(library, "annex_malloc");
  auto* release = symbol<void(void*)>(library, "annex_free");
  auto* owns = symbol<int(const void*)>(library, "annex_owns");
  void* from_libc = malloc(100);
  DEMAND(!owns(from_libc), "the process's malloc is not Annex's here");
  free(from_libc);
  // This thread alone leaves a list full of free blocks of one size; then others help themselves
  // from it at the same moment. No call of the C library's tells Annex here that the process has
  // got a second thread.
  constexpr std::size_t kBytes = 16;
  std::vector<void*> blocks(20000);
  for (void*& block : blocks) block = allocate(kBytes);
  for (void* block : blocks) release(block);
  void* first = allocate(kBytes);
  constexpr int kThreads = 3;
  std::atomic<int> arrived{0};
  in_threads(kThreads, [&] {
    const int id = arrived++;
    std::vector<void*> mine(1200);
    // Spinning, so that all go at once where there are as many cores.
    for (int i = 0; arrived < kThreads; ++i) {
      if (i % 10000 == 0) sched_yield();
    }
    for (int round = 0; round < 50; ++round) {
      for (void*& block : mine) {
        block = allocate(kBytes);
        DEMAND(block != nullptr, "annex_malloc");
        memset(block, id, kBytes);
      }
      for (void* block : mine) {
        const auto* bytes = static_cast<const char*>(block);
        DEMAND(owns(block) && bytes[0] == id && bytes[kBytes - 1] == id, "two threads were given one block");
        release(block);
      }
    }
  });
  release(first);
}

int library(const char* file) {
  for (int round = 0; round < 3; ++round) {
    void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    DEMAND(handle != nullptr, loader_error());
    use(handle);
    DEMAND(dlclose(handle) == 0, loader_error());
  }
  return 0;
}

// Loads copies of a file, each of which the loader takes for a library of its own.
class Copies {
 public:
  Copies(const char* file, std::string directory) : file_(file), directory_(std::move(directory)) {}

  bool load_one() {
    const std::string copy = directory_ + "/" + std::filesystem::path(file_).filename().string() + "." +
                             std::to_string(getpid()) + "." + std::to_string(count_++);
    std::filesystem::copy_file(file_, copy);
    return dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
  }

  int load_until_full() {
    int loaded = 0;
    while (load_one()) {
      ++loaded;
      DEMAND(loaded < 1000, "the static TLS block has no end");
    }
    DEMAND(strstr(loader_error(), "static TLS") != nullptr, "loading failed for another reason");
    return loaded;
  }

 private:
  const char* file_;
  std::string directory_;
  int count_ = 0;
};

// Bytes of TLS that the program headers of a library ask for.
std::size_t tls_bytes(const char* file) {
  FILE* in = fopen(file, "rb");
  DEMAND(in != nullptr, file);
  Elf64_Ehdr header;
  DEMAND(fread(&header, sizeof header, 1, in) == 1, file);
  std::size_t bytes = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    fseek(in, static_cast<long>(header.e_phoff + static_cast<std::size_t>(i) * sizeof segment), SEEK_SET);
    DEMAND(fread(&segment, sizeof segment, 1, in) == 1, file);
    if (segment.p_type == PT_TLS) bytes += segment.p_memsz;
  }
  fclose(in);
  return bytes;
}

// A child measures how much the loader has left for libraries that come late; then this process
// takes all of it but 64 bytes, and Annex must still load, and work.
int nearly_full_tls(const char* file, const char* eater64, const char* eater8, const std::string& directory) {
  DEMAND(tls_bytes(file) < 64, file);
  int counts[2];
  int result[2];
  DEMAND(pipe(result) == 0, "");
  const pid_t child = fork();
  if (child == 0) {
    counts[0] = Copies(eater64, directory).load_until_full();
    counts[1] = Copies(eater8, directory).load_until_full();
    _exit(write(result[1], counts, sizeof counts) == sizeof counts ? 0 : 1);
  }
  int status = 0;
  DEMAND(waitpid(child, &status, 0) == child && status == 0, "measuring the static TLS block");
  DEMAND(read(result[0], counts, sizeof counts) == sizeof counts, "");
  printf("the static TLS block holds %d x 64 + %d x 8 bytes more\n", counts[0], counts[1]);
  DEMAND(counts[0] >= 2, "too little is left to begin with");

  Copies large(eater64, directory);
  Copies small(eater8, directory);
  for (int i = 0; i < counts[0] - 1; ++i) DEMAND(large.load_one(), loader_error());
  for (int i = 0; i < counts[1]; ++i) DEMAND(small.load_one(), loader_error());
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  DEMAND(handle != nullptr, loader_error());
  use(handle);
  // The block was as full as was claimed: what the allocator left does not hold 64 bytes.
  if (tls_bytes(file) > 0) DEMAND(!large.load_one(), "the static TLS block was not nearly full");
  DEMAND(dlclose(handle) == 0, loader_error());
  return 0;
}

// A library that must know when threads end, in a program that has used up all its keys before: what threads that end
// leave behind must not pile up.
int no_keys(const char* file) {
  std::vector<pthread_key_t> keys;
  for (pthread_key_t key; pthread_key_create(&key, nullptr) == 0;) keys.push_back(key);
  DEMAND(keys.size() > 100, "the program's keys");
  void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  DEMAND(handle != nullptr, loader_error());
  auto* allocate = symbol<void*(std::size_t)>(handle, "annex_malloc");
  auto* release = symbol<void(void*)>(handle, "annex_free");
  auto* stats_of = symbol<decltype(annex_stats)>(handle, "annex_stats");
  const auto stats = [&] {
    annex_stats_t stats;
    stats_of(&stats);
    return stats;
  };
  // Each thread frees what the one before has left, which belongs to nobody's heap or to another's, and leaves more.
  std::vector<void*> left;
  const auto use_in_turn = [&] {
    for (int i = 0; i < 300; ++i) {
      in_threads(1, [&] {
        for (void* block : left) {
          DEMAND(*static_cast<char*>(block) == 7, "a block that was left");
          release(block);
        }
        left.clear();
        for (std::size_t bytes = 16; bytes <= 40000; bytes *= 3) {
          left.push_back(allocate(bytes));
          memset(left.back(), 7, bytes);
          release(allocate(bytes));
        }
      });
    }
  };
  use_in_turn();
  const uint64_t heaps = stats().heaps;
  printf("without a key: %lu heaps, %lu bytes of slabs\n", heaps, stats().slabs);
  DEMAND(heaps <= 1, "each thread has left a heap behind");
  DEMAND(stats().slabs < 4 << 20, "memory of threads that have ended is lost");

  // There is a key again, but a thread can't set it.
  DEMAND(pthread_key_delete(keys.back()) == 0, "");
  nothing_thread_specific = true;
  use_in_turn();
  DEMAND(stats().heaps <= 2, "each thread has left a heap behind");

  // From here on every thread that lives has its own.
  nothing_thread_specific = false;
  use_in_turn();
  DEMAND(stats().heaps <= 2, "each thread has left a heap behind");
  constexpr int kThreads = 4;
  std::atomic<int> arrived{0};
  in_threads(kThreads, [&] {
    release(allocate(100));
    ++arrived;
    while (arrived < kThreads) sched_yield();
  });
  DEMAND(stats().heaps >= kThreads, "threads that live share a heap");
  for (void* block : left) release(block);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "plugins" && argc == 3) return plugins(argv[2]);
  if (mode == "library" && argc == 3) return library(argv[2]);
  if (mode == "tls" && argc == 5) {
    char directory[] = "/tmp/annex-tls-XXXXXX";
    DEMAND(mkdtemp(directory) != nullptr, directory);
    const pid_t child = fork();
    if (child == 0) return nearly_full_tls(argv[2], argv[3], argv[4], directory);
    int status = 0;
    waitpid(child, &status, 0);
    std::filesystem::remove_all(directory);
    return status == 0 ? 0 : 1;
  }
  if (mode == "keys" && argc == 3) return no_keys(argv[2]);
  fprintf(stderr, "usage: plugins FILE | library FILE | tls FILE EATER64 EATER8 | keys FILE\n");
  return 2;
}
