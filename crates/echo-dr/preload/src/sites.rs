//! Call sites: β is 64-bit FNV-1a over the top 16 return addresses, each as (module, offset).
//!
//! Absolute addresses never enter, so β is the same under address-space randomisation and from run to run. Frames of this library are
//! left out: how many there are depends on mode, layer and compiler. The walk goes by unwind tables, which all compilers emit for both
//! architectures, so it needs no frame pointers; it doesn't allocate, and reads the stack only within its bounds.

use std::ops::Range;
use std::sync::Arc;

use echo_dr_format::site::{SITE_DEPTH, Site};
use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder as _};

use crate::modules::{self, Modules};
use crate::stack::{self, Words};

/// Frames of this library that may precede the program's first, at most.
const OWN_FRAMES: usize = 32;

/// The return addresses that make up a site.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frames {
    addresses: [usize; SITE_DEPTH],
    len: usize,
}

impl Frames {
    /// Innermost first.
    pub(crate) fn addresses(&self) -> &[usize] {
        &self.addresses[..self.len]
    }
}

/// Registers to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// Program counter.
    pub(crate) pc: usize,
    /// Stack pointer.
    pub(crate) sp: usize,
    /// Frame pointer.
    pub(crate) fp: usize,
    /// Link register.
    #[cfg(target_arch = "aarch64")]
    pub(crate) lr: usize,
}

impl Registers {
    /// Of nothing.
    #[cfg(target_arch = "x86_64")]
    const NONE: Self = Self { pc: 0, sp: 0, fp: 0 };
    #[cfg(target_arch = "aarch64")]
    const NONE: Self = Self { pc: 0, sp: 0, fp: 0, lr: 0 };

