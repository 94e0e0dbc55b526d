//! Mutants: conditions, kill rules and waits that a test build can switch off one at a time, to show that a test notices each.
//!
//! A soundness test that passes proves little if it would pass without the check as well. So each check of the proof has a switch, one
//! line where the check is made: `if off(Mutant::S1HostWrites)`. Without the feature `mutants`, which no release has, `off` is `false` and
//! nothing is left of it. With it, the environment variable `VARIABLE` names the one mutant that a process is; that works in a test program
//! as in the plugin that a compiler loads.
//!
//! The table below names for each mutant the test that kills it. `tests/mutants.rs` runs every one of these tests with and without its
//! mutant: it has to fail with it and pass without. Some mutants switch off what *allows* a merge; they are not unsound, and a test that
//! wants the merge kills them.

use crate::analysis::program::{BlemishKind, Event, UseKind, WorkKind};
use crate::analysis::verdict::Decline;

/// Names the mutant, as [`Mutant`] does.
#[cfg(feature = "mutants")]
pub const VARIABLE: &str = "ECHO_SR_MUTANT";

/// A row of the table.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What is switched off.
    pub mutant: Mutant,
    /// Its name, for [`VARIABLE`].
    pub name: &'static str,
    /// The condition (S1 … S5, C), rule (R1 … R4) or room of the code that it belongs to.
    pub tag: &'static str,
    /// What holds as long as it is not switched off.
    pub rule: &'static str,
    /// The test that fails with it: the test program (`lib` for unit tests) and the test's path, or `case` and the name of a case of
    /// `analysis::tests::declines`.
    pub killer: &'static str,
}

macro_rules! mutants {
    ($($name:ident: $tag:literal, $rule:literal => $killer:literal;)*) => {
        /// One thing that can be switched off. Each is described by what holds as long as it is not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $(#[doc = $rule] $name,)*
        }

        /// Every mutant.
        #[cfg(feature = "mutants")]
        pub const ALL: &[Row] = &[
            $(Row { mutant: Mutant::$name, name: stringify!($name), tag: $tag, rule: $rule, killer: $killer },)*
        ];
    };
}

