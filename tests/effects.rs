//! What is derived of kernels, one rule a test.

#![cfg(any(feature = "llvm19", feature = "llvm22"))]

mod common;

use common::{short, with_module};
use echo_sr::effects::derive;

/// The effect of kernel `@k` of a device module whose text after the target lines is given.
#[track_caller]
fn effect_of(ir: &str) -> String {
    let text = format!("target triple = \"nvptx64-nvidia-cuda\"\n{ir}");
    let table = with_module(&text, derive::effects_of_device_module);
    short(table.kernels.get("k").expect("the module defines kernel @k"))
}

#[test]
fn loads_read_and_stores_write() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b, i32 %n, ptr %c) {
               %i = sext i32 %n to i64
               %p = getelementptr float, ptr %a, i64 %i
               %v = load float, ptr %p
               %q = getelementptr float, ptr %b, i64 %i
               store float %v, ptr %q
               ret void
             }"
        ),
        "r w . -"
    );
}

#[test]
fn atomics_read_and_write() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b) {
               %x = atomicrmw add ptr %a, i32 1 seq_cst
               %y = cmpxchg ptr %b, i32 0, i32 1 seq_cst seq_cst
               ret void
             }"
        ),
        "rw rw"
    );
}

#[test]
fn casts_phis_and_selects_are_followed() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b, ptr %c, i1 %t) {
             entry:
               br label %loop
             loop:
               %p = phi ptr [ %a, %entry ], [ %next, %loop ]
               %next = getelementptr i8, ptr %p, i64 4
               %g = addrspacecast ptr %p to ptr addrspace(1)
               %v = load i32, ptr addrspace(1) %g
               %s = select i1 %t, ptr %b, ptr %c
               store i32 %v, ptr %s
               br i1 %t, label %loop, label %exit
             exit:
               ret void
             }"
        ),
        "r w w ."
    );
}

#[test]
fn memory_intrinsics_read_their_source_and_write_their_destination() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b, ptr %c) {
               call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 16, i1 false)
               call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 16, i1 false)
               ret void
             }
             declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
             declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        ),
        "w r w"
    );
}

#[test]
fn a_stored_pointer_is_captured() {
    assert_eq!(effect_of("define ptx_kernel void @k(ptr %a, ptr %b) {\n store ptr %a, ptr %b\n ret void\n}"), "rwc w");
}

#[test]
fn a_pointer_in_local_memory_is_unknown() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a) {
               %slot = alloca ptr
               store ptr %a, ptr %slot
               %p = load ptr, ptr %slot
               %v = load i32, ptr %p
               ret void
             }"
        ),
        "rwc +"
    );
}

#[test]
fn a_pointer_made_into_an_integer_is_unknown() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b) {
               %i = ptrtoint ptr %a to i64
               %p = inttoptr i64 %i to ptr
               store i32 0, ptr %p
               ret void
             }"
        ),
        "rwc - +"
    );
}

#[test]
fn a_pointer_in_a_vector_is_unknown() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a) {
               %v = insertelement <2 x ptr> poison, ptr %a, i32 0
               %p = extractelement <2 x ptr> %v, i32 0
               store i32 0, ptr %p
               ret void
             }"
        ),
        "rwc +"
    );
}

#[test]
fn a_comparison_keeps_nothing() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b) {
               %c = icmp eq ptr %a, null
               %z = zext i1 %c to i32
               store i32 %z, ptr %b
               ret void
             }"
        ),
        "- w"
    );
}

#[test]
fn calls_count_by_the_attributes_of_the_callee() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b, ptr %c, ptr %d) {
               call void @reads(ptr %a)
               call void @writes(ptr %b)
               call void @keeps(ptr %c)
               ret void
             }
             declare void @reads(ptr nocapture readonly) memory(argmem: read)
             declare void @writes(ptr nocapture writeonly) memory(argmem: write)
             declare void @keeps(ptr readonly) memory(argmem: read)"
        ),
        "r w rwc -"
    );
}

#[test]
fn a_call_without_attributes_may_do_anything() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b) {\n call void @f(ptr %a)\n ret void\n}
             declare void @f(ptr)"
        ),
        "rwc - +"
    );
    // It keeps nothing, but reads and writes memory that it finds elsewhere.
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a) {\n call void @f(ptr %a)\n ret void\n}
             declare void @f(ptr nocapture readonly)"
        ),
        "r +"
    );
    assert_eq!(
        effect_of("define ptx_kernel void @k(ptr %a, ptr %f) {\n call void %f(ptr %a)\n ret void\n}"),
        "rwc rwc +"
    );
}

