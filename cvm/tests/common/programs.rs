//! Random programs from a grammar: they always end, print only results that the specification defines, and use most of the
//! language. Errors are printed by name only, because messages differ between engines.

#[path = "flow.rs"]
mod flow;

use std::fmt::Write as _;
use vm_system_testkit::SeededRandom;

/// Printed by every program: how values are shown, and a bound on the size of texts and arrays.
const PROLOGUE: &str = r"
function show(value, depth = 0) {
  if (typeof value === 'bigint') return value + 'n';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'symbol') return value.toString();
  if (typeof value === 'function') return 'function ' + value.length;
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value);
  if (depth > 3) return '...';
  if (value instanceof Error) return value.name;
  if (Array.isArray(value)) return '[' + value.map((item) => show(item, depth + 1)).join() + ']';
  if (value instanceof Map) return 'Map' + show([...value], depth + 1);
  if (value instanceof Set) return 'Set' + show([...value], depth + 1);
  return '{' + Object.keys(value).map((key) => key + ':' + show(value[key], depth + 1)).join() + '}';
}
function clip(value) {
  if (typeof value === 'string' && value.length > 60) return value.slice(0, 60);
  if (typeof value === 'bigint') return BigInt.asIntN(200, value);
  if (Array.isArray(value) && value.length > 8) return value.slice(0, 8);
  return value;
}
const attempt = (work) => { try { return work(); } catch (error) { return error instanceof Error ? error.name : error; } };
// QuickJS forgets the characters of a string that is spread into an object.
const boxed = (value) => (typeof value === 'string' ? { text: value } : value);
class Point {
  #secret = 7;
  static made = 0;
  constructor(x, y) { this.x = x; this.y = y; Point.made++; }
  get sum() { return this.x + this.y; }
  set sum(value) { this.x = value; this.y = this.#secret; }
  swap() { [this.x, this.y] = [this.y, this.x]; return this; }
  *[Symbol.iterator]() { yield this.x; yield this.y; }
  static of(...items) { return new this(...items); }
}
class Pixel extends Point {
  constructor(x, y, colour = 'red') { super(x, y); this.colour = colour; }
  get sum() { return super.sum + this.colour; }
  swap() { const { colour, ...rest } = super.swap(); return { colour, rest: Object.keys(rest).length }; }
}
function* count(limit) { try { for (let i = 0; i < limit; i++) { const got = yield i; if (got) return got; } } finally { log.push('end'); } }
const log = [];
";

/// The generator of one program.
#[derive(Debug)]
pub(crate) struct Programs {
    random: SeededRandom,
    text: String,
    variables: usize,
    functions: usize,
    /// Expression nodes left.
    budget: usize,
}

/// The program of this seed. It prints with `console.log`, one string at a time.
pub(crate) fn program(seed: u64) -> String {
    let mut maker = Programs {
        random: SeededRandom::new(seed),
        text: PROLOGUE.to_owned(),
        variables: 0,
        functions: 0,
        budget: 400,
    };
    for _ in 0..4 {
        maker.declare();
    }
    for _ in 0..2 {
        maker.function();
    }
    let statements = 6 + maker.random.index(8);
    for _ in 0..statements {
        maker.statement(2, false);
    }
    for variable in 0..maker.variables {
        let _ = writeln!(maker.text, "console.log('v{variable} = ' + show(v{variable}));");
    }
    maker.text.push_str("console.log(show(log));\n");
    maker.text
}

impl Programs {
    fn declare(&mut self) {
        let value = self.expression(2);
        let name = self.variables;
        let _ = writeln!(self.text, "let v{name} = clip(attempt(() => {value}));");
        self.variables += 1;
    }

