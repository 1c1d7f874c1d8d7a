//! The code buffer of one function: instructions, labels, operand depth, handlers, positions.
//!
//! Owns: [`FunctionBuilder`] and its completion into a template. Must not: read the AST.

use super::Compiler;
use super::control::ControlEntry;
use super::parse::STRICT;
use crate::ops::{Instruction, Opcode, Operand};
use crate::program::{Binding, ExceptionHandler, FunctionTemplate, flag};
use oxc_syntax::symbol::SymbolId;
use std::collections::HashMap;

/// A position in the code that may be unknown yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(u32);

#[derive(Clone, Copy, Default)]
struct LabelPosition {
    pc: Option<u32>,
    depth: Option<u16>,
}

/// A protected region, with a hole in its ranges for each piece of code that leaves it.
pub(super) struct Region {
    ranges: Vec<(u32, u32)>,
    open: Option<u32>,
    depth: u16,
    target: Label,
}

/// The location of `this`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ThisLocation {
    /// In the frame
    Frame,
    /// In the scope of a derived constructor, slot 0; slot 1 is the constructor
    Scope,
}

/// A function while it is compiled.
pub(super) struct FunctionBuilder {
    pub template: u32,
    pub flags: u16,
    pub name: u32,
    pub params: u16,
    pub length: u16,
    pub span: (u32, u32),
    /// Offset of the file's text in the unit's source
    pub origin: u32,
    pub code: Vec<Instruction>,
    labels: Vec<LabelPosition>,
    pub regions: Vec<Region>,
    positions: Vec<(u32, u32)>,
    depth: u16,
    max_depth: u16,
    next_local: u16,
    slots: u16,
    pub locals: HashMap<SymbolId, u16>,
    pub control: Vec<ControlEntry>,
    pub this_at: ThisLocation,
    pub bindings: Vec<Binding>,
    /// Local that holds the array of all arguments
    pub all_args: Option<u16>,
    /// Local that holds the arguments object
    pub arguments: Option<u16>,
    /// The class has something to initialise on instances
    pub has_fields: bool,
    /// Locals with the lists of resources of the scopes in force
    pub resources: Vec<u16>,
    /// Parameters of a derived constructor that become properties when `super()` is done
    pub properties: Vec<(SymbolId, String)>,
    reachable: bool,
}

impl FunctionBuilder {
    pub(super) fn new(template: u32, flags: u16, name: u32, span: (u32, u32)) -> Self {
        FunctionBuilder {
            template,
            flags,
            name,
            params: 0,
            length: 0,
            span,
            origin: 0,
            code: Vec::new(),
            labels: Vec::new(),
            regions: Vec::new(),
            positions: Vec::new(),
            depth: 0,
            max_depth: 0,
            next_local: 2,
            slots: 2,
            locals: HashMap::new(),
            control: Vec::new(),
            this_at: ThisLocation::Frame,
            bindings: Vec::new(),
            all_args: None,
            arguments: None,
            has_fields: false,
            resources: Vec::new(),
            properties: Vec::new(),
            reachable: true,
        }
    }

