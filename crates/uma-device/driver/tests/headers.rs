//! The table of functions says what CUDA's headers say.

use cuda::exports::rows;
use cuda::proc_address::Row;
use cuda::refused::REFUSED;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn header(name: &str) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let cuda = std::env::var_os("CUDA_PATH").map_or_else(|| workspace.join("target/cuda"), PathBuf::from);
    let path = cuda.join("include").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What `cuda.h` says of a name without a version: the exported name, and the suffix of its per-thread variant.
type Form = (String, Option<&'static str>);

/// The forms that programs compiled with this `cuda.h` use.
fn forms(header: &str) -> BTreeMap<String, Form> {
    // A part is for the driver's own build: older forms.
    let (before, internal) =
        header.split_once("\n#if defined(__CUDA_API_VERSION_INTERNAL)\n").expect("an internal part");
    let (_, after) = internal.split_once("#define cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz").expect("its end");
    let public = before.to_owned() + after;
    let mut forms: BTreeMap<String, Form> = BTreeMap::new();
    for text in public.split("CUresult CUDAAPI").skip(1) {
        let name = text.split('(').next().unwrap_or_default().trim();
        forms.insert(name.to_owned(), (name.to_owned(), None));
    }
    for line in public.lines() {
        let mut words = line.trim_start_matches(['#', ' ']).split_whitespace();
        let (Some("define"), Some(name), Some(value), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let wrapped = |macro_name: &str| value.strip_prefix(macro_name)?.strip_prefix('(')?.strip_suffix(')');
        let form = match (wrapped("__CUDA_API_PTDS"), wrapped("__CUDA_API_PTSZ")) {
            (Some(value), _) => (value.to_owned(), Some("_ptds")),
            (_, Some(value)) => (value.to_owned(), Some("_ptsz")),
            _ => (value.to_owned(), None),
        };
        if let Some(known) = forms.get_mut(name) {
            *known = form;
        }
    }
    forms
}

/// Functions that `cuda.h` does not declare.
fn is_elsewhere(row: &Row) -> bool {
    row.base.starts_with("cuProfiler")
}

#[test]
fn every_function_of_the_header_is_there_in_its_form() {
    let forms = forms(&header("cuda.h"));
    assert!(forms.len() > 400, "{}", forms.len());
    let mut ours: BTreeSet<String> = REFUSED.iter().map(|name| (*name).to_owned()).collect();
    for row in rows().iter().filter(|row| !is_elsewhere(row)) {
        // A form has the name without a version, or its own; else it is an older one.
        let of_base = forms.get(row.base).filter(|form| form.0 == row.plain.0);
        let Some((plain, suffix)) = of_base.or_else(|| forms.get(row.plain.0)).filter(|form| form.0 == row.plain.0)
        else {
            assert!(rows().iter().any(|newer| newer.base == row.base && newer.since > row.since), "{row:?}");
            continue;
        };
        let per_thread = row.per_thread.map(|(name, _)| name.to_owned());
        assert_eq!(per_thread.as_deref(), suffix.map(|suffix| format!("{plain}{suffix}")).as_deref());
        ours.insert(plain.clone());
        ours.extend(per_thread);
    }
    let theirs = forms.values().flat_map(|(plain, suffix)| {
        [Some(plain.clone()), suffix.map(|suffix| format!("{plain}{suffix}"))].into_iter().flatten()
    });
    let theirs: BTreeSet<String> = theirs.collect();
    assert_eq!(ours.symmetric_difference(&theirs).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// `cudaTypedefs.h` has a type for each form of each function, named for the version that introduced it.
#[test]
fn versions_are_those_of_the_typedefs() {
    let typedefs = header("cudaTypedefs.h") + &header("cudaProfilerTypedefs.h");
    for row in rows() {
        let name = format!("*PFN_{}_v{})", row.base, row.since);
        assert!(typedefs.contains(&name), "{name}");
    }
}