    fn function(&mut self) {
        let name = self.functions;
        let parameters =
            self.random.pick(&["a, b", "a, b = 3", "a, ...b", "{ x: a, y: b = 2 } = {}", "[a, b] = [1]"]);
        let _ = writeln!(self.text, "function f{name}({parameters}) {{");
        for _ in 0..2 {
            self.statement(1, false);
        }
        let result = self.expression(2);
        let _ = writeln!(self.text, "return clip([a, b, {result}]);\n}}");
        // Functions call only functions that were generated before them, so there is no recursion.
        self.functions += 1;
    }

    fn variable(&mut self) -> String {
        format!("v{}", self.random.index(self.variables.max(1)))
    }

    fn block(&mut self, depth: usize, in_loop: bool) {
        let count = 1 + self.random.index(3);
        for _ in 0..count {
            self.statement(depth, in_loop);
        }
    }

    fn statement(&mut self, depth: usize, in_loop: bool) {
        let choice = self.random.index(if depth == 0 { 4 } else { 17 });
        match choice {
            0 | 1 => {
                let (target, value) = (self.variable(), self.expression(3));
                let _ = writeln!(self.text, "{target} = clip(attempt(() => {value}));");
            }
            2 => {
                let value = self.expression(3);
                let _ = writeln!(self.text, "console.log(show(attempt(() => {value})));");
            }
            3 => self.assignment(),
            4 => {
                let test = self.expression(2);
                let _ = writeln!(self.text, "if (attempt(() => {test})) {{");
                self.block(depth - 1, in_loop);
                self.text.push_str("} else {\n");
                self.block(depth - 1, in_loop);
                self.text.push_str("}\n");
            }
            5..=7 => self.repeat(depth),
            8 => self.try_statement(depth, in_loop),
            9 => self.switch(depth),
            10 => {
                self.text.push_str("{\n");
                let value = self.expression(2);
                let _ = writeln!(self.text, "const local = attempt(() => {value});");
                self.block(depth - 1, in_loop);
                self.text.push_str("console.log(show(local));\n}\n");
            }
            11 if in_loop => {
                let test = self.expression(1);
                let jump = self.random.pick(&["break", "continue"]);
                let _ = writeln!(self.text, "if (attempt(() => {test})) {jump};");
            }
            11 | 12 => self.declare_pattern(),
            _ => self.flow(depth),
        }
    }

    fn assignment(&mut self) {
        let (target, other, value) = (self.variable(), self.variable(), self.expression(2));
        let operator =
            self.random.pick(&["+=", "-=", "*=", "??=", "||=", "&&=", "|=", "^=", "<<=", ">>>=", "%="]);
        let text = match self.random.index(5) {
            0 => format!("[{target}, {other}] = [clip({other}), clip({target})];"),
            1 => format!("attempt(() => {{ [{target}, ...{other}] = {value}; }}); {other} = clip({other});"),
            2 => format!(
                "attempt(() => {{ ({{ x: {target} = 5, length: {other} }} = {value}); }}); {target} = clip({target});"
            ),
            3 => format!(
                "attempt(() => {{ {target}{}; }});",
                self.random.pick(&["++", "--", ".x = 1", "[1] = 2"])
            ),
            _ => format!("attempt(() => {{ {target} {operator} {value}; }}); {target} = clip({target});"),
        };
        self.text.push_str(&text);
        self.text.push('\n');
    }

    fn declare_pattern(&mut self) {
        let value = self.expression(2);
        let pattern =
            self.random.pick(&["[p, q = 1, ...r]", "{ x: p, y: q = p, ...r }", "{ length: p, 0: q, ...r }"]);
        let value = if pattern.starts_with('{') { format!("boxed({value})") } else { value };
        let _ = writeln!(
            self.text,
            "attempt(() => {{ const {pattern} = {value}; console.log(show(clip(p)) + show(clip(q)) + show(clip(r))); }});"
        );
    }

