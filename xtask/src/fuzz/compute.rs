//! What a kernel computes: the effect of a launch on the values.

use super::language::Action;
use super::machine::Machine;

impl Machine<'_> {
    /// Applies `action` to elements `[low, high)` of `objects`, all of which it may touch.
    pub(super) fn compute(
        &mut self,
        action: Action,
        objects: &[usize],
        low: usize,
        high: usize,
        form: impl Fn(u64) -> u64,
    ) {
        let mask = self.program.element.mask();
        let form = |value| form(value) & mask;
        let at = |machine: &Self, position: usize, index: usize| {
            objects.get(position).and_then(|object| machine.objects[*object].cells[index]).unwrap_or(0)
        };
        let before = |position: usize| (low..high).map(|index| at(self, position, index)).collect::<Vec<u64>>();
        let (x, y, z) = (before(0), before(1), before(2));
        let mut second = None;
        let new: Vec<u64> = match action {
            Action::Fill => (low..high).map(|index| form(index as u64)).collect(),
            Action::Scale | Action::UseKept => x.into_iter().map(form).collect(),
            Action::Map | Action::Shared => y.into_iter().map(form).collect(),
            Action::Zip => y.into_iter().zip(z).map(|(y, z)| form(y).wrapping_add(z)).collect(),
            Action::Accumulate => x.into_iter().zip(y).map(|(x, y)| x.wrapping_add(form(y))).collect(),
            Action::Shift => (0..y.len()).map(|index| form(y[(index + 1) % y.len()])).collect(),
            Action::UpdateOdd => x.into_iter().map(|x| if x % 2 == 1 { form(x) } else { x }).collect(),
            Action::FillOdd => {
                // What is not written keeps its state, which may be "never written".
                for (index, y) in (low..high).zip(y) {
                    if y % 2 == 1 {
                        self.objects[objects[0]].cells[index] = Some(form(index as u64));
                    }
                }
                return;
            }
            Action::Sum if low < high => vec![y.into_iter().fold(0, |sum: u64, y| sum.wrapping_add(form(y)))],
            Action::Two => {
                let new: Vec<u64> = z.into_iter().map(form).collect();
                second = Some(new.iter().map(|value| form(*value)).collect::<Vec<u64>>());
                new
            }
            Action::Sum | Action::Keep | Action::Ignore => Vec::new(),
        };
        self.store(objects[0], low, new.into_iter().map(Some).collect());
        if let Some(second) = second {
            self.store(objects[1], low, second.into_iter().map(Some).collect());
        }
    }
}
