//! What a kernel can reach: functions it calls or whose address it can get hold of, globals, and what their first values name.

use crate::ir::Value;
use std::collections::{HashMap, HashSet};

/// For each root, the functions and globals that it can reach.
pub(crate) struct Reach {
    sets: HashMap<Value, HashSet<Value>>,
}

impl Reach {
    pub(crate) fn of(roots: &[Value]) -> Reach {
        Reach { sets: roots.iter().map(|&root| (root, from(root))).collect() }
    }

    pub(crate) fn reaches(&self, root: Value, wanted: Value) -> bool {
        self.sets.get(&root).is_some_and(|set| set.contains(&wanted))
    }

    pub(crate) fn any(&self, root: Value, wanted: impl Fn(Value) -> bool) -> bool {
        self.sets.get(&root).is_some_and(|set| set.iter().any(|&value| wanted(value)))
    }
}

fn from(root: Value) -> HashSet<Value> {
    let mut named = HashSet::from([root]);
    let mut seen = HashSet::new();
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        if value.is_function() {
            named.insert(value);
            let operands = value.instructions().flat_map(Value::operands);
            open.extend(operands.filter(|operand| operand.is_constant()));
        } else {
            if value.is_global_variable() {
                named.insert(value);
            }
            open.extend(value.operands().into_iter().filter(|operand| operand.is_constant()));
        }
    }
    named
}
