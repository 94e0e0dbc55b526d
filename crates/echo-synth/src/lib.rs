//! Host modules of any size, as LLVM IR text, to measure the passes on: ordinary code with pairs of host and device buffers in it.
//!
//! The text is what clang writes before it optimises, minus the stack slots of plain variables: launch stubs and checking helpers are
//! functions of their own, device pointers live in memory, the device half is embedded with the effects record of its kernels. The
//! same [`Request`] always gives the same text. Pairs come in the kinds of `pairs`, some to be merged and some to be declined.
//!
//! | file | |
//! | --- | --- |
//! | `function.rs` | writes one function: values, blocks, how many instructions |
//! | `ordinary.rs` | code that has nothing to do with CUDA |
//! | `pairs.rs` | a pair's allocation, uses and release |
//! | `device.rs` | kernels: launch stubs, registration, embedded record |
//! | `random.rs` | numbers from a seed |

mod device;
mod function;
mod ordinary;
mod pairs;
mod random;

use function::{Function, Metadata, Written};
use pairs::Pair;
use random::Random;

/// How the pairs are spread over functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Functions with one to four pairs each, amid functions without any.
    ManyFunctions,
    /// Functions of about 100,000 instructions with all code and pairs.
    FewFunctions,
    /// A single function.
    OneFunction,
    /// No CUDA at all.
    Plain,
}

/// Which module is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// About how many instructions.
    pub instructions: usize,
    /// How many pairs; none in a plain module.
    pub pairs: usize,
    /// How they are spread.
    pub shape: Shape,
    /// Modules of other seeds differ in everything that is random.
    pub seed: u64,
    /// Give every instruction a place in the source, so that reports name it.
    pub locations: bool,
}

/// A module and what is in it.
#[derive(Clone, Debug)]
pub struct Module {
    /// LLVM IR.
    pub text: String,
    /// Instructions in all functions.
    pub instructions: usize,
    /// Pairs of a host and a device buffer that copies join.
    pub pairs: usize,
}

/// Instructions of a function of [`Shape::FewFunctions`].
const LARGE: usize = 100_000;

/// A huge function has at most this many pairs in use at a time, besides those that live as long as the function.
const OPEN_PAIRS: usize = 6;

/// The module for a request.
#[must_use]
pub fn module(request: &Request) -> Module {
    let mut writer = Writer::new(request);
    let pairs = if request.shape == Shape::Plain { 0 } else { request.pairs };
    if pairs > 0 {
        writer.text += &device::module_text(&mut writer.metadata, &mut writer.instructions);
    }
    for _ in 0..4 {
        writer.helper();
    }
    match request.shape {
        Shape::Plain => {}
        Shape::ManyFunctions => {
            let per_pair = request.instructions / request.pairs.max(1);
            let mut left = pairs;
            while left > 0 {
                let here = (1 + writer.random.below(4)).min(left);
                left -= here;
                writer.cuda_function(here, here * per_pair / 2);
                let goal = request.instructions * (pairs - left) / pairs;
                writer.plain_functions(goal);
            }
        }
        Shape::FewFunctions | Shape::OneFunction => {
            let count = if request.shape == Shape::OneFunction { 1 } else { request.instructions.div_ceil(LARGE) };
            for index in 0..count {
                let here = pairs * (index + 1) / count - pairs * index / count;
                writer.cuda_function(here, request.instructions / count);
            }
        }
    }
    writer.plain_functions(request.instructions);
    writer.main();
    Module { text: writer.finish(), instructions: writer.instructions, pairs }
}

/// A module as it grows.
struct Writer {
    text: String,
    instructions: usize,
    random: Random,
    metadata: Metadata,
    /// Functions that `main` calls.
    roots: Vec<String>,
}

impl Writer {
    fn new(request: &Request) -> Self {
        Self {
            text: ordinary::DECLARATIONS.to_owned(),
            instructions: 0,
            random: Random::new(request.seed),
            metadata: Metadata::new(request.locations),
            roots: Vec::new(),
        }
    }

    /// A small function that ordinary code calls.
    fn helper(&mut self) {
        let name = format!("helper{}", self.roots.len());
        let mut function = Function::new(&name, "noinline", &mut self.metadata);
        for _ in 0..2 {
            ordinary::arithmetic(&mut function, &mut self.random);
        }
        let written = function.finish_with_result();
        self.add(written, name);
    }