#[test]
fn mathematical_functions_use_memory_for_results_alone() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b) {
               %x = load float, ptr %a
               call void @__nv_sincosf(float %x, ptr %b, ptr %b)
               ret void
             }
             declare void @__nv_sincosf(float, ptr, ptr)"
        ),
        "r rw"
    );
}

#[test]
fn inline_assembly_may_do_anything_with_its_operands() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a, ptr %b) {
               call void asm sideeffect \"st.global.u32 [$0], 0;\", \"l,~{memory}\"(ptr %a)
               ret void
             }"
        ),
        "rwc - +"
    );
}

#[test]
fn barriers_and_warp_operations_touch_nothing() {
    assert_eq!(
        effect_of(
            "@tile = internal addrspace(3) global [32 x float] undef
             define ptx_kernel void @k(ptr %a) {
               %v = load float, ptr %a
               store float %v, ptr addrspacecast (ptr addrspace(3) @tile to ptr)
               call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
               %w = load float, ptr addrspacecast (ptr addrspace(3) @tile to ptr)
               ret void
             }
             declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)"
        ),
        "r"
    );
}

#[test]
fn device_variables_are_other_memory_and_constants_are_not() {
    let kernel = |global: &str| {
        effect_of(&format!(
            "@g = {global}
             define ptx_kernel void @k(ptr %a) {{
               %v = load i32, ptr addrspacecast (ptr addrspace(1) @g to ptr)
               store i32 %v, ptr %a
               ret void
             }}"
        ))
    };
    assert_eq!(kernel("internal addrspace(1) constant i32 7"), "w");
    assert_eq!(kernel("addrspace(1) externally_initialized global i32 0"), "w +");
}

#[test]
fn a_pointer_that_is_loaded_and_used_is_other_memory() {
    assert_eq!(
        effect_of(
            "define ptx_kernel void @k(ptr %a) {
               %p = load ptr, ptr %a
               store i32 0, ptr %p
               ret void
             }"
        ),
        "r +"
    );
}

const STRUCT: &str = "%S = type { ptr, i64 }\n";

#[test]
fn pointers_in_a_struct_belong_to_its_parameter() {
    assert_eq!(
        effect_of(&format!(
            "{STRUCT}define ptx_kernel void @k(ptr byval(%S) align 8 %s, ptr %a) {{
               %p = load ptr, ptr %s
               %n = getelementptr i8, ptr %s, i64 8
               %i = load i64, ptr %n
               %q = getelementptr float, ptr %p, i64 %i
               %v = load float, ptr %q
               store float %v, ptr %a
               ret void
             }}"
        )),
        "r w"
    );
}

#[test]
fn a_struct_is_unknown_where_its_bytes_may_become_a_pointer() {
    // The pointer is read as an integer and comes back as a pointer.
    assert_eq!(
        effect_of(&format!(
            "{STRUCT}define ptx_kernel void @k(ptr byval(%S) align 8 %s) {{
               %i = load i64, ptr %s
               %p = inttoptr i64 %i to ptr
               store i32 0, ptr %p
               ret void
             }}"
        )),
        "rwc +"
    );
    // A copy of the struct holds the pointer too.
    assert_eq!(
        effect_of(&format!(
            "{STRUCT}define ptx_kernel void @k(ptr byval(%S) align 8 %s, ptr %a) {{
               call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %s, i64 16, i1 false)
               ret void
             }}
             declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
        )),
        "rwc w"
    );
    // The struct's own pointer is replaced.
    assert_eq!(
        effect_of(&format!(
            "{STRUCT}define ptx_kernel void @k(ptr byval(%S) align 8 %s, ptr %a) {{
               %o = load ptr, ptr %a
               store ptr %o, ptr %s
               %p = load ptr, ptr %s
               store i32 0, ptr %p
               ret void
             }}"
        )),
        "rwc r +"
    );
}

#[test]
fn a_struct_too_small_for_a_pointer_holds_none() {
    assert_eq!(
        effect_of("%T = type { i32 }\ndefine ptx_kernel void @k(ptr byval(%T) %s, ptr %a) {\n ret void\n}"),
        ". -"
    );
}

