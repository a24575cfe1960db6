// The interface for plugins of the QEMU that tools/qemu builds, version 7; and three names that are not of it: QEMU's
// own, which that build exports as well. A thread of the program that is held in a callback leaves its execution
// bracket meanwhile (cpu_exec_end, cpu_exec_start), or QEMU's exclusive sections would wait for it for ever. Such a
// section may flush the code buffer; the thread's code is then no more, and it enters the block anew
// (qemu_plugin_set_pc).
#pragma once

#include <qemu-plugin.h>

extern "C" {

struct CPUState;
extern __thread CPUState* current_cpu [[gnu::weak]];
void cpu_exec_start(CPUState*) __attribute__((weak));
void cpu_exec_end(CPUState*) __attribute__((weak));

}  // extern "C"
