/* The part of a program that a simulation is about: `annex-lab sim --roi` times and counts what lies between these two,
 * for all threads, whichever of them says so. What comes before warms the simulated caches and predictors; several
 * regions add up. Not simulated, each costs a jump to the next instruction and a nop on x86-64, and nothing elsewhere.
 * Needs no library. The numbers are those of sim/decode/markers.h. */
#ifndef ANNEX_REGION_H
#define ANNEX_REGION_H

#ifdef __x86_64__
#define ANNEX_REGION_BEGIN() __asm__ volatile(".byte 0xeb, 0x00\n\tnopl 0x6d6c6310(%%rax,%%rax,1)" : : : "memory")
#define ANNEX_REGION_END() __asm__ volatile(".byte 0xeb, 0x00\n\tnopl 0x6d6c6311(%%rax,%%rax,1)" : : : "memory")
#else
#define ANNEX_REGION_BEGIN() ((void)0)
#define ANNEX_REGION_END() ((void)0)
#endif

#endif
