//! The device process lives as long as the program, however that ends.

use std::os::fd::RawFd;

/// Ends this process when the program with `host_pid` ends or closes its end of `socket`.
///
/// The socket alone is not enough: a forked child of the program holds a copy of it. A parent-death signal would follow a thread, not the
/// program.
pub(super) fn with_host(host_pid: i32, socket: RawFd) -> std::io::Result<()> {
    // SAFETY: pidfd_open takes any number and reports errors.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, host_pid, 0) } as RawFd;
    // Without pidfd (before Linux 5.3) the socket has to do; a program that is gone already shows there.
    std::thread::Builder::new().name("uma-end".to_owned()).spawn(move || wait(pidfd, socket))?;
    Ok(())
}

fn wait(pidfd: RawFd, socket: RawFd) {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // poll ignores negative descriptors.
    let mut both = [entry(socket), entry(pidfd)];
    loop {
        // SAFETY: `both` is two pollfds and lives for the call.
        let count = unsafe { libc::poll(both.as_mut_ptr(), 2, -1) };
        if count > 0 {
            // SAFETY: _exit has no preconditions; nothing of this process needs an orderly end.
            unsafe { libc::_exit(0) };
        }
    }
}
