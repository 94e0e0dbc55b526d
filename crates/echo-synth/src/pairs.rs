//! One pair of a host and a device buffer: how it begins, what is done with it in each of its uses, how it ends.

use super::device::{CHANGE, Kernel, LOOK, MAKE, OTHER};
use super::function::Function;
use super::random::Random;

/// What a pair is there to show; the comment says what becomes of it (where no other pair's work is in flight).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Filled, uploaded, changed, downloaded, read. Merged.
    Round,
    /// The same in a loop. Merged.
    Loop,
    /// The same with asynchronous copies on a stream. Merged.
    Async,
    /// Uploaded, looked at by a kernel, read again by the host. Merged.
    Input,
    /// Made by a kernel and downloaded. Merged.
    Output,
    /// Uploaded and given to a kernel of which nothing is known, then read again. Declined: S1.
    Unknown,
    /// The host buffer changes between upload and kernel. Declined: S1.
    Overwritten,
    /// The host buffer is filled again while a kernel may run. Declined: S2.
    Unordered,
    /// The two pointers are compared. Declined: S3.
    Compared,
    /// Allocated and used only where a condition holds. Merged.
    Conditional,
}

const KINDS: [Kind; 10] = [
    Kind::Round,
    Kind::Loop,
    Kind::Async,
    Kind::Input,
    Kind::Output,
    Kind::Unknown,
    Kind::Overwritten,
    Kind::Unordered,
    Kind::Compared,
    Kind::Conditional,
];

const UP: u32 = 1;
const DOWN: u32 = 2;

/// A pair in its function.
pub(crate) struct Pair {
    kind: Kind,
    /// How often it is still to be used.
    uses: usize,
    /// Its size in bytes: IR text of type i64.
    size: String,
    constant: bool,
    host: String,
    slot: String,
    stream: String,
}

impl Pair {
    /// So many pairs of kinds in turn.
    pub(crate) fn some(count: usize, random: &mut Random) -> Vec<Self> {
        (0..count)
            .map(|_| {
                let kind = random.pick(&KINDS);
                let uses = if kind == Kind::Conditional { 1 } else { 1 + random.below(3) };
                let constant = random.below(2) == 0;
                let size = if constant { ((1 + random.below(64)) << 20).to_string() } else { String::new() };
                Self { kind, uses, size, constant, host: String::new(), slot: String::new(), stream: String::new() }
            })
            .collect()
    }

    pub(crate) fn uses(&self) -> usize {
        self.uses
    }

    /// Allocates both buffers.
    pub(crate) fn begin(&mut self, f: &mut Function<'_>) {
        self.slot = f.variable("ptr");
        if !self.constant {
            self.size = f.value("shl nuw nsw i64 %n, 10");
        }
        if self.kind == Kind::Async {
            self.stream = f.variable("ptr");
            let error = f.value(&format!("call i32 @cudaStreamCreate(ptr {})", self.stream));
            check(f, &error);
        }
        if self.kind != Kind::Conditional {
            self.allocate(f);
        }
    }

    /// One use.
    pub(crate) fn go_on(&mut self, f: &mut Function<'_>, random: &mut Random) {
        self.uses = self.uses.saturating_sub(1);
        match self.kind {
            Kind::Loop => {
                let rounds = (2 + random.below(100)).to_string();
                f.repeat(&rounds, |f, _| self.round(f));
            }
            Kind::Conditional => {
                let bit = f.value(&format!("and i64 %k, {}", 1 << random.below(8)));
                let set = f.value(&format!("icmp ne i64 {bit}, 0"));
                let (inside, after) = (f.name(), f.name());
                f.branch(&set, &inside, &after);
                f.start(&inside);
                self.allocate(f);
                self.round(f);
                self.release(f);
                f.go_to(&after);
                f.start(&after);
            }
            _ => self.round(f),
        }
    }

    /// Frees both buffers.
    pub(crate) fn end(self, f: &mut Function<'_>) {
        if self.kind == Kind::Async {
            let stream = f.value(&format!("load ptr, ptr {}", self.stream));
            f.value(&format!("call i32 @cudaStreamSynchronize(ptr {stream})"));
            f.value(&format!("call i32 @cudaStreamDestroy(ptr {stream})"));
        }
        if self.kind != Kind::Conditional {
            self.release(f);
        }
    }

    fn allocate(&mut self, f: &mut Function<'_>) {
        self.host = f.value(&format!("call ptr @malloc(i64 {})", self.size));
        let error = f.value(&format!("call i32 @cudaMalloc(ptr {}, i64 {})", self.slot, self.size));
        check(f, &error);
    }

    fn release(&self, f: &mut Function<'_>) {
        let device = self.device(f);
        let error = f.value(&format!("call i32 @cudaFree(ptr {device})"));
        check(f, &error);
        f.effect(&format!("call void @free(ptr {})", self.host));
    }

