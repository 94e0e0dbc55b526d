//! The device process as the program sees it: started, asked whether it lives, ended.

use super::regions::Regions;
use crate::control::SharedControl;
use crate::device_process::startup::{FIRST_FD, StartOptions};
use crate::error::{CuError, Result};
use crate::layout::Region;
use crate::settings::Settings;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Name of the program that is the device process.
const PROGRAM: &str = "uma-deviced";

/// How long the device process may take to start before that counts as a failure.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running device process. Dropping it ends the process.
#[derive(Debug)]
pub struct Link {
    /// The shared block.
    pub control: SharedControl,
    socket: OwnedFd,
}

impl Link {
    /// Starts a device process and waits until it is ready.
    pub fn start(regions: &Regions, settings: &Settings) -> io::Result<Link> {
        let program = find_program()?;
        let (control_file, control) = SharedControl::create()?;
        let (ours, theirs) = socket_pair()?;
        // The child finds them from FIRST_FD on; here they must lie elsewhere, or one would overwrite another.
        let mut given = vec![above(control_file.as_raw_fd())?, above(theirs.as_raw_fd())?];
        for region in Region::ALL {
            given.push(above(regions.file(region))?);
        }
        drop(theirs);
        // SAFETY: getpid has no preconditions.
        let host_pid = unsafe { libc::getpid() };
        let options = StartOptions { host_pid, schedule: settings.schedule, link: settings.link };
        spawn(&program, &options.to_arguments(), &given)
            .map_err(|error| io::Error::new(error.kind(), format!("can't start {}: {error}", program.display())))?;
        drop(given);
        let link = Link { control, socket: ours };
        let start = Instant::now();
        let ready = || link.control.device_pid.load(Ordering::Acquire) != 0;
        if !link.control.wait_until(ready, || link.is_alive() && start.elapsed() < START_LIMIT) {
            return Err(io::Error::other(format!("{} did not become ready", program.display())));
        }
        Ok(link)
    }

    /// Whether the device process still runs.
    pub fn is_alive(&self) -> bool {
        let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is one pollfd and lives for the call.
        let count = unsafe { libc::poll(&mut poll, 1, 0) };
        // It never sends: whatever happens on the socket is its end.
        count <= 0
    }

    /// The error that ended the device process, if it has ended.
    pub fn fault(&self) -> Option<CuError> {
        CuError::from_code(self.control.fault.load(Ordering::Acquire) as i32)
    }

    /// Waits until the command is finished, or the device process has ended.
    pub fn wait(&self, slot: u32, sequence: u64) -> Result<()> {
        self.wait_until(|| self.control.is_complete(slot, sequence))
    }

    /// Waits until `done`, or the device process has ended.
    pub fn wait_until(&self, done: impl Fn() -> bool) -> Result<()> {
        let alive = || self.fault().is_none() && self.is_alive();
        if self.control.wait_until(done, alive) { Ok(()) } else { Err(self.why_it_ended()) }
    }

    /// The error for a device process that has ended.
    pub fn why_it_ended(&self) -> CuError {
        self.fault().unwrap_or_else(|| {
            eprintln!("uma-device: the device process ended unexpectedly (killed?)");
            self.control.fault.store(CuError::UNKNOWN.0 as u32, Ordering::Release);
            CuError::UNKNOWN
        })
    }
}

