//! Any value of each format, for proptest.

use echo_dr_format::context::{Attributes, Context, DeviceIdentity, FileIdentity, Process};
use echo_dr_format::event::{Call, CopyKind, DeviceKind, Event, HostKind, Setup, Shape, Stream, WaitFor};
use echo_dr_format::finding::{Access, Finding, PairSeen, Trouble};
use echo_dr_format::measure::{Measurement, Spread};
use echo_dr_format::plan::{
    BackendName, CopySite, Direction, First, Ineligible, Note, Pair, Plan, Rejection, State, Together, Wait, Way,
};
use echo_dr_format::reason::Decline;
use echo_dr_format::site::{Hash64, Site};
use echo_dr_format::trace::{End, Frame, Frames, Header, Mode, Module, Record};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn site() -> impl Strategy<Value = Site> {
    any::<u64>().prop_map(Site)
}

fn stream() -> impl Strategy<Value = Stream> {
    any::<u64>().prop_map(Stream)
}

fn file() -> impl Strategy<Value = FileIdentity> {
    (any::<String>(), "[0-9a-f]{0,40}", any::<u64>(), any::<u64>())
        .prop_map(|(path, build_id, bytes, hash)| FileIdentity { path, build_id, bytes, hash: Hash64(hash) })
}

fn attributes() -> impl Strategy<Value = Attributes> {
    any::<[bool; 6]>().prop_map(|bits| Attributes {
        integrated: bits[0],
        managed_memory: bits[1],
        concurrent_managed_access: bits[2],
        pageable_memory_access: bits[3],
        host_page_tables: bits[4],
        mapped_host_memory: bits[5],
    })
}

fn device() -> impl Strategy<Value = DeviceIdentity> {
    (any::<String>(), any::<String>(), any::<(u32, u32)>(), any::<u32>(), any::<Option<u32>>(), attributes()).prop_map(
        |(name, uuid, compute, driver, runtime, attributes)| DeviceIdentity {
            name,
            uuid,
            compute,
            driver,
            runtime,
            attributes,
        },
    )
}

pub(crate) fn context() -> impl Strategy<Value = Context> {
    let process = (file(), vec(file(), 0..3), any::<String>(), vec(any::<String>(), 0..4))
        .prop_map(|(executable, libraries, host, arguments)| Process { executable, libraries, host, arguments });
    (process, option::of(device())).prop_map(|(process, device)| Context { process, device })
}

fn call() -> impl Strategy<Value = Call> {
    let host_kind = select(vec![HostKind::Heap, HostKind::Zeroed, HostKind::PageLocked]);
    let device_kind = select(vec![DeviceKind::Plain, DeviceKind::Pooled, DeviceKind::Managed, DeviceKind::Pitched]);
    let copy_kind = select(vec![
        CopyKind::HostToDevice,
        CopyKind::DeviceToHost,
        CopyKind::DeviceToDevice,
        CopyKind::HostToHost,
        CopyKind::Default,
    ]);
    let shape = select(vec![Shape::Linear, Shape::Pitched, Shape::Array]);
    let wait = || {
        prop_oneof![Just(WaitFor::Device), stream().prop_map(WaitFor::Stream), any::<u64>().prop_map(WaitFor::Event)]
    };
    let setup = select(vec![Setup::BeforeInitialisation, Setup::Reset, Setup::Fork, Setup::FirstUse]);
    let number = any::<u64>;
    prop_oneof![
        (number(), number(), number(), host_kind).prop_map(|(ptr, bytes, align, kind)| Call::HostAlloc {
            ptr,
            bytes,
            align,
            kind
        }),
        (number(), number(), number()).prop_map(|(old, ptr, bytes)| Call::HostRealloc { old, ptr, bytes }),
        number().prop_map(|ptr| Call::HostFree { ptr }),
        (number(), number()).prop_map(|(ptr, bytes)| Call::HostRegister { ptr, bytes }),
        (number(), number(), device_kind).prop_map(|(ptr, bytes, kind)| Call::DeviceAlloc { ptr, bytes, kind }),
        (number(), any::<bool>()).prop_map(|(ptr, asynchronous)| Call::DeviceFree { ptr, asynchronous }),
        (number(), number(), number(), copy_kind, stream(), any::<bool>(), shape).prop_map(
            |(dst, src, bytes, kind, stream, asynchronous, shape)| Call::Copy {
                dst,
                src,
                bytes,
                kind,
                stream,
                asynchronous,
                shape
            }
        ),
        (number(), number(), stream()).prop_map(|(dst, bytes, stream)| Call::Set { dst, bytes, stream }),
        stream().prop_map(|stream| Call::Launch { stream }),
        (number(), option::of(wait())).prop_map(|(bytes, wait)| Call::Skipped { bytes, wait }),
        wait().prop_map(|on| Call::Wait { on }),
        (number(), stream()).prop_map(|(event, stream)| Call::EventRecord { event, stream }),
        (number(), stream()).prop_map(|(event, stream)| Call::StreamWait { stream, event }),
        (stream(), any::<bool>()).prop_map(|(stream, non_blocking)| Call::StreamCreate { stream, non_blocking }),
        stream().prop_map(|stream| Call::StreamDestroy { stream }),
        (stream(), any::<bool>()).prop_map(|(stream, begin)| Call::Capture { stream, begin }),
        any::<i32>().prop_map(|device| Call::SetDevice { device }),
        number().prop_map(|ptr| Call::Query { ptr }),
        any::<bool>().prop_map(|unseen| Call::Unknown { unseen }),
        setup.prop_map(|what| Call::Setup { what }),
    ]
}

