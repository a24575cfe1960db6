// A heap profile, begun, and written to its raw file.
//
// The raw file of a heap profile: what the process knows, without symbols. `annex profile` makes of it whatever else
// there is (inspect/profile): pprof's format, collapsed stacks, speedscope's, a page.
//
// Text, a line for each thing, words separated by one space, the lines in this order; a path, which may have spaces,
// comes last in its line, with a backslash before each backslash and "\n" for a newline. Addresses and offsets are
// hexadecimal without 0x; all other numbers are decimal. Sizes are in bytes. `objects` and a `weight` have three
// decimals: of how many blocks one sample is taken to speak, which is 1 / (1 - e^(-size / rate)).
//
//   annex-profile 1
//   pid PID
//   program PATH                      the program's file
//   version 0.1.0 shared
//   began UNIX-MILLISECONDS           when the profile was begun
//   written UNIX-MILLISECONDS         when this file was
//   rate BYTES                        mean bytes of blocks between two samples
//   page BYTES                        the system's page size
//   stat NAME NUMBER                  each field of annex_stats_t, resident and peak_resident of the whole process, and
//                                     dropped: samples for which there was no room
//   class SIZE SLABS BYTES MADE USED  of each size class in use: block size, how many slabs, their bytes, how many of
//                                     their blocks were ever made, how many are in use (or ready to be handed out)
//   module N START END OFFSET ID PATH an executable range of addresses: its number from 1 on, where it starts and ends,
//                                     the file offset of its start, the build id in hexadecimal or -, the file. One
//                                     that was unloaded stays; ranges of different modules may overlap then
//   label N KEY VALUE                 one of the labels of set N (annex_profile_label), which has a line for each; set
//   0
//                                     has none. Neither has spaces: they are escaped as "\s"
//   site N LABELS SAMPLES OBJECTS BYTES FREED T0 T1 T2 T3 T4 T5 T6 T7 FRAME...
//                                     a call stack with a label set: how many samples, what they stand for (objects and
//                                     bytes that were allocated there), how many of those objects have been freed, and
//                                     of these by lifetime: below 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, 1000 s, more.
//                                     The innermost frame first, each MODULE:RETURN-ADDRESS; module 0: none known
//   live SITE ADDRESS ASKED SIZE WEIGHT AGE-MS THREAD RESIDENT SHARES
//                                     a sampled block in use: what the program asked for, the block's own size, and how
//                                     much of it is resident. SHARES: for each page (of a slab) on which it lies, how
//                                     many blocks in use lie there, itself included, with a comma between; - for a span
//   end
#pragma once

#include <cstdint>

namespace annex::observe {

// Begins a heap profile, or goes on with another rate (profile/samples.h).
bool start_profile(uint64_t rate);

// Writes it to a descriptor. False where something can't be written (errno).
bool write_profile(int descriptor);

// To that path, with each %p replaced by the process's number. `apart`: where there is none, and the process is the
// child of one in which the profile began, the number is appended. False where that fails, of which a line says why.
bool write_profile_to(const char* path, bool apart);

}  // namespace annex::observe
