// Says its own call stacks and modules, of which make_raw.py makes a raw profile: each function below is there for one
// thing that has to be found in it again. Compiled with -O2 -g.
#include <execinfo.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

extern "C" void call_from_library(void (*function)());

namespace {

const char* name = "";
jmp_buf back;

// Stands for malloc: "site NAME ADDRESS...", its callers' return addresses from the innermost on.
[[gnu::noinline]] void record() {
  void* addresses[64];
  const int count = backtrace(addresses, 64);
  printf("site %s", name);
  for (int i = 1; i < count; ++i) printf(" %lx", reinterpret_cast<unsigned long>(addresses[i]));
  printf("\n");
}

[[gnu::noinline]] [[noreturn]] void record_and_leave() {
  record();
  longjmp(back, 1);
}

}  // namespace

namespace forest {

struct Tree {
  int height = 0;
  // An inlined function, within another inlined one.
  [[gnu::always_inline]] inline void make_leaf() {
    record();
    ++height;
  }
  [[gnu::always_inline]] inline void make_branch() {
    make_leaf();
    ++height;
  }
  void grow(int by);
};

[[gnu::noinline]] void Tree::grow(int by) {
  make_branch();
  height += by;
}

// A template, whose name is long.
template <class Value>
[[gnu::noinline]] Value fill(std::vector<Value>* values, const std::function<void()>& then) {
  then();
  values->push_back(Value());
  return values->back();
}

}  // namespace forest

// Ends in a call, so that the return address is behind the function.
[[gnu::noinline]] void give_up() { record_and_leave(); }
[[gnu::noinline]] void not_given_up() { record(), puts("# not given up"); }

extern "C" [[gnu::noinline]] void plain_c() {
  record();
  puts("# plain");
}

int main() {
  name = "inlined";
  forest::Tree tree;
  tree.grow(2);
  name = "template";
  std::vector<long> values;
  forest::fill<long>(&values, [] { record(), puts("# lambda"); });
  name = "last";
  if (setjmp(back) == 0) give_up();
  name = "library";
  call_from_library(&plain_c);
  if (tree.height == 12345) not_given_up();

  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) printf("map %s", line);
}