fn access() -> impl Strategy<Value = Access> {
    select(vec![Access::Read, Access::Write, Access::Unknown, Access::SystemCall, Access::CudaCall])
}

fn trouble() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        access().prop_map(Trouble::HostTouched),
        access().prop_map(Trouble::NotExclusive),
        select(vec![
            Trouble::LaunchAfterHostWrite,
            Trouble::HostWriteLost,
            Trouble::DeviceWriteLost,
            Trouble::WrongPartner,
            Trouble::ReachedByGpu,
            Trouble::OutOfSight
        ]),
    ]
}

pub(crate) fn header() -> impl Strategy<Value = Header> {
    let mode = select(vec![Mode::Profile, Mode::Validate, Mode::Optimise]);
    (mode, any::<String>(), context(), any::<(u64, u64)>(), any::<u32>(), any::<Option<u32>>()).prop_map(
        |(mode, version, context, (threshold, page_size), pid, forked_from)| Header {
            schema: echo_dr_format::SCHEMA,
            mode,
            version,
            context,
            threshold,
            page_size,
            pid,
            forked_from,
        },
    )
}

/// Any line but the first.
pub(crate) fn record() -> impl Strategy<Value = Record> {
    let event = (any::<(u64, u64, u32)>(), site(), any::<String>(), call()).prop_map(
        |((time, took, thread), site, api, call)| {
            Record::Event(Event { time, took, thread, site, api: api.into(), call })
        },
    );
    let module = (any::<u32>(), any::<String>(), any::<String>())
        .prop_map(|(id, path, build_id)| Record::Module(Module { id, path, build_id }));
    let frame = any::<(Option<u32>, u64)>().prop_map(|(module, offset)| Frame { module, offset });
    let frames = (site(), vec(frame, 0..20)).prop_map(|(site, frames)| Record::Frames(Frames { site, frames }));
    let finding = (any::<(u64, u32, Option<u64>)>(), trouble(), option::of(site())).prop_map(
        |((time, pair, offset), trouble, site)| Record::Finding(Finding { time, pair, trouble, site, offset }),
    );
    let seen = any::<(u32, [u64; 5], bool)>().prop_map(|(pair, counts, exclusive_watched)| {
        let [buffers, unwatched, windows, closed, findings] = counts;
        Record::Seen(PairSeen { pair, buffers, unwatched, windows, closed, findings, exclusive_watched })
    });
    let end = any::<(u64, u64)>().prop_map(|(time, lost)| Record::End(End { time, lost }));
    prop_oneof![8 => event, 1 => module, 1 => frames, 1 => finding, 1 => seen, 1 => end, 1 => device().prop_map(Record::Device)]
}

