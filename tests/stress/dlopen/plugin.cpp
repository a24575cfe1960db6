// A plugin as applications load them: allocates while it is loaded and unloaded, and has
// thread_local objects with destructors.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

// Loaded and unloaded with the plugin.
struct Registry {
  std::vector<std::string> names;
  Registry() {
    for (int i = 0; i < 300; ++i) names.push_back("a name that is too long for the string itself " + std::to_string(i));
  }
};
Registry registry;

struct PerThread {
  void* block = malloc(3000);
  std::vector<int> numbers = std::vector<int>(500, 7);
  ~PerThread() {
    free(block);
    free(malloc(100));
  }
};

}  // namespace

// Returns a block that the caller frees, also after the plugin is gone.
extern "C" char* plugin_run(int value) {
  thread_local PerThread mine;
  std::string text;
  for (int i = 0; i < 200; ++i) text += registry.names[static_cast<std::size_t>(i)];
  mine.numbers.push_back(value);
  char* result = static_cast<char*>(malloc(text.size() + 1));
  std::memcpy(result, text.c_str(), text.size() + 1);
  return result;
}
