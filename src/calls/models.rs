//! What functions outside CUDA do with the memory given to them, as data: `models/*.toml`, compiled in.
//!
//! A model promises that the function starts no GPU work (unless it calls back or is a GPU library's) and touches no other memory of the
//! program than its parameters say. The format is described at the head of `models/libc.toml`, and what GPU libraries add to it at the head
//! of `models/cublas.toml`.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::analysis::program::Allocator;

/// Every file, with its name for messages.
const FILES: [(&str, &str); 6] = [
    ("libc.toml", include_str!("../../models/libc.toml")),
    ("libstdcxx.toml", include_str!("../../models/libstdcxx.toml")),
    ("cublas.toml", include_str!("../../models/cublas.toml")),
    ("cufft.toml", include_str!("../../models/cufft.toml")),
    ("curand.toml", include_str!("../../models/curand.toml")),
    ("cudnn.toml", include_str!("../../models/cudnn.toml")),
];

/// What a function does.
#[derive(Clone, Debug, Default)]
pub struct Model {
    params: Vec<Param>,
    rest: Option<Param>,
    /// The result is derived from this parameter.
    pub returns: Option<u8>,
    /// What it does to allocations.
    pub action: Action,
    /// It never returns to its caller.
    pub no_return: bool,
    /// It starts threads or processes.
    pub threads: bool,
    /// It returns twice, or to another frame.
    pub returns_twice: bool,
    /// The process forks, and the child goes on after the call.
    pub forks: bool,
    /// It calls a function that is given to it.
    pub callback: bool,
    /// It belongs to a GPU library: what its parameters say is done by the GPU.
    pub library: Option<Library>,
}

/// What a function of a GPU library does. None of them is assumed to wait for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// It makes a handle, which it stores through its first parameter. It may start work of its own.
    Create {
        /// Bytes of the handle.
        bytes: u64,
    },
    /// The handle's later work goes to the stream that this parameter names.
    SetStream(u8),
    /// It queues work on the stream of the handle, its first parameter.
    OnHandle,
    /// It queues work on the stream that this parameter names.
    OnStream(u8),
    /// It starts work on a stream that is not known, which does not touch what it is given.
    Work,
}

/// What a function does to allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    #[default]
    None,
    /// It makes one.
    Allocate {
        /// Which kind.
        allocator: Allocator,
        /// The size is the product of these parameters.
        size: Vec<u8>,
        /// The alignment asked for.
        align: Option<u8>,
        /// The pointer is stored there; `None`: returned.
        out: Option<u8>,
    },
    /// It ends the one that the parameter points to.
    Free(u8),
    /// It moves it.
    Reallocate(u8),
}

/// What a function does with the memory that a pointer parameter points to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Param {
    /// It may read.
    pub reads: bool,
    /// It may write.
    pub writes: bool,
    /// Number of bytes from the pointer on: the product of these parameters. `None`: anywhere in the object.
    pub length: Option<Vec<u8>>,
    /// Exactly `length` bytes are touched by every call; else at most.
    pub exactly: bool,
    /// The pointer may be kept.
    pub keeps: bool,
    /// The address itself is looked at.
    pub observes: bool,
    /// A number that a GPU library reads or writes, in host or device memory as the handle's mode says: by the host during the call, or by
    /// the GPU.
    pub by_mode: bool,
}

impl Model {
    /// What is done with the memory behind argument `index`; `None` where no model of that argument exists.
    #[must_use]
    pub fn param(&self, index: usize) -> Option<&Param> {
        self.params.get(index).or(self.rest.as_ref())
    }
}

/// The model of a symbol.
#[must_use]
pub fn model(symbol: &str) -> Option<&'static Model> {
    let table = table();
    table.by_name.get(symbol).map(|index| &table.models[*index]).or_else(|| {
        table
            .by_prefix
            .iter()
            .find(|(prefix, _)| symbol.starts_with(prefix.as_str()))
            .map(|(_, index)| &table.models[*index])
    })
}

