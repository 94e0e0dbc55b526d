//! What a program that was compiled with `target=adaptive` asks for: p for a pair, or nothing, and the end of a p.
//!
//! The program keeps its own calls for pairs that stay two buffers, so nothing here may be noticed by them: where no p is made, no error of
//! an attempt is left for the program's next `cudaGetLastError`, and where the program has an error of its own no attempt is made.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Backend, Cuda, CudaError, DeviceFacts, Merged, PairFacts, choose};

/// What the user asked for in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// `ECHO_RT_BACKEND`: the backend to take for every pair that may have it; others go by their own.
    pub backend: Option<Backend>,
    /// `ECHO_RT_VERBOSE`: each pair's backend is told on standard error.
    pub verbose: bool,
}

impl Wishes {
    /// Reads the values of `ECHO_RT_BACKEND` and `ECHO_RT_VERBOSE` (anything but empty and `0` is yes).
    ///
    /// # Errors
    /// A sentence on the backend that there is not; the other wish holds.
    pub fn parse(backend: Option<&str>, verbose: Option<&str>) -> (Self, Result<(), String>) {
        let verbose = verbose.is_some_and(|value| !value.is_empty() && value != "0");
        let Some(name) = backend.filter(|name| !name.is_empty()) else {
            return (Self { backend: None, verbose }, Ok(()));
        };
        let known = [Backend::Managed, Backend::Mapped, Backend::System, Backend::Separate];
        match known.into_iter().find(|backend| backend.name() == name) {
            Some(backend) => (Self { backend: Some(backend), verbose }, Ok(())),
            None => {
                let names = known.map(Backend::name).join(", ");
                let text = format!("echo-rt: ECHO_RT_BACKEND={name} is no backend and is left alone; valid: {names}");
                (Self { backend: None, verbose }, Err(text))
            }
        }
    }
}

/// One pair's request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Bytes of each buffer.
    pub bytes: usize,
    /// θ_min in bytes: a smaller pair stays two buffers.
    pub threshold: usize,
    /// S5 holds for the pair.
    pub exclusive: bool,
}

/// The merged buffers of a process.
#[derive(Debug, Default)]
pub struct Runtime {
    live: Mutex<BTreeMap<usize, Merged>>,
}

