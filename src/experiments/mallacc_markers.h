/* Markers for the steps of an allocator that Mallacc speeds up, in C or C++, for our own sources and for peers' (peers/
 * recipes.py): they tell the simulator's malloc accelerator which step begins or ends, and with which values
 * (sim/decode/markers.h; what the unit makes of it: docs/hardware-mallacc.md). Without ANNEX_MARKED they are nothing;
 * with it each is, on a processor, a jump to the next instruction and a nop.
 *
 *   MALLACC_SIZE_BEGIN(size)            ... find its class ...
 *   MALLACC_SIZE_END(class, bytes)      with the bytes of its blocks; or _SIZE_CLASS(class) where they are not needed
 * here; or _SIZE_ALONE(class) where no caller ever needs them; or _SIZE_LEFT() on the way out where it has none
 *   MALLACC_POP_BEGIN(class)            ... read the first block of its list, and from that the one after it ...
 *   MALLACC_POP_END(first, next)        or _POP_LEFT() where the list is empty
 *   MALLACC_PREFETCH(class, head)       after a pop: what the list now begins with
 *   MALLACC_PUSH_BEGIN(class, block)    ... put it in front of its list ...
 *   MALLACC_PUSH_END()
 *   MALLACC_DROP(class)                 before its list is changed otherwise
 *   MALLACC_SAMPLE_BEGIN(bytes)         ... count them, and see whether a sample is due ...
 *   MALLACC_SAMPLE_END()                or _SAMPLE_LEFT() where it is
 *   MALLACC_BEFORE(value)               no marker: the value is computed here, not in a step that follows and needs it
 *
 * Arguments are variables of 4 or 8 bytes. What lies between a begin and its end is not timed where the unit does it:
 * so it must be that step and nothing else, which the clobbered memory helps with. A class is a number below 2^32 that
 * means one list of the running thread's. */
#ifndef ANNEX_OS_MALLACC_MARKERS_H
#define ANNEX_OS_MALLACC_MARKERS_H

#ifdef ANNEX_MARKED
#define MALLACC_MARK(kind, first, second)                              \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c0(%q1,%q2,1)"           \
                   :                                                   \
                   : "i"(0x6d6c6300 + (kind)), "r"(first), "r"(second) \
                   : "memory")
#define MALLACC_MARK_ONE(kind, value) MALLACC_MARK(kind, value, value)
/* These count as changed: nothing that is computed from them comes before. */
#define MALLACC_MARK_CHANGED(kind, first, second)            \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c2(%q0,%q1,1)" \
                   : "+r"(first), "+r"(second)               \
                   : "i"(0x6d6c6300 + (kind))                \
                   : "memory")
#define MALLACC_MARK_CHANGED_ONE(kind, value) \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c1(%q0,%q0,1)" : "+r"(value) : "i"(0x6d6c6300 + (kind)) : "memory")
#define MALLACC_MARK_NONE(kind) \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c0(%%rax,%%rax,1)" : : "i"(0x6d6c6300 + (kind)) : "memory")
#define MALLACC_BEFORE(value) __asm__ volatile("" : : "r"(value))
#else
#define MALLACC_MARK(kind, first, second) ((void)0)
#define MALLACC_MARK_ONE(kind, value) ((void)0)
#define MALLACC_MARK_CHANGED(kind, first, second) ((void)0)
#define MALLACC_MARK_CHANGED_ONE(kind, value) ((void)0)
#define MALLACC_BEFORE(value) ((void)0)
#define MALLACC_MARK_NONE(kind) ((void)0)
#endif

#define MALLACC_SIZE_BEGIN(size) MALLACC_MARK_CHANGED_ONE(1, size)
#define MALLACC_SIZE_END(size_class, bytes) MALLACC_MARK_CHANGED(2, size_class, bytes)
#define MALLACC_SIZE_CLASS(size_class) MALLACC_MARK_CHANGED_ONE(3, size_class)
#define MALLACC_SIZE_ALONE(size_class) MALLACC_MARK_CHANGED_ONE(15, size_class)
#define MALLACC_SIZE_LEFT() MALLACC_MARK_NONE(4)
#define MALLACC_POP_BEGIN(size_class) MALLACC_MARK_ONE(5, size_class)
#define MALLACC_POP_END(first, next) MALLACC_MARK_CHANGED(6, first, next)
#define MALLACC_POP_LEFT() MALLACC_MARK_NONE(7)
#define MALLACC_PREFETCH(size_class, head) MALLACC_MARK(8, size_class, head)
#define MALLACC_PUSH_BEGIN(size_class, block) MALLACC_MARK(9, size_class, block)
#define MALLACC_PUSH_END() MALLACC_MARK_NONE(10)
#define MALLACC_DROP(size_class) MALLACC_MARK_ONE(11, size_class)
#define MALLACC_SAMPLE_BEGIN(bytes) MALLACC_MARK_ONE(12, bytes)
#define MALLACC_SAMPLE_END() MALLACC_MARK_NONE(13)
#define MALLACC_SAMPLE_LEFT() MALLACC_MARK_NONE(14)

#endif