    pub(super) fn is(&self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    pub(super) fn pc(&self) -> u32 {
        self.code.len() as u32
    }

    pub(super) fn depth(&self) -> u16 {
        self.depth
    }

    pub(super) fn set_depth(&mut self, depth: u16) {
        self.depth = depth;
    }

    /// A fresh frame slot; slots are returned by [`FunctionBuilder::release`].
    pub(super) fn local(&mut self) -> u16 {
        let at = self.next_local;
        self.next_local = self.next_local.saturating_add(1);
        self.slots = self.slots.max(self.next_local);
        at
    }

    pub(super) fn mark(&self) -> u16 {
        self.next_local
    }

    pub(super) fn release(&mut self, mark: u16) {
        self.next_local = mark;
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(LabelPosition::default());
        Label(self.labels.len() as u32 - 1)
    }

    /// Binds a label to the current position.
    pub(super) fn bind(&mut self, label: Label) {
        let pc = self.pc();
        let position = &mut self.labels[label.0 as usize];
        position.pc = Some(pc);
        match position.depth {
            Some(depth) if !self.reachable => self.depth = depth,
            _ => position.depth = Some(self.depth),
        }
        self.reachable = true;
    }

    pub(super) fn emit(&mut self, op: Opcode, c: u32, b: u16) {
        let row = op.row();
        let extra = if row.b == Operand::Count { b } else { 0 };
        let pops = u16::from(row.pops) + extra;
        self.depth = self.depth.saturating_sub(pops) + u16::from(row.pushes);
        self.max_depth = self.max_depth.max(self.depth);
        self.code.push(Instruction::new(op, c, b));
        if matches!(op, Opcode::Jump | Opcode::Ret | Opcode::RetDerived | Opcode::Throw | Opcode::ThrowErr) {
            self.reachable = false;
        }
    }

    /// Emits a jump of any kind to `label`.
    pub(super) fn jump(&mut self, op: Opcode, label: Label, b: u16) {
        let before = self.depth;
        self.emit(op, label.0, b);
        let depth = match op {
            // The stack effect of these differs when they jump.
            Opcode::IterFast => before + 1,
            Opcode::IterValue => before + 1,
            Opcode::ForInNext => before + 1,
            _ => self.depth,
        };
        let position = &mut self.labels[label.0 as usize];
        if position.depth.is_none() {
            position.depth = Some(depth);
        }
    }

    pub(super) fn open_region(&mut self, target: Label) -> usize {
        let pc = self.pc();
        self.labels[target.0 as usize].depth = Some(self.depth + 1);
        self.regions.push(Region { ranges: Vec::new(), open: Some(pc), depth: self.depth, target });
        self.max_depth = self.max_depth.max(self.depth + 1);
        self.regions.len() - 1
    }

    pub(super) fn close_region(&mut self, region: usize) {
        let pc = self.pc();
        let r = &mut self.regions[region];
        if let Some(start) = r.open.take()
            && start < pc
        {
            r.ranges.push((start, pc));
        }
    }

    pub(super) fn reopen_region(&mut self, region: usize) {
        self.regions[region].open = Some(self.pc());
    }

    /// Begins an exception handler: the thrown value is on the stack.
    pub(super) fn begin_handler(&mut self, label: Label) {
        self.reachable = false;
        self.bind(label);
    }

    pub(super) fn position(&mut self, offset: u32) {
        let offset = offset.saturating_sub(STRICT.len() as u32) + self.origin;
        let pc = self.pc();
        match self.positions.last_mut() {
            Some(last) if last.1 == offset => {}
            Some(last) if last.0 == pc => last.1 = offset,
            _ => self.positions.push((pc, offset)),
        }
    }

    fn build(mut self, start: u32) -> (FunctionTemplate, Vec<Instruction>) {
        let position = |label: Label, labels: &[LabelPosition]| labels[label.0 as usize].pc.unwrap_or(0);
        for ins in &mut self.code {
            if ins.op.row().c == Operand::Target {
                ins.c = position(Label(ins.c), &self.labels);
            }
        }
        let mut handlers = Vec::new();
        for r in self.regions.iter().rev() {
            for &(s, e) in &r.ranges {
                handlers.push(ExceptionHandler {
                    start: s,
                    end: e,
                    target: position(r.target, &self.labels),
                    depth: r.depth,
                });
            }
        }
        let source_offset = |at: u32| at.saturating_sub(STRICT.len() as u32) + self.origin;
        let template = FunctionTemplate {
            name: self.name,
            flags: self.flags,
            params: self.params,
            length: self.length,
            slots: self.slots,
            depth: self.max_depth,
            start,
            len: self.code.len() as u32,
            handlers,
            positions: self.positions,
            span: (source_offset(self.span.0), source_offset(self.span.1)),
            bindings: self.bindings,
        };
        (template, self.code)
    }
}

impl Compiler<'_, '_> {
    pub(super) fn f(&mut self) -> &mut FunctionBuilder {
        let last = self.functions.len() - 1;
        &mut self.functions[last]
    }

    pub(super) fn op(&mut self, op: Opcode) {
        self.f().emit(op, 0, 0);
    }

    pub(super) fn op_c(&mut self, op: Opcode, c: u32) {
        self.f().emit(op, c, 0);
    }

    pub(super) fn op_b(&mut self, op: Opcode, b: u16) {
        self.f().emit(op, 0, b);
    }

    pub(super) fn jump(&mut self, op: Opcode, label: Label) {
        self.f().jump(op, label, 0);
    }

    pub(super) fn label(&mut self) -> Label {
        self.f().label()
    }

    pub(super) fn bind(&mut self, label: Label) {
        self.f().bind(label);
    }

    /// Calls a function of the prelude with `args` operands.
    pub(super) fn call_pre(&mut self, name: &str, args: u16) {
        let n = self.pre(name);
        self.f().emit(Opcode::CallPre, n, args);
    }

    pub(super) fn store_local(&mut self, local: u16) {
        self.op_c(Opcode::StoreLoc, u32::from(local));
    }

    pub(super) fn load_local(&mut self, local: u16) {
        self.op_c(Opcode::LoadLoc, u32::from(local));
    }

    pub(super) fn begin_function(&mut self, mut builder: FunctionBuilder) {
        builder.origin = self.current.origin;
        self.functions.push(builder);
    }

    /// Completes the innermost function.
    pub(super) fn end_function(&mut self) -> u32 {
        let Some(builder) = self.functions.pop() else { return 0 };
        let number = builder.template;
        if builder.slots == u16::MAX || builder.max_depth > 60_000 {
            self.refuse(builder.span.0, "the function has too many variables or operands");
        }
        let start = self.unit.code.len() as u32;
        let (template, code) = builder.build(start);
        self.unit.code.extend(code);
        let at = (number - self.first_template) as usize;
        self.unit.templates[at] = template;
        number
    }

    /// True inside an async function's own code (or async arrow).
    pub(super) fn in_async(&mut self) -> bool {
        self.f().is(flag::ASYNC)
    }
}
