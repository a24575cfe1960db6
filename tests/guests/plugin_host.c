// A C program that loads what is written in C++: plugin_host PLUGIN
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  void* const plugin = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*const run)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "run") : NULL;
  if (run == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  return run();
}
