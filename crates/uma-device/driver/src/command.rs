//! What the program asks of the device process, and its form in the ring.

/// A box of bytes at two places: `depth` slices of `height` rows of `width` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

impl Shape {
    /// One row.
    pub fn line(bytes: usize) -> Shape {
        Shape { width: bytes, height: 1, depth: 1 }
    }

    /// Bytes in all; `None` when that overflows.
    pub fn bytes(&self) -> Option<usize> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }
}

/// Where a box lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Address of the first byte.
    pub address: usize,
    /// Bytes from a row to the next.
    pub pitch: usize,
    /// Bytes from a slice to the next.
    pub slice: usize,
}

impl Place {
    /// One row at `address`.
    pub fn line(address: usize) -> Place {
        Place { address, pitch: 0, slice: 0 }
    }

    /// Bytes from the first to the last byte of `shape` here; `None` when that overflows.
    pub fn extent(&self, shape: &Shape) -> Option<usize> {
        if shape.bytes()? == 0 {
            return Some(0);
        }
        let rows = self.pitch.checked_mul(shape.height - 1)?;
        let slices = self.slice.checked_mul(shape.depth - 1)?;
        rows.checked_add(slices)?.checked_add(shape.width)
    }
}

/// What a memset repeats: the first `bytes` (1, 2 or 4) of `bits`. Rows hold whole elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The value, in its low bits.
    pub bits: u32,
    /// Its length.
    pub bytes: u32,
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Number of the module, as its load gave it.
    pub module: u32,
    /// Position of the kernel in the module's metadata.
    pub kernel: u32,
    /// gridDim
    pub grid: [u32; 3],
    /// blockDim
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Bytes of managed memory that move to the device first (discrete link).
    pub migrate: u64,
    /// Parameters, packed as [`KernelInfo::param_offsets`](uma_abi::KernelInfo::param_offsets) says, filled up to whole words.
    pub parameters: Vec<u64>,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// In stream order: run a kernel.
    Launch(Launch),
    /// In stream order: copy within device-visible memory.
    Copy {
        /// Target.
        to: Place,
        /// Source.
        from: Place,
        /// What.
        shape: Shape,
    },
    /// In stream order: set elements of device-visible memory.
    Fill {
        /// Target.
        to: Place,
        /// Value of each element.
        value: Element,
        /// What.
        shape: Shape,
    },
    /// In stream order: note the time for an event.
    Record {
        /// Slot of the event.
        event: u32,
    },
    /// In stream order: wait for a command of another stream.
    Wait {
        /// Slot of the other stream.
        slot: u32,
        /// Its command.
        sequence: u64,
    },
    /// In stream order: nothing; a point to wait for.
    Mark,
    /// In stream order: let the host work, until [`Command::HostDone`].
    HostTurn,
    /// In stream order: have the host call a function, until [`Command::HostDone`].
    HostCall,
    /// At once: the host has had its turn.
    HostDone {
        /// Slot of the stream.
        slot: u32,
        /// The command that was the host's turn.
        sequence: u64,
    },
    /// At once: a wait needs this command.
    Force {
        /// Slot of the stream.
        slot: u32,
        /// The command.
        sequence: u64,
    },
    /// At once: a wait needs every command.
    ForceAll,
    /// At once, answered: everything before it in the ring is queued, and what may run has run (lazy and random schedules).
    Ping {
        /// Number of the request.
        request: u64,
    },
    /// At once, answered: load a module.
    Load {
        /// Number of the request.
        request: u64,
        /// Number that launches use for it.
        module: u32,
        /// Where the image lies in the arena.
        image: usize,
        /// Its length.
        bytes: usize,
        /// Address of each device global, in the order of the metadata.
        globals: Vec<u64>,
    },
    /// At once, answered: map pages of the pinned region at an address of the program (registered memory).
    MapPages {
        /// Number of the request.
        request: u64,
        /// Where.
        address: usize,
        /// How many bytes; 0 pages is not allowed.
        bytes: usize,
        /// Offset in the file of the pinned region.
        offset: usize,
    },
    /// At once, answered: undo [`Command::MapPages`].
    UnmapPages {
        /// Number of the request.
        request: u64,
        /// Where.
        address: usize,
        /// How many bytes.
        bytes: usize,
    },
}

