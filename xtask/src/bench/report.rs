//! What was measured, as a table, as JSON, and against the bounds.

use std::fmt;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

/// On the largest module of each shape the passes take at most this part of `opt -O2`. (In a small one that a trial splice takes in whole,
/// the trial weighs more; what all trials of a module may cost is bounded, see `splice::MODULE_BUDGET`.)
const RATIO_BOUND: f64 = 0.10;
/// Time an instruction grows at most by this factor from the smallest to the largest module.
const GROWTH_BOUND: f64 = 1.5;
/// A module without CUDA costs less.
const CUDA_FREE_BOUND_MS: f64 = 1.0;

/// Everything.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) modules: Vec<Measured>,
    /// What the passes cost on a module of a million instructions without CUDA.
    pub(super) cuda_free_ms: f64,
    /// From the start of `opt` to its end on an empty module.
    pub(super) start_ms: f64,
    /// The same with the plugin loaded.
    pub(super) start_with_plugin_ms: f64,
}

/// One module. Times are medians of processor time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) shape: String,
    pub(super) instructions: usize,
    pub(super) pairs: usize,
    /// `opt -O2`.
    pub(super) optimise_s: f64,
    /// Echo's passes in `opt -O2` with the plugin.
    pub(super) passes_s: f64,
    /// All of that.
    pub(super) optimise_with_plugin_s: f64,
    pub(super) memory_mib: f64,
    pub(super) memory_with_plugin_mib: f64,
}

impl Measured {
    fn ratio(&self) -> f64 {
        self.passes_s / self.optimise_s.max(f64::MIN_POSITIVE)
    }

    fn per_instruction(&self) -> f64 {
        self.passes_s / self.instructions as f64
    }
}

impl Report {
    /// Growth of the time an instruction, for each shape with more than one size.
    fn growth(&self) -> Vec<(&str, f64)> {
        let mut shapes: Vec<&str> = self.modules.iter().map(|module| module.shape.as_str()).collect();
        shapes.dedup();
        let growth = |shape: &&str| {
            let mut sizes = self.modules.iter().filter(|module| module.shape == **shape);
            let (first, last) = (sizes.next()?, sizes.next_back()?);
            Some(last.per_instruction() / first.per_instruction().max(f64::MIN_POSITIVE))
        };
        shapes.iter().filter_map(|shape| Some((*shape, growth(shape)?))).collect()
    }

    /// The bounds that are broken.
    pub(super) fn problems(&self) -> Vec<String> {
        let largest = self.modules.iter().map(|module| module.pairs).max();
        let large = self.modules.iter().filter(|module| Some(module.pairs) == largest);
        let ratios = large.filter(|module| module.ratio() > RATIO_BOUND).map(|module| {
            let (shape, size) = (&module.shape, module.instructions);
            let (ratio, bound) = (module.ratio() * 100.0, RATIO_BOUND * 100.0);
            format!("{shape}, {size} instructions: the passes take {ratio:.1} % of opt -O2, more than {bound} %")
        });
        let growth = self.growth().into_iter().filter(|(_, growth)| *growth > GROWTH_BOUND).map(|(shape, growth)| {
            format!("{shape}: time an instruction grows by {growth:.2}, more than {GROWTH_BOUND}")
        });
        let cuda_free = (self.cuda_free_ms >= CUDA_FREE_BOUND_MS).then(|| {
            format!("a module without CUDA costs {:.2} ms, not less than {CUDA_FREE_BOUND_MS}", self.cuda_free_ms)
        });
        ratios.chain(growth).chain(cuda_free).collect()
    }
}

const HEADER: [&str; 9] = [
    "module",
    "instructions",
    "pairs",
    "opt -O2\ns",
    "passes\ns",
    "passes /\nopt -O2",
    "passes an\ninstruction µs",
    "with plugin\ns",
    "memory, with\nplugin MiB",
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(HEADER.map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
        for module in &self.modules {
            table.add_row([
                module.shape.clone(),
                module.instructions.to_string(),
                module.pairs.to_string(),
                format!("{:.2}", module.optimise_s),
                format!("{:.4}", module.passes_s),
                format!("{:.2} %", module.ratio() * 100.0),
                format!("{:.2}", module.per_instruction() * 1e6),
                format!("{:.2}", module.optimise_with_plugin_s),
                format!("{:.0}, {:.0}", module.memory_mib, module.memory_with_plugin_mib),
            ]);
        }
        for column in 1..HEADER.len() {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        writeln!(f, "{table}")?;
        for (shape, growth) in self.growth() {
            writeln!(f, "{shape}: time an instruction grows by {growth:.2} (bound {GROWTH_BOUND})")?;
        }
        writeln!(f, "a module without CUDA: {:.2} ms (bound {CUDA_FREE_BOUND_MS})", self.cuda_free_ms)?;
        let (without, with) = (self.start_ms, self.start_with_plugin_ms);
        write!(f, "opt on an empty module: {without:.1} ms, with the plugin {with:.1} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(instructions: usize, passes_s: f64) -> Measured {
        Measured {
            shape: "s".to_owned(),
            instructions,
            pairs: 1,
            optimise_s: 1.0,
            passes_s,
            optimise_with_plugin_s: 1.0,
            memory_mib: 1.0,
            memory_with_plugin_mib: 1.0,
        }
    }

    #[test]
    fn each_bound_is_held() {
        let good = Report {
            modules: vec![measured(100, 0.0001), measured(1000, 0.001), measured(10_000, 0.0149)],
            cuda_free_ms: 0.9,
            ..Report::default()
        };
        assert_eq!(good.problems(), [""; 0]);
        let grows = Report { modules: vec![measured(100, 0.0001), measured(1000, 0.0016)], ..good.clone() };
        assert!(grows.problems()[0].contains("grows by 1.60"), "{:?}", grows.problems());
        let slow = Report { modules: vec![measured(100, 0.11)], ..good.clone() };
        assert!(slow.problems()[0].contains("11.0 % of opt -O2"), "{:?}", slow.problems());
        let free = Report { cuda_free_ms: 1.0, ..good };
        assert!(free.problems()[0].contains("without CUDA"), "{:?}", free.problems());
    }
}
