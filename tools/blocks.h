// What tools/give_back.c, tools/server_day.c and tools/bursts.c have in common: blocks with contents that tell which
// block it is.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void fail(const char* why) {
  dprintf(STDERR_FILENO, "%s: %s\n", program_invocation_short_name, why);
  _exit(1);
}

// Another word for each word, as if by chance.
static uint64_t mixed(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

static void write_block(char* block, uint64_t number, size_t size) {
  uint64_t word = mixed(number + 1);
  for (size_t at = 0; at < size; at += sizeof(word), word += 0x9e3779b97f4a7c15u) {
    const size_t left = size - at;
    memcpy(block + at, &word, left < sizeof(word) ? left : sizeof(word));
  }
}

// Ends the program where it is not as write_block() left it.
static void check_block(const char* block, uint64_t number, size_t size) {
  uint64_t word = mixed(number + 1);
  for (size_t at = 0; at < size; at += sizeof(word), word += 0x9e3779b97f4a7c15u) {
    const size_t left = size - at;
    if (memcmp(block + at, &word, left < sizeof(word) ? left : sizeof(word)) != 0) {
      fail("a block does not hold what was written into it");
    }
  }
}
