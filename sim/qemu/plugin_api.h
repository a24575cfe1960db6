// The part of QEMU's TCG plugin interface (API version 1) that the simulator uses. Debian does not package the header,
// so the few functions are declared here; QEMU's executable provides them when it loads the plugin.
//
// The last few are not of that interface: QEMU's own, which its executable happens to export. A guest thread that is
// held in a callback leaves its execution bracket meanwhile (cpu_exec_end, cpu_exec_start), or QEMU's exclusive
// sections would wait for it for ever. Such a section may flush the code buffer; then the thread's code is no more, and
// it enters the block anew (cpu_loop_exit) with the state that it had at its start (cpu_restore_state).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

using qemu_plugin_id_t = uint64_t;
using qemu_plugin_meminfo_t = uint32_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_info_t {
  const char* target_name;
  struct {
    int min;
    int cur;
  } version;
  bool system_emulation;
  union {
    struct {
      int smp_vcpus;
      int max_vcpus;
    } system;
  };
};

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned vcpu));
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned vcpu));
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, void (*)(unsigned vcpu, void*), qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, void (*)(unsigned vcpu, void*), qemu_plugin_cb_flags,
                                            void*);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*,
                                      void (*)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t address, void*),
                                      qemu_plugin_cb_flags, qemu_plugin_mem_rw, void*);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t,
                                          void (*)(qemu_plugin_id_t, unsigned vcpu, int64_t number, uint64_t, uint64_t,
                                                   uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned vcpu,
                                                                         int64_t number, int64_t result));
void qemu_plugin_register_flush_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);

size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, size_t);
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
const char* qemu_plugin_path_to_binary(void);
uint64_t qemu_plugin_start_code(void);

struct CPUState;
extern __thread CPUState* current_cpu [[gnu::weak]];
void cpu_exec_start(CPUState*) __attribute__((weak));
void cpu_exec_end(CPUState*) __attribute__((weak));
void cpu_loop_exit [[noreturn]] (CPUState*) __attribute__((weak));
bool cpu_restore_state(CPUState*, uintptr_t host_pc, bool will_exit) __attribute__((weak));

}  // extern "C"
