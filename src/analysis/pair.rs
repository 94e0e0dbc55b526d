//! One candidate pair and what every condition needs to look at it; and how its reasons are worded.

use super::access::{Accesses, Touch};
use super::cfg::{Cfg, Region};
use super::decline::Decline;
use super::pending::Item;
use super::program::{Event, NodeId, ObjectId, Program, Site, WorkKind};
use super::verdict::{MissingOrder, Reason};

/// A witness shows at most this many events between its two ends; a reader needs the turns, not every step.
const WITNESS_MIDDLE: usize = 10;

/// A candidate pair in its program.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) program: &'a Program,
    pub(super) cfg: &'a Cfg<'a>,
    pub(super) accesses: &'a Accesses,
    pub(super) host: ObjectId,
    pub(super) device: ObjectId,
    /// The nodes that mention one of the two, in the order of control. At all others nothing happens to the pair, so what a condition costs
    /// goes by these and not by the function.
    pub(super) nodes: &'a [NodeId],
    /// Around [`Self::nodes`].
    pub(super) region: Region,
}

impl<'a> Pair<'a> {
    pub(super) fn objects(&self) -> [ObjectId; 2] {
        [self.host, self.device]
    }

    pub(super) fn has(&self, object: ObjectId) -> bool {
        self.objects().contains(&object)
    }

    pub(super) fn partner(&self, object: ObjectId) -> ObjectId {
        if object == self.host { self.device } else { self.host }
    }

    pub(super) fn name(&self, object: ObjectId) -> String {
        self.program.object(object).name.clone()
    }

    /// The node's accesses of the pair.
    pub(super) fn touches(&self, node: NodeId) -> impl Iterator<Item = &'a Touch> + use<'a> {
        let (host, device) = (self.host, self.device);
        self.accesses.at(node).iter().filter(move |touch| touch.object == host || touch.object == device)
    }

    pub(super) fn reason(&self, decline: Decline, at: NodeId) -> Reason {
        self.reason_on(decline, at, &[])
    }

    /// A reason with a path as its witness.
    pub(super) fn reason_on(&self, decline: Decline, at: NodeId, path: &[NodeId]) -> Reason {
        let last = path.len().saturating_sub(1);
        let mut middle = 0;
        let witness = path.iter().enumerate().filter(|(index, node)| {
            if *index == 0 || *index == last {
                return true;
            }
            middle += usize::from(self.tells(**node));
            self.tells(**node) && middle <= WITNESS_MIDDLE
        });
        Reason {
            decline,
            at: self.program.node(at).site.clone(),
            witness: witness
                .map(|(_, node)| (self.program.node(*node).site.clone(), describe(self.program, *node)))
                .collect(),
            suggestion: None,
            order: None,
        }
    }

    /// A reason that is nothing but the missing order of pending work before a node.
    pub(super) fn unordered(&self, decline: Decline, item: Item, at: NodeId, path: &[NodeId]) -> Reason {
        let work = match item {
            Item::Outside => None,
            Item::Work(node) | Item::StreamWait(node) => Some(node),
        };
        Reason { order: Some(MissingOrder { work, at }), ..self.reason_on(decline, at, path) }
    }

    pub(super) fn reason_at_site(&self, decline: Decline, at: Site) -> Reason {
        Reason { decline, at, witness: Vec::new(), suggestion: None, order: None }
    }

    fn tells(&self, node: NodeId) -> bool {
        match &self.program.node(node).event {
            Event::Skip | Event::Exit { .. } => false,
            Event::Wait(_) | Event::StreamWait { .. } | Event::Record { .. } => true,
            Event::Alloc(object) | Event::Free { object, .. } => self.has(*object),
            Event::Host(_) | Event::Enqueue { .. } | Event::Copy(_) | Event::Opaque { .. } => {
                self.touches(node).next().is_some()
            }
        }
    }
}

/// A node in a few words.
pub(super) fn describe(program: &Program, node: NodeId) -> String {
    let name = |object: &ObjectId| program.object(*object).name.as_str();
    match &program.node(node).event {
        Event::Skip => "control flow".to_owned(),
        Event::Alloc(object) => format!("`{}` is allocated", name(object)),
        Event::Free { object, .. } => format!("`{}` is freed", name(object)),
        Event::Host(accesses) => {
            let mut objects: Vec<&str> = accesses.iter().map(|access| name(&access.object)).collect();
            objects.sort_unstable();
            objects.dedup();
            let quoted: Vec<String> = objects.iter().map(|object| format!("`{object}`")).collect();
            format!("host code that uses {}", quoted.join(", "))
        }
        Event::Enqueue { work, .. } => match work.kind {
            WorkKind::Launch => format!("kernel `{}`", work.name),
            WorkKind::Memset => format!("memset `{}`", work.name),
            WorkKind::Library => format!("library call `{}`", work.name),
        },
        Event::Copy(copy) => {
            let side = |object: &Option<ObjectId>| object.as_ref().map_or("other memory", name).to_owned();
            format!("copy from `{}` to `{}`", side(&copy.src.object), side(&copy.dst.object))
        }
        Event::Wait(_) => "the host waits".to_owned(),
        Event::Record { .. } => "an event is recorded".to_owned(),
        Event::StreamWait { .. } => "a stream waits for an event".to_owned(),
        Event::Opaque { name, .. } => format!("call of `{name}`"),
        Event::Exit { .. } => "the function ends".to_owned(),
    }
}

/// Pending work in a few words.
pub(super) fn describe_item(program: &Program, item: Item) -> String {
    match item {
        Item::Outside => "GPU work from outside this function".to_owned(),
        Item::Work(node) | Item::StreamWait(node) => describe(program, node),
    }
}
