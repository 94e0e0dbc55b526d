//! The life of the device process.

use super::kernels::Kernels;
use super::startup::{FIRST_FD, StartOptions};
use super::{end, faults};
use crate::command::{Command, Packet};
use crate::control::{Control, SharedControl, TEXT_BYTES, futex_wait, futex_wake, spin_until, this_core};
use crate::copies;
use crate::error::CuError;
use crate::layout::{Region, STREAMS};
use crate::mapping::{self, Mapping, Place, Protection};
use crate::ring;
use crate::settings::{Link, Schedule};
use crate::streams::Scheduler;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// In the lazy and random schedules work that nothing waits for runs after this time without a call: a program may wait by other means than
/// CUDA's (a flag in pinned memory, a host function), and must not hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the device process; does not return while the program lives.
pub fn run(options: StartOptions) -> io::Result<()> {
    leave_the_programs_family()?;
    let [control_fd, socket, device, managed, pinned]: [RawFd; 5] = std::array::from_fn(|i| FIRST_FD + i as RawFd);
    // The block stays mapped until the process ends: the fault handler uses it at any time.
    let control: &'static Control = Box::leak(Box::new(SharedControl::open(control_fd)?));
    end::with_host(options.host_pid, socket)?;
    for (region, fd) in Region::ALL.into_iter().zip([device, managed, pinned]) {
        let mapping = Mapping::new(fd, 0, mapping::file_bytes(fd)?, Place::Free(region.base()), Protection::ReadWrite)?;
        mapping.leave_out_of_dumps();
        mapping.leak();
    }
    faults::report_in(control)?;
    // SAFETY: getpid has no preconditions.
    control.device_pid.store(unsafe { libc::getpid() }, Ordering::Release);
    control.announce();
    let mut device = Device {
        control,
        options,
        pinned,
        scheduler: Scheduler::new(options.schedule),
        kernels: Kernels::new(),
        registered: HashMap::new(),
    };
    device.serve()
}

/// Becomes a process of its own: no child of the program, not in its session, deaf to the terminal's signals.
fn leave_the_programs_family() -> io::Result<()> {
    // SAFETY: there is one thread, so the child may go on as usual.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        // SAFETY: _exit has no preconditions.
        _ => unsafe { libc::_exit(0) },
    }
    // SAFETY: setsid and chdir have no memory preconditions; a failure leaves things as they are, which works too.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
    }
    Ok(())
}

struct Device {
    control: &'static Control,
    options: StartOptions,
    pinned: RawFd,
    scheduler: Scheduler<Command>,
    kernels: Kernels,
    /// Registered memory by address.
    registered: HashMap<usize, Mapping>,
}

impl Device {
    fn serve(&mut self) -> ! {
        let mut words = Vec::new();
        loop {
            // What may run after a record runs before the next record is looked at, so that the schedule depends on the records alone.
            while let Some((slot, sequence, command)) = self.scheduler.take_next() {
                self.execute(slot, sequence, command);
                if self.options.schedule == Schedule::Eager && ring::has_record(self.control) {
                    break;
                }
            }
            if ring::pop(self.control, &mut words) {
                match Packet::decode(&words) {
                    Some(packet) => self.accept(packet),
                    None => {
                        eprintln!("uma-device: a command is damaged (library and device process of different builds?)");
                        faults::end(self.control, CuError::UNKNOWN, 0);
                    }
                }
            } else {
                self.wait_for_record();
            }
        }
    }

    fn wait_for_record(&mut self) {
        let control = self.control;
        control.device_core.store(this_core(), Ordering::Relaxed);
        if spin_until(|| ring::has_record(control), &control.host_core) {
            return;
        }
        let patience = if self.scheduler.is_empty() { Duration::from_secs(3600) } else { PATIENCE };
        control.device_sleeps.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let start = Instant::now();
        if !ring::has_record(control) {
            futex_wait(&control.device_sleeps, 1, patience);
        }
        control.device_sleeps.store(0, Ordering::SeqCst);
        control.device_core.store(this_core(), Ordering::Relaxed);
        if !ring::has_record(control) && start.elapsed() >= PATIENCE {
            self.scheduler.force_all();
        }
    }

