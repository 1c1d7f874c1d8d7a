//! The part of the grammar about suspended and non-local control flow: pauses, labels, generators, async functions,
//! classes, and parameters with separate scopes.

use super::Programs;
use std::fmt::Write as _;

impl Programs {
    /// One statement of this part.
    pub(super) fn flow(&mut self, depth: usize) {
        match self.random.index(8) {
            0 => self.labelled(depth),
            1 | 2 => self.generator(depth),
            3 | 4 => self.asynchronous(depth),
            5 => self.pauses(),
            6 => self.class(),
            _ => self.parameters(),
        }
    }

    /// A name that no other statement uses.
    fn fresh(&self) -> usize {
        self.text.len()
    }

    fn labelled(&mut self, depth: usize) {
        let n = self.fresh();
        let (list, test) = (self.expression(1), self.expression(2));
        let jump = self.random.pick(&["break outer", "continue outer", "break inner", "continue inner"]);
        let _ = writeln!(
            self.text,
            "outer{n}: for (let a{n} = 0; a{n} < 3; a{n}++) {{ inner{n}: for (const b{n} of clip(attempt(() => [1, ...{list}]))) {{"
        );
        self.text.push_str("try {\n");
        let _ = writeln!(self.text, "if (attempt(() => {test})) {jump}{n};");
        self.block(depth - 1, true);
        let _ = writeln!(self.text, "}} finally {{ console.log('leaves ' + a{n}); }}\n}}\n}}");
    }

    fn generator(&mut self, depth: usize) {
        let n = self.fresh();
        let (first, second, list, result) =
            (self.expression(2), self.expression(2), self.expression(1), self.expression(1));
        let _ = writeln!(
            self.text,
            "function* g{n}(a = {first}) {{ try {{ const got = yield a; console.log(show(clip(got)));"
        );
        if self.random.one_in(2) {
            self.block(depth - 1, false);
        }
        let _ = writeln!(
            self.text,
            "const [p, q = yield {second}] = [yield* clip([...{list}])]; console.log(show(clip(q))); return {result};"
        );
        if self.random.one_in(2) {
            let caught = self.expression(1);
            let _ = writeln!(
                self.text,
                "}} catch (error) {{ console.log('in ' + show(clip(error))); yield {caught};"
            );
        }
        let last = self.random.pick(&["", "yield 'last';", "if (log.length > 2) return 'replaced';"]);
        let _ = writeln!(self.text, "}} finally {{ {last} console.log('closes'); }} }}");
        let _ = writeln!(self.text, "attempt(() => {{ const it{n} = g{n}();");
        for _ in 0..=self.random.index(5) {
            let value = self.expression(1);
            let step = self.random.pick(&["next", "next", "next", "return", "throw"]);
            let _ = writeln!(
                self.text,
                "console.log(show(attempt(() => {{ const r = it{n}.{step}({value}); return [clip(r.value), r.done]; }})));"
            );
        }
        let _ = writeln!(self.text, "console.log(show(attempt(() => clip([...it{n}])))); }});");
    }

    /// An async function; the reason of its rejection is printed. Its parts are interleaved with those of other functions.
    fn asynchronous(&mut self, depth: usize) {
        let n = self.fresh();
        let (first, second, list) = (self.expression(2), self.expression(2), self.expression(1));
        let awaited = self.random.pick(&[
            "await null",
            "await attempt(() => 1)",
            "await Promise.resolve(2)",
            "await Promise.reject('no')",
            "await { then(done) { done(3); } }",
            "await Promise.all([1, Promise.resolve(2)])",
            "await Promise.race([Promise.reject(4), 5])",
            "(await Promise.allSettled([Promise.reject(6), 7])).length",
            "await (async () => { await null; throw new RangeError('deep'); })()",
        ]);
        let _ = writeln!(
            self.text,
            "(async (a = {first}) => {{ try {{ console.log('starts {n}'); const w = {awaited}; console.log('goes on ' + show(w));"
        );
        self.block(depth - 1, false);
        match self.random.index(3) {
            0 => {
                let _ = writeln!(
                    self.text,
                    "for await (const x of clip([...{list}])) {{ console.log(show(clip(x))); if (x) break; }}"
                );
            }
            1 => {
                let _ = writeln!(
                    self.text,
                    "for (const x of [1, 2]) {{ if (x === 2) continue; console.log(show(clip(await CC('in async ' + x)))); }}"
                );
            }
            _ => self.text.push_str("await null;\n"),
        }
        let _ = writeln!(
            self.text,
            "return {second}; }} catch (error) {{ console.log('catches ' + show(clip(error))); await null; }} finally {{ console.log('ends {n}'); }} }})()\
             .then((value) => console.log('gives ' + show(clip(value))), (error) => console.log('rejects ' + show(clip(error))));"
        );
    }

