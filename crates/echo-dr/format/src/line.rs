//! An event's line, written without a general serializer. The bytes are those that serde would write, and tests hold it to that; it takes a
//! quarter of the instructions. A profiled program writes thousands of events a second on the processors that it runs on itself.

use crate::event::{Call, CopyKind, DeviceKind, Event, HostKind, Setup, Shape, Stream, WaitFor};

/// What an event is made of.
trait Json {
    fn json(self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Json for $number {
            fn json(self, out: &mut Vec<u8>) {
                text(out, itoa::Buffer::new().format(self));
            }
        }
    )*};
}

/// Enumerations without fields.
macro_rules! names {
    ($($of:ident { $($variant:ident = $name:literal)* })*) => {$(
        impl Json for $of {
            fn json(self, out: &mut Vec<u8>) {
                text(out, match self { $($of::$variant => concat!("\"", $name, "\""),)* });
            }
        }
    )*};
}

/// `{"name":{"field":value,…}}`; fields are variables of their names.
macro_rules! object {
    ($out:ident, $name:literal, $first:ident $(, $field:ident)*) => {{
        text($out, concat!("{\"", $name, "\":{\"", stringify!($first), "\":"));
        $first.json($out);
        $(
            text($out, concat!(",\"", stringify!($field), "\":"));
            $field.json($out);
        )*
        text($out, "}}");
    }};
}

numbers! { u32 u64 i32 }

names! {
    HostKind { Heap = "heap" Zeroed = "zeroed" PageLocked = "page_locked" }
    DeviceKind { Plain = "plain" Pooled = "pooled" Managed = "managed" Pitched = "pitched" }
    CopyKind {
        HostToDevice = "host_to_device" DeviceToHost = "device_to_host" DeviceToDevice = "device_to_device"
        HostToHost = "host_to_host" Default = "default"
    }
    Shape { Linear = "linear" Pitched = "pitched" Array = "array" }
    Setup { BeforeInitialisation = "before_initialisation" Reset = "reset" Fork = "fork" FirstUse = "first_use" }
}

impl Json for bool {
    fn json(self, out: &mut Vec<u8>) {
        text(out, if self { "true" } else { "false" });
    }
}

impl Json for Stream {
    fn json(self, out: &mut Vec<u8>) {
        self.0.json(out);
    }
}

impl Json for WaitFor {
    fn json(self, out: &mut Vec<u8>) {
        let (name, number) = match self {
            Self::Device => return text(out, "\"device\""),
            Self::Stream(Stream(stream)) => ("{\"stream\":", stream),
            Self::Event(event) => ("{\"event\":", event),
        };
        text(out, name);
        number.json(out);
        text(out, "}");
    }
}

impl<T: Json> Json for Option<T> {
    fn json(self, out: &mut Vec<u8>) {
        match self {
            Some(some) => some.json(out),
            None => text(out, "null"),
        }
    }
}

impl Json for Call {
    fn json(self, out: &mut Vec<u8>) {
        match self {
            Self::HostAlloc { ptr, bytes, align, kind } => object!(out, "host_alloc", ptr, bytes, align, kind),
            Self::HostRealloc { old, ptr, bytes } => object!(out, "host_realloc", old, ptr, bytes),
            Self::HostFree { ptr } => object!(out, "host_free", ptr),
            Self::HostRegister { ptr, bytes } => object!(out, "host_register", ptr, bytes),
            Self::DeviceAlloc { ptr, bytes, kind } => object!(out, "device_alloc", ptr, bytes, kind),
            Self::DeviceFree { ptr, asynchronous } => object!(out, "device_free", ptr, asynchronous),
            Self::Copy { dst, src, bytes, kind, stream, asynchronous, shape } => {
                object!(out, "copy", dst, src, bytes, kind, stream, asynchronous, shape);
            }
            Self::Skipped { bytes, wait } => object!(out, "skipped", bytes, wait),
            Self::Set { dst, bytes, stream } => object!(out, "set", dst, bytes, stream),
            Self::Launch { stream } => object!(out, "launch", stream),
            Self::Wait { on } => object!(out, "wait", on),
            Self::EventRecord { event, stream } => object!(out, "event_record", event, stream),
            Self::StreamWait { stream, event } => object!(out, "stream_wait", stream, event),
            Self::StreamCreate { stream, non_blocking } => object!(out, "stream_create", stream, non_blocking),
            Self::StreamDestroy { stream } => object!(out, "stream_destroy", stream),
            Self::Capture { stream, begin } => object!(out, "capture", stream, begin),
            Self::SetDevice { device } => object!(out, "set_device", device),
            Self::Query { ptr } => object!(out, "query", ptr),
            Self::Unknown { unseen } => object!(out, "unknown", unseen),
            Self::Setup { what } => object!(out, "setup", what),
        }
    }
}

impl Event {
    /// Adds the event's line to `out`. False, and nothing is added, if the function's name is none of C's: such a line needs an escape or two, and
    /// serde.
    #[must_use]
    pub fn write_line(&self, out: &mut Vec<u8>) -> bool {
        if !self.api.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return false;
        }
        text(out, "{\"event\":{\"time\":");
        self.time.json(out);
        if self.took != 0 {
            text(out, ",\"took\":");
            self.took.json(out);
        }
        text(out, ",\"thread\":");
        self.thread.json(out);
        text(out, ",\"site\":\"");
        out.extend_from_slice(&hexadecimal(self.site.0));
        text(out, "\",\"api\":\"");
        text(out, &self.api);
        text(out, "\",\"call\":");
        self.call.json(out);
        text(out, "}}\n");
        true
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// All 16 digits.
fn hexadecimal(number: u64) -> [u8; 16] {
    std::array::from_fn(|digit| b"0123456789abcdef"[(number >> (60 - 4 * digit)) as usize & 0xf])
}
