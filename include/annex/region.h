/* region.h: marks the part of a program that a simulation is about (its region of interest). Needs no library.
 *
 *   ANNEX_REGION_BEGIN();
 *   ...                       what `annex-lab sim --roi` times and counts, in all threads
 *   ANNEX_REGION_END();
 *
 * Either may be in any thread, and there may be several regions, which are added up. What runs before the first warms
 * the simulated caches and predictors. Outside of the simulator each costs a jump to the next instruction and a nop on
 * x86-64, and nothing on other processors. Since version 0.1.0.
 *
 * The numbers in the nops are known to sim/decode/markers.h. */
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
