//! Sites of traces as places that a person finds.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use echo_dr_format::finding::{Access, Trouble};
use echo_dr_format::report::Place;
use echo_dr_format::site::Site;
use echo_dr_format::trace::{Frame, Trace};

use crate::symbols::Symbols;

/// What traces say of sites, and the symbols of the modules that they name.
#[derive(Default)]
pub(crate) struct Places {
    /// Stacks, innermost frame first; the path is empty for code of no file.
    stacks: HashMap<Site, Vec<(PathBuf, u64)>>,
    /// Sites of instructions that accessed memory: there the innermost frame is the instruction itself, not what it returns to.
    accesses: HashSet<Site>,
    symbols: Symbols,
}

impl Places {
    /// Sites that any of the traces has.
    pub(crate) fn of<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Self {
        let mut places = Self::default();
        for trace in traces {
            let modules: HashMap<u32, &str> =
                trace.modules.iter().map(|module| (module.id, module.path.as_str())).collect();
            let path =
                |frame: &Frame| frame.module.and_then(|id| modules.get(&id)).map(PathBuf::from).unwrap_or_default();
            for stack in &trace.frames {
                let frames = stack.frames.iter().map(|frame| (path(frame), frame.offset)).collect();
                places.stacks.insert(stack.site, frames);
            }
            places.accesses.extend(
                trace.findings.iter().filter(|found| is_instruction(found.trouble)).filter_map(|found| found.site),
            );
        }
        places
    }

    /// The place of a site.
    pub(crate) fn place(&mut self, site: Site) -> Place {
        let mut stack = self.stacks.get(&site).cloned().unwrap_or_default();
        if let Some((_, offset)) = stack.first_mut().filter(|_| self.accesses.contains(&site)) {
            // As if it were returned to.
            *offset += 1;
        }
        let frames: Vec<_> = stack.iter().map(|(path, offset)| self.symbols.place(path, *offset).to_string()).collect();
        let place = self.symbols.of_stack(stack.iter().map(|(path, offset)| (Path::new(path), *offset)));
        let text = place.map_or_else(|| format!("site {site}"), |place| place.to_string());
        Place { site, text, frames }
    }
}

/// The finding is of a load or a store, not of a call.
fn is_instruction(trouble: Trouble) -> bool {
    let (Trouble::HostTouched(access) | Trouble::NotExclusive(access)) = trouble else { return false };
    matches!(access, Access::Read | Access::Write | Access::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_that_no_trace_has_is_shown_as_its_number() {
        let place = Places::default().place(Site(0x12));
        assert_eq!((place.text.as_str(), place.frames.len()), ("site 0000000000000012", 0));
    }
}
