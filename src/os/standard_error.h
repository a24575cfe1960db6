// Where the library's messages go: descriptor 2, as long as that is standard error.
//
// A program may close descriptor 2, and the next file that it opens is 2 then: a data file, a connection. A message
// would become part of its data. So before each message, descriptor 2 is compared with what it was at the library's
// start:
//
//   the same file as then                    written to
//   a character device, a pipe               written to: a terminal, /dev/null, a logger that the program turned it to
//   a regular file opened for appending      written to: a log, of which nothing is overwritten
//   any other file, or none                  the message is left out
//   closed at the start                      every message is left out
//
// That is one system call for each message, and none elsewhere; no descriptor is kept open.
//
// Synchronization: note_standard_error runs before there is a second thread; the rest may be called at any time.
#pragma once

namespace annex::os {

// At the library's start. Until then, messages go to descriptor 2 whatever it is: the program has not run yet.
void note_standard_error();

// Compares for the last time; the answer holds from then on. To be called before the process installs a system call
// filter, which may end it for the call that compares.
void freeze_standard_error();

// The descriptor for a message, or -1.
int standard_error();

}  // namespace annex::os
