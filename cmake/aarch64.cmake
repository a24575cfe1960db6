# Builds for AArch64 on another machine, and runs the tests in QEMU's user mode (preset aarch64; tools/aarch64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# The emulator takes long to set a whole TiB aside.
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-aarch64;-cpu;max;-L;/usr/aarch64-linux-gnu;-E;ANNEX_RESERVE=8G;-E
  LD_PRELOAD=${CMAKE_CURRENT_LIST_DIR}/../build/aarch64/libemulator-memset.so)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