    /// Of the function that this is inlined into.
    #[inline(always)]
    pub(crate) fn here() -> Self {
        let (pc, sp, fp): (usize, usize, usize);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: only reads registers.
        unsafe {
            std::arch::asm!("lea {pc}, [rip]", "mov {sp}, rsp", "mov {fp}, rbp",
                pc = out(reg) pc, sp = out(reg) sp, fp = out(reg) fp, options(nomem, nostack, preserves_flags));
        }
        #[cfg(target_arch = "x86_64")]
        return Self { pc, sp, fp };
        #[cfg(target_arch = "aarch64")]
        {
            let lr: usize;
            // SAFETY: only reads registers.
            unsafe {
                std::arch::asm!("adr {pc}, .", "mov {sp}, sp", "mov {fp}, x29", "mov {lr}, x30",
                    pc = out(reg) pc, sp = out(reg) sp, fp = out(reg) fp, lr = out(reg) lr,
                    options(nomem, nostack, preserves_flags));
            }
            Self { pc, sp, fp, lr }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn for_unwinder(self) -> framehop::UnwindRegsNative {
        framehop::UnwindRegsNative::new(self.pc as u64, self.sp as u64, self.fp as u64)
    }

    #[cfg(target_arch = "aarch64")]
    fn for_unwinder(self) -> framehop::UnwindRegsNative {
        // Addresses of user space have at most 48 bits here; signed return addresses have a code above them.
        let mask = framehop::aarch64::PtrAuthMask(0x0000_ffff_ffff_ffff);
        framehop::UnwindRegsNative::new_with_ptr_auth_mask(mask, self.lr as u64, self.sp as u64, self.fp as u64)
    }
}

/// How many walks a thread remembers.
const REMEMBERED: usize = 32;
/// Words that a remembered walk has read, at most: a return address and a saved register a frame.
const WORDS: usize = 2 * (OWN_FRAMES + SITE_DEPTH);

/// A walk and all that it depended on. With the same registers and the same words in the same places it would go the same way, so it need not
/// be made again: a program that copies in a loop walks its stack once.
#[derive(Clone, Copy)]
struct Walk {
    start: Registers,
    words: Words<WORDS>,
    site: Site,
    frames: Frames,
}

impl Walk {
    const NONE: Self = Self {
        start: Registers::NONE,
        words: Words::NONE,
        site: Site(0),
        frames: Frames { addresses: [0; SITE_DEPTH], len: 0 },
    };

    fn is_still(&self, start: Registers, bounds: &Range<usize>) -> bool {
        self.start == start && self.words.still_hold(bounds)
    }
}

/// The walks that a thread remembers. Calls of one loop come by the same registers and differ in a return address only, but they come in the
/// same order each round: what followed the last walk before is looked at first.
struct Remembered {
    /// On the heap from the first: 50 KB would be more than some threads have for a stack.
    walks: Box<[Walk]>,
    /// By walk: the one that came after it.
    after: [usize; REMEMBERED],
    last: usize,
    /// Which one gives way to the next.
    oldest: usize,
}

impl Remembered {
    fn new() -> Box<Self> {
        let walks = vec![Walk::NONE; REMEMBERED].into_boxed_slice();
        Box::new(Self { walks, after: [0; REMEMBERED], last: 0, oldest: 0 })
    }

    fn find(&mut self, start: Registers, bounds: &Range<usize>) -> Option<&Walk> {
        let expected = self.after[self.last];
        let found = if self.walks[expected].is_still(start, bounds) {
            expected
        } else {
            self.walks.iter().position(|walk| walk.is_still(start, bounds))?
        };
        Some(self.came(found))
    }

    fn add(&mut self, walk: &Walk) {
        let place = self.oldest;
        self.oldest = (place + 1) % REMEMBERED;
        self.walks[place] = *walk;
        self.came(place);
    }

    fn came(&mut self, place: usize) -> &Walk {
        self.after[self.last] = place;
        self.last = place;
        &self.walks[place]
    }

    fn forget(&mut self) {
        self.walks.fill(Walk::NONE);
    }
}

/// What a thread needs to walk its stack.
pub(crate) struct Walker {
    modules: Arc<Modules>,
    cache: framehop::CacheNative<MustNotAllocateDuringUnwind>,
    remembered: Box<Remembered>,
}

impl Walker {
    /// For the objects that are loaded now. Allocates, on Echo's own heap.
    pub(crate) fn new() -> Self {
        Self { modules: modules::current(), cache: framehop::CacheNative::new_in(), remembered: Remembered::new() }
    }

    /// The objects that the last walk knew.
    pub(crate) fn modules(&self) -> &Modules {
        &self.modules
    }

    /// The site of the call that led here, and its frames.
    pub(crate) fn walk(&mut self, start: Registers) -> (Site, Frames) {
        if modules::generation() != self.modules.generation() {
            self.modules = modules::current();
            self.remembered.forget();
        }
        let bounds = stack::above(start.sp);
        if let Some(bounds) = &bounds
            && let Some(known) = self.remembered.find(start, bounds)
        {
            return (known.site, known.frames);
        }
        let mut walk = Walk { start, ..Walk::NONE };
        let mut is_whole = bounds.is_some();
        walk.frames = self.frames(start, |address| {
            let word = stack::read(bounds.as_ref(), address)?;
            is_whole &= walk.words.note(address, word);
            Some(word)
        });
        walk.site = self.identity(&walk.frames);
        if is_whole {
            self.remembered.add(&walk);
        }
        (walk.site, walk.frames)
    }

    fn frames(&mut self, start: Registers, mut read: impl FnMut(usize) -> Option<u64>) -> Frames {
        let mut read = |address| read(address as usize).ok_or(());
        let unwinder = &self.modules.unwinder;
        let mut walk = unwinder.iter_frames(start.pc as u64, start.for_unwinder(), &mut self.cache, &mut read);
        let mut frames = Frames::default();
        let mut left = OWN_FRAMES + SITE_DEPTH;
        while let Ok(Some(frame)) = walk.next() {
            let address = match frame {
                FrameAddress::InstructionPointer(address) => address as usize,
                FrameAddress::ReturnAddress(address) => address.get() as usize,
            };
            left -= 1;
            if frames.len > 0 || !self.modules.is_own(address) {
                frames.addresses[frames.len] = address;
                frames.len += 1;
            }
            // Beyond code without a module (generated at run time) there are no tables to go on by.
            if left == 0 || frames.len == SITE_DEPTH || self.modules.find(address).is_none() {
                break;
            }
        }
        frames
    }

    fn identity(&self, frames: &Frames) -> Site {
        Site::of_frames(frames.addresses().iter().map(|&address| match self.modules.find(address) {
            Some(module) => (module.key, address.wrapping_sub(module.base) as u64),
            // Of code that no module has, not even the offset is the same in the next run.
            None => (0, 0),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // In a test the frames of the test program are "own": walk from another thread's start, whose frames end in libc.
    #[test]
    fn a_walk_ends_in_the_c_library_and_is_the_same_twice() {
        let walk = || {
            let mut walker = Walker::new();
            let sites = [0, 1].map(|_| walker.walk(Registers::here()));
            assert_eq!(sites[0].0, sites[1].0);
            let last = *sites[0].1.addresses().last().expect("a thread starts in the C library");
            let module = walker.modules().find(last).expect("which is a module");
            assert!(module.path.to_string_lossy().contains("libc"), "{:?}", module.path);
            assert!(module.build_id.is_some());
        };
        std::thread::spawn(walk).join().expect("the walk ends");
    }
}