#[test]
fn a_template_may_be_replaced_by_a_copy_and_a_weak_kernel_by_anything() {
    let body = "void @k(ptr %a, ptr %b, i32 %n) {\n store i32 0, ptr %a\n ret void\n}";
    assert_eq!(effect_of(&format!("define ptx_kernel {body}")), "w - .");
    assert_eq!(effect_of(&format!("define weak_odr ptx_kernel {body}")), "w r .");
    assert_eq!(effect_of(&format!("define weak ptx_kernel {body}")), "rwc rwc . +");
}

#[test]
fn kernels_are_known_by_annotation_too() {
    assert_eq!(
        effect_of(
            "define void @k(ptr %a) {\n store i32 0, ptr %a\n ret void\n}
             define void @helper(ptr %a) {\n ret void\n}
             !nvvm.annotations = !{!0}
             !0 = !{ptr @k, !\"kernel\", i32 1}"
        ),
        "w"
    );
}

#[test]
fn unoptimised_device_code_is_unknown_not_wrong() {
    let ir = "target triple = \"nvptx64-nvidia-cuda\"
        define ptx_kernel void @k(ptr %a) noinline optnone {
          %slot = alloca ptr
          store ptr %a, ptr %slot
          %p = load ptr, ptr %slot
          store i32 0, ptr %p
          ret void
        }";
    let table = with_module(ir, derive::effects_of_device_module);
    assert_eq!(short(&table.kernels["k"]), "rwc +");
}

/// A host module with the given stubs of kernel `@k`, each registered, and one wrapper a container.
fn host_ir(stubs: &[&str], containers: &[Vec<u8>]) -> String {
    let mut ir = String::from(
        "@name = private constant [2 x i8] c\"k\\00\"
         declare i32 @__cudaRegisterFunction(ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr)\n",
    );
    let mut calls = String::new();
    for stub in stubs {
        ir += &format!("define internal void @{stub}(ptr %p) {{\n ret void\n}}\n");
        calls += &format!(
            " call i32 @__cudaRegisterFunction(ptr null, ptr @{stub}, ptr @name, ptr @name, i32 -1, ptr null, ptr null, ptr null, \
             ptr null, ptr null)\n"
        );
    }
    for (at, bytes) in containers.iter().enumerate() {
        let text: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        ir += &format!(
            "@data{at} = private constant [{} x i8] c\"{text}\"
             @__cuda_fatbin_wrapper.{at} = internal constant {{ i32, i32, ptr, ptr }} {{ i32 1180844977, i32 1, ptr @data{at}, ptr \
             null }}, section \".nvFatBinSegment\"\n",
            bytes.len()
        );
    }
    ir + &format!("define internal void @__cuda_register_globals() {{\n{calls} ret void\n}}\n")
}

/// A bare ELF with a record that says that `@k` reads (or writes) its parameter.
fn container(writes: bool) -> Vec<u8> {
    use echo_sr::effects::{EffectTable, KernelEffects, ParamEffect, record};
    let effect = ParamEffect { reads: !writes, writes, ..ParamEffect::NOTHING };
    let kernel = KernelEffects { params: vec![Some(effect)], touches_other_memory: false };
    let mut bytes = b"\x7fELF".to_vec();
    bytes.extend(record::encode(&EffectTable { kernels: [("k".to_owned(), kernel)].into() }));
    bytes
}

#[test]
fn units_that_were_linked_together_are_joined_and_namesakes_left_out() {
    use echo_sr::effects::host::{effects_of_module, effects_or_reason, kernels_of_module};
    let effect = |ir: &str| with_module(ir, |module| effects_of_module(module).kernels.get("k").map(short));
    assert_eq!(effect(&host_ir(&["stub"], &[container(false)])).as_deref(), Some("r"));
    // One stub, two units: copies of one template.
    assert_eq!(effect(&host_ir(&["stub"], &[container(false), container(true)])).as_deref(), Some("rw"));
    // Two stubs: two kernels that share a name.
    let namesakes = host_ir(&["stub", "stub.1"], &[container(false), container(false)]);
    assert_eq!(effect(&namesakes), None);
    with_module(&namesakes, |module| {
        let expected = [("stub".to_owned(), "k".to_owned()), ("stub.1".to_owned(), "k".to_owned())];
        assert_eq!(kernels_of_module(module), expected.into());
    });
    // One unit without a record.
    let without = host_ir(&["stub"], &[container(false), b"\x7fELF".to_vec()]);
    assert_eq!(effect(&without), None);
    with_module(&without, |module| assert!(effects_or_reason(module).is_err()));
}
