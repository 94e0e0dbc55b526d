//! Writes one function: values get names, instructions are counted, and, where it is asked for, each has a place in the source.

use std::fmt::Write;

/// Debug metadata of the module.
pub(crate) struct Metadata {
    wanted: bool,
    nodes: Vec<String>,
    lines: usize,
}

impl Metadata {
    pub(crate) fn new(wanted: bool) -> Self {
        let nodes = [
            r#"distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, emissionKind: LineTablesOnly)"#,
            r#"!DIFile(filename: "synthetic.cu", directory: "/")"#,
            r#"!{i32 2, !"Debug Info Version", i32 3}"#,
            r#"!DISubroutineType(types: !4)"#,
            r#"!{}"#,
        ];
        Self { wanted, nodes: nodes.map(str::to_owned).to_vec(), lines: 0 }
    }

    fn add(&mut self, node: String) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn subprogram(&mut self, name: &str) -> Option<usize> {
        self.wanted.then(|| {
            let line = self.lines;
            self.add(format!(
                "distinct !DISubprogram(name: \"{name}\", scope: !1, file: !1, line: {line}, type: !3, unit: !0, spFlags: DISPFlagDefinition)"
            ))
        })
    }

    fn place(&mut self, scope: usize) -> usize {
        self.lines += 1;
        let line = self.lines;
        self.add(format!("!DILocation(line: {line}, column: 1, scope: !{scope})"))
    }

    /// The end of the module's text.
    pub(crate) fn text(&self) -> String {
        if !self.wanted {
            return String::new();
        }
        let mut text = "!llvm.dbg.cu = !{!0}\n!llvm.module.flags = !{!2}\n".to_owned();
        for (index, node) in self.nodes.iter().enumerate() {
            let _ = writeln!(text, "!{index} = {node}");
        }
        text
    }
}

/// A finished function.
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) instructions: usize,
}

/// A function as it grows. Its parameters are `ptr %a, ptr %b, i64 %n, i64 %k`.
pub(crate) struct Function<'a> {
    text: String,
    /// Allocas, which belong at the head of the entry block.
    variables: String,
    names: usize,
    instructions: usize,
    accumulator: String,
    block: String,
    metadata: &'a mut Metadata,
    scope: Option<usize>,
    head: String,
}

impl<'a> Function<'a> {
    /// `attributes` is IR text.
    pub(crate) fn new(name: &str, attributes: &str, metadata: &'a mut Metadata) -> Self {
        let head = format!("define i64 @{name}(ptr %a, ptr %b, i64 %n, i64 %k) {attributes}");
        Self::with_head(name, head, metadata)
    }

    pub(crate) fn main(metadata: &'a mut Metadata) -> Self {
        Self::with_head("main", "define i32 @main()".to_owned(), metadata)
    }

    /// `head` is IR text.
    pub(crate) fn with_head(name: &str, head: String, metadata: &'a mut Metadata) -> Self {
        let scope = metadata.subprogram(name);
        Self {
            text: String::new(),
            variables: String::new(),
            names: 0,
            instructions: 0,
            accumulator: "%k".to_owned(),
            block: "entry".to_owned(),
            metadata,
            scope,
            head,
        }
    }

    pub(crate) fn instructions(&self) -> usize {
        self.instructions
    }

    /// A value that depends on all ordinary code so far, so that none of it is dead.
    pub(crate) fn accumulator(&self) -> &str {
        &self.accumulator
    }

    pub(crate) fn accumulate(&mut self, value: String) {
        self.accumulator = value;
    }

    /// The block that is being written.
    pub(crate) fn block(&self) -> String {
        self.block.clone()
    }

    /// A name that no value or block has.
    pub(crate) fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// A local variable.
    pub(crate) fn variable(&mut self, ty: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.variables, "  %{name} = alloca {ty}");
        self.instructions += 1;
        format!("%{name}")
    }

    /// An instruction with a value.
    pub(crate) fn value(&mut self, text: &str) -> String {
        let name = self.name();
        self.named(&name, text);
        format!("%{name}")
    }

    /// An instruction whose value has a name that was made before.
    pub(crate) fn named(&mut self, name: &str, text: &str) {
        self.effect(&format!("%{name} = {text}"));
    }

    /// An instruction without a value.
    pub(crate) fn effect(&mut self, text: &str) {
        let _ = match self.scope {
            Some(scope) => {
                let place = self.metadata.place(scope);
                writeln!(self.text, "  {text}, !dbg !{place}")
            }
            None => writeln!(self.text, "  {text}"),
        };
        self.instructions += 1;
    }

    pub(crate) fn go_to(&mut self, block: &str) {
        self.effect(&format!("br label %{block}"));
    }

    pub(crate) fn branch(&mut self, condition: &str, yes: &str, no: &str) {
        self.effect(&format!("br i1 {condition}, label %{yes}, label %{no}"));
    }

    /// Starts a block.
    pub(crate) fn start(&mut self, block: &str) {
        let _ = writeln!(self.text, "{block}:");
        self.block = block.to_owned();
    }

    /// A loop of `count` rounds (IR text of type i64); `body` gets the round's number. The body may have blocks of its own.
    pub(crate) fn repeat(&mut self, count: &str, body: impl FnOnce(&mut Self, &str)) {
        let (round, next, head, after) = (self.name(), self.name(), self.name(), self.name());
        let before = self.block();
        self.go_to(&head);
        self.start(&head);
        let latch = self.name();
        self.named(&round, &format!("phi i64 [ 0, %{before} ], [ %{next}, %{latch} ]"));
        body(self, &format!("%{round}"));
        self.go_to(&latch);
        self.start(&latch);
        self.named(&next, &format!("add nuw nsw i64 %{round}, 1"));
        let more = self.value(&format!("icmp ult i64 %{next}, {count}"));
        self.branch(&more, &head, &after);
        self.start(&after);
    }

    /// The end of a function that returns what ordinary code computed.
    pub(crate) fn finish_with_result(self) -> Written {
        let last = format!("ret i64 {}", self.accumulator);
        self.finish(&last)
    }

    /// `last` is the final instruction.
    pub(crate) fn finish(mut self, last: &str) -> Written {
        self.effect(last);
        let place = self.scope.map_or(String::new(), |scope| format!(" !dbg !{scope}"));
        let Self { text, variables, head, instructions, .. } = self;
        Written { text: format!("{head}{place} {{\nentry:\n{variables}{text}}}\n"), instructions }
    }
}
