//! Random programs with pending items in every position of an expression or statement. They always end, and print only what the language
//! defines: in which order promises settle, which of a race wins, what is caught, what nothing handles.

use std::fmt::Write as _;
use vm_system_testkit::SeededRandom;

/// Every program begins with this: how values are printed.
const PROLOGUE: &str = r"
function text(value) {
  if (value instanceof AggregateError) return 'AggregateError[' + value.errors.map(text).join() + ']';
  if (value instanceof Error) return value.name + ': ' + value.message;
  if (value === undefined) return 'undefined';
  return typeof value === 'string' ? value : JSON.stringify(value, (key, part) => (part instanceof Error ? text(part) : part));
}
function say(...parts) { console.log(parts.map(text).join(' ')); }
function join(...parts) { return parts.map(text).join('+'); }
async function later(value, ticks) { for (let i = 0; i < ticks; i++) await null; return value; }
async function* each(...promises) { try { for (const promise of promises) yield await promise; } finally { say('closes'); } }
class Holder { #held; constructor(held) { this.#held = held; } get held() { return this.#held; } async add(more) { this.#held = join(this.#held, await more); return this; } }
let count = 0, shared = 'shared';
";

/// A program.
#[derive(Debug)]
pub(crate) struct ItemProgram {
    pub(crate) source: String,
    /// The top level awaits, and there is no `main`
    pub(crate) awaits: bool,
}

struct Maker {
    random: SeededRandom,
    text: String,
    /// Promises that are variables where the next statement is
    promises: Vec<usize>,
    names: usize,
    /// Parts left: bounds the size
    budget: usize,
    in_loop: bool,
}

/// The program of this seed.
pub(crate) fn item_program(seed: u64) -> ItemProgram {
    let mut maker = Maker {
        random: SeededRandom::new(seed),
        text: PROLOGUE.to_owned(),
        promises: Vec::new(),
        names: 0,
        budget: 60,
        in_loop: false,
    };
    let form = maker.random.index(4);
    let head = [
        "await null;\n",
        "async function main() {\n",
        "const main = async () => {\n",
        "async function main(a = shared) {\n",
    ][form];
    maker.text.push_str(head);
    for _ in 0..3 + maker.random.index(4) {
        maker.statement(3);
    }
    if form > 0 {
        let last =
            maker.random.pick(&["return 'done';", "return sleep(1);", "", "return later([count], 2);"]);
        let _ = writeln!(maker.text, "{last}\n{}", if form == 2 { "};" } else { "}" });
    }
    ItemProgram { source: maker.text, awaits: form == 0 }
}

impl Maker {
    fn fresh(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn block(&mut self, depth: usize) {
        let known = self.promises.len();
        for _ in 0..=self.random.index(2) {
            self.statement(depth);
        }
        self.promises.truncate(known);
    }

    /// A promise of the host.
    fn item(&mut self) -> String {
        let n = self.fresh();
        match self.random.index(12) {
            0..=3 => format!("CC.async('q{n}')"),
            4 => format!("CC.async('json{n}', {{ schema: {{ type: 'object' }} }})"),
            5 => format!("CC.async('fail{n}')"),
            6 => format!("CC.async('late{n}', {{ timeout_ms: {n} }})"),
            7 => format!("waitFor('e{n}')"),
            8 => format!("waitFor('late{n}', {{ timeout_ms: {n}, default: [{n}, 'd'] }})"),
            9 => format!("waitFor('late{n}', {{ timeout_ms: 0.5 }})"),
            _ => format!("sleep({n})"),
        }
    }

    /// An expression whose value is a promise, or a thenable.
    fn promise(&mut self, depth: usize) -> String {
        self.budget = self.budget.saturating_sub(1);
        if depth == 0 || self.budget == 0 {
            return self.item();
        }
        let d = depth - 1;
        match self.random.index(18) {
            0..=3 => self.item(),
            4 | 5 if !self.promises.is_empty() => {
                format!("p{}", self.promises[self.random.index(self.promises.len())])
            }
            6 => {
                let way = self.random.pick(&["all", "all", "allSettled", "any"]);
                format!("Promise.{way}([{}, {}])", self.promise(d), self.promise(d))
            }
            7 | 8 => format!("Promise.race([{}, {}])", self.promise(d), self.promise(d)),
            9 => format!("{}.then((value) => {})", self.promise(d), self.value(d)),
            10 => format!("{}.catch((error) => join('c', error))", self.promise(d)),
            11 => format!(
                "{}.finally(() => {{ say('f', ++count); return {}; }})",
                self.promise(d),
                self.promise(d)
            ),
            12 => format!("(async () => join(await {}, {}))()", self.promise(d), self.awaited(d)),
            13 => {
                format!("new Promise((resolve, reject) => {{ {}.then(resolve, reject); }})", self.promise(d))
            }
            14 => format!(
                "Promise.resolve({{ then(resolve, reject) {{ {}.then(resolve, reject); }} }})",
                self.promise(d)
            ),
            15 => format!("later({}, {})", self.promise(d), self.random.index(4)),
            16 => format!("Promise.reject(new RangeError('r{}'))", self.fresh()),
            _ => format!("new Holder('h').add({}).then((holder) => holder.held)", self.promise(d)),
        }
    }

    /// An expression with `await` in it.
    fn awaited(&mut self, depth: usize) -> String {
        if depth == 0 || self.budget == 0 {
            return format!("await {}", self.item());
        }
        let d = depth - 1;
        match self.random.index(12) {
            0..=3 => format!("await {}", self.promise(d)),
            4 => format!("join({}, {})", self.awaited(d), self.awaited(d)),
            5 => format!("`${{text({})}}/${{text({})}}`", self.awaited(d), self.awaited(d)),
            6 => format!("[{}, ...[{}]]", self.awaited(d), self.awaited(d)),
            7 => format!("({{ [text({})]: {} }})", self.awaited(d), self.awaited(d)),
            8 => format!("(({}) ?? {})", self.awaited(d), self.awaited(d)),
            9 => format!("(({}) ? {} : {})", self.awaited(d), self.awaited(d), self.value(d)),
            10 => format!("(await new Holder(text({})).add({})).held", self.awaited(d), self.promise(d)),
            _ => format!("(({{ a = {}, b }}) => join(a, b))({{ b: {} }})", self.value(d), self.awaited(d)),
        }
    }

    /// An expression without `await`.
    fn value(&mut self, depth: usize) -> String {
        match self.random.index(5) {
            0 => format!("'v{}'", self.fresh()),
            1 => "++count".to_owned(),
            2 => format!("CC('s{}')", self.fresh()),
            3 => self.promise(depth.saturating_sub(1)),
            _ => "shared".to_owned(),
        }
    }

    fn statement(&mut self, depth: usize) {
        let n = self.fresh();
        if depth == 0 || self.budget == 0 {
            let awaited = self.awaited(0);
            return self.line(&format!("say('s{n}', {awaited});"));
        }
        let d = depth - 1;
        match self.random.index(16) {
            0..=2 => {
                let promise = self.promise(d);
                self.line(&format!("const p{n} = {promise};"));
                self.promises.push(n);
            }
            3 | 4 => {
                let awaited = self.awaited(depth);
                self.line(&format!("say('s{n}', {awaited});"));
            }
            5 => {
                let awaited = self.awaited(d);
                self.line(&format!("shared = join(shared, {awaited}).slice(-60); say('x{n}', shared);"));
            }
            6 | 7 => {
                self.line("try {");
                self.block(d);
                let (caught, last) = (self.awaited(0), self.awaited(0));
                self.line(&format!(
                    "}} catch (error) {{ say('c{n}', error, {caught}); }} finally {{ say('f{n}', {last}); }}"
                ));
            }
            8 => {
                let before = std::mem::replace(&mut self.in_loop, true);
                self.line(&format!("for (let i{n} = 0; i{n} < 2; i{n}++) {{"));
                self.block(d);
                self.line("}");
                self.in_loop = before;
            }
            9 => {
                let before = std::mem::replace(&mut self.in_loop, true);
                let (first, second) = (self.promise(d), self.promise(d));
                let list = self.random.pick(&["each(", "["]);
                let end = if list == "[" { "]" } else { ")" };
                self.line(&format!(
                    "try {{ for await (const v{n} of {list}{first}, {second}{end}) {{ say('v{n}', v{n});"
                ));
                self.block(0);
                self.line(&format!("}} }} catch (error) {{ say('e{n}', error); }}"));
                self.in_loop = before;
            }
            10 => {
                let awaited = self.awaited(d);
                self.line(&format!("if (text({awaited}).length % 2) {{"));
                self.block(d);
                self.line("} else {");
                self.block(d);
                self.line("}");
            }
            11 => {
                let awaited = self.awaited(d);
                self.line(&format!("switch (text({awaited})[0]) {{ case '<': {{"));
                self.block(d);
                self.line("} default: say('default'); }");
            }
            12 if self.in_loop => {
                let (awaited, jump) = (self.awaited(0), self.random.pick(&["break", "continue"]));
                self.line(&format!("if (text({awaited}).length % 3 === 0) {jump};"));
            }
            12 | 13 => {
                let promise = self.promise(d);
                self.line(&format!("{promise};"));
            }
            14 => {
                let promise = self.promise(d);
                self.line(&format!(
                    "{promise}.then((value) => say('t{n}', value), (error) => say('r{n}', error));"
                ));
            }
            _ => self.line(&format!("say('q{n}', CC('s{n}'));")),
        }
    }
}