    fn repeat(&mut self, depth: usize) {
        let limit = 1 + self.random.index(4);
        let fresh = self.text.len();
        let counter = format!("i{fresh}");
        match self.random.index(5) {
            0 => {
                let _ = writeln!(self.text, "for (let {counter} = 0; {counter} < {limit}; {counter}++) {{");
            }
            1 => {
                let list = self.expression(2);
                let _ = writeln!(self.text, "for (const {counter} of clip(attempt(() => [...{list}]))) {{");
            }
            2 => {
                let object = self.expression(2);
                let _ = writeln!(self.text, "for (const {counter} in clip(attempt(() => {object}))) {{");
            }
            3 => {
                let _ = writeln!(self.text, "for (const {counter} of count({limit})) {{");
            }
            _ => {
                let _ = writeln!(
                    self.text,
                    "let n{fresh} = 0; while (n{fresh}++ < {limit}) {{ const {counter} = n{fresh};"
                );
            }
        }
        let _ = writeln!(self.text, "console.log(show({counter}));");
        if self.random.one_in(3) {
            let _ = writeln!(self.text, "log.push(() => {counter}); if (log.length > 9) log.length = 0;");
        }
        self.block(depth - 1, true);
        self.text.push_str("}\n");
    }

    fn try_statement(&mut self, depth: usize, in_loop: bool) {
        self.text.push_str("try {\n");
        self.block(depth - 1, in_loop);
        if self.random.one_in(2) {
            let value = self.expression(1);
            let _ = writeln!(self.text, "throw {value};");
        }
        self.text.push_str("} catch (error) {\nconsole.log('caught ' + show(clip(error)));\n");
        self.block(depth - 1, in_loop);
        self.text.push_str("} finally {\n");
        self.block(depth - 1, in_loop);
        self.text.push_str("}\n");
    }

    fn switch(&mut self, depth: usize) {
        let value = self.expression(2);
        let _ = writeln!(self.text, "switch (attempt(() => {value})) {{");
        for case in 0..3 {
            let test = self.expression(1);
            let _ = writeln!(self.text, "case attempt(() => {test}): console.log('case {case}');");
            self.block(depth - 1, false);
            if self.random.one_in(2) {
                self.text.push_str("break;\n");
            }
        }
        self.text.push_str("default: console.log('default');\n}\n");
    }

    /// An expression; it may throw.
    fn expression(&mut self, depth: usize) -> String {
        self.budget = self.budget.saturating_sub(1);
        if depth == 0 || self.budget == 0 {
            return self.atom();
        }
        match self.random.index(9) {
            0 => self.atom(),
            1 | 2 => {
                let (left, right) = (self.expression(depth - 1), self.expression(depth - 1));
                let operator = self.random.pick(&[
                    "+",
                    "-",
                    "*",
                    "/",
                    "%",
                    "<",
                    "<=",
                    ">",
                    ">=",
                    "==",
                    "!=",
                    "===",
                    "!==",
                    "&",
                    "|",
                    "^",
                    "<<",
                    ">>",
                    ">>>",
                    "&&",
                    "||",
                    "??",
                    ",",
                    "in",
                    "instanceof",
                ]);
                // `??` cannot be combined with `&&` and `||` without parentheses.
                format!("(({left}) {operator} ({right}))")
            }
            3 => {
                let value = self.expression(depth - 1);
                format!("({} ({value}))", self.random.pick(&["-", "+", "!", "~", "typeof", "void"]))
            }
            4 => {
                let (test, yes, no) =
                    (self.expression(depth - 1), self.expression(depth - 1), self.expression(depth - 1));
                format!("(({test}) ? ({yes}) : ({no}))")
            }
            5 => self.literal(depth),
            6 => self.member(depth),
            7 => self.callback(depth),
            _ => self.call(depth),
        }
    }