    /// Queues a command of a stream, or does what is to be done at once.
    fn accept(&mut self, packet: Packet) {
        match packet.command {
            Command::Wait { slot, sequence } => {
                let after = Some((slot, sequence));
                self.scheduler.push(packet.slot, packet.nonblocking, packet.sequence, after, Command::Mark);
            }
            Command::HostDone { slot, sequence } => {
                self.complete(slot, sequence);
            }
            Command::Force { slot, sequence } => self.scheduler.force(slot, sequence),
            Command::ForceAll => self.scheduler.force_all(),
            Command::Ping { request } => self.answer(request, Ok(())),
            Command::Load { request, module, image, bytes, globals } => {
                // SAFETY: the program put the image there and keeps it until it has the answer.
                let image = unsafe { std::slice::from_raw_parts(image as *const u8, bytes) };
                // SAFETY: the library allocated the globals by the image's own metadata.
                let result = unsafe { self.kernels.load(module, image, &globals) };
                let result = result.map_err(|problem| {
                    eprintln!("uma-device: {problem}");
                    CuError::INVALID_IMAGE
                });
                self.answer(request, result);
            }
            Command::MapPages { request, address, bytes, offset } => {
                let result = Mapping::new(self.pinned, offset, bytes, Place::Free(address), Protection::ReadWrite);
                let result = result.map(|mapping| drop(self.registered.insert(address, mapping)));
                self.answer(request, result.map_err(|_| CuError::OPERATING_SYSTEM));
            }
            Command::UnmapPages { request, address, .. } => {
                self.registered.remove(&address);
                self.answer(request, Ok(()));
            }
            command => self.scheduler.push(packet.slot, packet.nonblocking, packet.sequence, None, command),
        }
    }

    fn answer(&self, request: u64, result: Result<(), CuError>) {
        self.control.answer.store(result.map_or_else(|error| error.0 as u32, |()| 0), Ordering::Relaxed);
        self.control.answered.store(request, Ordering::Release);
        self.control.announce();
    }

    fn execute(&mut self, slot: u32, sequence: u64, command: Command) {
        let start = Instant::now();
        let discrete = self.options.link == Link::Discrete;
        match command {
            Command::Launch(launch) => {
                if discrete && launch.migrate > 0 {
                    copies::throttle(start, launch.migrate as usize);
                }
                // SAFETY: the library packed the parameters by the kernel's own metadata.
                let result = unsafe { self.kernels.launch(&launch) };
                self.pass_text_on();
                if let Err(error) = result {
                    faults::end(self.control, error, 0);
                }
            }
            Command::Copy { to, from, shape } => {
                // SAFETY: the library checked that both boxes lie in allocations.
                unsafe { copies::copy(to, from, shape) };
                if discrete {
                    copies::throttle(start, shape.bytes().unwrap_or(0));
                }
            }
            // SAFETY: the library checked that the box lies in an allocation.
            Command::Fill { to, value, shape } => unsafe { copies::fill(to, value, shape) },
            Command::Record { event } => {
                self.control.event_time[event as usize].store(monotonic_nanoseconds(), Ordering::Release);
            }
            Command::HostTurn => {
                self.control.granted[slot as usize].store(sequence, Ordering::Release);
                self.control.announce();
                return;
            }
            Command::HostCall => {
                let tail = self.control.hostcall_tail.load(Ordering::Relaxed);
                self.control.hostcalls[tail as usize % STREAMS].store(slot, Ordering::Relaxed);
                self.control.hostcall_tail.store(tail.wrapping_add(1), Ordering::Release);
                futex_wake(&self.control.hostcall_tail, 1);
                return;
            }
            // The rest is done when it is accepted.
            _ => {}
        }
        self.complete(slot, sequence);
    }

    fn complete(&mut self, slot: u32, sequence: u64) {
        if self.scheduler.complete(slot, sequence) {
            self.control.completed[slot as usize].fetch_max(sequence, Ordering::AcqRel);
            self.control.announce();
        }
    }

    /// Gives what kernels printed to the program. What has no room is dropped, as a GPU's buffer drops too.
    fn pass_text_on(&mut self) {
        let text = self.kernels.take_text();
        let control = self.control;
        let head = control.text_head.load(Ordering::Acquire);
        let tail = control.text_tail.load(Ordering::Relaxed);
        let room = TEXT_BYTES - (tail - head) as usize;
        for (position, byte) in (tail..).zip(text.iter().take(room)) {
            control.text[(position % TEXT_BYTES as u64) as usize].store(*byte, Ordering::Relaxed);
        }
        control.text_tail.store(tail + text.len().min(room) as u64, Ordering::Release);
    }
}

fn monotonic_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
