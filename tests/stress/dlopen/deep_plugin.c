// A plugin that gives back what its program took, and the other way round.
#include <stdlib.h>
#include <string.h>

int annex_test_whose(void) { return 2; }
int call_whose(void) { return annex_test_whose(); }

void give_back(void* block) { free(block); }
void* take(void) { return malloc(100); }
void copy_and_give_back(void) { free(strdup("taken by libc")); }