    /// Pauses in odd places.
    fn pauses(&mut self) {
        let (value, list) = (self.expression(2), self.expression(1));
        let text = match self.random.index(6) {
            0 => format!("console.log(show(attempt(() => CC('q' + show(clip({value}))))));"),
            1 => format!(
                "console.log(show(attempt(() => clip([...{list}]).map((item) => CC('m' + show(clip(item)))))));"
            ),
            2 => format!(
                "console.log(show(attempt(() => {{ const {{ d = CC('default') }} = boxed({value}); return clip(d); }})));"
            ),
            3 => format!(
                "console.log(show(attempt(() => {{ try {{ return clip({value}); }} finally {{ console.log(CC('finally')); }} }})));"
            ),
            4 => format!(
                "console.log(show(attempt(() => `${{{{ toString() {{ return CC('text'); }} }}}}` + show(clip({value})))));"
            ),
            _ => format!(
                "console.log(show(attempt(() => [3, 1, 2].sort((a, b) => {{ CC('compare'); return a - b; }}).concat(clip({value})))));"
            ),
        };
        self.text.push_str(&text);
        self.text.push('\n');
    }

    fn class(&mut self) {
        let n = self.fresh();
        let (field, key, fixed, value) =
            (self.expression(1), self.expression(1), self.expression(1), self.expression(1));
        let base = self.random.pick(&[
            "Point",
            "Pixel",
            "Object",
            "null",
            "class { constructor() { return { own: 1 }; } }",
        ]);
        let call = self.random.pick(&[
            "super(...rest);",
            "super(...rest); this.#p = rest.length;",
            "(() => super(1, 2))();",
            "",
        ]);
        let _ = writeln!(
            self.text,
            "attempt(() => {{ const K{n} = class Named extends ({base}) {{ #p = clip({field}); [show(clip({key}))] = 1; static s = clip(attempt(() => {fixed})); \
             static {{ console.log(show(this.s)); }} constructor(...rest) {{ {call} }} get p() {{ return [this.#p, #p in this]; }} \
             set p(x) {{ this.#p = clip(x); }} static of2() {{ return Named.name; }} }};"
        );
        let _ = writeln!(
            self.text,
            "console.log(K{n}.of2()); const k = new K{n}(3, 4); console.log(show(attempt(() => Object.keys(k)))); k.p = {value}; console.log(show(k.p)); }});"
        );
        let _ = writeln!(
            self.text,
            "console.log(show(attempt(() => {{ class C {{ static m() {{ C = 1; }} }} C.m(); }})));"
        );
    }

    /// Without assignments to a parameter in the body: there `QuickJS` differs from the specification.
    fn parameters(&mut self) {
        let (first, second) = (self.expression(1), self.expression(1));
        let head = self.random.pick(&[
            "(a, f = () => a)",
            "(a, f = () => a, b = f)",
            "(f = () => a, a = f)",
            "({ a }, f = () => a)",
            "([a, f = () => a] = [])",
        ]);
        let body = self.random.pick(&["var a;", "var a = 'own';", "function a() {}", ""]);
        let _ = writeln!(
            self.text,
            "console.log(show(attempt(() => ({head} => {{ {body} const before = typeof f === 'function' ? clip(f()) : f; return [clip(a), before, clip({second})]; }})(clip({first})))));"
        );
    }
}
