//! `console`. `vm-system-inspect` has the methods; groups, counters and timers are properties of an object that no program can
//! reach, and so are stored with the state. The time is that of the state, which the host sets.

use super::ids;
use super::natives::{EMPTY, Module, method};
use crate::outcome::{ConsoleLine, Level};
use crate::value::Value;
use crate::vm::{NativeCall, Res, Ret, Vm};
use vm_system_inspect::{ConsoleMemory, EngineValues, METHODS, OutputLevel, call};

pub(super) const MODULE: Module = Module {
    methods: &[
        method(ids::CONSOLE, METHODS[0].0, 0, run::<0>),
        method(ids::CONSOLE, METHODS[1].0, 0, run::<1>),
        method(ids::CONSOLE, METHODS[2].0, 0, run::<2>),
        method(ids::CONSOLE, METHODS[3].0, 0, run::<3>),
        method(ids::CONSOLE, METHODS[4].0, 0, run::<4>),
        method(ids::CONSOLE, METHODS[5].0, 0, run::<5>),
        method(ids::CONSOLE, METHODS[6].0, 0, run::<6>),
        method(ids::CONSOLE, METHODS[7].0, 0, run::<7>),
        method(ids::CONSOLE, METHODS[8].0, 0, run::<8>),
        method(ids::CONSOLE, METHODS[9].0, 0, run::<9>),
        method(ids::CONSOLE, METHODS[10].0, 0, run::<10>),
        method(ids::CONSOLE, METHODS[11].0, 0, run::<11>),
        method(ids::CONSOLE, METHODS[12].0, 0, run::<12>),
        method(ids::CONSOLE, METHODS[13].0, 0, run::<13>),
        method(ids::CONSOLE, METHODS[14].0, 0, run::<14>),
        method(ids::CONSOLE, METHODS[15].0, 0, run::<15>),
        method(ids::CONSOLE, METHODS[16].0, 0, run::<16>),
        method(ids::CONSOLE, METHODS[17].0, 0, run::<17>),
        method(ids::CONSOLE, METHODS[18].0, 0, run::<18>),
        method(ids::CONSOLE, METHODS[19].0, 0, run::<19>),
        method(ids::CONSOLE, METHODS[20].0, 0, run::<20>),
        method(ids::CONSOLE, METHODS[21].0, 0, run::<21>),
    ],
    extra: |r| r.global("console", Value::Obj(ids::CONSOLE)),
    ..EMPTY
};

const _: () = assert!(METHODS.len() == MODULE.methods.len());

/// Name of the property that counts the open groups.
const GROUPS: &str = "groups";

/// The state of `console`, read from a state, with the changes that a call makes. Programs of the first generation have no methods
/// that change it.
struct StoredConsole<'a, 'p> {
    vm: &'a Vm<'p>,
    /// Properties and their new values; `None`: removed
    changes: Vec<(String, Option<f64>)>,
}

impl StoredConsole<'_, '_> {
    fn read(&self, name: &str) -> Option<f64> {
        let value = EngineValues::own_data(self.vm, &Value::Obj(ids::CONSOLE_STATE), name)?;
        value.as_num()
    }
}

fn counter(label: &str) -> String {
    format!("count {label}")
}

fn timer(label: &str) -> String {
    format!("time {label}")
}

impl ConsoleMemory for StoredConsole<'_, '_> {
    fn groups(&self) -> usize {
        self.read(GROUPS).map_or(0, |levels| levels as usize)
    }

    fn set_groups(&mut self, levels: usize) {
        self.changes.push((GROUPS.to_owned(), (levels > 0).then_some(levels as f64)));
    }

    fn count(&mut self, label: &str) -> u64 {
        let name = counter(label);
        let count = self.read(&name).unwrap_or(0.0) + 1.0;
        self.changes.push((name, Some(count)));
        count as u64
    }

    fn reset_count(&mut self, label: &str) -> bool {
        let name = counter(label);
        let known = self.read(&name).is_some();
        self.changes.push((name, None));
        known
    }

    fn start_timer(&mut self, label: &str) -> bool {
        let name = timer(label);
        if self.read(&name).is_some() {
            return false;
        }
        self.changes.push((name, Some(self.vm.st.now)));
        true
    }

    fn elapsed(&mut self, label: &str, end: bool) -> Option<u64> {
        let name = timer(label);
        let started = self.read(&name)?;
        if end {
            self.changes.push((name, None));
        }
        Some(((self.vm.st.now - started) * 1e6) as u64)
    }
}

/// The method in this row of the table.
fn run<const ROW: usize>(vm: &mut Vm<'_>, c: NativeCall) -> Res<Ret> {
    let arguments: Vec<Value> = (0..c.argc).map(|i| vm.arg(&c, i)).collect();
    // One byte more than the limit allows shows that the text does not fit.
    let left = vm.st.limits.output_bytes.saturating_sub(vm.st.printed);
    let most = usize::try_from(left).unwrap_or(usize::MAX).saturating_add(1).max(100);
    let mut memory = StoredConsole { vm, changes: Vec::new() };
    let output = call(&*vm, &mut memory, METHODS[ROW].1, &arguments, most);
    for (name, value) in memory.changes {
        let key = vm.st.heap.key(&name);
        match value {
            Some(value) => vm.create(ids::CONSOLE_STATE, key, Value::num(value)),
            None => {
                vm.delete(ids::CONSOLE_STATE, key);
            }
        }
    }
    let Some(output) = output else { return Ok(Value::Undefined.into()) };
    let bytes = output.text.len() as u64 + 1;
    if vm.st.dropped.lines > 0 || bytes > left {
        // A program does not end because of its log. Once a line is dropped, the lines behind it are, too: there is one gap.
        vm.st.dropped.lines += 1;
        vm.st.dropped.bytes = vm.st.dropped.bytes.saturating_add(bytes);
        return Ok(Value::Undefined.into());
    }
    vm.st.printed += bytes;
    let level = match output.level {
        OutputLevel::Log | OutputLevel::Info => Level::Log,
        OutputLevel::Warn => Level::Warn,
        OutputLevel::Error => Level::Error,
        OutputLevel::Debug => Level::Debug,
    };
    vm.st.output.push(ConsoleLine { level, text: output.text });
    Ok(Value::Undefined.into())
}