/// A command and its place in the order of things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Slot of the stream.
    pub slot: u32,
    /// Whether the stream ignores the legacy default stream.
    pub nonblocking: bool,
    /// Number of the command, counted over all streams; 0 for what is done at once.
    pub sequence: u64,
    /// What to do.
    pub command: Command,
}

impl Packet {
    /// A command outside the streams.
    pub fn at_once(command: Command) -> Packet {
        Packet { slot: 0, nonblocking: false, sequence: 0, command }
    }

    /// Words for the ring, into `words`.
    pub fn encode(&self, words: &mut Vec<u64>) {
        words.clear();
        words.push(u64::from(self.slot) << 32 | u64::from(self.nonblocking) << 8 | self.command.opcode());
        words.push(self.sequence);
        let place = |words: &mut Vec<u64>, p: &Place| words.extend([p.address as u64, p.pitch as u64, p.slice as u64]);
        let shape = |words: &mut Vec<u64>, s: &Shape| words.extend([s.width as u64, s.height as u64, s.depth as u64]);
        match &self.command {
            Command::Launch(launch) => {
                words.push(u64::from(launch.module) << 32 | u64::from(launch.kernel));
                words.extend(launch.grid.map(u64::from));
                words.extend(launch.block.map(u64::from));
                words.extend([u64::from(launch.dynamic_shared), launch.migrate]);
                words.extend(&launch.parameters);
            }
            Command::Copy { to, from, shape: box_ } => {
                place(words, to);
                place(words, from);
                shape(words, box_);
            }
            Command::Fill { to, value, shape: box_ } => {
                place(words, to);
                words.push(u64::from(value.bytes) << 32 | u64::from(value.bits));
                shape(words, box_);
            }
            Command::Record { event } => words.push(u64::from(*event)),
            Command::Wait { slot, sequence }
            | Command::HostDone { slot, sequence }
            | Command::Force { slot, sequence } => words.extend([u64::from(*slot), *sequence]),
            Command::Mark | Command::HostTurn | Command::HostCall | Command::ForceAll => {}
            Command::Load { request, module, image, bytes, globals } => {
                words.extend([*request, u64::from(*module), *image as u64, *bytes as u64]);
                words.extend(globals);
            }
            Command::MapPages { request, address, bytes, offset } => {
                words.extend([*request, *address as u64, *bytes as u64, *offset as u64]);
            }
            Command::UnmapPages { request, address, bytes } => {
                words.extend([*request, *address as u64, *bytes as u64]);
            }
            Command::Ping { request } => words.push(*request),
        }
    }

    /// Reads what [`encode`](Packet::encode) wrote; `None` when it is nothing of the kind.
    pub fn decode(words: &[u64]) -> Option<Packet> {
        let mut next = Words { words };
        let head = next.word()?;
        let sequence = next.word()?;
        let command = match head & 0xFF {
            0 => {
                let id = next.word()?;
                Command::Launch(Launch {
                    module: (id >> 32) as u32,
                    kernel: id as u32,
                    grid: next.triple()?,
                    block: next.triple()?,
                    dynamic_shared: next.word()? as u32,
                    migrate: next.word()?,
                    parameters: next.rest(),
                })
            }
            1 => Command::Copy { to: next.place()?, from: next.place()?, shape: next.shape()? },
            2 => {
                let to = next.place()?;
                let word = next.word()?;
                let value = Element { bits: word as u32, bytes: (word >> 32) as u32 };
                Command::Fill { to, value, shape: next.shape()? }
            }
            3 => Command::Record { event: next.word()? as u32 },
            4 => Command::Wait { slot: next.word()? as u32, sequence: next.word()? },
            5 => Command::Mark,
            6 => Command::HostTurn,
            7 => Command::HostCall,
            8 => Command::HostDone { slot: next.word()? as u32, sequence: next.word()? },
            9 => Command::Force { slot: next.word()? as u32, sequence: next.word()? },
            10 => Command::ForceAll,
            11 => Command::Load {
                request: next.word()?,
                module: next.word()? as u32,
                image: next.size()?,
                bytes: next.size()?,
                globals: next.rest(),
            },
            12 => Command::MapPages {
                request: next.word()?,
                address: next.size()?,
                bytes: next.size()?,
                offset: next.size()?,
            },
            13 => Command::UnmapPages { request: next.word()?, address: next.size()?, bytes: next.size()? },
            14 => Command::Ping { request: next.word()? },
            _ => return None,
        };
        Some(Packet { slot: (head >> 32) as u32, nonblocking: head >> 8 & 1 == 1, sequence, command })
    }
}