impl Link {
    /// Ends the device process. What waits for it gets an error.
    pub fn end(&self) {
        let destroyed = CuError::CONTEXT_IS_DESTROYED.0 as u32;
        let _ = self.control.fault.compare_exchange(0, destroyed, Ordering::AcqRel, Ordering::Relaxed);
        let pid = self.control.device_pid.load(Ordering::Acquire);
        if pid > 0 && self.is_alive() {
            // It is no child of ours, and it ends at the end of the socket in any case; this is quicker when a kernel is running.
            // SAFETY: kill has no memory effects. The process holds the other end of our socket, so the id is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where the device process's program is: `UMA_DEVICE_PROCESS`, else next to this library.
fn find_program() -> io::Result<PathBuf> {
    if let Some(path) = std::env::var_os("UMA_DEVICE_PROCESS").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let library = library_path()?;
    let resolved = std::fs::canonicalize(&library)?;
    let beside = |path: &Path| path.parent().map(|folder| folder.join(PROGRAM));
    let places: Vec<PathBuf> = [beside(&library), beside(&resolved)].into_iter().flatten().collect();
    places.iter().find(|path| path.exists()).cloned().ok_or_else(|| {
        let problem = format!("{PROGRAM} is not next to {}; set UMA_DEVICE_PROCESS to its path", resolved.display());
        io::Error::new(io::ErrorKind::NotFound, problem)
    })
}

/// The file that this code was loaded from.
fn library_path() -> io::Result<PathBuf> {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of this library, `info` is writable.
    let found = unsafe { libc::dladdr(library_path as *const libc::c_void, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return Err(io::Error::other("the dynamic linker does not know where this library came from"));
    }
    // SAFETY: dladdr gave a C string that lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Ok(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: `pair` has room for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just returned to us and belong to no one else.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}

/// A copy of `fd` with a number that no descriptor has in the child.
fn above(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl takes any descriptor and reports errors.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, FIRST_FD + 16) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the copy was just made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Runs `program`, with `given` as its descriptors from [`FIRST_FD`] on. What it leaves running is no child of ours: the program's own
/// `wait` never meets it.
fn spawn(program: &Path, arguments: &[CString], given: &[OwnedFd]) -> io::Result<()> {
    let path = CString::new(program.as_os_str().to_owned().into_vec()).map_err(io::Error::other)?;
    let mut argv: Vec<*mut libc::c_char> = vec![path.as_ptr().cast_mut()];
    argv.extend(arguments.iter().map(|argument| argument.as_ptr().cast_mut()));
    argv.push(std::ptr::null_mut());
    // SAFETY: an all-zero value may be passed to the initialisers below, which set it up.
    let mut actions: libc::posix_spawn_file_actions_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut attributes: libc::posix_spawnattr_t = unsafe { std::mem::zeroed() };
    // A library that is preloaded into the program has no business in the device process.
    let variables = std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD");
    let variables: Vec<CString> = variables
        .filter_map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok())
        .collect();
    let mut envp: Vec<*mut libc::c_char> = variables.iter().map(|variable| variable.as_ptr().cast_mut()).collect();
    envp.push(std::ptr::null_mut());
    let mut pid = 0;
    // SAFETY: `actions` and `attributes` are initialised before use and destroyed after it; all strings and arrays live for the calls,
    // and the arrays end with null.
    let code = unsafe {
        libc::posix_spawn_file_actions_init(&mut actions);
        libc::posix_spawnattr_init(&mut attributes);
        libc::posix_spawn_file_actions_addopen(&mut actions, 0, c"/dev/null".as_ptr(), libc::O_RDONLY, 0);
        libc::posix_spawn_file_actions_addopen(&mut actions, 1, c"/dev/null".as_ptr(), libc::O_WRONLY, 0);
        for (target, fd) in (FIRST_FD..).zip(given) {
            libc::posix_spawn_file_actions_adddup2(&mut actions, fd.as_raw_fd(), target);
        }
        // Signals that the program blocks or ignores are its own business.
        let mut none: libc::sigset_t = std::mem::zeroed();
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigfillset(&mut all);
        libc::posix_spawnattr_setsigmask(&mut attributes, &none);
        libc::posix_spawnattr_setsigdefault(&mut attributes, &all);
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        libc::posix_spawnattr_setflags(&mut attributes, flags as libc::c_short);
        let code = libc::posix_spawn(&mut pid, path.as_ptr(), &actions, &attributes, argv.as_ptr(), envp.as_ptr());
        libc::posix_spawnattr_destroy(&mut attributes);
        libc::posix_spawn_file_actions_destroy(&mut actions);
        code
    };
    if code != 0 {
        return Err(io::Error::from_raw_os_error(code));
    }
    let mut status = 0;
    // SAFETY: `status` is writable. The process splits at once and its first half ends, so this is short; it fails where the program
    // ignores SIGCHLD, which reaps as well.
    while unsafe { libc::waitpid(pid, &mut status, 0) } < 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
    Ok(())
}