mutants! {
    // Which pairs are candidates, and what a copy is.
    SizesEqual: "candidate", "the two sizes are provably equal"
        => "case atoms";
    SizeKnown: "candidate", "both sizes are known"
        => "case no size";
    SameValue: "candidate", "a size variable has not changed between two places"
        => "case reassigned";
    WholeCopy: "candidate", "one linking copy moves the whole buffer"
        => "case half copy";
    WholeLength: "candidate", "what covers a buffer has its length"
        => "lib analysis::tests::traps::zeroes_of_a_calloc_must_survive_a_partial_download";
    WholeMust: "candidate", "what covers a buffer happens at every visit"
        => "lib analysis::tests::rules::a_kernel_that_may_overwrite_all_of_a_buffer_may_also_leave_it";
    EqualOffsets: "candidate", "a linking copy moves each byte to the same offset"
        => "case other offset";
    OnePartner: "candidate", "a buffer is merged with one other only"
        => "lib analysis::tests::examples::of_two_device_buffers_one_is_merged_and_the_other_copy_stays";
    JointOrder: "candidate", "order is judged where the copies of all merges are gone"
        => "lib analysis::tests::traps::pairs_are_judged_with_each_others_copies_gone";
    CapturedByLaunch: "candidate", "a launch that may use kept pointers touches the buffers that were kept"
        => "lib analysis::tests::traps::a_kernel_that_kept_the_pointer_may_use_it_in_any_later_launch";
    CapturedByUnknown: "candidate", "so does a call that nobody modelled"
        => "lib analysis::tests::rules::an_unknown_call_may_use_a_pointer_that_a_kernel_kept";

    // S1.
    S1HostWrites: "S1", "host code may not overwrite what is still needed"
        => "lib analysis::tests::examples::s1_a_host_write_between_upload_and_kernel_declines";
    S1KernelWrites: "S1", "a kernel may not"
        => "lib analysis::tests::examples::an_input_that_the_kernel_only_reads_may_be_read_by_the_host_later";
    S1MemsetWrites: "S1", "a memset may not"
        => "lib analysis::tests::rules::memsets_and_library_calls_write_as_kernels_do";
    S1LibraryWrites: "S1", "a library call on the GPU may not"
        => "lib analysis::tests::rules::memsets_and_library_calls_write_as_kernels_do";
    S1CopyWrites: "S1", "a copy that stays may not"
        => "case other offset";
    S1AllocationWrites: "S1", "calloc's zeroes may not"
        => "lib analysis::tests::traps::zeroes_of_a_late_calloc_would_wipe_the_device_buffer";
    S1ReadsPartner: "S1", "an operation may not write one buffer and read the other"
        => "case kernel reads the pinned input";
    S1NeverWritten: "S1", "overwriting what was never written is harmless"
        => "lib analysis::tests::examples::an_output_that_is_cleared_first_is_accepted";
    S1WritesCount: "S1", "what was written may be read"
        => "lib analysis::tests::examples::s1_a_host_write_between_upload_and_kernel_declines";
    S1LinkWrites: "S1", "a linking copy of something written writes"
        => "lib analysis::tests::traps::a_kept_pointer_may_be_used_after_the_function_has_returned";
    S1AllocationIsNew: "S1", "what an allocation makes was never written"
        => "lib analysis::tests::traps::buffers_made_and_freed_each_round_are_new_ones_each_round";
    S1KeptAtExit: "S1", "who kept the pointer may read after the function has returned"
        => "lib analysis::tests::traps::a_kept_pointer_may_be_used_after_the_function_has_returned";
    S1LinkIsNoRead: "S1", "a linking copy reads only for its destination"
        => "case host read beside the kernel";
    S1LinkPassesOn: "S1", "a value lives on where a linking copy put it"
        => "lib analysis::tests::rules::a_kernel_that_may_overwrite_all_of_a_buffer_may_also_leave_it";
    S1PartEnds: "S1", "only a write that covers every byte, always, ends a value"
        => "lib analysis::tests::traps::zeroes_of_a_calloc_must_survive_a_partial_download";
    S1WholeEnds: "S1", "a write that covers every byte ends a value"
        => "lib analysis::tests::examples::figure_1_is_accepted_with_one_wait_for_the_kernel";
    S1AllocationEnds: "S1", "an allocation ends the value of the last round"
        => "lib analysis::tests::rules::the_value_of_the_last_rounds_buffer_is_dead_in_the_next_round";

    // S2.
    S2KernelPending: "S2", "the host may not touch the pair beside GPU work on it"
        => "lib analysis::tests::examples::a_loop_that_refills_while_the_kernel_runs_declines_and_can_be_repaired";
    S2CopyPending: "S2", "the host may not touch the pair beside a copy that stays"
        => "case host write beside a copy that stays";
    S2UnorderedStreams: "S2", "work on streams that nothing orders may not share the pair"
        => "case kernel beside a copy that stays";
    S2StreamOrderLost: "S2", "a removed asynchronous copy was all that ordered two streams"
        => "case an async copy as barrier";
    S2HostNotExempt: "S2", "two accesses of the host buffer are checked as well"
        => "case host write beside a copy that stays";
    S2UnknownRanges: "S2", "ranges that are not known may overlap"
        => "lib analysis::tests::traps::a_wait_on_one_branch_only_orders_nothing_behind_the_join";
    S2JoinKeepsBoth: "S2", "at a join, the work of every way is pending"
        => "lib analysis::tests::examples::a_loop_that_refills_while_the_kernel_runs_declines_and_can_be_repaired";
    S2JoinAgrees: "S2", "at a join, only what all ways agree on is ordered"
        => "lib analysis::tests::traps::an_event_recorded_on_one_branch_only_covers_nothing_behind_the_join";
    S2QueuedAgain: "S2", "an event does not cover work that was queued again behind it"
        => "lib analysis::pending::tests::join_is_idempotent_and_every_step_is_monotone";
    S2DeviceWait: "S2", "a wait for the device covers all"
        => "lib analysis::tests::traps::a_wait_on_one_branch_only_orders_nothing_behind_the_join";
    S2StreamWaitScope: "S2", "a wait for a stream covers no other stream"
        => "lib analysis::tests::rules::a_wait_for_a_stream_does_not_cover_another_stream";
    S2FreeMayWait: "S2", "a cudaFree that stays is not counted on to wait"
        => "lib analysis::tests::rules::a_cudafree_that_stays_is_not_counted_on_to_wait";
    S2EventWaitScope: "S2", "a wait for an event covers no other work"
        => "lib analysis::tests::traps::an_event_recorded_before_the_loop_does_not_cover_work_of_the_loop";
    S2RecordReplaces: "S2", "an event covers what its last record covers"
        => "lib analysis::tests::traps::an_event_covers_what_its_stream_covered_at_the_last_record";
    S2UniqueEvent: "S2", "a handle that may mean several events covers nothing"
        => "lib analysis::tests::traps::an_event_covers_what_its_stream_covered_at_the_last_record";
    S2StreamWaitPends: "S2", "a stream that waits for an event waits for other streams' work"
        => "lib analysis::tests::traps::a_copy_waited_for_what_its_stream_waited_for";
    S2UnknownStream: "S2", "nothing covers work on a stream that is not known"
        => "lib analysis::tests::rules::a_wait_for_a_stream_that_is_not_known_covers_nothing";
    S2Barrier: "S2", "the legacy default stream and blocking streams hold each other back"
        => "lib analysis::tests::rules::the_default_stream_holds_blocking_streams_back_and_no_others";
    S2StreamsApart: "S2", "streams of their own are not ordered"
        => "lib analysis::tests::traps::stream_waits_order_kernels_of_other_streams_with_copies_that_stay";
    S2CallersWork: "S2", "work of the caller may be running at entry"
        => "lib analysis::tests::traps::work_of_the_caller_may_be_running_at_entry";
    S2UnknownCallsPend: "S2", "a call that nobody modelled may leave work running"
        => "case may be reset";
    S2MergedCopyWaits: "S2", "a copy of merged memory that stays is waited for behind it"
        => "lib analysis::tests::rules::a_copy_of_merged_memory_that_stays_is_waited_for";

    // S3.
    S3Compared: "S3", "no comparison with another pointer"
        => "case compared";
    S3Stored: "S3", "the pointer is not stored"
        => "case stored";
    S3CastToInteger: "S3", "the pointer is not made an integer"
        => "case cast";
    S3Returned: "S3", "the pointer is not returned"
        => "case returned";
    S3PassedTo: "S3", "the pointer is not given to a function that may keep it"
        => "case passed";
    S3Observed: "S3", "nobody asks for its attributes"
        => "case observed";
    S3Registered: "S3", "it is not registered"
        => "case registered";
    S3Mixed: "S3", "one pointer variable means one buffer"
        => "case mixed";
    S3MixedFromOther: "S3", "the same, seen from the other buffer"
        => "case mixed, seen from the other";
    S3VolatileOrAtomic: "S3", "no volatile or atomic host access"
        => "case volatile";
    S3InlineAsm: "S3", "it is not given to inline assembly"
        => "case asm";
    S3Reallocated: "S3", "it is not reallocated"
        => "case realloc";
    S3Alignment: "S3", "p is aligned as both ask for"
        => "case alignment";
    S3OffsetCopy: "S3", "no copy between the two at other offsets stays"
        => "case other offset";
    S3Overlap: "S3", "no operation that may assume the two apart touches both"
        => "case kernel reads the pinned input";
    S3HostTouchesDevice: "S3", "host code does not touch device memory"
        => "case host touches device memory";
    S3DeviceTouchesHost: "S3", "a kernel does not touch pageable memory"
        => "case kernel touches pageable memory";
    S3CapturedAcrossThreads: "S3", "no kernel keeps the pointer where other threads start work"
        => "case captured across threads";

    // S4.
    S4OneSite: "S4", "one place allocates the buffer"
        => "case two allocation sites";
    S4Dominance: "S4", "every use comes behind the allocation"
        => "case no order";
    S4AllocatedAgain: "S4", "no round begins before the last one's buffer is freed"
        => "case allocated again";
    S4Unordered: "S4", "the order of the allocations does not hang on their success"
        => "case an order only where allocations succeed";
    S4KeepsHost: "S4", "a host buffer that may be alone keeps memory of its own"
        => "case aligned, and the other perhaps never";
    S4AlignedAlone: "S4", "of an allocator that cannot, none may be alone"
        => "case aligned, and the other perhaps never";
    S4FreedBetween: "S4", "neither is freed before the other exists"
        => "case freed before the other begins";
    S4Counted: "S4", "where the last free depends on the path, p counts its names"
        => "lib analysis::tests::lifetimes::p_counts_its_names_where_the_last_free_depends_on_the_path";
    S4FreeOfNull: "S4", "a free of a pointer that may be null may free nothing"
        => "lib analysis::tests::lifetimes::a_free_of_null_is_none_and_needs_no_allocation_before";
    S4LeftToTheEnd: "S4", "where the process is about to end, p may be left to it"
        => "lib analysis::tests::traps::a_free_on_the_way_out_of_the_process_needs_no_order";
    S4StreamOrderedFree: "S4", "no free in stream order"
        => "case stream-ordered free";
    S4LaterFree: "S4", "the later free releases p"
        => "lib analysis::tests::examples::s4_an_early_free_of_the_host_buffer_is_accepted";
    S4Reset: "S4", "no reset of the device before the last use"
        => "case used after reset";
    S4MayBeReset: "S4", "a call that nobody modelled may reset the device"
        => "case may be reset";

    // S5.
    S5Threads: "S5", "no other thread starts GPU work"
        => "case threads";
    S5AllocatedInFlight: "S5", "p is not allocated while work may be running"
        => "lib analysis::tests::traps::work_of_the_caller_may_be_running_at_entry";
    S5HostAccess: "S5", "no host access while work may be running"
        => "lib analysis::tests::examples::unrelated_work_in_flight_excludes_managed_memory_with_exclusive_access_only";
    S5CopyByHost: "S5", "the host's side of a copy that stays is a host access"
        => "lib analysis::tests::rules::the_driver_may_read_the_host_side_of_a_copy_with_the_cpu";
    S5Declines: "S5", "where access is exclusive, S5 decides"
        => "lib analysis::tests::examples::unrelated_work_in_flight_excludes_managed_memory_with_exclusive_access_only";

    // C.
    CAmbiguousSlot: "C", "a pointer variable that is not resolved declines"
        => "case slot";
    CCopyDirection: "C", "so does a copy of unknown direction"
        => "case direction";
    CUnmodelledCall: "C", "a CUDA call without a model"
        => "case call";
    CNonLocalJump: "C", "setjmp"
        => "case setjmp";
    CStreamCapture: "C", "the capture of a stream"
        => "case capture";
    CNotOptimised: "C", "optnone"
        => "case optnone";
    CFork: "C", "fork"
        => "case fork";
    CLimit: "C", "a limit of the lowering"
        => "case limit";
    CBlemishOfAll: "C", "a blemish without objects is one of every buffer"
        => "case blemish of all";
    CSeveralDevices: "C", "only one device is selected"
        => "case devices";
    CUnresolvedCopy: "C", "a copy that is not resolved may be of an escaped pointer"
        => "case unresolved copy";

    // The plan.
    R3CopyWaits: "R3", "where a copy made the host wait, a wait stays"
        => "lib analysis::tests::examples::figure_1_is_accepted_with_one_wait_for_the_kernel";
    R3WaitBehindKept: "R3", "a copy that stays gets the wait that merged memory does not promise"
        => "lib analysis::tests::traps::a_copy_that_stays_gets_the_wait_that_managed_memory_does_not_promise";
    R3OtherSourceConsumed: "R3", "also where it had consumed another buffer"
        => "lib analysis::tests::traps::another_buffer_is_still_consumed_when_its_upload_returns";
    R3DroppedWaits: "R3", "a wait that is needless only beside another stays with one of them"
        => "lib analysis::tests::rules::a_wait_that_covered_more_than_its_copy_is_not_counted_on_when_it_goes";
    R3PageableDownload: "R3", "an asynchronous download to pageable memory leaves a wait"
        => "lib analysis::tests::traps::an_asynchronous_download_to_pageable_memory_leaves_the_wait_that_it_is_in_practice";
    R3UnknownStreamWait: "R3", "a copy on an unknown stream leaves a wait for all"
        => "lib analysis::tests::traps::a_copy_on_a_stream_that_is_not_known_leaves_a_wait_for_all";
    R3HeldBackWait: "R3", "a copy that other streams held back leaves a wait for all"
        => "lib analysis::tests::traps::a_synchronous_copy_on_the_default_stream_waited_for_blocking_streams_too";
    R4FreeWaits: "R4", "where cudaFree waited for work, a wait stays"
        => "lib analysis::tests::traps::an_early_device_free_leaves_its_wait_if_work_is_pending";
    R4ReleaseWaits: "R4", "p is released behind the work on it"
        => "lib analysis::tests::traps::p_is_released_after_work_that_uses_it";
    PlanCopyWaits: "R3", "the plan has the waits of copies"
        => "lib analysis::tests::examples::figure_1_is_accepted_with_one_wait_for_the_kernel";
    PlanKeptWaits: "R3", "and those behind copies that stay"
        => "lib analysis::tests::traps::a_copy_that_stays_gets_the_wait_that_managed_memory_does_not_promise";
    PlanFreeWaits: "R4", "and those of frees"
        => "lib analysis::tests::traps::an_early_device_free_leaves_its_wait_if_work_is_pending";
    PlanReleases: "R4", "and p's release"
        => "lib analysis::tests::examples::figure_1_is_accepted_with_one_wait_for_the_kernel";

    // Splicing.
    SpliceRecursive: "splice", "a recursive function stays a call"
        => "lib pass::splice::tests::a_recursive_callee_stays_a_call";
    SpliceVariadic: "splice", "so does a variadic one"
        => "lib pass::splice::tests::a_variadic_callee_stays_a_call";
    SpliceReplaceable: "splice", "one that the linker may replace"
        => "lib pass::splice::tests::a_callee_that_the_linker_may_replace_stays_a_call";
    SpliceAttribute: "splice", "one that an attribute keeps"
        => "lib pass::splice::tests::a_callee_with_a_forbidding_attribute_stays_a_call";
    SpliceOtherTarget: "splice", "one for another target"
        => "lib pass::splice::tests::a_callee_for_another_target_stays_a_call";
    SpliceDepth: "splice", "one too deep in calls"
        => "lib pass::splice::tests::calls_are_followed_so_deep_and_no_deeper";
    SpliceBudget: "splice", "one over the budget"
        => "lib pass::splice::tests::a_callee_over_the_budget_stays_a_call";
    SpliceGain: "splice", "what gains nothing leaves no trace"
        => "lib pass::splice::tests::where_nothing_is_gained_the_module_stays_as_it_was";
    SpliceMainOnce: "splice", "only a main that runs once has global variables of its own"
        => "lib pass::splice::tests::main_that_may_run_twice_keeps_variables_global";
    SpliceReturnsTwice: "splice", "and no call in it returns twice"
        => "lib pass::splice::tests::a_main_that_returns_twice_keeps_variables_global";
    SpliceSeenElsewhere: "splice", "nothing else sees them"
        => "lib pass::splice::tests::a_variable_that_another_function_sees_stays_global";
    SpliceOrdinaryVariable: "splice", "they are ordinary variables of this module"
        => "lib pass::splice::tests::a_variable_that_is_known_elsewhere_or_lives_otherwise_stays_global";
    SpliceAddressStays: "splice", "their address stays in main"
        => "lib pass::splice::tests::a_variable_whose_address_is_given_away_stays_global";
    SpliceWrittenLater: "splice", "and no copy writes them when main may have returned"
        => "lib pass::splice::tests::a_variable_that_an_asynchronous_copy_writes_stays_global";

    // Repair.
    RepairPlace: "repair", "a wait in a loop that fills stands behind the work"
        => "lib analysis::tests::repairs::a_loop_that_fills_makes_the_wait_stand_behind_the_work";
    RepairInPlan: "repair", "the plan has the waits that repair"
        => "lib analysis::tests::repairs::a_refill_waits_before_it_where_each_round_has_new_work";
    RepairThrows: "repair", "a wait behind a call that may throw stands on both its ways"
        => "lib rewrite::tests::a_wait_that_repairs_stands_on_every_way_behind_a_call";
    RepairInside: "repair", "a wait stands before or behind all that an instruction does"
        => "lib analysis::tests::repairs::what_a_callee_does_in_its_middle_is_not_repaired";

    // Lowering.
    LowerEmptyTellsTheWay: "lower", "what is chosen where a buffer has no bytes is not taken for what is chosen otherwise"
        => "lib lower::tests::empty::what_is_chosen_on_one_way_only_keeps_both";
    LowerWrap: "lower", "arithmetic that may wrap is not taken apart"
        => "lib lower::tests::pointers::sizes_are_equal_only_where_their_values_are";
    LowerAddressWrap: "lower", "neither is that of addresses"
        => "lib lower::tests::pointers::arithmetic_that_may_wrap_makes_the_bytes_unknown";
    LowerSign: "lower", "a signed and an unsigned reading differ"
        => "lib lower::tests::pointers::sizes_are_equal_only_where_their_values_are";
    LowerPhiOfLastRound: "lower", "a phi of a loop is behind the loop what it was in the last round"
        => "lib lower::tests::pointers::a_phi_that_is_one_value_on_all_ways_is_that_value";
    LowerSlotInLoop: "lower", "a variable that is made many times is no slot"
        => "lib lower::tests::pointers::an_alloca_that_is_made_again_and_again_is_no_slot";
    LowerSlotLeaks: "lower", "a slot that is read as something else leaks its pointer"
        => "lib lower::tests::pointers::a_slot_that_is_read_as_something_else_lets_its_pointer_escape";
    LowerSlotEscapes: "lower", "a slot whose address goes elsewhere is none"
        => "lib lower::tests::pointers::a_slot_whose_address_goes_elsewhere_lets_its_pointer_escape";
    LowerStalePointer: "lower", "a buffer of an earlier round is not taken for this one's"
        => "lib lower::tests::pointers::the_object_of_an_earlier_round_is_not_taken_for_this_rounds";
    LowerStaleOffset: "lower", "neither is an offset"
        => "lib lower::tests::pointers::the_offset_of_an_earlier_round_is_not_taken_for_this_rounds";
    LowerMixed: "lower", "a phi or slot of several buffers is none of them"
        => "lib lower::tests::pointers::every_use_that_shows_or_keeps_the_pointer_is_recorded";
    LowerNullForAnotherReason: "lower", "null for another reason is no failed allocation"
        => "lib lower::tests::shapes::a_variable_that_may_be_null_for_another_reason_is_an_ordinary_branch";
    LowerPremise: "lower", "a failed allocation's way is cut off"
        => "lib lower::tests::shapes::a_way_that_only_a_failed_allocation_takes_ends_without_return";
    LowerOrderWithoutPremise: "lower", "the order of allocations is that of the whole control flow"
        => "lib lower::tests::shapes::an_allocation_that_hangs_on_the_success_of_another_comes_before_nothing";
    LowerExit: "lower", "a program that ends well has done its work, with a device or without"
        => "lib lower::tests::shapes::a_program_that_ends_well_has_done_its_work";
    LowerThrow: "lower", "a throw goes on in the caller"
        => "lib lower::tests::shapes::a_throw_leaves_the_function_and_does_not_end_the_program";
    LowerCaptureAnywhere: "lower", "a capture anywhere in the module concerns every function"
        => "lib lower::tests::calls::a_capture_anywhere_in_the_module_concerns_every_function";
    LowerNoRecordCaptures: "lower", "a kernel without a record may use kept pointers"
        => "lib lower::tests::kernels::the_name_of_a_stub_says_nothing_of_its_kernel";
    LowerUnknownEffect: "lower", "a pointer that the record knows nothing of may be used in any way"
        => "lib lower::tests::kernels::a_pointer_where_the_record_knows_none_may_be_used_in_any_way";
    LowerArgumentsEscape: "lower", "launch arguments that are not understood escape"
        => "lib lower::tests::kernels::arguments_that_are_not_understood_escape";
    LowerOneConfiguration: "lower", "two configurations that meet leave the stream unknown"
        => "lib lower::tests::kernels::two_configurations_that_meet_leave_the_stream_unknown";
    LowerStreamOfRound: "lower", "a stream made in a loop is many"
        => "lib lower::tests::calls::a_stream_that_is_created_in_a_loop_is_unknown";
    LowerEventShared: "lower", "an event that others may record is not unique"
        => "lib lower::tests::calls::an_event_that_others_may_record_is_not_unique";
    LowerCalleeFrees: "lower", "a function of the module may free its argument"
        => "lib lower::tests::calls::functions_of_the_module_do_what_their_attributes_and_bodies_say";
    LowerCalleesOfCallees: "lower", "a function does what its callees do"
        => "lib lower::tests::calls::functions_of_the_module_do_what_their_attributes_and_bodies_say";
    LowerConstructors: "lower", "constructors may start work before main"
        => "lib lower::tests::calls::work_of_constructors_is_in_flight_in_main";

    // Calls.
    CallsUnknown: "calls", "an unknown function may start work and threads"
        => "lib lower::tests::calls::unknown_functions_may_start_work_and_known_ones_may_not";
    CallsKeep: "calls", "what a model says is kept is kept"
        => "lib lower::tests::pointers::every_use_that_shows_or_keeps_the_pointer_is_recorded";
    CallsRelease: "calls", "only its own function releases an allocation"
        => "lib lower::tests::pointers::every_use_that_shows_or_keeps_the_pointer_is_recorded";
    CallsFirstDevice: "calls", "before the first selection the device is 0"
        => "lib lower::tests::calls::facts_of_the_module";
    CallsThreads: "calls", "a call that starts threads does"
        => "lib lower::tests::calls::facts_of_the_module";
    CallsAsynchronous: "calls", "an asynchronous copy promises no wait"
        => "lib lower::tests::calls::asynchronous_copies_promise_no_wait";
    CallsStagedUpload: "calls", "an upload of pageable memory returns once it is staged"
        => "lib lower::tests::calls::synchronous_copies_wait_as_the_reference_says";
    CallsDirection: "calls", "a direction that is not certain is a blemish"
        => "lib lower::tests::calls::the_direction_of_a_copy_must_be_certain";

    // Effects.
    EffectsReplaced: "effects", "a kernel that may be replaced is unknown"
        => "effects a_template_may_be_replaced_by_a_copy_and_a_weak_kernel_by_anything";
    EffectsSelect: "effects", "a select has both its pointers"
        => "effects casts_phis_and_selects_are_followed";
    EffectsStored: "effects", "a stored pointer is kept"
        => "effects a_stored_pointer_is_captured";
    EffectsCallKeeps: "effects", "a callee may keep its argument"
        => "effects calls_count_by_the_attributes_of_the_callee";
    EffectsCallTouches: "effects", "a callee may touch other memory"
        => "effects a_call_without_attributes_may_do_anything";
    EffectsElsewhere: "effects", "a pointer from elsewhere is other memory"
        => "effects a_pointer_that_is_loaded_and_used_is_other_memory";
    EffectsVariable: "effects", "device variables are other memory"
        => "effects device_variables_are_other_memory_and_constants_are_not";
    EffectsStruct: "effects", "a struct's bytes may become a pointer"
        => "effects a_struct_is_unknown_where_its_bytes_may_become_a_pointer";
    EffectsCopies: "effects", "another copy of a template may read"
        => "effects a_template_may_be_replaced_by_a_copy_and_a_weak_kernel_by_anything";

    // Rewrite.
    R1ZeroBytes: "R1", "of zero bytes one is allocated"
        => "lib rewrite::tests::figure_1_of_the_paper";
    R1FailureIsNull: "R1", "a failed allocation is null"
        => "lib rewrite::tests::the_device_allocation_may_come_first";
    R1Errno: "R1", "posix_memalign reports an errno"
        => "lib rewrite::tests::other_allocators_report_in_their_own_way";
    R1CallocZeroes: "R1", "calloc's zeroes stay"
        => "lib rewrite::tests::calloc_keeps_its_zeroes_first_or_second";
    R2ForgetScopes: "R2", "calls forget that a restrict pointer was apart from them"
        => "lib rewrite::tests::calls_forget_that_a_restrict_pointer_was_apart_from_them";
    R3Wait: "R3", "a wait stands where the copy was"
        => "lib rewrite::tests::the_result_of_a_removed_copy_is_what_stays";
    R3KeptWait: "R3", "and behind a copy that stays"
        => "lib rewrite::tests::a_copy_that_stays_is_followed_by_a_wait";
    R3PerThreadWait: "R3", "on the stream of the copy"
        => "lib rewrite::tests::a_wait_names_the_stream_as_the_copy_did";
    R4Wait: "R4", "a free waits as the plan says"
        => "lib rewrite::tests::a_buffer_that_is_released_while_work_may_run_is_waited_for";
    R4Release: "R4", "and releases p"
        => "lib rewrite::tests::the_later_free_releases_and_is_always_cudafree";
    R4OwnBuffer: "R4", "a free of the host buffer frees the one that was kept"
        => "lib rewrite::tests::a_host_buffer_that_may_be_alone_keeps_its_own_allocation";
    AdaptiveLinksMayStay: "adaptive", "where the run decides, copies and frees may stay or go"
        => "lib analysis::tests::traps::a_release_does_not_count_on_the_wait_of_a_pair_that_may_stay_apart";
    AdaptiveDirection: "adaptive", "a copy to a third buffer goes by the addresses"
        => "lib rewrite::tests::a_copy_to_a_third_buffer_goes_by_the_addresses";
    AdaptiveExclusive: "adaptive", "the runtime is told whether S5 holds"
        => "lib rewrite::tests::the_runtime_is_told_whether_the_host_may_touch_p_beside_work";
    R4CountsBoth: "R4", "both allocations are names of p"
        => "lib rewrite::tests::p_counts_its_names_where_the_path_decides";
    R4NullIsNoName: "R4", "a null pointer is none"
        => "lib rewrite::tests::p_counts_its_names_where_the_path_decides";
}