impl Command {
    fn opcode(&self) -> u64 {
        match self {
            Command::Launch(_) => 0,
            Command::Copy { .. } => 1,
            Command::Fill { .. } => 2,
            Command::Record { .. } => 3,
            Command::Wait { .. } => 4,
            Command::Mark => 5,
            Command::HostTurn => 6,
            Command::HostCall => 7,
            Command::HostDone { .. } => 8,
            Command::Force { .. } => 9,
            Command::ForceAll => 10,
            Command::Load { .. } => 11,
            Command::MapPages { .. } => 12,
            Command::UnmapPages { .. } => 13,
            Command::Ping { .. } => 14,
        }
    }
}

/// The words of a record that are not read yet.
struct Words<'a> {
    words: &'a [u64],
}

impl Words<'_> {
    fn word(&mut self) -> Option<u64> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(*first)
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.word()?).ok()
    }

    fn triple(&mut self) -> Option<[u32; 3]> {
        Some([self.word()? as u32, self.word()? as u32, self.word()? as u32])
    }

    fn place(&mut self) -> Option<Place> {
        Some(Place { address: self.size()?, pitch: self.size()?, slice: self.size()? })
    }

    fn shape(&mut self) -> Option<Shape> {
        Some(Shape { width: self.size()?, height: self.size()?, depth: self.size()? })
    }

    fn rest(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.words).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_survives_the_ring() {
        let place = Place { address: 0x4000_0000_0010, pitch: 512, slice: 4096 };
        let shape = Shape { width: 33, height: 4, depth: 2 };
        let commands = [
            Command::Launch(Launch {
                module: 3,
                kernel: 7,
                grid: [u32::MAX, 2, 3],
                block: [32, 1, 4],
                dynamic_shared: 48,
                migrate: 5,
                parameters: vec![1, 2, u64::MAX],
            }),
            Command::Copy { to: place, from: Place::line(99), shape },
            Command::Fill { to: place, value: Element { bits: 0xABCD_EF01, bytes: 4 }, shape },
            Command::Record { event: 65535 },
            Command::Wait { slot: 1023, sequence: 1 << 40 },
            Command::Mark,
            Command::HostTurn,
            Command::HostCall,
            Command::HostDone { slot: 1, sequence: 2 },
            Command::Force { slot: 3, sequence: 4 },
            Command::ForceAll,
            Command::Load { request: 1, module: 2, image: 3, bytes: 4, globals: vec![5, 6] },
            Command::MapPages { request: 1, address: 2, bytes: 3, offset: 4 },
            Command::UnmapPages { request: 1, address: 2, bytes: 3 },
            Command::Ping { request: 9 },
        ];
        let mut words = Vec::new();
        for command in commands {
            let packet = Packet { slot: 1023, nonblocking: true, sequence: 1 << 50, command };
            packet.encode(&mut words);
            assert_eq!(Packet::decode(&words), Some(packet));
        }
        assert_eq!(Packet::decode(&[0xFF, 0]), None);
        assert_eq!(Packet::decode(&[1, 0, 5]), None);
    }

    #[test]
    fn extent_reaches_the_last_byte() {
        let place = Place { address: 0, pitch: 100, slice: 1000 };
        assert_eq!(place.extent(&Shape { width: 10, height: 3, depth: 2 }), Some(1000 + 200 + 10));
        assert_eq!(place.extent(&Shape { width: 10, height: 0, depth: 2 }), Some(0));
        assert_eq!(place.extent(&Shape { width: usize::MAX, height: 3, depth: 2 }), None);
    }
}