    fn atom(&mut self) -> String {
        if self.variables > 0 && self.random.one_in(2) {
            return self.variable();
        }
        self.random
            .pick(&[
                "0",
                "-0",
                "1",
                "2.5",
                "-7",
                "1e21",
                "0x10",
                "NaN",
                "Infinity",
                "3n",
                "-12n",
                "''",
                "'abc'",
                "'x y'",
                "'10'",
                "true",
                "false",
                "null",
                "undefined",
                "[]",
                "[1, 2, 3]",
                "['b', 'a', 10, 9]",
                "({ x: 1, y: 'z' })",
                "new Point(1, 2)",
                "Pixel.of(3, 4)",
                "count(3)",
                "new Map([[1, 'a'], ['k', 2]])",
                "new Set([3, 1, 3])",
                "/a(b)?/g",
                "Symbol.for('s')",
                "new Date(86400000).getTime()",
                "[, 1]",
                "(() => 5)",
                "`t${1 + 1}`",
                "log.length",
            ])
            .to_owned()
    }

    fn literal(&mut self, depth: usize) -> String {
        let (first, second) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.random.index(5) {
            0 => format!("[{first}, {second}]"),
            1 => format!("[...{first}, {second}]"),
            2 => format!("({{ x: {first}, [{second}]: 1 }})"),
            3 => format!("({{ ...boxed({first}), get y() {{ return {second}; }} }})"),
            _ => format!("`a${{{first}}}b${{{second}}}`"),
        }
    }

    fn member(&mut self, depth: usize) -> String {
        let object = self.expression(depth - 1);
        let tail = self.random.pick(&[
            ".x",
            "?.y",
            ".length",
            "[0]",
            "?.[1]",
            ".sum",
            "?.x?.y",
            ".constructor.name",
            ".swap?.()",
            ".size",
            ".next?.().value",
            ".toString()",
            ".at?.(-1)",
            ".valueOf()",
        ]);
        let delete = if tail == ".x" && self.random.one_in(3) { "delete " } else { "" };
        format!("({delete}({object}){tail})")
    }

    fn callback(&mut self, depth: usize) -> String {
        let (list, body) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.random.index(8) {
            0 => format!("[...{list}].map((item, index) => [index, clip(item), clip({body})])"),
            1 => format!("[...{list}].filter((item) => item && ({body}))"),
            2 => format!("[...{list}].reduce((sum, item) => clip(sum + String(show(item))), '')"),
            3 => format!("[...{list}].sort((a, b) => show(a) < show(b) ? -1 : show(a) > show(b) ? 1 : 0)"),
            4 => format!("Object.entries({list}).flatMap(([key, value]) => [key, clip(value)])"),
            5 => format!(
                "[...{list}].find((item) => {{ log.push(0); if (log.length > 9) log.length = 0; return {body}; }})"
            ),
            6 => format!("((a, b = {body}) => [a, clip(b)])(clip({list}))"),
            _ => format!(
                "String({list}).replace(/[a-z]/g, (letter) => letter.toUpperCase() + show(clip({body})))"
            ),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        let (first, second) = (self.expression(depth - 1), self.expression(depth - 1));
        if self.functions > 0 && self.random.one_in(3) {
            return format!("f{}({first}, {second})", self.random.index(self.functions));
        }
        match self.random.index(12) {
            0 => format!("String({first}).slice({second})"),
            1 => format!("String({first}).split({second}, 5)"),
            2 => format!("JSON.stringify(clip({first}))"),
            3 => format!("JSON.parse(JSON.stringify([clip({first})]))"),
            4 => format!("Math.max({first}, {second})"),
            5 => format!("Math.round({first})"),
            6 => format!("Object.assign({{}}, boxed({first}), boxed({second}))"),
            7 => format!("Number({first}).toFixed(2)"),
            8 => format!("parseInt({first}, 16)"),
            9 => format!("[{first}].concat(clip({second}))"),
            10 => format!("String({first}).padStart(8, String({second}))"),
            _ => format!("BigInt.asIntN(64, BigInt({first}) * BigInt({second}))"),
        }
    }
}