/// Is this process that mutant?
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) const fn off(_: Mutant) -> bool {
    false
}

/// Is this process that mutant?
#[cfg(feature = "mutants")]
pub(crate) fn off(mutant: Mutant) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<Mutant>> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(chosen) == Some(mutant)
}

/// What the environment names. A name that is in no row ends the process: a test with a misspelt mutant would prove nothing.
#[cfg(feature = "mutants")]
fn chosen() -> Option<Mutant> {
    use std::io::Write as _;
    let name = std::env::var(VARIABLE).ok()?;
    let row = ALL.iter().find(|row| row.name == name);
    if row.is_none() {
        // Not `eprintln`, which a test program would keep to itself.
        let _ = writeln!(std::io::stderr(), "{VARIABLE}={name} is no mutant; src/mutants.rs lists them");
        std::process::exit(2);
    }
    row.map(|row| row.mutant)
}

impl Mutant {
    /// S1 of what `event` writes.
    pub(crate) const fn s1_writer(event: &Event) -> Self {
        match event {
            Event::Enqueue { work, .. } => match work.kind {
                WorkKind::Launch => Self::S1KernelWrites,
                WorkKind::Memset => Self::S1MemsetWrites,
                WorkKind::Library => Self::S1LibraryWrites,
            },
            Event::Copy(_) => Self::S1CopyWrites,
            Event::Alloc(_) => Self::S1AllocationWrites,
            _ => Self::S1HostWrites,
        }
    }

