# A program for a simulated machine that is the same bytes wherever it is assembled, and reads nothing of where it runs:
# no C library, no dynamic linker, no compiler. Its threads allocate and free blocks, fight for a lock, walk through
# memory, compute, and give memory back. test_same_everywhere.py
        .intel_syntax noprefix
        .globl  _start, malloc, free
        .set    THREADS, 4
        .set    ROUNDS, 500
        .set    KEPT, 64                # blocks that a thread keeps
        .set    TABLE, 1 << 23          # bytes that all threads write to
        .set    HEAP, 1 << 22
        .set    STACK, 1 << 16
        .set    CLASSES, 40             # of 16 bytes, one after the other

        .text
        .balign 64
_start:
        mov     edi, HEAP
        call    map
        mov     [heap], rax
        mov     edi, TABLE + 4096
        call    map
        mov     [table], rax
        xor     r12d, r12d              # this thread's number, which a new one inherits
1:      mov     edi, STACK
        call    map
        lea     rsi, [rax + STACK]
        mov     edi, 0x3d0f00           # clone as a thread: its number at the word, which is cleared when it ends
        lea     rdx, [identity + r12 * 4]
        mov     r10, rdx
        lea     r8, [identity]
        mov     eax, 56
        syscall
        test    eax, eax
        jz      work
        inc     r12d
        cmp     r12d, THREADS
        jne     1b
2:      dec     r12d                    # waits for each
3:      lea     rdi, [identity + r12 * 4]
        mov     edx, [rdi]
        test    edx, edx
        jz      4f
        xor     esi, esi
        xor     r10d, r10d
        mov     eax, 202
        syscall
        jmp     3b
4:      test    r12d, r12d
        jnz     2b
        xor     edi, edi
        mov     eax, 231
        syscall

work:   sub     rsp, KEPT * 8 + 32
        mov     edi, KEPT * 8
        call    map                     # its own pages, which it gives back again and again
        mov     r15, rax
        mov     r13d, ROUNDS
        lea     r14, [r12 + 1]          # its random numbers
        cvtsi2sd xmm0, r14
        movapd  xmm1, xmm0
1:      mov     rax, 6364136223846793005
        imul    r14, rax
        inc     r14
        mov     rbx, r14
        shr     rbx, 58                 # which of its blocks
        mov     rdi, [rsp + rbx * 8]
        test    rdi, rdi
        jz      2f
        call    free
2:      mov     rdi, r14
        shr     rdi, 40
        and     edi, 511
        inc     edi
        call    malloc
        mov     [rsp + rbx * 8], rax
        mov     [rax], r14

        mov     rcx, r14                # a line anywhere, and some after it
        shr     rcx, 24
        and     ecx, TABLE - 64
        add     rcx, [table]
        inc     qword ptr [rcx]
        mov     rdx, [rcx + 64]
        add     rdx, [rcx + 128]
        movdqu  xmm2, [rcx + 192]
        paddq   xmm2, xmm1
        movdqu  [rcx + 200], xmm2
        mov     rdx, [rcx + 200]        # of two stores: not forwarded as a whole
        test    r14d, 1 << 20           # as good as random
        jz      3f
        mulsd   xmm1, xmm0
        sqrtsd  xmm1, xmm1
        addsd   xmm1, xmm0
        mov     rax, r14
        xor     edx, edx
        mov     ecx, 1000
        div     rcx
        mov     [r15], rdx
3:      test    r13d, 63
        jnz     4f
        mov     rdi, r15                # madvise: these pages are given back
        mov     esi, 4096
        mov     edx, 4
        mov     eax, 28
        syscall
        rdtsc
        lea     rsi, [rsp + KEPT * 8]
        mov     edi, 1                  # clock_gettime
        mov     eax, 228
        syscall
        mov     eax, 24                 # sched_yield
        syscall
4:      dec     r13d
        jnz     1b
        mov     rdi, r15
        mov     esi, KEPT * 8
        mov     eax, 11                 # munmap
        syscall
        xor     edi, edi
        mov     eax, 60
        syscall

# rdi bytes of new memory.
map:    mov     rsi, rdi
        xor     edi, edi
        mov     edx, 3
        mov     r10d, 0x22
        mov     r8, -1
        xor     r9d, r9d
        mov     eax, 9
        syscall
        ret

# A lock that sleeps: 0 free, 1 taken, 2 taken and others wait.
lock:   mov     ecx, 1
        xor     eax, eax
        lock cmpxchg [mutex], ecx
        jz      2f
1:      mov     eax, 2
        xchg    [mutex], eax
        test    eax, eax
        jz      2f
        push    rdi
        lea     rdi, [mutex]
        xor     esi, esi
        mov     edx, 2
        xor     r10d, r10d
        mov     eax, 202
        syscall
        pop     rdi
        jmp     1b
2:      ret

unlock: lock dec dword ptr [mutex]
        jz      1f
        mov     dword ptr [mutex], 0
        push    rax
        lea     rdi, [mutex]
        mov     esi, 1
        mov     edx, 1
        mov     eax, 202
        syscall
        pop     rax
1:      ret

# A list of free blocks for each class, whose number stands before a block.
        .type   malloc, @function
malloc: call    lock
        add     edi, 15
        shr     edi, 4
        mov     rax, [lists + rdi * 8]
        test    rax, rax
        jz      1f
        mov     rcx, [rax]
        mov     [lists + rdi * 8], rcx
        jmp     unlock
1:      mov     ecx, edi
        shl     ecx, 4
        mov     rax, [heap]
        lea     rcx, [rax + rcx + 16]
        mov     [heap], rcx
        mov     [rax + 8], rdi
        add     rax, 16
        jmp     unlock
        .size   malloc, . - malloc

        .type   free, @function
free:   call    lock
        mov     ecx, [rdi - 8]
        mov     rax, [lists + rcx * 8]
        mov     [rdi], rax
        mov     [lists + rcx * 8], rdi
        jmp     unlock
        .size   free, . - free

        .data
        .balign 64
heap:   .quad   0
table:  .quad   0
        .balign 64
mutex:  .long   0
        .balign 64
identity:
        .fill   THREADS, 4, 0
        .balign 64
lists:  .fill   CLASSES, 8, 0