#[derive(Default)]
struct Table {
    models: Vec<Model>,
    by_name: HashMap<String, usize>,
    by_prefix: Vec<(String, usize)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    function: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    prefixes: Vec<String>,
    #[serde(default)]
    params: Vec<String>,
    rest: Option<String>,
    returns: Option<u8>,
    allocate: Option<String>,
    #[serde(default)]
    size: Vec<u8>,
    align: Option<u8>,
    out: Option<u8>,
    free: Option<u8>,
    reallocate: Option<u8>,
    #[serde(default)]
    effects: Vec<String>,
    library: Option<String>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    // A file that is compiled in and does not parse is found by the test below. In a plugin no model at all is the safe answer: every
    // call is then unknown.
    TABLE.get_or_init(|| read(&FILES.map(|(_, text)| text)).unwrap_or_default())
}

fn read(texts: &[&str]) -> Result<Table, String> {
    let files = texts.iter().map(|text| toml::from_str::<File>(text).map_err(|error| error.to_string()));
    let mut table = Table::default();
    for entry in files.collect::<Result<Vec<_>, _>>()?.into_iter().flat_map(|file| file.function) {
        let index = table.models.len();
        table.models.push(entry.model()?);
        for name in entry.names {
            if table.by_name.insert(name.clone(), index).is_some() {
                return Err(format!("{name} has two entries"));
            }
        }
        table.by_prefix.extend(entry.prefixes.into_iter().map(|prefix| (prefix, index)));
    }
    Ok(table)
}

impl Entry {
    fn model(&self) -> Result<Model, String> {
        let mut model = Model {
            params: self.params.iter().map(|text| param(text)).collect::<Result<_, _>>()?,
            rest: self.rest.as_deref().map(param).transpose()?,
            returns: self.returns,
            action: self.action()?,
            ..Model::default()
        };
        for effect in &self.effects {
            match effect.as_str() {
                "no-return" => model.no_return = true,
                "threads" => model.threads = true,
                "returns-twice" => model.returns_twice = true,
                "fork" => model.forks = true,
                "callback" => model.callback = true,
                other => return Err(format!("unknown effect {other}")),
            }
        }
        model.library = self.library.as_deref().map(library).transpose()?;
        Ok(model)
    }

    fn action(&self) -> Result<Action, String> {
        Ok(match (&self.allocate, self.free, self.reallocate) {
            (None, None, None) => Action::None,
            (Some(kind), None, None) => Action::Allocate {
                allocator: match kind.as_str() {
                    "malloc" => Allocator::Malloc,
                    "calloc" => Allocator::Calloc,
                    "aligned_alloc" => Allocator::AlignedAlloc,
                    "operator_new" => Allocator::OperatorNew,
                    other => return Err(format!("unknown allocator {other}")),
                },
                size: self.size.clone(),
                align: self.align,
                out: self.out,
            },
            (None, Some(pointer), None) => Action::Free(pointer),
            (None, None, Some(pointer)) => Action::Reallocate(pointer),
            _ => return Err(format!("{:?}: more than one action", self.names)),
        })
    }
}

fn library(text: &str) -> Result<Library, String> {
    let (word, number) = text.split_once(' ').map_or((text, None), |(word, number)| (word, number.parse().ok()));
    match (word, number) {
        ("create", Some(bytes)) => Ok(Library::Create { bytes: u64::from(bytes) }),
        ("set-stream", Some(parameter)) => Ok(Library::SetStream(parameter)),
        ("on-handle", None) => Ok(Library::OnHandle),
        ("on-stream", Some(parameter)) => Ok(Library::OnStream(parameter)),
        ("work", None) => Ok(Library::Work),
        _ => Err(format!("no work of a library: {text:?}")),
    }
}