    fn plain_functions(&mut self, until: usize) {
        while self.instructions < until {
            let name = format!("work{}", self.roots.len());
            let size = 60 + self.random.below(400);
            let mut function = Function::new(&name, "", &mut self.metadata);
            while function.instructions() < size.min(until - self.instructions) {
                ordinary::piece(&mut function, &mut self.random);
            }
            let written = function.finish_with_result();
            self.add(written, name);
        }
    }

    /// A function with so many pairs and about so many instructions, spread evenly over the pairs' phases.
    fn cuda_function(&mut self, count: usize, instructions: usize) {
        let name = format!("device_work{}", self.roots.len());
        let random = &mut self.random;
        let mut function = Function::new(&name, "", &mut self.metadata);
        // Where a caller's work may be in flight, no buffer may become managed memory: in most functions none is.
        if random.below(8) != 0 {
            function.value("call i32 @cudaDeviceSynchronize()");
        }
        let mut waiting = Pair::some(count, random);
        let mut lasting: Vec<Pair> = Vec::new();
        let mut open: Vec<Pair> = Vec::new();
        if count > 2 * OPEN_PAIRS {
            lasting = waiting.split_off(waiting.len() - count / 10);
            lasting.iter_mut().for_each(|pair| pair.begin(&mut function));
        }
        let phases = waiting.iter().map(|pair| pair.uses() + 2).sum::<usize>() + lasting.len() * 2;
        let mut done = lasting.len();
        let mut advance = |function: &mut Function<'_>, random: &mut Random| {
            done += 1;
            while function.instructions() < instructions * done / phases {
                ordinary::piece(function, random);
            }
        };
        let between = waiting.len() / lasting.len().max(1);
        while !waiting.is_empty() || !open.is_empty() {
            let begin = open.is_empty() || open.len() < OPEN_PAIRS && random.below(3) == 0;
            if begin && let Some(mut pair) = waiting.pop() {
                pair.begin(&mut function);
                open.push(pair);
                if between > 0
                    && waiting.len().is_multiple_of(between)
                    && let Some(old) = lasting.get_mut(waiting.len() / between)
                {
                    old.go_on(&mut function, random);
                }
            } else if !open.is_empty() {
                let index = random.below(open.len());
                if open[index].uses() > 0 {
                    open[index].go_on(&mut function, random);
                } else {
                    open.swap_remove(index).end(&mut function);
                }
            }
            advance(&mut function, random);
        }
        for pair in lasting {
            pair.end(&mut function);
            advance(&mut function, random);
        }
        let written = function.finish_with_result();
        self.add(written, name);
    }

    fn main(&mut self) {
        let mut function = Function::main(&mut self.metadata);
        for root in &self.roots {
            function.value(&format!("call i64 @{root}(ptr @input, ptr @output, i64 4096, i64 7)"));
        }
        let text = function.finish("ret i32 0");
        self.instructions += text.instructions;
        self.text += &text.text;
    }

    /// Adds a function that `main` calls.
    fn add(&mut self, written: Written, name: String) {
        self.instructions += written.instructions;
        self.text += &written.text;
        self.roots.push(name);
    }

    fn finish(&mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        text += &self.metadata.text();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(shape: Shape) -> Request {
        Request { instructions: 5_000, pairs: 20, shape, seed: 1, locations: false }
    }

    #[test]
    fn a_request_always_gives_the_same_text() {
        for shape in [Shape::ManyFunctions, Shape::FewFunctions, Shape::OneFunction, Shape::Plain] {
            assert_eq!(module(&request(shape)).text, module(&request(shape)).text);
        }
        let other = Request { seed: 2, ..request(Shape::ManyFunctions) };
        assert_ne!(module(&request(Shape::ManyFunctions)).text, module(&other).text);
    }

    #[test]
    fn a_module_has_the_size_and_the_pairs_that_were_asked_for() {
        for shape in [Shape::ManyFunctions, Shape::FewFunctions, Shape::OneFunction] {
            let made = module(&request(shape));
            assert!((5_000..6_500).contains(&made.instructions), "{shape:?}: {}", made.instructions);
            assert_eq!(made.text.matches("call i32 @cudaMalloc(").count(), 20, "{shape:?}");
        }
        let plain = module(&request(Shape::Plain));
        assert!(!plain.text.contains("cuda"), "no CUDA in a plain module");
    }
}