    fn round(&self, f: &mut Function<'_>) {
        match self.kind {
            Kind::Round | Kind::Loop | Kind::Async | Kind::Conditional => {
                self.fill(f);
                self.copy(f, UP);
                self.launch(f, &CHANGE);
                self.copy(f, DOWN);
                self.wait(f);
                self.read(f);
            }
            Kind::Input => {
                self.fill(f);
                self.copy(f, UP);
                self.launch(f, &LOOK);
                self.wait(f);
                self.read(f);
            }
            Kind::Output => {
                self.launch(f, &MAKE);
                self.copy(f, DOWN);
                self.read(f);
            }
            Kind::Unknown => {
                self.fill(f);
                self.copy(f, UP);
                self.launch(f, &OTHER);
                self.wait(f);
                self.read(f);
            }
            Kind::Overwritten => {
                self.fill(f);
                self.copy(f, UP);
                f.effect(&format!("store float 9.0, ptr {}", self.host));
                self.launch(f, &CHANGE);
                self.copy(f, DOWN);
                self.read(f);
            }
            Kind::Unordered => {
                self.fill(f);
                self.copy(f, UP);
                self.launch(f, &CHANGE);
                self.fill(f);
                self.wait(f);
            }
            Kind::Compared => {
                self.fill(f);
                self.copy(f, UP);
                self.launch(f, &CHANGE);
                self.copy(f, DOWN);
                let device = self.device(f);
                let same = f.value(&format!("icmp eq ptr {device}, {}", self.host));
                let number = f.value(&format!("zext i1 {same} to i64"));
                let sum = f.value(&format!("add i64 {number}, {}", f.accumulator().to_owned()));
                f.accumulate(sum);
            }
        }
    }

    fn device(&self, f: &mut Function<'_>) -> String {
        f.value(&format!("load ptr, ptr {}", self.slot))
    }

    /// `for (i) h[i] = i`
    fn fill(&self, f: &mut Function<'_>) {
        f.repeat("%n", |f, i| {
            let place = f.value(&format!("getelementptr inbounds float, ptr {}, i64 {i}", self.host));
            let value = f.value(&format!("uitofp i64 {i} to float"));
            f.effect(&format!("store float {value}, ptr {place}"));
        });
    }

    /// `for (i) sum += h[i]`
    fn read(&self, f: &mut Function<'_>) {
        let total = f.variable("float");
        f.effect(&format!("store float 0.0, ptr {total}"));
        f.repeat("%n", |f, i| {
            let place = f.value(&format!("getelementptr inbounds float, ptr {}, i64 {i}", self.host));
            let value = f.value(&format!("load float, ptr {place}"));
            let old = f.value(&format!("load float, ptr {total}"));
            let sum = f.value(&format!("fadd float {value}, {old}"));
            f.effect(&format!("store float {sum}, ptr {total}"));
        });
        let sum = f.value(&format!("load float, ptr {total}"));
        let real = f.value(&format!("fpext float {sum} to double"));
        f.value(&format!("call i32 (ptr, ...) @printf(ptr @format, double {real})"));
    }

    fn copy(&self, f: &mut Function<'_>, direction: u32) {
        let device = self.device(f);
        let (to, from) = if direction == UP { (&device, &self.host) } else { (&self.host, &device) };
        let arguments = format!("ptr {to}, ptr {from}, i64 {}, i32 {direction}", self.size);
        let error = if self.kind == Kind::Async {
            let stream = f.value(&format!("load ptr, ptr {}", self.stream));
            f.value(&format!("call i32 @cudaMemcpyAsync({arguments}, ptr {stream})"))
        } else {
            f.value(&format!("call i32 @cudaMemcpy({arguments})"))
        };
        check(f, &error);
    }

    fn wait(&self, f: &mut Function<'_>) {
        let error = match self.kind {
            Kind::Async => {
                let stream = f.value(&format!("load ptr, ptr {}", self.stream));
                f.value(&format!("call i32 @cudaStreamSynchronize(ptr {stream})"))
            }
            Kind::Input | Kind::Unknown | Kind::Unordered => f.value("call i32 @cudaDeviceSynchronize()"),
            _ => return,
        };
        check(f, &error);
    }

    /// `kernel<<<n / 256, 256, 0, stream>>>(d, n)`
    fn launch(&self, f: &mut Function<'_>, kernel: &Kernel) {
        let stream = match self.kind {
            Kind::Async => f.value(&format!("load ptr, ptr {}", self.stream)),
            _ => "null".to_owned(),
        };
        let blocks = f.value("lshr i64 %n, 8");
        let error = f.value(&format!(
            "call i32 @__cudaPushCallConfiguration(i64 {blocks}, i32 1, i64 256, i32 1, i64 0, ptr {stream})"
        ));
        let failed = f.value(&format!("icmp ne i32 {error}, 0"));
        let (launch, after) = (f.name(), f.name());
        f.branch(&failed, &after, &launch);
        f.start(&launch);
        let device = self.device(f);
        let count = f.value("trunc i64 %n to i32");
        f.effect(&format!("call void @__device_stub__{}(ptr {device}, i32 {count})", kernel.name));
        f.go_to(&after);
        f.start(&after);
    }
}

/// `CHECK(…)`
fn check(f: &mut Function<'_>, error: &str) {
    let line = f.instructions();
    f.effect(&format!("call void @check(i32 {error}, i32 {line})"));
}