fn param(text: &str) -> Result<Param, String> {
    let mut words = text.split_whitespace();
    let mut param = Param::default();
    match words.next() {
        Some("value") => {}
        Some("read") => param.reads = true,
        Some("write") => param.writes = true,
        Some("readwrite") => (param.reads, param.writes) = (true, true),
        Some("keep") => param.keeps = true,
        Some("scalar") => (param.reads, param.by_mode) = (true, true),
        Some("result") => (param.reads, param.writes, param.by_mode) = (true, true, true),
        Some("observe") => param.observes = true,
        other => return Err(format!("unknown word {other:?} in {text:?}")),
    }
    let mut length = words.next();
    param.exactly = length.is_some() && length != Some("upto");
    if length == Some("upto") {
        length = words.next();
    }
    param.length = length
        .map(|product| product.split('*').map(str::parse).collect::<Result<Vec<u8>, _>>())
        .transpose()
        .map_err(|_| format!("no parameter numbers in {text:?}"))?;
    if words.next().is_some() { Err(format!("more words than expected in {text:?}")) } else { Ok(param) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiled_in_files_are_well_formed() {
        for (name, text) in FILES {
            assert!(read(&[text]).is_ok_and(|table| !table.models.is_empty()), "{name}: {:?}", read(&[text]).err());
        }
        read(&FILES.map(|(_, text)| text)).map(|_| ()).expect("each function is in one file");
    }

    #[test]
    fn a_library_call_says_on_which_stream_it_works() {
        let library = |name: &str| model(name).and_then(|model| model.library);
        assert_eq!(library("cublasCreate_v2"), Some(Library::Create { bytes: 8 }));
        assert_eq!(library("cufftPlan1d"), Some(Library::Create { bytes: 4 }));
        assert_eq!(library("cublasSetStream_v2"), Some(Library::SetStream(1)));
        assert_eq!(library("cublasSgemm_v2"), Some(Library::OnHandle));
        assert_eq!(library("cublasLtMatmul"), Some(Library::OnStream(15)));
        assert_eq!(library("memcpy"), None);
    }

    #[test]
    fn a_matrix_is_read_by_the_gpu_and_a_factor_by_whom_the_mode_says() {
        let sgemm = model("cublasSgemm_v2").expect("a model");
        let param = |index: usize| sgemm.param(index).cloned().expect("an entry");
        assert!(param(6).by_mode && param(6).reads && !param(6).writes, "alpha");
        assert!(param(7).reads && !param(7).writes && !param(7).by_mode, "A");
        assert!(param(12).reads && param(12).writes, "C");
        assert!(sgemm.param(14).is_none(), "no more arguments are promised anything");
        let workspace = model("cublasSetWorkspace_v2").and_then(|model| model.param(1)).expect("an entry");
        assert!(workspace.keeps);
    }

    #[test]
    fn memcpy_touches_exactly_what_its_length_says_and_fread_at_most() {
        let memcpy = model("memcpy").expect("memcpy");
        assert_eq!(memcpy.param(0).map(|p| (p.writes, p.reads, p.exactly)), Some((true, false, true)));
        assert_eq!(memcpy.param(1).and_then(|p| p.length.clone()), Some(vec![2]));
        let fread = model("fread").expect("fread");
        assert_eq!(
            fread.param(0).map(|p| (p.writes, p.exactly, p.length.clone())),
            Some((true, false, Some(vec![1, 2])))
        );
    }

    #[test]
    fn a_pointer_given_to_printf_is_observed_and_one_given_to_a_stream_is_kept() {
        assert!(model("printf").and_then(|m| m.param(3)).is_some_and(|p| p.observes));
        assert!(model("_ZNSo9_M_insertIdEERSoT_").and_then(|m| m.param(0)).is_some_and(|p| p.keeps));
    }

    #[test]
    fn exact_names_win_over_prefixes() {
        assert!(model("_ZNSo5writeEPKcl").and_then(|m| m.param(1)).is_some_and(|p| p.reads && !p.keeps));
    }

    #[test]
    fn an_argument_without_an_entry_has_no_model() {
        assert!(model("malloc").is_some_and(|m| m.param(0).is_none()));
        assert!(model("free").is_some_and(|m| m.action == Action::Free(0)));
    }

    #[test]
    fn malformed_files_are_refused() {
        for bad in [
            "[[function]]\nnames = [\"f\"]\nparams = [\"reed\"]",
            "[[function]]\nnames = [\"f\"]\nparams = [\"read x\"]",
            "[[function]]\nnames = [\"f\"]\nparams = [\"read upto 1 2\"]",
            "[[function]]\nnames = [\"f\", \"f\"]",
            "[[function]]\nnames = [\"f\"]\nallocate = \"pool\"",
            "[[function]]\nnames = [\"f\"]\neffects = [\"flies\"]",
            "[[function]]\nname = \"f\"",
            "[[function]]\nnames = [\"f\"]\nlibrary = \"on-stream\"",
            "[[function]]\nnames = [\"f\"]\nlibrary = \"on-handle 1\"",
        ] {
            assert!(read(&[bad]).is_err(), "accepted: {bad}");
        }
    }
}
