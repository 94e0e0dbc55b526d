//! Going on to a function whose arguments aren't known: by a jump, with all registers and the stack as they came.

/// The body of a naked function that calls `$prepare`, which gives an address, and jumps there; where it gives 0, the function returns `$otherwise`.
/// Registers of arguments, the vectors among them, are kept. `$prepare` gets what is in the register for such purposes (r11, x17), which means something
/// only where the function is jumped to by another one of the library.
macro_rules! jump_after {
    ($prepare:path, $otherwise:expr) => {
        #[cfg(target_arch = "x86_64")]
        std::arch::naked_asm!(
            "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
            "sub rsp, 128",
            "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
            "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
            "mov rdi, r11",
            "call {prepare}",
            "mov r11, rax",
            "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
            "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]", "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
            "add rsp, 128",
            "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
            "test r11, r11",
            "je 2f",
            "jmp r11",
            "2:",
            "mov eax, {otherwise}",
            "ret",
            prepare = sym $prepare,
            otherwise = const $otherwise,
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::naked_asm!(
            "stp x29, x30, [sp, #-224]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]", "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]",
            "str x8, [sp, #80]",
            "stp q0, q1, [sp, #96]", "stp q2, q3, [sp, #128]", "stp q4, q5, [sp, #160]", "stp q6, q7, [sp, #192]",
            "mov x0, x17",
            "bl {prepare}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]", "ldp x2, x3, [sp, #32]", "ldp x4, x5, [sp, #48]", "ldp x6, x7, [sp, #64]",
            "ldr x8, [sp, #80]",
            "ldp q0, q1, [sp, #96]", "ldp q2, q3, [sp, #128]", "ldp q4, q5, [sp, #160]", "ldp q6, q7, [sp, #192]",
            "ldp x29, x30, [sp], #224",
            "cbz x16, 2f",
            "br x16",
            "2:",
            "mov w0, #{otherwise}",
            "ret",
            prepare = sym $prepare,
            otherwise = const $otherwise,
        );
    };
}
pub(crate) use jump_after;
