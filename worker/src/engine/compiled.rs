//! Owns the modules that a zygote compiles for its sessions: `CommonJS` files that were loaded by sessions before. None of them runs in
//! the zygote. A session that loads a file with this path and text runs the compiled module instead of compiling it.

pub(super) mod sys;

use super::modules::wrap;
use super::platform;
use super::preload::{self, Preloaded};
use super::source::without_nul;
use super::sys::{heap_bytes, share_bytes, stack_starts_here};
use std::collections::HashMap;
use std::rc::Rc;
use sys::CompiledScript;
use vm_system_protocol::limits::MODULE_SET_HEAP_MB;

/// The text of a module as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleText {
    /// Relative to the worktree.
    pub path: String,
    pub source: String,
}

/// The modules that the zygote has compiled.
#[derive(Default)]
pub(super) struct Compiled {
    /// By their paths.
    modules: HashMap<String, CompiledModule>,
    /// The parts of the platform by their names: what loads modules mostly uses some of them.
    pub(super) parts: HashMap<&'static str, CompiledScript>,
}

/// A module's function before it is created.
pub(super) struct CompiledModule {
    /// The name in stacks.
    pub(super) name: String,
    source: Rc<str>,
    /// The module's text with the wrapper.
    pub(super) text: String,
    /// None for a text that is no script, or for which there was no memory.
    script: Option<CompiledScript>,
}

impl Compiled {
    /// The script of the module with this path, if it has this text.
    pub(super) fn find(&self, path: &str, source: &str) -> Option<(&CompiledModule, &CompiledScript)> {
        let module = self.modules.get(path).filter(|module| *module.source == *source)?;
        Some((module, module.script.as_ref()?))
    }

    /// The text of the module with this path.
    pub(super) fn source_of(&self, path: &str) -> Option<Rc<str>> {
        Some(Rc::clone(&self.modules.get(path)?.source))
    }

    /// The script of a part of the platform.
    pub(super) fn part(&self, name: &str) -> Option<&CompiledScript> {
        self.parts.get(name)
    }
}

impl Preloaded {
    /// Compiles modules, as far as the heap of a set permits. A text that is no script is kept: each session compiles it as a module, or
    /// reports what is wrong with it. Called at most once, before any session.
    pub fn compile(&mut self, modules: Vec<ModuleText>) {
        let machine = &self.0;
        let before = heap_bytes();
        machine.runtime.set_memory_limit(before + MODULE_SET_HEAP_MB as usize * 1024 * 1024);
        machine.context.with(|ctx| {
            stack_starts_here(&ctx);
            let state = &machine.state;
            for ModuleText { path, source } in modules {
                let source: Rc<str> = without_nul(source).into();
                let (name, text) = wrap(state, &path, &source);
                let script = CompiledScript::compile(&ctx, &text, &name);
                state
                    .compiled
                    .borrow_mut()
                    .modules
                    .insert(path, CompiledModule { name, source, text, script });
            }
            state.compiled.borrow_mut().parts = platform::load_parts(&ctx, &platform::part_names());
        });
        preload::settle_heap(&machine.context, &machine.runtime);
        // Sessions begin with a limit of their own.
        machine.state.heap_limit.set(0);
        share_bytes(heap_bytes().saturating_sub(before));
    }
}