impl Runtime {
    /// No buffers yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { live: Mutex::new(BTreeMap::new()) }
    }

    /// p for a pair, `None` where it stays two buffers. `device` says what the current device is; it is asked only if that matters.
    pub fn create<C: Cuda>(
        &self,
        cuda: &C,
        device: impl FnOnce() -> DeviceFacts,
        wishes: &Wishes,
        request: Request,
    ) -> Option<Merged> {
        // Of zero bytes cudaMalloc gives null and malloc may: the program's own calls know best.
        if request.bytes == 0 || request.bytes < request.threshold || cuda.has_error() {
            return None;
        }
        // What the pinned backend needs to know of the copies is not needed: it merges nothing.
        let facts = PairFacts { mergeable: true, exclusive: request.exclusive, synchronous_copies: false };
        let backend = choose(device(), facts, wishes.backend.as_slice());
        let merged = Merged::allocate(cuda, backend, request.bytes);
        match merged {
            Some(merged) => {
                self.live().insert(merged.address(), merged);
            }
            None if backend.is_merged() => cuda.forget_error(),
            None => {}
        }
        merged
    }

    /// Ends p. Of 0, which a program may free as often as it likes, nothing is done.
    ///
    /// # Errors
    /// What the wait and the free say. An address that is no p is cudaErrorInvalidValue, as cudaFree says of such.
    pub fn release(&self, cuda: &impl Cuda, address: usize) -> Result<(), CudaError> {
        if address == 0 {
            return Ok(());
        }
        let merged = self.live().remove(&address);
        merged.ok_or(CudaError::INVALID_VALUE)?.release(cuda)
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<usize, Merged>> {
        // Nothing that holds the lock can leave the map half changed.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    const ORIN: DeviceFacts = DeviceFacts {
        integrated: true,
        managed_memory: true,
        concurrent_managed_access: false,
        pageable_memory_access: false,
        host_page_tables: false,
        mapped_host_memory: true,
    };
    const PAIR: Request = Request { bytes: 4096, threshold: 1024, exclusive: true };

    fn create(runtime: &Runtime, cuda: &Fake, wishes: &Wishes, request: Request) -> Option<Backend> {
        runtime.create(cuda, || ORIN, wishes, request).map(Merged::backend)
    }

    #[test]
    fn a_pair_gets_what_device_and_proof_allow() {
        let (runtime, cuda, wishes) = (Runtime::new(), Fake::default(), Wishes::default());
        assert_eq!(create(&runtime, &cuda, &wishes, PAIR), Some(Backend::Managed));
        assert_eq!(
            create(&runtime, &cuda, &wishes, Request { exclusive: false, ..PAIR }),
            Some(Backend::Mapped),
            "managed memory would break S5"
        );
        let discrete = || DeviceFacts { integrated: false, ..ORIN };
        assert_eq!(runtime.create(&cuda, discrete, &wishes, PAIR), None);
    }

    #[test]
    fn small_and_empty_pairs_stay_two() {
        let (runtime, cuda, wishes) = (Runtime::new(), Fake::default(), Wishes::default());
        assert_eq!(create(&runtime, &cuda, &wishes, Request { bytes: 1023, ..PAIR }), None);
        assert_eq!(create(&runtime, &cuda, &wishes, Request { bytes: 0, threshold: 0, ..PAIR }), None);
        assert!(create(&runtime, &cuda, &wishes, Request { bytes: 1024, ..PAIR }).is_some());
        assert_eq!(cuda.live().len(), 1);
    }

    #[test]
    fn a_wish_counts_where_it_is_safe() {
        let (runtime, cuda) = (Runtime::new(), Fake::default());
        let wish = |backend| Wishes { backend: Some(backend), verbose: false };
        assert_eq!(create(&runtime, &cuda, &wish(Backend::Mapped), PAIR), Some(Backend::Mapped));
        assert_eq!(create(&runtime, &cuda, &wish(Backend::Separate), PAIR), None);
        let shared = Request { exclusive: false, ..PAIR };
        assert_eq!(create(&runtime, &cuda, &wish(Backend::Managed), shared), Some(Backend::Mapped));
        assert_eq!(create(&runtime, &cuda, &wish(Backend::System), PAIR), Some(Backend::Managed));
    }

    #[test]
    fn a_failed_attempt_leaves_no_trace() {
        let refusing = Fake::refusing(&["managed"]);
        let runtime = Runtime::new();
        assert_eq!(create(&runtime, &refusing, &Wishes::default(), PAIR), None);
        assert_eq!(refusing.log(), ["forget error"]);
        assert!(refusing.live().is_empty());
    }

    #[test]
    fn an_error_of_the_program_is_left_for_it() {
        let failing = Fake::with_error();
        assert_eq!(create(&Runtime::new(), &failing, &Wishes::default(), PAIR), None);
        assert!(failing.log().is_empty() && failing.live().is_empty());
    }

    #[test]
    fn each_p_ends_once_and_by_its_own_kind() {
        for backend in [Backend::Managed, Backend::Mapped] {
            let (runtime, cuda) = (Runtime::new(), Fake::default());
            let wishes = Wishes { backend: Some(backend), verbose: false };
            let p = runtime.create(&cuda, || ORIN, &wishes, PAIR).expect("a buffer").address();
            assert_eq!(runtime.release(&cuda, 0), Ok(()));
            assert_eq!(runtime.release(&cuda, p), Ok(()));
            assert!(cuda.live().is_empty());
            assert_eq!(runtime.release(&cuda, p), Err(CudaError::INVALID_VALUE));
        }
    }

    #[test]
    fn wishes_are_read_and_a_wrong_one_is_named() {
        let (wishes, outcome) = Wishes::parse(Some("mapped"), Some("1"));
        assert_eq!((wishes, outcome), (Wishes { backend: Some(Backend::Mapped), verbose: true }, Ok(())));
        assert_eq!(Wishes::parse(None, Some("0")), (Wishes::default(), Ok(())));
        let (wishes, outcome) = Wishes::parse(Some("maped"), None);
        assert_eq!(wishes, Wishes::default());
        let text = outcome.expect_err("no such backend");
        assert!(text.contains("maped") && text.contains("managed, mapped, system, separate"), "{text}");
    }
}