    /// The part of S2 that a reason belongs to.
    pub(crate) const fn s2_order(decline: &Decline) -> Self {
        match decline {
            Decline::CopyPending => Self::S2CopyPending,
            Decline::UnorderedStreams { .. } => Self::S2UnorderedStreams,
            _ => Self::S2KernelPending,
        }
    }

    /// S3 of a use.
    pub(crate) const fn s3_use(kind: &UseKind) -> Self {
        match kind {
            UseKind::Compared => Self::S3Compared,
            UseKind::Stored => Self::S3Stored,
            UseKind::CastToInteger => Self::S3CastToInteger,
            UseKind::Returned => Self::S3Returned,
            UseKind::PassedTo(_) => Self::S3PassedTo,
            UseKind::Observed(_) => Self::S3Observed,
            UseKind::Registered(_) => Self::S3Registered,
            UseKind::MixedWith(_) => Self::S3Mixed,
            UseKind::VolatileOrAtomic => Self::S3VolatileOrAtomic,
            UseKind::InlineAsm => Self::S3InlineAsm,
            UseKind::Reallocated => Self::S3Reallocated,
        }
    }

    /// C of a blemish.
    pub(crate) const fn c_blemish(kind: &BlemishKind) -> Self {
        match kind {
            BlemishKind::AmbiguousSlot => Self::CAmbiguousSlot,
            BlemishKind::CopyDirection => Self::CCopyDirection,
            BlemishKind::UnmodelledCudaCall(_) => Self::CUnmodelledCall,
            BlemishKind::NonLocalJump => Self::CNonLocalJump,
            BlemishKind::StreamCapture => Self::CStreamCapture,
            BlemishKind::NotOptimised => Self::CNotOptimised,
            BlemishKind::Fork => Self::CFork,
            BlemishKind::Limit(_) => Self::CLimit,
            BlemishKind::DeviceReset => Self::S4Reset,
        }
    }
}
