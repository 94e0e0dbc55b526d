//! Device `printf`: a format and the buffer into which the device front end packed the arguments, each at its natural alignment.

use std::ffi::{CStr, CString, c_char, c_int};

/// What is printed, and how many arguments that took (-1: the format is not understood; nothing is printed).
///
/// # Safety
/// `arguments` is packed for `format`; `%s` arguments are C strings or null.
pub(crate) unsafe fn format(format: &CStr, arguments: *const u8) -> (Vec<u8>, i32) {
    let mut reader = Arguments { next: arguments, count: 0 };
    let mut text = Vec::new();
    let mut rest = format.to_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        text.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let [b'%', tail @ ..] = rest {
            text.push(b'%');
            rest = tail;
            continue;
        }
        let Some(spec) = Spec::parse(rest) else { return (Vec::new(), -1) };
        rest = &rest[spec.length..];
        // SAFETY: the caller vouches for the arguments.
        unsafe { spec.print(&mut reader, &mut text) };
    }
    text.extend_from_slice(rest);
    (text, reader.count)
}

/// Reads the packed arguments in order.
struct Arguments {
    next: *const u8,
    count: i32,
}

impl Arguments {
    /// # Safety
    /// The next argument is a `T`.
    unsafe fn take<T: Copy>(&mut self) -> T {
        let aligned = self.next.map_addr(|address| address.next_multiple_of(align_of::<T>()));
        self.next = aligned.wrapping_add(size_of::<T>());
        self.count += 1;
        // SAFETY: the caller says so.
        unsafe { aligned.cast::<T>().read() }
    }
}

/// A conversion, without its `%`.
struct Spec<'a> {
    /// Flags, width and precision; `*` still in it.
    options: &'a [u8],
    /// Bits of an integer argument that count: 8, 16, 32 or 64.
    bits: u32,
    conversion: u8,
    /// Bytes of all that.
    length: usize,
}

impl Spec<'_> {
    fn parse(text: &[u8]) -> Option<Spec<'_>> {
        let options = text.iter().take_while(|byte| b"-+ #0123456789.*".contains(byte)).count();
        let modifier = text[options..].iter().take_while(|byte| b"hlzjtL".contains(byte)).count();
        let bits = match &text[options..options + modifier] {
            b"" => 32,
            b"h" => 16,
            b"hh" => 8,
            b"l" | b"ll" | b"z" | b"j" | b"t" => 64,
            _ => return None,
        };
        let conversion = *text.get(options + modifier)?;
        b"diouxXcsfFeEgGaAp".contains(&conversion).then_some(Spec {
            options: &text[..options],
            bits,
            conversion,
            length: options + modifier + 1,
        })
    }

    /// # Safety
    /// The next arguments are what this conversion takes.
    unsafe fn print(&self, arguments: &mut Arguments, text: &mut Vec<u8>) {
        let mut options = Vec::from(b"%");
        for &byte in self.options {
            match byte {
                // SAFETY: a star takes an int.
                b'*' => options.extend_from_slice(unsafe { arguments.take::<c_int>() }.to_string().as_bytes()),
                _ => options.push(byte),
            }
        }
        // SAFETY: each conversion takes the type that C says; integers shorter than int were promoted to it.
        unsafe {
            match self.conversion {
                b'd' | b'i' => {
                    let value = match self.bits {
                        64 => arguments.take::<i64>(),
                        16 => i64::from(arguments.take::<i32>() as i16),
                        8 => i64::from(arguments.take::<i32>() as i8),
                        _ => i64::from(arguments.take::<i32>()),
                    };
                    print(text, options, b"lld", value);
                }
                b'o' | b'u' | b'x' | b'X' => {
                    let value = match self.bits {
                        64 => arguments.take::<u64>(),
                        bits => u64::from(arguments.take::<u32>() & (u32::MAX >> (32 - bits))),
                    };
                    print(text, options, &[b'l', b'l', self.conversion], value);
                }
                b'c' => print(text, options, b"c", arguments.take::<c_int>()),
                b's' => {
                    let string = arguments.take::<*const c_char>();
                    print(text, options, b"s", if string.is_null() { c"(null)".as_ptr() } else { string });
                }
                b'p' => print(text, options, b"p", arguments.take::<*const u8>()),
                conversion => print(text, options, &[conversion], arguments.take::<f64>()),
            }
        }
    }
}

/// Appends what C's `snprintf` makes of one value.
///
/// # Safety
/// `options` and `conversion` make one conversion that takes a `T`, and `T` is passed to variadic functions as it is.
unsafe fn print<T: Copy>(text: &mut Vec<u8>, mut options: Vec<u8>, conversion: &[u8], value: T) {
    options.extend_from_slice(conversion);
    // Neither part holds a NUL byte: both come from a C string.
    let Ok(format) = CString::new(options) else { return };
    // SAFETY: no buffer is written; the caller vouches for the value.
    let length = unsafe { libc::snprintf(std::ptr::null_mut(), 0, format.as_ptr(), value) };
    let Ok(length) = usize::try_from(length) else { return };
    let start = text.len();
    text.resize(start + length + 1, 0);
    // SAFETY: the buffer has room for the text and its NUL.
    unsafe { libc::snprintf(text[start..].as_mut_ptr().cast(), length + 1, format.as_ptr(), value) };
    text.truncate(start + length);
}

#[cfg(test)]
mod tests {
    use super::format;
    use std::ffi::CStr;

    /// Packs arguments the way the front end does.
    #[derive(Default)]
    struct Packed(Vec<u8>);

    impl Packed {
        fn push<const N: usize>(mut self, bytes: [u8; N]) -> Self {
            self.0.resize(self.0.len().next_multiple_of(N), 0);
            self.0.extend(bytes);
            self
        }

        fn print(self, text: &CStr) -> (String, i32) {
            let mut aligned = vec![0u64; self.0.len() / 8 + 1];
            // SAFETY: the vector is at least as long as the bytes.
            unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), aligned.as_mut_ptr().cast(), self.0.len()) };
            // SAFETY: the tests pack what they print.
            let (text, count) = unsafe { format(text, aligned.as_ptr().cast()) };
            (String::from_utf8(text).unwrap(), count)
        }
    }

    #[test]
    fn arguments_are_found_at_their_alignment() {
        let packed = Packed::default().push(7i32.to_le_bytes()).push(2.5f64.to_le_bytes()).push((-1i64).to_le_bytes());
        assert_eq!(packed.print(c"%d|%5.1f|%lld%%\n"), ("7|  2.5|-1%\n".into(), 3));
    }

    #[test]
    fn short_integers_are_cut() {
        let packed = Packed::default().push(0x1_02_03i32.to_le_bytes()).push(0xfffffi32.to_le_bytes());
        assert_eq!(packed.print(c"%hhu %hx"), ("3 ffff".into(), 2));
    }

    #[test]
    fn strings_widths_and_characters() {
        let word = c"echo";
        let packed = Packed::default()
            .push(8i32.to_le_bytes())
            .push((word.as_ptr() as usize).to_le_bytes())
            .push(i32::from(b'x').to_le_bytes())
            .push(0usize.to_le_bytes());
        assert_eq!(packed.print(c"[%*s]%c%s"), ("[    echo]x(null)".into(), 4));
    }

    #[test]
    fn an_unknown_conversion_prints_nothing() {
        assert_eq!(Packed::default().print(c"a %n"), (String::new(), -1));
        assert_eq!(Packed::default().print(c"a %"), (String::new(), -1));
    }
}