fn decline() -> impl Strategy<Value = Decline> {
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(found, needed)| Decline::RecursTooRarely { found, needed }),
        any::<(u64, u64, u64)>().prop_map(|(host, device, copy)| Decline::SizesDiffer { host, device, copy }),
        any::<i64>().prop_map(|gain_ppm| Decline::NoGain { gain_ppm }),
        access().prop_map(Decline::HostTouched),
        "[a-zA-Z_0-9]{1,40}".prop_map(|name| Decline::UnknownFunction { name }),
        select(vec![Decline::ShapedCopy, Decline::Managed, Decline::SharedSite, Decline::ReachedByGpu]),
    ]
}

fn measurement() -> impl Strategy<Value = Measurement> {
    let spread = || any::<[u64; 3]>().prop_map(|[low, median, high]| Spread { low, median, high });
    (select(BackendName::ALL.to_vec()), any::<u32>(), spread(), spread(), any::<(i64, (i64, i64))>()).prop_map(
        |(backend, trials, without, with, (gain_ppm, gain_range_ppm))| Measurement {
            backend,
            trials,
            without,
            with,
            gain_ppm,
            gain_range_ppm,
        },
    )
}

fn together() -> impl Strategy<Value = Together> {
    measurement().prop_map(|of| Together {
        trials: of.trials,
        without: of.without,
        with: of.with,
        gain_ppm: of.gain_ppm,
        gain_range_ppm: of.gain_range_ppm,
    })
}

fn pair(id: u32) -> impl Strategy<Value = Pair> {
    let state = prop_oneof![
        Just(State::Candidate),
        Just(State::Validated),
        Just(State::Enabled),
        (decline(), option::of(site())).prop_map(|(reason, site)| State::Rejected(Rejection { reason, site })),
    ];
    let direction = select(vec![Direction::Input, Direction::Output, Direction::Both]);
    let first = select(vec![First::Host, First::Device, First::Either]);
    let wait = select(vec![Wait::Covered, Wait::Stream, Wait::Device]);
    let way = select(vec![Way::Upload, Way::Download]);
    let copy = (site(), way, any::<bool>(), any::<(u64, u64)>(), wait).prop_map(
        |(site, way, asynchronous, (count, took), wait)| CopySite { site, way, asynchronous, count, took, wait },
    );
    (
        (site(), site(), 1..u64::from(u32::MAX), direction, first),
        (any::<bool>(), 1..=64_u32, 64..=4096_u32, any::<u64>(), vec(copy, 1..5)),
        (any::<[bool; 2]>(), select(BackendName::ALL.to_vec()), state, vec(measurement(), 0..3)),
    )
        .prop_map(
            move |(
                (host, device, bytes, direction, first),
                (same_thread, waiting, alive, buffers, mut copies),
                ([exclusive, page_locked], backend, state, measured),
            )| {
                // Sites are distinct enough; ways must fit the direction.
                for copy in &mut copies {
                    if !direction.has(copy.way) {
                        copy.way = if direction == Direction::Input { Way::Upload } else { Way::Download };
                    }
                }
                Pair {
                    id,
                    host,
                    device,
                    bytes,
                    page_locked,
                    direction,
                    first,
                    same_thread,
                    waiting: if same_thread { waiting } else { 1 },
                    alive,
                    buffers,
                    copies,
                    exclusive,
                    backend,
                    state,
                    measured,
                }
            },
        )
}

/// Any plan that could have been made.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let pairs = (0..4_u32).prop_flat_map(|count| (0..count).map(pair).collect::<Vec<_>>());
    let ineligible = (any::<[Option<u64>; 3]>(), any::<(u64, u64)>(), vec(decline(), 1..3)).prop_map(
        |([host, device, copy], (bytes, count), reasons)| Ineligible {
            host: host.map(Site),
            device: device.map(Site),
            copy: copy.map(Site),
            bytes,
            count,
            reasons,
        },
    );
    let notes = vec(select(vec![Note::UsesManagedMemory, Note::TraceTruncated, Note::NoCuda]), 0..3);
    (context(), pairs, (option::of(site()), option::of(together())), vec(ineligible, 0..3), notes).prop_map(
        |(context, pairs, (loop_site, together), ineligible, notes)| Plan {
            context,
            threshold: 1,
            loop_site,
            together,
            pairs,
            ineligible,
            notes,
        },
    )
}
